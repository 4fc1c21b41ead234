/// Divides a stream of bytes into blocks for a hash function, regardless of the sizes of the inputs.
///
/// Only the bytes of incomplete blocks are copied. All other blocks are passed on in place.
struct BlockBuffer {
  /// The size of a block in bytes.
  let blockSize: Int
  /// The total number of bytes. It is less than 2^61, because no process can pass more.
  private(set) var totalCount: UInt64 = 0
  /// The bytes of an incomplete block. Between calls, there are fewer than ``blockSize``.
  private(set) var pending: [UInt8] = []

  init(blockSize: Int) {
    self.blockSize = blockSize
  }

  /// Adds bytes, and calls `process` with one or more entire blocks at a time, in order.
  mutating func feed(_ bytes: UnsafeRawBufferPointer, process: (UnsafeRawBufferPointer) -> Void) {
    totalCount += UInt64(bytes.count)
    var rest = bytes[...]
    if !pending.isEmpty {
      pending.append(contentsOf: takePrefix(blockSize - pending.count, of: &rest))
      guard pending.count == blockSize else { return }
      pending.withUnsafeBytes(process)
      pending.removeAll(keepingCapacity: true)
    }
    let whole = takePrefix(rest.count - rest.count % blockSize, of: &rest)
    if !whole.isEmpty { process(UnsafeRawBufferPointer(rebasing: whole)) }
    pending.append(contentsOf: rest)
  }

  private func takePrefix(_ count: Int, of bytes: inout Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
    let prefix = bytes.prefix(count)
    bytes = bytes.dropFirst(count)
    return prefix
  }

  /// The padding of a SHA-2 message: a one bit, zero bits, and the length (FIPS 180-4, section 5.1).
  ///
  /// The length is in bits, as a big-endian number of `lengthFieldSize` bytes. The padded message consists of entire blocks.
  func secureHashPadding(lengthFieldSize: Int) -> [UInt8] {
    let used = pending.count + 1 + lengthFieldSize
    let zeros = (blockSize - used % blockSize) % blockSize
    var padding: [UInt8] = [0x80]
    // The upper part of a field wider than a word is always zero, because a process can't pass 2^61 bytes.
    padding.append(contentsOf: repeatElement(0, count: zeros + lengthFieldSize - MemoryLayout<UInt64>.size))
    appendBigEndian(totalCount << 3, to: &padding)
    return padding
  }
}

/// Appends the bytes of an integer in big-endian order.
func appendBigEndian(_ word: some FixedWidthInteger, to bytes: inout [UInt8]) {
  withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
}

/// Calls `body` with the bytes of a collection in memory. Copies them only if they aren't contiguous.
func withContiguousBytes(of bytes: some Collection<UInt8>, _ body: (UnsafeRawBufferPointer) -> Void) {
  let wasContiguous: Void? = bytes.withContiguousStorageIfAvailable { body(UnsafeRawBufferPointer($0)) }
  if wasContiguous == nil { Array(bytes).withUnsafeBytes(body) }
}
