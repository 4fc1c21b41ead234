/// Where a text or a blob lies in a ``ByteArena``.
@frozen public struct ByteRange: Hashable, Sendable {
  /// The first byte.
  public let offset: UInt32
  /// How many bytes.
  public let count: UInt32

  /// Makes a range; both numbers must fit the arena that it is used with.
  @inlinable public init(offset: Int, count: Int) {
    self.offset = UInt32(offset)
    self.count = UInt32(count)
  }

  /// The same range as indexes.
  @inlinable var indexes: Range<Int> { Int(offset)..<Int(offset) + Int(count) }
}

/// All texts and blobs of an input, one after the other, in one allocation.
///
/// An input is complete before any clock starts, and it must not look like many objects to the memory figures: so
/// it is a handful of arrays, and a `String` exists only for whoever asks for one. It is not a pool for values that
/// change.
public struct ByteArena: Sendable {
  @usableFromInline var bytes: [UInt8] = []

  /// Makes an empty arena with room for some bytes.
  public init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  /// How many bytes it holds.
  public var count: Int { bytes.count }

  /// Adds bytes at the end and says where they are. An arena holds less than 4 GiB.
  public mutating func append(_ source: some Sequence<UInt8>) -> ByteRange {
    let start = bytes.count
    bytes.append(contentsOf: source)
    return ByteRange(offset: start, count: bytes.count - start)
  }

  /// The bytes of a range as text.
  @inlinable public func string(_ range: ByteRange) -> String {
    withBytes(range) { String(decoding: $0, as: UTF8.self) }
  }

  /// Calls a closure with the bytes of a range; the pointer is valid during the call only.
  @inlinable public func withBytes<R, E>(_ range: ByteRange, _ body: (UnsafeBufferPointer<UInt8>) throws(E) -> R) throws(E) -> R {
    try bytes.withUnsafeBufferPointer { (all) throws(E) in try body(UnsafeBufferPointer(rebasing: all[range.indexes])) }
  }
}
