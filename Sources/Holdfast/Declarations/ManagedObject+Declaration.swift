public import HoldfastStore

/// What the accessors of a class with a declaration use. Written by hand or generated, they all have the same form: they read and write
/// `self[property:]`. The type of the index and of the value select the kind of property.
extension ManagedObject {
  /// The numbers of an object's places for properties. A class with a declaration has an enumeration of this name, which adds its own to
  /// those of its superclass.
  public enum SlotCounts {
    /// The number of slots in a row: attributes and to-one relationships.
    @inlinable @inline(__always) public static var slots: Int { 0 }
    /// The number of to-many relationships.
    @inlinable @inline(__always) public static var toMany: Int { 0 }
    /// The number of transient attributes.
    @inlinable @inline(__always) public static var transients: Int { 0 }
    /// The number of transient relationships.
    @inlinable @inline(__always) public static var transientLinks: Int { 0 }
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

  /// A to-many relationship. Setting it replaces the objects by those of another relationship.
  public final subscript<Destination: ManagedObject>(property index: ToManyIndex) -> ToMany<Destination> {
    get { toMany(index.rawValue) }
    set {
      let relationship: ToMany<Destination> = toMany(index.rawValue)
      if !flags.contains(.probe) { relationship.replaceAll(with: newValue) }
    }
  }

  /// An ordered relationship. Setting it replaces the objects by those of another relationship.
  public final subscript<Destination: ManagedObject>(property index: ToManyIndex) -> OrderedToMany<Destination> {
    get { ordered(index.rawValue) }
    set {
      let relationship: OrderedToMany<Destination> = ordered(index.rawValue)
      if !flags.contains(.probe) { relationship.replaceAll(with: newValue) }
    }
  }

  /// A transformable attribute; nil if it has no value, or if its bytes can't be decoded.
  @inlinable public final subscript<Value>(property slot: TransformableSlot) -> Value? {
    @inline(__always) get { self[transformable: slot.slot] }
    @inline(__always) set { self[transformable: slot.slot] = newValue }
  }

  /// A transient attribute; nil if it has no value.
  @inlinable public final subscript<Value>(property index: TransientIndex) -> Value? {
    @inline(__always) get { self[transient: index.rawValue] }
    @inline(__always) set { self[transient: index.rawValue] = newValue }
  }

  /// A transient to-one relationship.
  @inlinable public final subscript<Destination: ManagedObject>(property index: TransientLinkIndex) -> Destination? {
    @inline(__always) get { transientToOne(index.rawValue) }
    @inline(__always) set { setTransientToOne(index.rawValue, newValue) }
  }

  /// A transient to-many relationship. Setting it replaces the objects by those of another relationship.
  public final subscript<Destination: ManagedObject>(property index: TransientLinkIndex) -> ToMany<Destination> {
    get { transientToMany(index.rawValue) }
    set {
      let relationship: ToMany<Destination> = transientToMany(index.rawValue)
      if !flags.contains(.probe) { relationship.replaceAll(with: newValue) }
    }
  }

  /// A transient ordered relationship. Setting it replaces the objects by those of another relationship.
  public final subscript<Destination: ManagedObject>(property index: TransientLinkIndex) -> OrderedToMany<Destination> {
    get { transientOrdered(index.rawValue) }
    set {
      let relationship: OrderedToMany<Destination> = transientOrdered(index.rawValue)
      if !flags.contains(.probe) { relationship.replaceAll(with: newValue) }
    }
  }

  /// Inserts a new object of the class, for initializers that then set properties and call ``finishInsertion()``. Sends no store request.
  ///
  /// Traps if the class isn't bound to a model, or its entity is abstract.
  public convenience init(insertedInto context: ManagedObjectContext) {
    let context = context.core
    let entity = context.insertableEntity(of: Self.self)
    precondition(
      context.bound.classes[entity] == Self.self, "\(Self.self) isn't bound to its entity; \(context.bound.classes[entity]) is.")
    let seed = context.seedForInsertion(entity)
    self.init(seed)
    context.checkInitializer(of: self, seed)
    context.register(new: self)
  }

  /// Ends an initializer that began with ``init(insertedInto:)``: calls ``awakeFromInsert()``.
  public final func finishInsertion() { awakeFromInsert() }

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

extension ManagedObject {
  /// Explains a property whose type isn't possible.
  @available(
    *, unavailable,
    message:
      "The type of a managed property is an AttributeValue, a CompositeAttributeValue, an optional class with @Entity, or ToMany. For any Codable type, add @Attribute(.codable)."
  )
  public static func slotCount<Value>(of type: Value.Type) -> Int { 0 }
}
