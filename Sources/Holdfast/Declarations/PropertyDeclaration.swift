public import HoldfastStore

/// One property in the declaration of a class: its name, its key path, and what applies to it.
///
/// The overloads of `property` differ in the type of the key path's value. So the Swift type decides whether the property is an attribute,
/// a composite attribute, a to-one or a to-many relationship. A type that is none of them doesn't compile.
public struct PropertyDeclaration {
  enum Kind {
    case attribute(DeclaredAttribute)
    case composite(CompositeSource, AttributeDescription)
    case relationship(RelationshipDescription, to: ManagedObject.Type, inverse: (() -> AnyKeyPath)?)
  }

  let name: String
  let kind: Kind
  /// The number of slots in a row. A to-many relationship has none.
  let slotCount: Int
  /// Binds the property to a slot, or to the index of a to-many relationship.
  let binding: (Int) -> PropertyBinding

  var isToMany: Bool {
    if case .relationship(let description, _, _) = kind { description.isToMany } else { false }
  }

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
  public static func property<Root: ManagedObject, Value: AttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, _ options: AttributeOption..., default value: Value? = nil
  ) -> PropertyDeclaration {
    let stored = value?.storeValue
    let attribute = DeclaredAttribute(
      name, Value.attributeTypes.declaredType, isOptional: Value.self is any AnyOptional.Type, default: stored == .null ? nil : stored,
      options)
    return PropertyDeclaration(name: name, kind: .attribute(attribute), slotCount: 1) { .attribute(name, keyPath(), slot: SlotIndex($0)) }
  }

  /// Declares a transformable attribute, read and written as the values of its transformer.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - transformer: The name of the transformer; nil for the default transformer.
  ///   - options: Rules and settings.
  public static func transformable<Root: ManagedObject, Value>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, by transformer: String?, _ options: AttributeOption...
  ) -> PropertyDeclaration {
    var attribute = DeclaredAttribute(name, .transformable, isOptional: Value.self is any AnyOptional.Type, default: nil, options)
    attribute.description.valueTransformerName = transformer
    return PropertyDeclaration(name: name, kind: .attribute(attribute), slotCount: 1) {
      .transformable(name, keyPath(), slot: SlotIndex($0))
    }
  }

  // MARK: Composite attributes

  /// Declares an optional composite attribute.
  public static func property<Root: ManagedObject, Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value?>
  ) -> PropertyDeclaration {
    PropertyDeclaration(name: name, kind: composite(name, Value.self), slotCount: Value.slotCount) {
      .composite(name, keyPath(), slot: SlotIndex($0))
    }
  }

  /// Declares a composite attribute that reads as `Value()` if it has no value.
  public static func property<Root: ManagedObject, Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>
  ) -> PropertyDeclaration {
    PropertyDeclaration(name: name, kind: composite(name, Value.self), slotCount: Value.slotCount) {
      .composite(name, keyPath(), slot: SlotIndex($0))
    }
  }

  /// Optional in the model, because a struct whose elements have no values reads as `Value()`.
  private static func composite<Value: CompositeAttributeValue>(_ name: String, _ type: Value.Type) -> Kind {
    let source = CompositeSource(type)
    return .composite(source, .composite(name, source.name, isOptional: true))
  }

  // MARK: Relationships

  /// Declares a to-one relationship.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - deleteRule: What happens to the destination when the object is deleted. Defaults to nullify.
  ///   - isOptional: Whether the relationship may be nil when the object is saved. Defaults to true.
  ///   - inverse: The relationship of the destination that points back. One of both ends names the other. Defaults to none.
  public static func property<Root: ManagedObject, Destination: ManagedObject, Inverse: RelationshipValue<Root>>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Destination?>, deleteRule: DeleteRule = .nullify,
    isOptional: Bool = true, inverse: @autoclosure @escaping () -> KeyPath<Destination, Inverse>
  ) -> PropertyDeclaration {
    toOne(name, keyPath, deleteRule, isOptional, inverse)
  }

  /// Declares a to-one relationship whose inverse, if there is one, is declared at the other end.
  public static func property<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Destination?>, deleteRule: DeleteRule = .nullify,
    isOptional: Bool = true
  ) -> PropertyDeclaration {
    toOne(name, keyPath, deleteRule, isOptional, nil)
  }

  private static func toOne<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @escaping () -> KeyPath<Root, Destination?>, _ deleteRule: DeleteRule, _ isOptional: Bool,
    _ inverse: (() -> AnyKeyPath)?
  ) -> PropertyDeclaration {
    let description = RelationshipDescription.toOne(
      name, to: Destination.entityName, inverse: nil, isOptional: isOptional, deleteRule: deleteRule)
    return PropertyDeclaration(
      name: name, kind: .relationship(description, to: Destination.self, inverse: inverse), slotCount: 1
    ) { .toOne(name, keyPath(), slot: SlotIndex($0)) }
  }

  /// Declares a to-many relationship, ordered if the property is an ``OrderedRelationship``.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - keyPath: The property.
  ///   - deleteRule: What happens to the destinations when the object is deleted. Defaults to nullify.
  ///   - count: The permitted numbers of destinations when the object is saved. Defaults to any number.
  ///   - inverse: The relationship of the destinations that points back. One of both ends names the other.
  public static func property<Root: ManagedObject, Value: RelationshipTargets, Inverse: RelationshipValue<Root>>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, deleteRule: DeleteRule = .nullify,
    count: ClosedRange<Int>? = nil, inverse: @autoclosure @escaping () -> KeyPath<Value.Destination, Inverse>
  ) -> PropertyDeclaration {
    toMany(name, keyPath, deleteRule, count, inverse)
  }

  /// Declares a to-many relationship whose inverse, if there is one, is declared at the other end.
  public static func property<Root: ManagedObject, Value: RelationshipTargets>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, deleteRule: DeleteRule = .nullify,
    count: ClosedRange<Int>? = nil
  ) -> PropertyDeclaration {
    toMany(name, keyPath, deleteRule, count, nil)
  }

  private static func toMany<Root: ManagedObject, Value: RelationshipTargets>(
    _ name: String, _ keyPath: @escaping () -> KeyPath<Root, Value>, _ deleteRule: DeleteRule, _ count: ClosedRange<Int>?,
    _ inverse: (() -> AnyKeyPath)?
  ) -> PropertyDeclaration {
    let description = RelationshipDescription.toMany(
      name, to: Value.Destination.entityName, inverse: nil, isOptional: (count?.lowerBound ?? 0) == 0, deleteRule: deleteRule,
      minCount: count?.lowerBound ?? 0, maxCount: count?.upperBound ?? 0, isOrdered: Value.isOrdered)
    return PropertyDeclaration(
      name: name, kind: .relationship(description, to: Value.Destination.self, inverse: inverse), slotCount: 0
    ) { .targets(name, keyPath, index: $0) }
  }
}

/// The value of a relationship's property: an optional object, or the destinations of a to-many relationship.
public protocol RelationshipValue<Destination> {
  /// The class of the destination objects.
  associatedtype Destination: ManagedObject
}

extension Optional: RelationshipValue where Wrapped: ManagedObject {
  /// The class of the destination object.
  public typealias Destination = Wrapped
}
