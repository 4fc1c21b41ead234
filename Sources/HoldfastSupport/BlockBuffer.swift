/// Cuts a stream of bytes into whole blocks for a hash function, whatever the sizes in which the bytes arrive.
///
/// Bytes are copied only when a block is completed by more than one call; the middle of a large update is handed on
/// in place.
struct BlockBuffer {
  /// The bytes in one block of the hash function.
  let blockSize: Int
  /// All bytes fed so far. Fewer than 2^61: no process feeds more.
  private(set) var totalCount: UInt64 = 0
  /// The bytes that wait for the rest of their block: always fewer than ``blockSize`` between calls.
  private(set) var pending: [UInt8] = []

  init(blockSize: Int) {
    self.blockSize = blockSize
  }

  /// Feeds bytes, and calls `process` with one or more whole blocks at a time, in order.
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

  /// The bytes that end a SHA-2 message: a one bit, zero bits, and the length in bits as a big-endian number of
  /// `lengthFieldSize` bytes, so that the message fills whole blocks. (FIPS 180-4, section 5.1.)
  func secureHashPadding(lengthFieldSize: Int) -> [UInt8] {
    let used = pending.count + 1 + lengthFieldSize
    let zeros = (blockSize - used % blockSize) % blockSize
    var padding: [UInt8] = [0x80]
    // The upper part of a field wider than a word stays zero: 2^61 bytes are more than a process can feed.
    padding.append(contentsOf: repeatElement(0, count: zeros + lengthFieldSize - MemoryLayout<UInt64>.size))
    appendBigEndian(totalCount << 3, to: &padding)
    return padding
  }
}

/// Appends the bytes of an integer, the most significant first.
func appendBigEndian(_ word: some FixedWidthInteger, to bytes: inout [UInt8]) {
  withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
}

/// Calls `body` with the elements of a collection as bytes in memory, copying them only when they are not contiguous.
func withContiguousBytes(of bytes: some Collection<UInt8>, _ body: (UnsafeRawBufferPointer) -> Void) {
  let wasContiguous: Void? = bytes.withContiguousStorageIfAvailable { body(UnsafeRawBufferPointer($0)) }
  if wasContiguous == nil { Array(bytes).withUnsafeBytes(body) }
}
