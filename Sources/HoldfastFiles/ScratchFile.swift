internal import CHoldfastPOSIX
public import HoldfastStore

/// A temporary file without a name, whose pieces are read into memory again when they are used.
///
/// The file takes space on the disk until it is released with all its pieces. When the process ends, nothing remains of it.
///
/// Not thread-safe.
public final class ScratchFile {
  private let file: OpenFile
  private var byteCount: Int64 = 0

  /// The first failure of reading a piece. Its bytes were zero from then on, so what was made of them is wrong.
  public var failure: FileSystemError? { file.failure }

  /// The open file, which its pieces keep.
  fileprivate final class OpenFile {
    let handle: StoreFileHandle
    var failure: FileSystemError?
    /// The pieces that were read since the last ``ScratchFile/evictLoaded()``; nil if they aren't recorded.
    var loaded: [Piece]?

    init(_ handle: StoreFileHandle, _ loaded: [Piece]?) { (self.handle, self.loaded) = (handle, loaded) }
    deinit { try? POSIXFileSystem().close(handle) }
  }

  /// Creates the file in the folder of another one. Only its owner can access it. If the system has no files without names, it has one for a
  /// moment.
  ///
  /// - Parameters:
  ///   - other: The other file.
  ///   - recordsLoaded: Whether ``evictLoaded()`` will be called after each use of pieces. Until then, the file keeps those that were read.
  /// - Returns: Nil if the file can't be created, or if the other one isn't a file of the operating system: what is in an encrypted file
  ///   must not be in another one.
  public init?(beside other: DurableFile, recordsLoaded: Bool = false) {
    guard other.options.fileSystem is POSIXFileSystem, let folder = other.openFolder else { return nil }
    let fileSystem = POSIXFileSystem(), name = TemporaryName.random(for: folder.name)
    if let handle = fileSystem.createUnnamed(in: folder.directory) {
      file = OpenFile(handle, recordsLoaded ? [] : nil)
      return
    }
    guard let handle = try? fileSystem.create(name, in: folder.directory) else { return nil }
    file = OpenFile(handle, recordsLoaded ? [] : nil)
    do throws(FileSystemError) { try fileSystem.unlink(name, in: folder.directory) } catch { return nil }
  }

  /// Appends bytes.
  ///
  /// - Returns: The piece of the file that has them. Nil if they can't be written, for example because the disk is full.
  public func append(_ bytes: UnsafeRawBufferPointer) -> Piece? {
    guard let piece = Piece(file, at: byteCount, bytes) else { return nil }
    do throws(FileSystemError) { try POSIXFileSystem().writeAll(bytes.bytes, to: file.handle, at: byteCount) } catch { return nil }
    byteCount += Int64(bytes.count)
    return piece
  }

  /// Evicts all pieces that were read since the last call, also if they are still used. Has an effect only if the file records them.
  public func evictLoaded() {
    guard let loaded = file.loaded else { return }
    for piece in loaded { piece.evict() }
    file.loaded?.removeAll(keepingCapacity: true)
  }

  /// A range of the file, and addresses for its bytes.
  ///
  /// Using the bytes ends the process unless ``load()`` was called since the last ``evict()``: they would be wrong.
  public final class Piece: RowBatchMemory, @unchecked Sendable {  // because the file isn't thread-safe, and says so
    /// The address of the bytes, aligned to pages.
    public let base: UnsafeRawPointer
    private let file: OpenFile
    private let offset: Int64
    private let count: Int
    private let digest: UInt64
    /// The number of bytes of addresses: whole pages of every system.
    private let reservedByteCount: Int
    private var isLoaded = false
    private var isReadable = true

    private static let alignment = 1 << 16

    fileprivate init?(_ file: OpenFile, at offset: Int64, _ bytes: UnsafeRawBufferPointer) {
      let byteCount = (max(bytes.count, 1) + Piece.alignment - 1) / Piece.alignment * Piece.alignment
      guard let base = holdfast_reserve(byteCount) else { return nil }
      (self.base, reservedByteCount, self.file, self.offset) = (UnsafeRawPointer(base), byteCount, file, offset)
      (count, digest) = (bytes.count, ContentDigest.value(of: bytes))
    }

    deinit { holdfast_release(memory, reservedByteCount) }

    private var memory: UnsafeMutableRawPointer { UnsafeMutableRawPointer(mutating: base) }

    /// Reads the bytes, unless they are in memory. If they can't be read, they are zero, and the file has a ``ScratchFile/failure``.
    ///
    /// - Returns: Whether they could be read.
    @discardableResult public func load() -> Bool {
      if !isLoaded { read() }
      return isReadable
    }

    private func read() {
      let result = holdfast_open_pages(memory, reservedByteCount)
      precondition(result == 0, "There isn't enough memory to read \(count) bytes of a temporary file.")
      isLoaded = true
      file.loaded?.append(self)
      let bytes = UnsafeMutableRawBufferPointer(start: memory, count: count)
      do throws(FileSystemError) {
        guard try POSIXFileSystem().fill(bytes, from: file.handle, at: offset) == count,
          // A disk that fails later than a write returns may lose the bytes without another error.
          ContentDigest.value(of: UnsafeRawBufferPointer(bytes)) == digest
        else { throw FileSystemError(.read, name: file.handle.name, number: ErrorNumber.wrongContents) }
      } catch {
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: count)
        file.failure = file.failure ?? error
        isReadable = false
      }
    }

    /// Removes the bytes from memory.
    public func evict() {
      if !isLoaded { return }
      holdfast_close_pages(memory, reservedByteCount)
      isLoaded = false
    }
  }
}
