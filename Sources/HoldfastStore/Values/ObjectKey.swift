/// The key of an object: a number that is unique among all entities with the same root.
///
/// A root is an entity without a superentity. Keys of saved objects are positive. A store may use all positive numbers; the framework uses
/// negative keys for objects that haven't been saved.
@frozen public struct ObjectKey: TypedInteger {
  /// The key as an integer.
  public let rawValue: Int64

  /// Creates a key from an integer.
  @inlinable @inline(__always) public init(rawValue: Int64) { self.rawValue = rawValue }

  /// The hash of the integer, which sets and dictionaries of keys compute as fast as those of plain integers.
  @inlinable @inline(__always) public func _rawHashValue(seed: Int) -> Int { rawValue._rawHashValue(seed: seed) }
}

extension ObjectKey {
  /// The least key, which no object has.
  @inlinable package static var min: ObjectKey { ObjectKey(rawValue: .min) }

  /// The greatest key.
  @inlinable package static var max: ObjectKey { ObjectKey(rawValue: .max) }

  /// The key with a number, such as an index.
  @inlinable @inline(__always) package init(_ number: Int) { self.init(rawValue: Int64(number)) }
}

extension RowPointer {
  /// The key of a to-one destination. The cell must not be null.
  @inlinable @inline(__always) public func key(_ slot: SlotIndex) -> ObjectKey { ObjectKey(integer(slot)) }
}

extension ClosedRange<ObjectKey> {
  /// The range as integers.
  @inlinable public var rawValues: ClosedRange<Int64> { ClosedRange<Int64>(uncheckedBounds: (lowerBound.rawValue, upperBound.rawValue)) }
}

extension StoreValue {
  /// The key of a to-one destination as a value: ``int64(_:)`` with the key's number.
  public static func key(_ key: ObjectKey) -> StoreValue { .int64(key.rawValue) }
}
