import Synchronization

/// One property of a typed class: its name in the model, its slot, its Swift type and its key path.
public struct PropertyBinding {
  enum Kind {
    case attribute([AttributeType], Any.Type)
    case toOne(ManagedObject.Type)
    case toMany(ManagedObject.Type, isOrdered: Bool)
    case transformable(Any.Type)
    case composite(() -> [(name: String, types: [AttributeType])])
    case transient(Any.Type)
  }

  /// The name in the model.
  public let name: String
  /// The slot, of a composite attribute the first one; for a to-many relationship the to-many index, for a transient attribute its
  /// index.
  public let slot: Int
  /// Makes the key path, which takes as long as opening a small file and is needed for few properties only.
  let keyPath: () -> AnyKeyPath
  let kind: Kind

  /// Binds an attribute.
  public static func attribute<Root: ManagedObject, Value: AttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, slot: Int
  ) -> PropertyBinding {
    PropertyBinding(name: name, slot: slot, keyPath: keyPath, kind: .attribute(Value.attributeTypes, Value.self))
  }

  /// Binds a transformable attribute, read and written as the values of its transformer.
  public static func transformable<Root: ManagedObject, Value>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, slot: Int
  ) -> PropertyBinding {
    PropertyBinding(name: name, slot: slot, keyPath: keyPath, kind: .transformable(unwrapped(Value.self)))
  }

  /// Binds a composite attribute to a property that can be nil.
  public static func composite<Root: ManagedObject, Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value?>, slot: Int
  ) -> PropertyBinding {
    PropertyBinding(name: name, slot: slot, keyPath: keyPath, kind: .composite({ Value.elements.leaves }))
  }

  /// Binds a composite attribute to a property that always has a value.
  public static func composite<Root: ManagedObject, Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, slot: Int
  ) -> PropertyBinding {
    PropertyBinding(name: name, slot: slot, keyPath: keyPath, kind: .composite({ Value.elements.leaves }))
  }

  /// Binds a transient attribute.
  public static func transient<Root: ManagedObject, Value>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Value>, index: Int
  ) -> PropertyBinding {
    PropertyBinding(name: name, slot: index, keyPath: keyPath, kind: .transient(unwrapped(Value.self)))
  }

  /// Binds a to-one relationship.
  public static func toOne<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, Destination?>, slot: Int
  ) -> PropertyBinding {
    PropertyBinding(name: name, slot: slot, keyPath: keyPath, kind: .toOne(Destination.self))
  }

  /// Binds a to-many relationship.
  public static func toMany<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, ToManyRelationship<Destination>>, index: Int
  ) -> PropertyBinding {
    PropertyBinding(name: name, slot: index, keyPath: keyPath, kind: .toMany(Destination.self, isOrdered: false))
  }

  /// Binds an ordered relationship.
  public static func toMany<Root: ManagedObject, Destination: ManagedObject>(
    _ name: String, _ keyPath: @autoclosure @escaping () -> KeyPath<Root, OrderedRelationship<Destination>>, index: Int
  ) -> PropertyBinding {
    PropertyBinding(name: name, slot: index, keyPath: keyPath, kind: .toMany(Destination.self, isOrdered: true))
  }
}

/// Finds the name of a property by its key path.
enum KeyPathNames {
  private struct Entry {
    /// Keeps the key path alive, so that no other can come to lie where it lies.
    let keyPath: AnyKeyPath
    let name: String
  }

  /// The key paths asked for lately, each where the hash of its identity says; a plain array, since dictionaries of key
  /// paths cost a process more to set up than it looks up in a lifetime.
  private nonisolated(unsafe) static var known: [Entry?] = Array(repeating: nil, count: 512)  // because every access holds the lock
  private static let lock = Mutex(())

  /// The name.
  ///
  /// A key path that the class does not list is a mistake of the program and traps.
  static func name(_ keyPath: AnyKeyPath, in type: ManagedObject.Type) -> String {
    let place = Int(bitPattern: (UInt(bitPattern: ObjectIdentifier(keyPath)) &* 0x9E37_79B9_7F4A_7C15) >> 32) & 511
    let found = lock.withLock { _ -> String? in
      for probe in 0..<4 {
        guard let entry = known[(place + probe) & 511] else { break }
        if entry.keyPath === keyPath { return entry.name }
      }
      return nil
    }
    if let found { return found }
    guard let binding = binding(of: keyPath, type.properties) ?? KeyPathProbe.binding(of: keyPath, type) else {
      preconditionFailure(
        "\(type) lists no property with the key path \(keyPath); add it to `properties`. A path through a relationship is written "
          + "(\\\(type).relationship).then(\\.attribute).")
    }
    lock.withLock { _ in
      let free = (0..<4).first { known[(place + $0) & 511] == nil } ?? 0
      known[(place + free) & 511] = Entry(keyPath: keyPath, name: binding.name)
    }
    return binding.name
  }

  /// Key paths are made of those bindings only that can be meant, since each takes as long as a query in SQL.
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

/// Compares what a class says of its properties with what the model says, and reports every difference.
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
      return differences(type, attribute, transformers) + slotDifferences(binding.slot, attribute.slot)
    case (.composite(let leaves), .composite(let composite)?):
      return differences(leaves(), composite, entity) + slotDifferences(binding.slot, composite.slots.lowerBound)
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
      if !types.contains(attribute.type) { return "The model says \(attribute.type.rawValue), which this Swift type cannot hold." }
      return slotDifference(binding.slot, attribute.slot)
    case (.toOne(let type), .relationship(let relationship)) where !relationship.isToMany:
      return destinationDifference(type, relationship, model) ?? slotDifference(binding.slot, relationship.slot)
    case (.toMany(_, isOrdered: true), .relationship(let relationship)) where relationship.isToMany && !relationship.isOrdered:
      return "The model says that it has no order."
    case (.toMany(let type, _), .relationship(let relationship)) where relationship.isToMany:
      return destinationDifference(type, relationship, model) ?? slotDifference(binding.slot, relationship.toManyIndex)
    default: return "The model says another kind of property."
    }
  }

  /// Differences between the classes that relationships are said to lead to and those that their entities appear as.
  static func destinationDifferences(
    _ type: ManagedObject.Type, _ classes: [ManagedObject.Type], _ model: ManagedObjectModel
  ) -> [String] {
    type.properties.compactMap { binding in
      let said: ManagedObject.Type
      switch binding.kind {
      case .attribute, .transformable, .composite, .transient: return nil
      case .toOne(let destination), .toMany(let destination, _): said = destination
      }
      guard let entity = model.entity(named: said.entityName), said != ManagedObject.self else { return nil }
      return isKind(classes[entity.index], of: said) ? nil : "\(type).\(binding.name): \(said) is not among the bound classes."
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

  private static func destinationDifference(
    _ type: ManagedObject.Type, _ relationship: ManagedObjectModel.Relationship, _ model: ManagedObjectModel
  ) -> String? {
    let destination = model.destination(of: relationship)
    if type.entityName.isEmpty || model.entity(named: type.entityName).map(destination.isKind) == true { return nil }
    return "It leads to \(destination.name), not to \(type.entityName)."
  }
}
