/// The index of an entity in ``ManagedObjectModel/entities``.
@frozen public struct EntityIndex: TypedInteger {
  /// The index as an integer.
  public let rawValue: Int

  /// Creates an index from an integer.
  @inlinable @inline(__always) public init(rawValue: Int) { self.rawValue = rawValue }
}

/// The index of a relationship in ``ManagedObjectModel/Entity/relationships``.
///
/// Transient relationships have their own indexes, in ``ManagedObjectModel/Entity/transientRelationships``.
@frozen public struct RelationshipIndex: TypedInteger {
  /// The index as an integer.
  public let rawValue: Int

  /// Creates an index from an integer.
  @inlinable @inline(__always) public init(rawValue: Int) { self.rawValue = rawValue }
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

extension Array where Element == ManagedObjectModel.Relationship {
  /// The relationship with an index.
  @inlinable @inline(__always) public subscript(index: RelationshipIndex) -> Element { self[index.rawValue] }
}

extension Array {
  /// The element of an index, in an array with one element per entity, or per relationship of an entity.
  @inlinable @inline(__always) package subscript<Index: TypedInteger>(index: Index) -> Element where Index.RawValue == Int {
    get { self[index.rawValue] }
    _modify { yield &self[index.rawValue] }
  }
}

extension Range where Bound: RawRepresentable, Bound.RawValue == Int {
  /// The range as integers.
  @inlinable @inline(__always) package var rawValues: Range<Int> { Range<Int>(uncheckedBounds: (lowerBound.rawValue, upperBound.rawValue)) }
}
