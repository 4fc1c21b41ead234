extension MappingInference {
  /// The mapping of each slot's value. To-one relationships have none here.
  mutating func values(_ entity: ManagedObjectModel.Entity, _ origin: ManagedObjectModel.Entity) -> [ValueMapping] {
    var sources = [SlotIndex?](repeating: nil, count: entity.slots.count)
    match(attributes(origin, source), attributes(entity, destination), entity, &sources)
    return entity.slots.enumerated().map { place, slot in
      guard case .attribute(let attribute) = slot else { return ValueMapping(source: nil, fallback: .null) }
      return value(attribute, sources[place], origin, "\(entity.name).\(attribute.name)")
    }
  }

  // MARK: Names

  /// An attribute: a value, or a composite of others.
  private struct Node {
    var name: ModelMatch.Name
    /// The slot; nil for a composite.
    var slot: SlotIndex?
    var elements: [Node] = []
  }

  private func attributes(_ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel) -> [Node] {
    var declared: [AttributeDescription] = [], next: EntityIndex? = entity.index
    while let index = next {
      declared += model.entities[index].declaration.attributes
      next = model.entities[index].superentityIndex
    }
    return nodes(declared.filter { !$0.isTransient }, in: "", entity, model)
  }

  private func nodes(
    _ declared: [AttributeDescription], in path: String, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel
  ) -> [Node] {
    declared.map { attribute in
      let name = ModelMatch.Name(attribute.name, attribute.renamingIdentifier), path = path + attribute.name
      guard attribute.type == .composite else { return Node(name: name, slot: entity.slot(named: path)) }
      let composite = model.composites.first { $0.name == attribute.compositeName }
      return Node(name: name, slot: nil, elements: nodes(composite?.elements ?? [], in: path + ".", entity, model))
    }
  }

  private mutating func match(_ old: [Node], _ new: [Node], _ entity: ManagedObjectModel.Entity, _ sources: inout [SlotIndex?]) {
    let match = ModelMatch(old.map(\.name), new.map(\.name))
    for place in match.ambiguous {
      problem("\(entity.name).\(new[place].name.name)", "Its renaming identifier fits several attributes of the former model.")
    }
    for (place, found) in match.sources.enumerated() {
      guard let found else { continue }
      switch (old[found].slot, new[place].slot) {
      case (let slot?, let destination?): sources[destination.rawValue] = slot
      case (nil, nil): self.match(old[found].elements, new[place].elements, entity, &sources)
      default:
        problem(
          "\(entity.name).\(new[place].name.name)", "It becomes a composite, or was one. Give it another name, or use a custom mapping.")
      }
    }
  }

  // MARK: Values

  private mutating func value(
    _ attribute: ManagedObjectModel.Attribute, _ slot: SlotIndex?, _ origin: ManagedObjectModel.Entity, _ path: String
  ) -> ValueMapping {
    let fallback = attribute.defaultValue ?? .null
    guard let slot, case .attribute(let former) = origin.slots[slot] else {
      if attribute.derivation != nil {
        problem(path, "It is derived and new, and the values of existing objects aren't computed by a migration. Use a custom mapping.")
      } else if !attribute.isOptional && fallback == .null {
        problem(path, "It is required and new. Give it a default value for existing objects, make it optional, or use a custom mapping.")
      }
      return ValueMapping(source: nil, fallback: fallback)
    }
    let undecided = problems.count
    if !Self.contains(attribute.type, former.type) {
      problem(
        path, "Its type changes from \(former.type.rawValue) to \(attribute.type.rawValue). Convert the values with a custom mapping.")
    }
    if former.allowsExternalBinaryDataStorage && !attribute.allowsExternalBinaryDataStorage {
      problem(path, "Its values may be in external files, which it no longer allows. Keep that setting, or use a custom mapping.")
    }
    if let derivation = attribute.declaration.derivationExpression, derivation != former.declaration.derivationExpression {
      problem(path, "It is derived in another way, and a migration doesn't compute values. Use a custom mapping.")
    }
    if problems.count > undecided { return ValueMapping(source: nil, fallback: fallback) }
    if attribute.isOptional { return ValueMapping(source: slot, fallback: .null) }
    if former.isOptional && fallback == .null {
      problem(path, "It becomes required. Give it a default value for objects that have none, or use a custom mapping.")
    }
    return ValueMapping(source: slot, fallback: fallback)
  }

  /// Whether each value of a type is a value of a wider one, with the same meaning.
  private static func contains(_ wider: AttributeType, _ narrower: AttributeType) -> Bool {
    if wider == narrower { return true }
    switch (narrower, wider) {
    case (.integer16, .integer32), (.integer16, .integer64), (.integer32, .integer64), (.float, .double): return true
    default: return false
    }
  }
}
