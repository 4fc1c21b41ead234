/// Finds every problem in a model's entities and composite attributes.
struct ModelCheck {
  private let entities: [EntityDescription]
  let byName: [String: EntityDescription]
  let composites: CompositeCheck

  init(_ entities: [EntityDescription], _ composites: [CompositeDescription]) {
    self.entities = entities
    self.composites = CompositeCheck(composites)
    var byName: [String: EntityDescription] = [:]
    for entity in entities where byName[entity.name] == nil { byName[entity.name] = entity }
    self.byName = byName
  }

  func problems() -> [ModelError.Problem] {
    var found = ModelCheck.repeated(entities.map(\.name)).map {
      problem($0, "Another entity has this name, ignoring case. Rename one of them.")
    }
    found += composites.problems
    if composites.byName[""] != nil { found.append(problem("composite", "A composite has no name. Give it one.")) }
    for entity in entities { found += problems(in: entity) }
    return found
  }

  func problem(_ path: String, _ reason: String) -> ModelError.Problem { ModelError.Problem(path: path, reason: reason) }

  private func problems(in entity: EntityDescription) -> [ModelError.Problem] {
    var found: [ModelError.Problem] = []
    if !ModelCheck.isName(entity.name) { found.append(problem(entity.name, ModelCheck.nameRule)) }
    found += problemsOfInheritance(entity)
    let names = propertyNames(entity)
    found += ModelCheck.repeated(names).map {
      problem("\(entity.name).\($0)", "Another property of the entity has this name, ignoring case. Rename one of them.")
    }
    for name in names where !ModelCheck.isName(name) { found.append(problem("\(entity.name).\(name)", ModelCheck.nameRule)) }
    for attribute in entity.attributes { found += problems(in: attribute, of: entity) }
    for property in entity.fetchedProperties where byName[property.fetchRequest.entity] == nil {
      found.append(
        problem("\(entity.name).\(property.name)", "The entity \(property.fetchRequest.entity) of the fetch request doesn't exist."))
    }
    for relationship in entity.relationships { found += problems(in: relationship, of: entity) }
    found += problemsInGroups(of: entity)
    return found
  }

  /// The superentities of an entity, nearest first. If the inheritance is circular, each occurs once.
  func superentities(of entity: EntityDescription) -> [EntityDescription] {
    var found: [EntityDescription] = []
    var next = entity.superentity.flatMap { byName[$0] }
    while let above = next, above.name != entity.name, !found.contains(where: { $0.name == above.name }) {
      found.append(above)
      next = above.superentity.flatMap { byName[$0] }
    }
    return found
  }

  private func problemsOfInheritance(_ entity: EntityDescription) -> [ModelError.Problem] {
    guard let name = entity.superentity else { return [] }
    guard byName[name] != nil else { return [problem(entity.name, "The superentity \(name) doesn't exist.")] }
    let above = superentities(of: entity)
    if name == entity.name || above.last?.superentity == entity.name {
      return [
        problem(entity.name, "It inherits from itself, through \(([name] + above.dropFirst().map(\.name)).joined(separator: ", ")).")
      ]
    }
    let own = propertyNames(entity).map { ($0, $0.lowercased()) }
    return above.flatMap { above in
      let inherited = Set(propertyNames(above).map { $0.lowercased() })
      return own.filter { inherited.contains($0.1) }.map {
        problem("\(entity.name).\($0.0)", "The superentity \(above.name) has a property with this name. Rename one of them.")
      }
    }
  }

  private func propertyNames(_ entity: EntityDescription) -> [String] {
    entity.attributes.map(\.name) + entity.relationships.map(\.name) + entity.fetchedProperties.map(\.name)
  }

  static let nameRule = "The name is invalid. Use ASCII letters, digits and underscores, and don't begin with a digit."

  static func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, !(48...57).contains(first) else { return false }
    return name.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95 }
  }

  /// Whether a path names an element of a composite attribute, directly or nested.
  static func isElement(_ path: String, of group: String) -> Bool {
    path.utf8.count > group.utf8.count && path.utf8.starts(with: group.utf8) && path.utf8.dropFirst(group.utf8.count).first == 46
  }

  static func repeated(_ names: [String]) -> [String] {
    var seen: Set<String> = []
    return names.filter { !seen.insert($0.lowercased()).inserted }
  }

  private func problems(in relationship: RelationshipDescription, of entity: EntityDescription) -> [ModelError.Problem] {
    let path = "\(entity.name).\(relationship.name)"
    guard let destination = byName[relationship.destination] else {
      return [problem(path, "The destination entity \(relationship.destination) doesn't exist.")]
    }
    var found: [ModelError.Problem] = []
    if let name = relationship.inverse { found += problems(ofInverse: name, of: relationship, destination, entity) }
    found += problems(inCountsOf: relationship, path)
    return found
  }

  private func problems(
    ofInverse name: String, of relationship: RelationshipDescription, _ destination: EntityDescription, _ entity: EntityDescription
  ) -> [ModelError.Problem] {
    let path = "\(entity.name).\(relationship.name)"
    var found: [ModelError.Problem] = []
    if let inverse = destination.relationships.first(where: { $0.name == name }) {
      if inverse.destination != entity.name || inverse.inverse != relationship.name {
        found.append(
          problem(
            path,
            "The inverse \(destination.name).\(inverse.name) points to \(inverse.destination) and declares "
              + "\(inverse.inverse.map { "the inverse \($0)" } ?? "no inverse"). "
              + "Change \(destination.name).\(inverse.name) to point to \(entity.name), with the inverse \(relationship.name)."
          ))
      }
      if inverse.isTransient != relationship.isTransient {
        found.append(
          problem(
            path,
            "Only one of this relationship and its inverse \(destination.name).\(inverse.name) is transient. "
              + "Make both transient, or neither."
          ))
      }
    } else if let above = superentities(of: destination).first(where: { $0.relationships.contains { $0.name == name } }) {
      found.append(
        problem(
          path,
          "The inverse \(name) is declared by \(above.name), a superentity of \(destination.name), so objects of other entities also "
            + "have it. Set the destination to \(above.name).")
      )
    } else {
      found.append(problem(path, "The inverse \(destination.name).\(name) doesn't exist."))
    }
    return found
  }

  private func problems(inCountsOf relationship: RelationshipDescription, _ path: String) -> [ModelError.Problem] {
    var found: [ModelError.Problem] = []
    if relationship.isToMany {
      // Some Core Data models use a maximum of -1 for no limit. It is valid, because changing it to 0 would change the version hash.
      if relationship.minCount < 0 || relationship.maxCount < -1 { found.append(problem(path, "A minimum or maximum count is negative.")) }
      if relationship.maxCount > 0 && relationship.minCount > relationship.maxCount {
        found.append(problem(path, "The minimum count \(relationship.minCount) is above the maximum count \(relationship.maxCount)."))
      }
      if relationship.maxCount == 1 {
        found.append(problem(path, "The maximum count is 1. Make it a to-one relationship."))
      }
    } else if relationship.maxCount != 1 {
      // Version hashes distinguish to-one and to-many relationships only by the maximum count.
      found.append(problem(path, "The maximum count of a to-one relationship is 1, not \(relationship.maxCount)."))
    }
    return found
  }

  private func problemsInGroups(of entity: EntityDescription) -> [ModelError.Problem] {
    let family = [entity] + superentities(of: entity)
    let stored = Set(
      family.flatMap { storedNames($0.attributes) + $0.relationships.filter { !$0.isToMany && !$0.isTransient }.map(\.name) })
    var found: [ModelError.Problem] = []
    let indexes = entity.indexes.filter { !$0.isIgnored }
    let groups = entity.uniquenessConstraints.map { ("uniqueness constraint", $0) } + indexes.map { ("index \($0.name)", $0.properties) }
    let external = Set(family.flatMap(\.attributes).filter(\.allowsExternalBinaryDataStorage).map(\.name))
    for name in Set(entity.uniquenessConstraints.joined()).intersection(external).sorted() {
      found.append(problem("\(entity.name).\(name)", "Attributes that allow external storage can't be unique."))
    }
    for (kind, names) in groups {
      if names.isEmpty { found.append(problem(entity.name, "The \(kind) has no properties.")) }
      for name in names where !stored.contains(name) {
        found.append(
          problem(
            "\(entity.name).\(name)",
            "The \(kind) names a property that isn't a stored attribute or a stored to-one relationship."))
      }
    }
    let following = Set(
      family.flatMap(\.attributes).filter { $0.derivationExpression.flatMap { Derivation($0) }?.followsOthers == true }.map(\.name))
    for name in Set(entity.uniquenessConstraints.joined()).sorted() where following.contains(name) {
      found.append(
        problem(
          "\(entity.name).\(name)", "An attribute derived from other objects can't be unique: it changes when they are saved.")
      )
    }
    if entity.indexes.contains(where: \.name.isEmpty) { found.append(problem(entity.name, "An index has no name. Give it one.")) }
    found += ModelCheck.repeated(indexes.map(\.name)).map { problem("\(entity.name).\($0)", "Another index has this name.") }
    return found
  }
}
