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

/// The index of a property in a row: of an attribute or a to-one relationship. See ``ManagedObjectModel/Entity``.
@frozen public struct SlotIndex: TypedInteger {
  /// The index as an integer.
  public let rawValue: Int

  /// Creates an index from an integer.
  @inlinable @inline(__always) public init(rawValue: Int) { self.rawValue = rawValue }

  /// The word of the slot's bit in a list of 64-bit words.
  @inlinable @inline(__always) public var word: Int { rawValue >> 6 }

  /// The slot's bit in its word.
  @inlinable @inline(__always) public var bit: UInt64 { 1 << UInt64(rawValue & 63) }
}

extension ManagedObjectModel {
  /// The indexes of all entities.
  @inlinable public var entityIndexes: Range<EntityIndex> { 0..<EntityIndex(entities.count) }
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

extension Array where Element == ManagedObjectModel.Slot {
  /// The property in a slot.
  @inlinable @inline(__always) public subscript(slot: SlotIndex) -> Element { self[slot.rawValue] }
}

extension Array where Element == ColumnType {
  /// The type of a slot's column.
  @inlinable @inline(__always) public subscript(slot: SlotIndex) -> Element { self[slot.rawValue] }
}

extension Array where Element == CellKind {
  /// How a slot's cell is read.
  @inlinable @inline(__always) public subscript(slot: SlotIndex) -> Element { self[slot.rawValue] }
}

extension Array where Element == StoreValue {
  /// The value of a slot, in an array with the values of a row.
  @inlinable @inline(__always) public subscript(slot: SlotIndex) -> Element {
    get { self[slot.rawValue] }
    _modify { yield &self[slot.rawValue] }
  }
}

extension Array {
  /// The element of an index, in an array with one element per entity, per slot, or per relationship of an entity.
  @inlinable @inline(__always) public subscript<Index: TypedInteger>(index: Index) -> Element where Index.RawValue == Int {
    get { self[index.rawValue] }
    _modify { yield &self[index.rawValue] }
  }
}

extension Range where Bound: RawRepresentable, Bound.RawValue == Int {
  /// The range as integers.
  @inlinable @inline(__always) package var rawValues: Range<Int> { Range<Int>(uncheckedBounds: (lowerBound.rawValue, upperBound.rawValue)) }
}
