public import HoldfastStore

/// What the accessors of a class with a declaration use. Written by hand or generated, they all have the same form.
extension ManagedObject {
  /// The slots of a class's properties: the numbers of its attributes and to-one relationships in a row, and of its to-many relationships.
  ///
  /// A class with a declaration has an enumeration of this name, with one constant for each property and the number of slots of an object.
  /// The slots of the superclass come first, then the class's own in the order of their names.
  public enum Slots {
    /// The number of slots of an object without properties.
    @inlinable @inline(__always) public static var count: Int { 0 }
    /// The number of to-many relationships of an object without properties.
    @inlinable @inline(__always) public static var toManyCount: Int { 0 }
  }

  /// An attribute.
  @inlinable public final subscript<Value: AttributeValue>(property slot: SlotIndex) -> Value {
    @inline(__always) get { self[slot] }
    set { self[slot] = newValue }
  }

  /// A to-one relationship.
  public final subscript<Destination: ManagedObject>(property slot: SlotIndex) -> Destination? {
    get { toOne(slot) }
    set { setToOne(slot, newValue) }
  }

  /// A composite attribute; nil if no element has a value.
  @inlinable public final subscript<Value: CompositeAttributeValue>(property slot: SlotIndex) -> Value? {
    get { self[composite: slot] }
    set { self[composite: slot] = newValue }
  }

  /// A composite attribute. If no element has a value, it reads as `Value()`.
  @inlinable public final subscript<Value: CompositeAttributeValue>(property slot: SlotIndex) -> Value {
    get { self[composite: slot] ?? Value() }
    set { self[composite: slot] = newValue }
  }

  /// A to-many relationship.
  public final subscript<Destination: ManagedObject>(property index: ToManyIndex) -> ToManyRelationship<Destination> {
    toMany(index.rawValue)
  }

  /// An ordered relationship.
  public final subscript<Destination: ManagedObject>(property index: ToManyIndex) -> OrderedRelationship<Destination> {
    ordered(index.rawValue)
  }

  /// The number of slots of an attribute.
  @inlinable @inline(__always) public static func slotCount<Value: AttributeValue>(of type: Value.Type) -> Int { 1 }

  /// The number of slots of a to-one relationship.
  @inlinable @inline(__always) public static func slotCount<Destination: ManagedObject>(of type: Destination?.Type) -> Int { 1 }

  /// The number of slots of an optional composite attribute.
  @inlinable @inline(__always) public static func slotCount<Value: CompositeAttributeValue>(of type: Value?.Type) -> Int {
    Value.slotCount
  }

  /// The number of slots of a composite attribute.
  @inlinable @inline(__always) public static func slotCount<Value: CompositeAttributeValue>(of type: Value.Type) -> Int {
    Value.slotCount
  }
}

/// The number of a to-many relationship among those of its entity.
@frozen public struct ToManyIndex: TypedInteger {
  /// The number, from 0 on.
  public let rawValue: Int

  /// Creates an index from an integer.
  @inlinable @inline(__always) public init(rawValue: Int) { self.rawValue = rawValue }
}
