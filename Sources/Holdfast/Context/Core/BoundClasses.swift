import HoldfastStore

/// The class of each entity, by index.
struct BoundClasses: Sendable {
  let classes: [ManagedObject.Type]
  /// The callbacks that each class overrides, by entity index.
  let hooks: [ClassHooks]
  /// Whether any class overrides the callback for objects that receive their rows.
  let awakensObjects: Bool
  /// Whether any class overrides a callback for objects that become faults.
  let turnsObjectsIntoFaults: Bool
  /// Whether any class has its own validation rules for saves.
  let validatesObjects: Bool
  /// Whether any class overrides a callback of saves.
  let tellsObjectsOfSaves: Bool

  init(_ types: [ManagedObject.Type], _ model: ManagedObjectModel, _ transformers: AttributeTransformerRegistry) throws {
    var classes: [ManagedObject.Type] = Array(repeating: ManagedObject.self, count: model.entities.count)
    var differences: [String] = []
    for type in types {
      guard let entity = model.entity(named: type.entityName) else {
        differences.append("\(type): The model has no entity \(type.entityName).")
        continue
      }
      if classes[entity.index] != ManagedObject.self && classes[entity.index] != type {
        differences.append("\(type): \(classes[entity.index]) is already the class of entity \(entity.name); pass only one of them.")
      }
      classes[entity.index] = type
      differences += ClassBinding.differences(type, entity, model, transformers)
    }
    // Objects of an entity without a class use the class of its superentity.
    for entity in model.entities {
      guard let above = entity.superentityIndex else { continue }
      if classes[entity.index] == ManagedObject.self { classes[entity.index] = classes[above] }
      if !ClassBinding.isKind(classes[entity.index], of: classes[above]) {
        differences.append(
          "\(classes[entity.index]): The class must be a subclass of \(classes[above]), the class of \(model.entities[above].name).")
      }
    }
    for type in types { differences += ClassBinding.destinationDifferences(type, classes, model) }
    let bound = types.compactMap { type in model.entity(named: type.entityName).map { (type: type, entity: $0.index) } }
    if differences.isEmpty { differences = AccessorCheck.differences(bound, model, transformers) }
    guard differences.isEmpty else {
      throw PersistenceError(
        .classMismatch, reason: "The classes don't match the model:\n" + differences.map { "  \($0)" }.joined(separator: "\n"))
    }
    self.init(classes, classes.map(ClassHooks.overridden))
  }

  /// Creates a binding whose classes receive no callbacks for rows and saves.
  init(withoutHooks classes: [ManagedObject.Type]) { self.init(classes, Array(repeating: [], count: classes.count)) }

  private init(_ classes: [ManagedObject.Type], _ hooks: [ClassHooks]) {
    self.classes = classes
    self.hooks = hooks
    let hooksOfAny = hooks.reduce(into: ClassHooks()) { $0.formUnion($1) }
    awakensObjects = hooksOfAny.contains(.awakeFromFetch)
    turnsObjectsIntoFaults = hooksOfAny.contains(.turnIntoFault)
    validatesObjects = !hooksOfAny.isDisjoint(with: .validate)
    tellsObjectsOfSaves = hooksOfAny.contains(.save)
  }

  /// The callbacks that an object's class overrides.
  @inline(__always) func hooks(of object: ManagedObject) -> ClassHooks { hooks[object.flags.entityIndex] }
}
