/// The index of an entity in ``ManagedObjectModel/entities``.
///
/// It is a type of its own, so that it can't be exchanged with another index. Conversions from and to `Int` are explicit. It is encoded as an
/// integer.
@frozen
public struct EntityIndex: RawRepresentable, Hashable, Comparable, Strideable, Sendable, Codable, ExpressibleByIntegerLiteral,
  CustomStringConvertible
{
  /// The index as an integer.
  public let rawValue: Int

  /// Creates an index from an integer.
  @inlinable @inline(__always) public init(rawValue: Int) { self.rawValue = rawValue }

  /// Creates an index from an integer.
  @inlinable @inline(__always) public init(_ rawValue: Int) { self.rawValue = rawValue }

  /// Creates an index from a literal.
  @inlinable @inline(__always) public init(integerLiteral value: Int) { rawValue = value }

  /// The index as text.
  @inlinable public var description: String { String(rawValue) }

  /// Whether two indexes are equal.
  @inlinable @inline(__always) public static func == (a: EntityIndex, b: EntityIndex) -> Bool { a.rawValue == b.rawValue }

  /// Whether an index is less than another one.
  @inlinable @inline(__always) public static func < (a: EntityIndex, b: EntityIndex) -> Bool { a.rawValue < b.rawValue }

  /// The number of indexes from this one to another one.
  @inlinable @inline(__always) public func distance(to other: EntityIndex) -> Int { other.rawValue - rawValue }

  /// The index at a distance from this one.
  @inlinable @inline(__always) public func advanced(by distance: Int) -> EntityIndex { EntityIndex(rawValue + distance) }
}

extension ManagedObjectModel {
  /// The indexes of all entities.
  @inlinable package var entityIndexes: Range<EntityIndex> { 0..<EntityIndex(entities.count) }
}

extension Array where Element == ManagedObjectModel.Entity {
  /// The entity with an index.
  @inlinable @inline(__always) public subscript(index: EntityIndex) -> Element { self[index.rawValue] }

  /// The entities with these indexes.
  @inlinable @inline(__always) public subscript(indexes: Range<EntityIndex>) -> ArraySlice<Element> { self[indexes.rawValues] }
}

extension Array {
  /// The element of an entity, in an array with one element per entity.
  @inlinable @inline(__always) package subscript(index: EntityIndex) -> Element {
    get { self[index.rawValue] }
    _modify { yield &self[index.rawValue] }
  }
}

extension Range where Bound: RawRepresentable, Bound.RawValue == Int {
  /// The range as integers.
  @inlinable @inline(__always) package var rawValues: Range<Int> { Range<Int>(uncheckedBounds: (lowerBound.rawValue, upperBound.rawValue)) }
}
