extension MappingInference {
  /// The mapping of each slot's value. To-one relationships have none here.
  mutating func values(_ entity: ManagedObjectModel.Entity, _ origin: ManagedObjectModel.Entity) -> [ValueMapping] {
    var sources = [SlotIndex?](repeating: nil, count: entity.slots.count)
    let old = attributes(origin, source), new = attributes(entity, destination)
    if let rules {
      let names = rules.entities[entity.name]?.attributes ?? [:]
      take(new.map { new in names[new.name.name].flatMap { name in old.firstIndex { $0.name.name == name } } }, old, new, entity, &sources)
    } else {
      match(old, new, entity, &sources)
    }
    let values = entity.slots.enumerated().map { place, slot in
      guard case .attribute(let attribute) = slot else { return ValueMapping(source: nil, fallback: .null) }
      return value(attribute, sources[place], origin, "\(entity.name).\(attribute.name)")
    }
    for composite in entity.composites { check(composite, of: entity, values, origin) }
    return values
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
      problem(
        "\(entity.name).\(new[place].name.name)", "Its renaming identifier fits several attributes of the former model, or several have it."
      )
    }
    take(match.sources, old, new, entity, &sources)
  }

  /// Takes the slots of attributes that belong together.
  private mutating func take(
    _ found: [Int?], _ old: [Node], _ new: [Node], _ entity: ManagedObjectModel.Entity, _ sources: inout [SlotIndex?]
  ) {
    for (place, found) in found.enumerated() {
      guard let found else { continue }
      switch (old[found].slot, new[place].slot) {
      case (let slot?, let destination?): sources[destination.rawValue] = slot
      case (nil, nil): self.match(old[found].elements, new[place].elements, entity, &sources)
      default:
        problem(
          "\(entity.name).\(new[place].name.name)", "It becomes a composite, or was one. Give it another name, or use a plan with code.")
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
        problem(path, "It is derived and new, and a migration doesn't compute values. Use a plan with code.")
      } else if !attribute.isOptional && fallback == .null {
        problem(path, "It is required and new. Give it a default value for existing objects, make it optional, or use a plan with code.")
      }
      return ValueMapping(source: nil, fallback: fallback)
    }
    let undecided = problems.count
    if !Self.contains(attribute.type, former.type) {
      problem(
        path, "Its type changes from \(former.type.rawValue) to \(attribute.type.rawValue). Convert the values in a plan with code.")
    }
    if former.allowsExternalBinaryDataStorage && !attribute.allowsExternalBinaryDataStorage {
      problem(path, "Its values may be in external files, which it no longer allows. Keep that setting, or use a plan with code.")
    }
    // Core Data's compiled models write `count:(walks)` for what Xcode's files write as `walks.@count`.
    if attribute.derivation != nil && attribute.derivation != former.derivation {
      problem(path, "It is derived in another way, and a migration doesn't compute values. Use a plan with code.")
    }
    if problems.count > undecided { return ValueMapping(source: nil, fallback: fallback) }
    // A required attribute has a value in every object.
    if attribute.isOptional || !former.isOptional { return ValueMapping(source: slot, fallback: .null) }
    if fallback == .null {
      problem(path, "It becomes required. Give it a default value for objects that have none, or use a plan with code.")
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

  // MARK: Composite attributes

  /// Checks that a composite attribute of existing objects has what a save requires of it. Its elements were checked one by one, and are
  /// optional if it is.
  private mutating func check(
    _ composite: ManagedObjectModel.CompositeAttribute, of entity: ManagedObjectModel.Entity, _ values: [ValueMapping],
    _ origin: ManagedObjectModel.Entity
  ) {
    let elements = entity.attributes.filter { composite.slots.contains($0.slot) }
    // An element with another problem, such as another type, has no source either. It needs one decision.
    let undecided = elements.filter { element in problems.contains { $0.path == "\(entity.name).\(element.name)" } }.map(\.slot)
    let isNew = elements.allSatisfy { values[$0.slot.rawValue].source == nil }
    if composite.isOptional {
      // Objects without a value of the attribute don't need its elements.
      if isNew { return }
      for element in elements
      where !element.declaration.isOptional && Self.isDirect(element, in: composite) && !undecided.contains(element.slot) {
        let former = values[element.slot.rawValue].source.flatMap { Self.attribute($0, origin) }
        if former?.declaration.isOptional == false { continue }
        problem(
          "\(entity.name).\(element.name)",
          "It \(former == nil ? "is required and new" : "becomes required"), and existing objects can have a value of "
            + "\(composite.name) without it. Make it optional, or use a plan with code.")
      }
    } else if !elements.isEmpty && undecided.isEmpty
      && !elements.contains(where: { Self.hasValue($0, values[$0.slot.rawValue], origin) })
    {
      problem(
        "\(entity.name).\(composite.name)",
        "It \(isNew ? "is required and new" : "becomes required"), and existing objects can have no value of any element. Give a new "
          + "element a default value, make the attribute optional, or use a plan with code.")
    }
  }

  private static func isDirect(_ element: ManagedObjectModel.Attribute, in composite: ManagedObjectModel.CompositeAttribute) -> Bool {
    !element.name.utf8.dropFirst(composite.name.utf8.count + 1).contains(UInt8(ascii: "."))
  }

  private static func attribute(_ slot: SlotIndex, _ entity: ManagedObjectModel.Entity) -> ManagedObjectModel.Attribute? {
    if case .attribute(let attribute) = entity.slots[slot] { attribute } else { nil }
  }

  /// Whether each existing object has a value of an element, or of another one of a composite attribute that was required before.
  private static func hasValue(
    _ element: ManagedObjectModel.Attribute, _ value: ValueMapping, _ origin: ManagedObjectModel.Entity
  ) -> Bool {
    guard element.isOptional else { return true }
    guard let slot = value.source else { return value.fallback != .null }
    return attribute(slot, origin)?.isOptional == false
      || origin.composites.contains { !$0.isOptional && $0.slots.contains(slot) }
  }

  // MARK: Derived attributes

  /// Checks that derived values are still right: that what they depend on has the same values as before.
  ///
  /// The others begin without a value, so that the next save of their object computes them. Saves add differences to counts and sums, so
  /// a wrong number would stay wrong.
  ///
  /// - Returns: The mappings without the values that aren't right.
  mutating func withRightDerivedValues(_ mappings: [EntityMapping]) -> [EntityMapping] {
    mappings.map { mapping in
      guard let origin = mapping.source else { return mapping }
      let entity = destination.entities[mapping.destination]
      var values = mapping.values
      for attribute in entity.derivedAttributes where mapping.values[attribute.slot.rawValue].source != nil {
        let isSame: Bool =
          switch attribute.derivation {
          case .copy(let path)?, .text(_, let path)?: keeps(path, mapping, source.entities[origin], mappings)
          case .count(let relationship)?: link(relationship, mapping, source.entities[origin]) != nil
          case .sum(let relationship, let name)?:
            keeps(PropertyPath(relationship, [name]), mapping, source.entities[origin], mappings)
          case .now?, nil: true
          }
        if isSame { continue }
        problem(
          "\(entity.name).\(attribute.name)",
          "It is derived from a property that changes, and a migration doesn't compute values. Use a plan with code, which saves the objects."
        )
        values[attribute.slot.rawValue] = ValueMapping(source: nil, fallback: .null)
      }
      return mapping.with(values)
    }
  }

  /// Whether all properties of a path have the values that they had before.
  private func keeps(
    _ path: PropertyPath, _ mapping: EntityMapping, _ origin: ManagedObjectModel.Entity, _ mappings: [EntityMapping]
  ) -> Bool {
    guard let next = path.rest.first else {
      guard let slot = destination.entities[mapping.destination].slot(named: path.first) else { return false }
      let value = mapping.values[slot.rawValue]
      return value.source != nil && value.source == origin.slot(named: path.first) && value.fallback == .null
    }
    guard let former = link(path.first, mapping, origin) else { return false }
    return source.entities[former.destinationIndex].concreteIndexes.allSatisfy { index in
      guard let other = mappings.first(where: { $0.source == index }) else { return true }
      return keeps(PropertyPath(next, Array(path.rest.dropFirst())), other, source.entities[index], mappings)
    }
  }

  /// The former relationship if a relationship has exactly its links.
  private func link(_ name: String, _ mapping: EntityMapping, _ origin: ManagedObjectModel.Entity) -> ManagedObjectModel.Relationship? {
    guard let relationship = destination.entities[mapping.destination].relationship(named: name),
      let link = mapping.links[relationship.index.rawValue], !link.losesOwners, !link.losesDestinations,
      let former = origin.relationship(named: name)
    else { return nil }
    let read = source.entities[link.entity].relationships[link.relationship]
    let isSame = link.isReversed ? source.inverse(of: read) == former : read == former
    return isSame ? former : nil
  }
}
