/// The position of a string or a blob in a ``ByteArena``.
@frozen public struct ByteRange: Hashable, Sendable {
  /// The offset of the first byte.
  public let offset: UInt32
  /// The number of bytes.
  public let count: UInt32

  /// Creates a range. Both numbers must fit the arena that it is used with.
  @inlinable public init(offset: Int, count: Int) {
    self.offset = UInt32(offset)
    self.count = UInt32(count)
  }

  /// The same range as indexes.
  @inlinable var indexes: Range<Int> { Int(offset)..<Int(offset) + Int(count) }
}

/// All strings and blobs of an input, contiguous in one allocation.
///
/// An input is complete before any clock starts, and must not affect the memory figures with many small objects. So it consists of
/// a few arrays, and strings are created on demand. It isn't meant for values that change.
public struct ByteArena: Sendable {
  @usableFromInline var bytes: [UInt8] = []

  /// Creates an empty arena with a capacity in bytes.
  public init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  /// The number of bytes.
  public var count: Int { bytes.count }

  /// Appends bytes and returns their range. An arena holds less than 4 GiB.
  public mutating func append(_ source: some Sequence<UInt8>) -> ByteRange {
    let start = bytes.count
    bytes.append(contentsOf: source)
    return ByteRange(offset: start, count: bytes.count - start)
  }

  /// The bytes of a range as a string.
  @inlinable public func string(_ range: ByteRange) -> String {
    withBytes(range) { String(decoding: $0, as: UTF8.self) }
  }

  /// Calls a closure with the bytes of a range. The pointer is valid only during the call.
  @inlinable public func withBytes<R, E>(_ range: ByteRange, _ body: (UnsafeBufferPointer<UInt8>) throws(E) -> R) throws(E) -> R {
    try bytes.withUnsafeBufferPointer { (all) throws(E) in try body(UnsafeBufferPointer(rebasing: all[range.indexes])) }
  }
}
