/// Finds every contradiction in declarations.
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
      problem($0, "There are two entities of this name; names must differ, also apart from case.")
    }
    found += composites.problems
    if composites.byName[""] != nil { found.append(problem("composite", "A composite needs a name.")) }
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
      problem("\(entity.name).\($0)", "There are two properties of this name; names must differ, also apart from case.")
    }
    for name in names where !ModelCheck.isName(name) { found.append(problem("\(entity.name).\(name)", ModelCheck.nameRule)) }
    for attribute in entity.attributes { found += problems(in: attribute, of: entity) }
    for property in entity.fetchedProperties where byName[property.fetchRequest.entity] == nil {
      found.append(problem("\(entity.name).\(property.name)", "There is no entity \(property.fetchRequest.entity) to ask."))
    }
    for relationship in entity.relationships { found += problems(in: relationship, of: entity) }
    found += problemsInGroups(of: entity)
    return found
  }

  /// The entities above one, the nearest first; those of a circle once each.
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
    guard byName[name] != nil else { return [problem(entity.name, "There is no entity \(name) to inherit from.")] }
    let above = superentities(of: entity)
    if name == entity.name || above.last?.superentity == entity.name {
      return [
        problem(entity.name, "It inherits from itself, by way of \(([name] + above.dropFirst().map(\.name)).joined(separator: ", ")).")
      ]
    }
    let own = propertyNames(entity).map { ($0, $0.lowercased()) }
    return above.flatMap { above in
      let inherited = Set(propertyNames(above).map { $0.lowercased() })
      return own.filter { inherited.contains($0.1) }.map {
        problem("\(entity.name).\($0.0)", "\(above.name), from which it inherits, has a property of this name.")
      }
    }
  }

  private func propertyNames(_ entity: EntityDescription) -> [String] {
    entity.attributes.map(\.name) + entity.relationships.map(\.name) + entity.fetchedProperties.map(\.name)
  }

  static let nameRule = "A name is a letter or underscore followed by letters, digits and underscores, in ASCII."

  static func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, !(48...57).contains(first) else { return false }
    return name.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95 }
  }

  /// Whether a path leads to an element of a group, however deep.
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
      return [problem(path, "There is no entity \(relationship.destination) to lead to.")]
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
            "Its inverse \(destination.name).\(inverse.name) leads to \(inverse.destination).\(inverse.inverse ?? "nothing"), not back here."
          ))
      }
      if inverse.isTransient != relationship.isTransient {
        found.append(
          problem(path, "Only one of it and its inverse \(destination.name).\(inverse.name) is transient. Make both transient, or neither.")
        )
      }
    } else if let above = superentities(of: destination).first(where: { $0.relationships.contains { $0.name == name } }) {
      found.append(
        problem(
          path, "Its inverse is declared by \(above.name), whose other objects would have it too; let it lead to \(above.name)."))
    } else {
      found.append(problem(path, "There is no relationship \(destination.name).\(name) to be its inverse."))
    }
    return found
  }

  private func problems(inCountsOf relationship: RelationshipDescription, _ path: String) -> [ModelError.Problem] {
    var found: [ModelError.Problem] = []
    if relationship.isToMany {
      // Models made by programs say -1 for no bound, and the number enters the version hash.
      if relationship.minCount < 0 || relationship.maxCount < -1 { found.append(problem(path, "A count cannot be negative.")) }
      if relationship.maxCount > 0 && relationship.minCount > relationship.maxCount {
        found.append(problem(path, "The least count \(relationship.minCount) is above the largest count \(relationship.maxCount)."))
      }
      if relationship.maxCount == 1 {
        found.append(problem(path, "A to-many relationship of at most one object is a to-one relationship."))
      }
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
      found.append(problem("\(entity.name).\(name)", "Values that may lie in files of their own cannot be compared, so not be unique."))
    }
    for (kind, names) in groups {
      if names.isEmpty { found.append(problem(entity.name, "A \(kind) names no property.")) }
      for name in names where !stored.contains(name) {
        found.append(
          problem(
            "\(entity.name).\(name)",
            "The \(kind) names a property that is neither an attribute that stores keep nor a to-one relationship."))
      }
    }
    let following = Set(
      family.flatMap(\.attributes).filter { $0.derivationExpression.flatMap { Derivation($0) }?.followsOthers == true }.map(\.name))
    for name in Set(entity.uniquenessConstraints.joined()).sorted() where following.contains(name) {
      found.append(
        problem(
          "\(entity.name).\(name)", "A value that follows from other objects changes without its own, so nobody could refuse a second one.")
      )
    }
    if entity.indexes.contains(where: \.name.isEmpty) { found.append(problem(entity.name, "An index needs a name.")) }
    found += ModelCheck.repeated(indexes.map(\.name)).map { problem("\(entity.name).\($0)", "There are two indexes of this name.") }
    return found
  }
}
