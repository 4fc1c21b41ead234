public import HoldfastStore

/// One property in the declaration of a class: its name, its key path, and what applies to it.
///
/// The overloads of `property` differ in the type of the key path's value. So the Swift type decides whether the property is an attribute,
/// a composite attribute, a to-one or a to-many relationship. A type that is none of them doesn't compile.
public struct PropertyDeclaration {
  enum Kind {
    case attribute(DeclaredAttribute)
    case composite(CompositeSource, DeclaredAttribute)
    case relationship(RelationshipDescription, to: ManagedObject.Type, inverse: (() -> AnyKeyPath)?)
  }

  let name: String
  let kind: Kind
  let place: PropertyPlace
  /// Binds the property to a slot, or to another index of its place.
  let binding: (Int) -> PropertyBinding

  // MARK: Attributes

  /// Declares an attribute.
  ///
  /// An attribute of an optional type is optional in the model. Any other must have a value when its object is saved.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - options: Rules and settings.
  ///   - value: The value of new objects. Defaults to none.
  ///   - initial: The value that ``ManagedObject/setComputedDefaults()`` sets. It is also the default value if its type is an enumeration
  ///     or another type with raw values. Defaults to none.
  public static func property<Root: ManagedObject, Value: AttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, _ options: AttributeOption...,
    default value: Value? = nil,
    initially initial: @autoclosure () -> Value? = nil
  ) -> PropertyDeclaration {
    let stored = (value ?? (unwrapped(Value.self) is any RawRepresentable.Type ? initial() : nil))?.storeValue
    let attribute = DeclaredAttribute(
      name, Value.attributeTypes.declaredType, isOptional: Value.self is any OptionalValue.Type, default: stored == .null ? nil : stored,
      options)
    return PropertyDeclaration(name: name, kind: .attribute(attribute), place: .slots(1)) {
      .attribute(name, keyPath(), slot: SlotIndex($0))
    }
  }

  /// Declares a transformable attribute, read and written as the values of its transformer.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - options: Rules and settings. `.transformable(by:)` has the transformer, or its name.
  public static func transformable<Root: ManagedObject, Value>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, _ options: AttributeOption...
  ) -> PropertyDeclaration {
    let attribute = DeclaredAttribute(name, .transformable, isOptional: Value.self is any OptionalValue.Type, default: nil, options)
    return PropertyDeclaration(name: name, kind: .attribute(attribute), place: .slots(1)) {
      .transformable(name, keyPath(), slot: SlotIndex($0))
    }
  }

  /// Declares an optional attribute of any `Codable` type, stored as JSON. The container registers its ``CodableTransformer``.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - options: Rules and settings.
  public static func codable<Root: ManagedObject, Value: Codable & Sendable>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value?>, _ options: AttributeOption...
  ) -> PropertyDeclaration {
    PropertyDeclaration(name: name, kind: codable(name, Value.self, options), place: .slots(1)) {
      .transformable(name, keyPath(), slot: SlotIndex($0))
    }
  }

  /// Declares an attribute of any `Codable` type, stored as JSON. The container registers its ``CodableTransformer``.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - options: Rules and settings.
  public static func codable<Root: ManagedObject, Value: Codable & Sendable>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, _ options: AttributeOption...
  ) -> PropertyDeclaration {
    PropertyDeclaration(name: name, kind: codable(name, Value.self, options), place: .slots(1)) {
      .transformable(name, keyPath(), slot: SlotIndex($0))
    }
  }

  /// Optional in the model, because a property without a value reads as its initial value.
  private static func codable<Value: Codable & Sendable>(
    _ name: String, _ type: Value.Type, _ options: [AttributeOption]
  ) -> Kind {
    var attribute = DeclaredAttribute(name, .transformable, isOptional: true, default: nil, options)
    let transformer = "Codable.\(Value.self)"
    attribute.description.valueTransformerName = transformer
    attribute.transformer = (transformer, CodableTransformer<Value>())
    return .attribute(attribute)
  }

  /// Declares a transient attribute, which is kept in memory only and may have any type.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - options: Rules and settings.
  public static func transient<Root: ManagedObject, Value>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, _ options: AttributeOption...
  ) -> PropertyDeclaration {
    let types = (unwrapped(Value.self) as? any AttributeValue.Type)?.attributeTypes
    var attribute = DeclaredAttribute(name, types?.declaredType ?? .undefined, isOptional: true, default: nil, options)
    attribute.description.isTransient = true
    var kind = Kind.attribute(attribute)
    if attribute.description.type == .composite, let type = unwrapped(Value.self) as? any CompositeAttributeValue.Type {
      // The model has the composite of the struct, also if no other attribute uses it.
      let source = CompositeSource(type)
      attribute.description.compositeName = source.name
      kind = .composite(source, attribute)
    }
    return PropertyDeclaration(name: name, kind: kind, place: .transient) { .transient(name, keyPath(), index: $0) }
  }

  // MARK: Composite attributes

  /// Declares an optional composite attribute.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - options: Rules and settings.
  ///   - initial: The value that ``ManagedObject/setComputedDefaults()`` sets. The model has no default value. Defaults to none.
  public static func property<Root: ManagedObject, Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value?>, _ options: AttributeOption...,
    initially initial: @autoclosure () -> Value? = nil
  ) -> PropertyDeclaration {
    PropertyDeclaration(name: name, kind: composite(name, Value.self, options), place: .slots(Value.slotCount)) {
      .composite(name, keyPath(), slot: SlotIndex($0))
    }
  }

  /// Declares a composite attribute that reads as `Value()` if it has no value.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - options: Rules and settings.
  ///   - initial: The value that ``ManagedObject/setComputedDefaults()`` sets. The model has no default value. Defaults to none.
  public static func property<Root: ManagedObject, Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, _ options: AttributeOption...,
    initially initial: @autoclosure () -> Value? = nil
  ) -> PropertyDeclaration {
    PropertyDeclaration(name: name, kind: composite(name, Value.self, options), place: .slots(Value.slotCount)) {
      .composite(name, keyPath(), slot: SlotIndex($0))
    }
  }

  /// Optional in the model, because a struct whose elements have no values reads as `Value()`.
  private static func composite<Value: CompositeAttributeValue>(_ name: String, _ type: Value.Type, _ options: [AttributeOption]) -> Kind {
    let source = CompositeSource(type)
    var attribute = DeclaredAttribute(name, .composite, isOptional: true, default: nil, options)
    attribute.description.compositeName = source.name
    return .composite(source, attribute)
  }

  // MARK: Relationships

  /// Declares a relationship: to-one if the property is an optional object, otherwise to-many.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - options: Rules and settings.
  ///   - deleteRule: What happens to the destinations when the object is deleted. Defaults to nullify.
  ///   - inverse: The relationship of the destinations that points back. One of both ends names the other.
  public static func property<Root: ManagedObject, Value: RelationshipValue, Inverse: RelationshipValue<Root>>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, _ options: RelationshipOption...,
    deleteRule: DeleteRule = .nullify, inverse: @autoclosure @escaping () -> KeyPath<Value.Destination, Inverse>
  ) -> PropertyDeclaration {
    relationship(name, keyPath, options, deleteRule, inverse)
  }

  /// Declares a relationship whose inverse, if there is one, is declared at the other end.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - options: Rules and settings.
  ///   - deleteRule: What happens to the destinations when the object is deleted. Defaults to nullify.
  public static func property<Root: ManagedObject, Value: RelationshipValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, _ options: RelationshipOption...,
    deleteRule: DeleteRule = .nullify
  ) -> PropertyDeclaration {
    relationship(name, keyPath, options, deleteRule, nil)
  }

  private static func relationship<Root: ManagedObject, Value: RelationshipValue>(
    _ name: String, _ keyPath: @escaping () -> KeyPath<Root, Value>, _ options: [RelationshipOption], _ deleteRule: DeleteRule,
    _ inverse: (() -> AnyKeyPath)?
  ) -> PropertyDeclaration {
    let destination = Value.Destination.entityName
    var description =
      Value.isToMany
      ? RelationshipDescription.toMany(name, to: destination, inverse: nil, deleteRule: deleteRule, isOrdered: Value.isOrdered)
      : .toOne(name, to: destination, inverse: nil, deleteRule: deleteRule)
    for option in options { option.apply(&description) }
    let isTransient = description.isTransient
    return PropertyDeclaration(
      name: name, kind: .relationship(description, to: Value.Destination.self, inverse: inverse),
      place: isTransient ? .transientLink : Value.isToMany ? .toMany : .slots(1)
    ) { .relationship(name, keyPath, $0, isTransient: isTransient) }
  }
}

/// The value of a relationship's property: an optional object, or the destinations of a to-many relationship.
public protocol RelationshipValue<Destination> {
  /// The class of the destination objects.
  associatedtype Destination: ManagedObject
  /// Whether the relationship can have several objects.
  static var isToMany: Bool { get }
  /// Whether the objects have an order.
  static var isOrdered: Bool { get }
}

/// The value of a to-one relationship's property: an optional object.
public protocol ToOneValue<Destination>: RelationshipValue {}

extension Optional: RelationshipValue, ToOneValue where Wrapped: ManagedObject {
  /// The class of the destination object.
  public typealias Destination = Wrapped
  /// False: an optional object is a to-one relationship.
  public static var isToMany: Bool { false }
  /// False: a single object has no order.
  public static var isOrdered: Bool { false }
}
