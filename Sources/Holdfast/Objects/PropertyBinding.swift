/// One property of a typed class: its name in the model, its slot, its Swift type and its key path.
public struct PropertyBinding {
  enum Kind {
    case attribute(AttributeTypeSet, Any.Type)
    case transformable(Any.Type)
    case composite(() -> [(name: String, types: AttributeTypeSet)])
    case transient(Any.Type)
    case relationship(Relationship)
  }

  /// What the type of a relationship's property specifies, and whether it is bound as a transient one.
  struct Relationship {
    let destination: ManagedObject.Type
    let isToMany: Bool
    let isOrdered: Bool
    let isTransient: Bool

    /// Whether the relationship has a slot in the row.
    var isInRow: Bool { !isToMany && !isTransient }
  }

  /// The name in the model.
  public let name: String
  /// The slot of an attribute or to-one relationship. A composite attribute has several; this is the first.
  ///
  /// For a to-many relationship, its to-many index; for a transient attribute or relationship, its index.
  public let slot: Int
  /// Creates the key path. This takes as long as opening a small file, so it is done only when needed.
  let keyPath: () -> AnyKeyPath
  let kind: Kind
  /// The class at which the key path begins.
  let root: ManagedObject.Type
  /// Calls the getter of an object of the root class.
  let read: (ManagedObject) -> Void
  /// Calls the setter, if the property has one, with the value of the getter; runs a closure in between.
  let write: (ManagedObject, () -> Void) -> Void

  private init<Root: ManagedObject, Value>(
    _ name: String, _ slot: Int, _ kind: Kind, _ keyPath: @escaping () -> KeyPath<Root, Value>
  ) {
    self.name = name
    self.slot = slot
    self.kind = kind
    self.keyPath = keyPath
    root = Root.self
    read = { _ = unsafeDowncast($0, to: Root.self)[keyPath: keyPath()] }
    write = { object, between in
      guard let keyPath = keyPath() as? ReferenceWritableKeyPath<Root, Value> else { return }
      let object = unsafeDowncast(object, to: Root.self), value = object[keyPath: keyPath]
      between()
      object[keyPath: keyPath] = value
    }
  }

  /// Binds an attribute.
  public static func attribute<Root: ManagedObject, Value: AttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, slot: SlotIndex
  ) -> PropertyBinding {
    PropertyBinding(name, slot.rawValue, .attribute(Value.attributeTypes, Value.self), keyPath)
  }

  /// Binds a transformable attribute, read and written as the values of its transformer.
  public static func transformable<Root: ManagedObject, Value>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, slot: SlotIndex
  ) -> PropertyBinding {
    PropertyBinding(name, slot.rawValue, .transformable(unwrapped(Value.self)), keyPath)
  }

  /// Binds a composite attribute to a property that can be nil.
  public static func composite<Root: ManagedObject, Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value?>, slot: SlotIndex
  ) -> PropertyBinding {
    PropertyBinding(name, slot.rawValue, .composite({ Value.elements.leaves }), keyPath)
  }

  /// Binds a composite attribute to a property that always has a value.
  public static func composite<Root: ManagedObject, Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, slot: SlotIndex
  ) -> PropertyBinding {
    PropertyBinding(name, slot.rawValue, .composite({ Value.elements.leaves }), keyPath)
  }

  /// Binds a transient attribute.
  public static func transient<Root: ManagedObject, Value>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, index: Int
  ) -> PropertyBinding {
    PropertyBinding(name, index, .transient(unwrapped(Value.self)), keyPath)
  }

  /// Binds a to-one relationship.
  public static func toOne<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Destination?>, slot: SlotIndex
  ) -> PropertyBinding {
    relationship(name, keyPath, slot.rawValue, isTransient: false)
  }

  /// Binds a to-many relationship.
  public static func toMany<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, ToMany<Destination>>, index: Int
  ) -> PropertyBinding {
    relationship(name, keyPath, index, isTransient: false)
  }

  /// Binds an ordered relationship.
  public static func toMany<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, OrderedToMany<Destination>>, index: Int
  ) -> PropertyBinding {
    relationship(name, keyPath, index, isTransient: false)
  }

  /// Binds a relationship of any kind.
  static func relationship<Root: ManagedObject, Value: RelationshipValue>(
    _ name: String, _ keyPath: @escaping () -> KeyPath<Root, Value>, _ index: Int, isTransient: Bool
  ) -> PropertyBinding {
    let relationship = Relationship(
      destination: Value.Destination.self, isToMany: Value.isToMany, isOrdered: Value.isOrdered, isTransient: isTransient)
    return PropertyBinding(name, index, .relationship(relationship), keyPath)
  }

  /// Binds a transient to-one relationship.
  public static func transientToOne<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Destination?>, index: Int
  ) -> PropertyBinding {
    relationship(name, keyPath, index, isTransient: true)
  }

  /// Binds a transient to-many relationship.
  public static func transientToMany<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, ToMany<Destination>>, index: Int
  ) -> PropertyBinding {
    relationship(name, keyPath, index, isTransient: true)
  }

  /// Binds a transient ordered relationship.
  public static func transientToMany<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, OrderedToMany<Destination>>, index: Int
  ) -> PropertyBinding {
    relationship(name, keyPath, index, isTransient: true)
  }
}
