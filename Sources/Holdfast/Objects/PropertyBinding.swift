import HoldfastSupport
import Synchronization

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

/// Finds the name of a property by its key path.
enum KeyPathNames {
  private struct Entry {
    /// Keeps the key path alive, so that no other key path gets the same address.
    let keyPath: AnyKeyPath
    let expression: QueryExpression
  }

  /// Recently used key paths, at the hash of their identity.
  ///
  /// A plain array: a dictionary of key paths would cost more to set up than a process saves by it.
  private nonisolated(unsafe) static var cache: [Entry?] = Array(repeating: nil, count: 512)  // because every access holds the lock
  private static let lock = Mutex(())

  /// The name of a key path's property.
  ///
  /// A request with any other key path fails when it is executed, since stores can't evaluate computed properties.
  static func name(_ keyPath: AnyKeyPath, in type: ManagedObject.Type) -> String {
    known(keyPath, in: type) ?? unlisted(keyPath, type)
  }

  /// The expression of a key path's property, as ``name(_:in:)``. Queries of known key paths allocate none.
  static func expression(_ keyPath: AnyKeyPath, in type: ManagedObject.Type) -> QueryExpression {
    knownExpression(keyPath, type) ?? .property(PropertyPath(unlisted(keyPath, type)))
  }

  /// The name of a key path's property; nil if it isn't a property of the model.
  static func known(_ keyPath: AnyKeyPath, in type: ManagedObject.Type) -> String? {
    if case .property(let path)? = knownExpression(keyPath, type) { path.first } else { nil }
  }

  /// A name that no entity has. It becomes part of the error message.
  private static func unlisted(_ keyPath: AnyKeyPath, _ type: ManagedObject.Type) -> String {
    "<key path of type \(Swift.type(of: keyPath).valueType) that is none of the properties listed in \(type).properties>"
  }

  private static func knownExpression(_ keyPath: AnyKeyPath, _ type: ManagedObject.Type) -> QueryExpression? {
    cached(keyPath) {
      (binding(of: keyPath, bindings(of: type))?.name ?? KeyPathProbe.name(of: keyPath, type)).map { .property(PropertyPath($0)) }
    }
  }

  /// The expression that was found for a key path before, or the result of a closure, which is kept.
  static func cached(_ keyPath: AnyKeyPath, _ find: () -> QueryExpression?) -> QueryExpression? {
    let place = multiplicativeHash(Int64(Int(bitPattern: ObjectIdentifier(keyPath)))) & 511
    let found = lock.withLock { _ -> QueryExpression? in
      for probe in 0..<4 {
        guard let entry = cache[(place + probe) & 511] else { break }
        if entry.keyPath === keyPath { return entry.expression }
      }
      return nil
    }
    if let found { return found }
    guard let expression = find() else { return nil }
    lock.withLock { _ in
      let free = (0..<4).first { cache[(place + $0) & 511] == nil } ?? 0
      cache[(place + free) & 511] = Entry(keyPath: keyPath, expression: expression)
    }
    return expression
  }

  /// The bindings of each class whose key paths were looked up, since a class creates them for each call. Not a dictionary; see
  /// ``AccessorCheck``.
  private static let bindings = Mutex<[Bindings]>([])

  /// A class's bindings.
  private struct Bindings: @unchecked Sendable {  // because they never change, and their closures only create or follow key paths
    let type: ManagedObject.Type
    let list: [PropertyBinding]
  }

  private static func bindings(of type: ManagedObject.Type) -> [PropertyBinding] {
    if let known = bindings.withLock({ $0.first { $0.type == type } }) { return known.list }
    let made = Bindings(type: type, list: type.properties)
    bindings.withLock { $0.append(made) }
    return made.list
  }

  /// Creates the key paths of only those bindings that can match, since creating one takes as long as a SQL query.
  private static func binding(of keyPath: AnyKeyPath, _ bindings: [PropertyBinding]) -> PropertyBinding? {
    let valueType = Swift.type(of: keyPath).valueType
    for binding in bindings {
      if case .attribute(_, let type) = binding.kind, type == valueType, binding.keyPath() == keyPath { return binding }
    }
    return bindings.first { binding in
      if case .attribute = binding.kind { false } else { binding.keyPath() == keyPath }
    }
  }
}

/// Compares the properties that a class lists with the model, and reports every difference.
enum ClassBinding {
  static func differences(
    _ type: ManagedObject.Type, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel,
    _ transformers: AttributeTransformerRegistry
  ) -> [String] {
    type.properties.flatMap { binding in
      differences(binding, entity, model, transformers).map { "\(type).\(binding.name): \($0)" }
    }
  }

  private static func differences(
    _ binding: PropertyBinding, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel,
    _ transformers: AttributeTransformerRegistry
  ) -> [String] {
    switch (binding.kind, entity.property(named: binding.name)) {
    case (_, nil): return ["\(entity.name) has no property of this name."]
    case (.transformable(let type), .attribute(let attribute)?) where attribute.type == .transformable:
      return differences(type, attribute, transformers) + slotDifferences(binding.slot, attribute.slot.rawValue)
    case (.composite(let leaves), .composite(let composite)?):
      return differences(leaves(), composite, entity) + slotDifferences(binding.slot, composite.slots.lowerBound.rawValue)
    case (.transient(let type), .transient(let attribute)?):
      return differences(type, attribute) + slotDifferences(binding.slot, attribute.index)
    case (_, let property?): return difference(binding, property, model).map { [$0] } ?? []
    }
  }

  private static func difference(
    _ binding: PropertyBinding, _ property: ManagedObjectModel.Property, _ model: ManagedObjectModel
  ) -> String? {
    switch (binding.kind, property) {
    case (.attribute(let types, _), .attribute(let attribute)):
      if !types.contains(attribute.type) { return "The model's type is \(attribute.type.rawValue), which the Swift type can't hold." }
      return slotDifference(binding.slot, attribute.slot.rawValue)
    case (.relationship(let bound), .relationship(let relationship)) where !bound.isTransient && bound.isToMany == relationship.isToMany:
      let right = relationship.isToMany ? relationship.toManyIndex : relationship.slot.rawValue
      return relationshipDifference(bound, relationship, model) ?? slotDifference(binding.slot, right)
    case (.relationship(let bound), .transientRelationship(let relationship))
    where bound.isTransient && bound.isToMany == relationship.isToMany:
      return relationshipDifference(bound, relationship, model) ?? slotDifference(binding.slot, relationship.index.rawValue)
    case (_, .transientRelationship): return "The model declares a transient relationship."
    default: return "The model declares another kind of property."
    }
  }

  /// Differences between the declared destination classes of relationships and the classes bound to their entities.
  static func destinationDifferences(
    _ type: ManagedObject.Type, _ classes: [ManagedObject.Type], _ model: ManagedObjectModel
  ) -> [String] {
    type.properties.compactMap { binding in
      guard case .relationship(let relationship) = binding.kind else { return nil }
      let said = relationship.destination
      guard let entity = model.entity(named: said.entityName), said != ManagedObject.self else { return nil }
      return isKind(classes[entity.index], of: said) ? nil : "\(type).\(binding.name): \(said) isn't among the classes that were passed."
    }
  }

  /// Whether a class is another or one of its subclasses.
  static func isKind(_ type: ManagedObject.Type, of other: ManagedObject.Type) -> Bool {
    var current: (any AnyObject.Type)? = type
    while let next = current {
      if next == other { return true }
      current = _getSuperclass(next)
    }
    return false
  }

  static func slotDifferences(_ said: Int, _ right: Int) -> [String] { slotDifference(said, right).map { [$0] } ?? [] }

  private static func slotDifference(_ said: Int, _ right: Int) -> String? {
    said == right ? nil : "Its slot is \(right), not \(said)."
  }

  /// A difference in order or destination between relationships that both are to-one or both to-many.
  private static func relationshipDifference(
    _ bound: PropertyBinding.Relationship, _ relationship: ManagedObjectModel.Relationship, _ model: ManagedObjectModel
  ) -> String? {
    if bound.isOrdered && !relationship.isOrdered { return "The relationship isn't ordered in the model." }
    let type = bound.destination, destination = model.destination(of: relationship)
    if type.entityName.isEmpty || model.entity(named: type.entityName).map(destination.isKind) == true { return nil }
    return "Its destination is \(destination.name), not \(type.entityName)."
  }
}
