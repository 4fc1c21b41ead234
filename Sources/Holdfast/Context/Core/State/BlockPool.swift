#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Memory for the rows and the relationship states of a context's changed objects: chunks of blocks of equal size.
///
/// Objects that are made one after the other have their blocks one after the other, so saving them reads memory in order. A chunk returns to the
/// system when its last block does, usually in a save. One chunk of each size is kept.
///
/// ```text
/// chunk  ┌────────┬───────┬───────┬───────┬──────────────┐
///        │ header │ block │ free  │ block │ never used   │
///        └────────┴───────┴───────┴───────┴──────────────┘
/// ```
///
/// A chunk begins at a multiple of its size, so the address of a block gives that of its chunk. Blocks of more than ``limit`` bytes are
/// allocated one by one.
final class BlockPool {
  private struct Header {
    /// The neighbours in the list of chunks that have space.
    var next: UnsafeMutablePointer<Header>?
    var previous: UnsafeMutablePointer<Header>?
    /// The first returned block. Each contains the address of the next one.
    var returned: UnsafeMutableRawPointer?
    /// The number of blocks in use.
    var used = 0
    /// The offset of the first block that was never used.
    var end: Int
    /// The size of a block in bytes.
    let blockByteCount: Int

    var isFull: Bool { returned == nil && end + blockByteCount > BlockPool.usableByteCount }
  }

  private typealias Chunk = UnsafeMutablePointer<Header>

  /// The maximum size in bytes of a block in a chunk.
  static let limit = 512
  private static let step = 32
  private static let chunkByteCount = 16_384
  /// The library's own header of the next chunk then fits in front of it, so consecutive chunks leave no gaps.
  private static let usableByteCount = chunkByteCount - 16

  /// The number of chunks.
  private(set) var chunkCount = 0
  /// The chunks that have space, by size.
  private let open: UnsafeMutablePointer<Chunk?>

  init() {
    let count = BlockPool.limit / BlockPool.step + 1
    open = .allocate(capacity: count)
    open.initialize(repeating: nil, count: count)
  }

  /// Requires that all blocks were returned.
  deinit {
    for size in 0...BlockPool.limit / BlockPool.step {
      while let chunk = open[size] {
        assert(chunk.pointee.used == 0, "A block outlived the pool.")
        unlink(chunk)
        free(chunk)
      }
    }
    open.deallocate()
  }

  /// A block with at least a number of bytes, aligned to 16 bytes.
  func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
    if byteCount > BlockPool.limit { return BlockPool.checked(malloc(byteCount)) }
    let chunk = open[BlockPool.size(byteCount)] ?? addChunk(BlockPool.size(byteCount))
    let block: UnsafeMutableRawPointer
    if let returned = chunk.pointee.returned {
      block = returned
      chunk.pointee.returned = returned.load(as: UnsafeMutableRawPointer?.self)
    } else {
      block = UnsafeMutableRawPointer(chunk) + chunk.pointee.end
      chunk.pointee.end += chunk.pointee.blockByteCount
    }
    chunk.pointee.used += 1
    if chunk.pointee.isFull { unlink(chunk) }
    return block
  }

  /// Returns a block.
  ///
  /// - Parameter byteCount: The size with which it was allocated.
  func deallocate(_ block: UnsafeMutableRawPointer, _ byteCount: Int) {
    if byteCount > BlockPool.limit { return free(block) }
    let address = UInt(bitPattern: block) & ~UInt(BlockPool.chunkByteCount - 1)
    guard let chunk = Chunk(bitPattern: address) else { return }
    let wasFull = chunk.pointee.isFull
    block.storeBytes(of: chunk.pointee.returned, as: UnsafeMutableRawPointer?.self)
    chunk.pointee.returned = block
    chunk.pointee.used -= 1
    if wasFull { link(chunk, BlockPool.size(byteCount)) }
    if chunk.pointee.used == 0 { empty(chunk) }
  }

  // MARK: Chunks

  private static func size(_ byteCount: Int) -> Int { max(1, (byteCount + step - 1) / step) }

  private func addChunk(_ size: Int) -> Chunk {
    var memory: UnsafeMutableRawPointer?
    _ = posix_memalign(&memory, BlockPool.chunkByteCount, BlockPool.usableByteCount)
    let chunk = BlockPool.checked(memory).bindMemory(to: Header.self, capacity: 1)
    let first = (MemoryLayout<Header>.size + 15) & ~15
    chunk.initialize(to: Header(end: first, blockByteCount: size * BlockPool.step))
    chunkCount += 1
    link(chunk, size)
    return chunk
  }

  /// Frees an empty chunk, or keeps it for the next blocks if no other one has space.
  private func empty(_ chunk: Chunk) {
    if chunk.pointee.next == nil && chunk.pointee.previous == nil { return }
    unlink(chunk)
    chunkCount -= 1
    free(chunk)
  }

  private func link(_ chunk: Chunk, _ size: Int) {
    chunk.pointee.next = open[size]
    open[size]?.pointee.previous = chunk
    open[size] = chunk
  }

  private func unlink(_ chunk: Chunk) {
    let (previous, next) = (chunk.pointee.previous, chunk.pointee.next)
    if let previous { previous.pointee.next = next } else { open[chunk.pointee.blockByteCount / BlockPool.step] = next }
    next?.pointee.previous = previous
    (chunk.pointee.previous, chunk.pointee.next) = (nil, nil)
  }

  private static func checked(_ memory: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer {
    guard let memory else { preconditionFailure("Out of memory for a changed object.") }
    return memory
  }
}
