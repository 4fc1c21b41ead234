/// All that contradicts itself in a model's declarations.
public struct ModelError: Error, Sendable, Hashable, CustomStringConvertible {
  /// One contradiction.
  public struct Problem: Sendable, Hashable, CustomStringConvertible {
    /// Where it is: "Person", "Person.age".
    public let path: String
    /// What is wrong and what would be right, as a sentence.
    public let reason: String

    /// The path and the reason in a line.
    public var description: String { "\(path): \(reason)" }
  }

  /// Every contradiction that was found, in the order of the entities.
  public let problems: [Problem]

  /// All problems, a line each.
  public var description: String {
    "The model contradicts itself in \(problems.count) \(problems.count == 1 ? "place" : "places"):\n"
      + problems.map { "  \($0)" }.joined(separator: "\n")
  }
}

/// Finds every contradiction in declarations.
struct ModelCheck {
  private let entities: [EntityDescription]
  private let byName: [String: EntityDescription]

  init(_ entities: [EntityDescription]) {
    self.entities = entities
    byName = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  func problems() -> [ModelError.Problem] {
    var found = repeated(entities.map(\.name)).map {
      problem($0, "There are two entities of this name; names must differ, also apart from case.")
    }
    for entity in entities { found += problems(in: entity) }
    return found
  }

  private func problem(_ path: String, _ reason: String) -> ModelError.Problem { ModelError.Problem(path: path, reason: reason) }

  private func problems(in entity: EntityDescription) -> [ModelError.Problem] {
    var found: [ModelError.Problem] = []
    if !isName(entity.name) { found.append(problem(entity.name, ModelCheck.nameRule)) }
    found += problemsOfInheritance(entity)
    let names = entity.attributes.map(\.name) + entity.relationships.map(\.name)
    found += repeated(names).map {
      problem("\(entity.name).\($0)", "There are two properties of this name; names must differ, also apart from case.")
    }
    for name in names where !isName(name) { found.append(problem("\(entity.name).\(name)", ModelCheck.nameRule)) }
    for attribute in entity.attributes { found += problems(in: attribute, of: entity) }
    for relationship in entity.relationships { found += problems(in: relationship, of: entity) }
    found += problemsInGroups(of: entity)
    return found
  }

  /// The entities above one, the nearest first; those of a circle once each.
  private func superentities(of entity: EntityDescription) -> [EntityDescription] {
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
    let own = (entity.attributes.map(\.name) + entity.relationships.map(\.name)).map { ($0, $0.lowercased()) }
    return above.flatMap { above in
      let inherited = Set((above.attributes.map(\.name) + above.relationships.map(\.name)).map { $0.lowercased() })
      return own.filter { inherited.contains($0.1) }.map {
        problem("\(entity.name).\($0.0)", "\(above.name), from which it inherits, has a property of this name.")
      }
    }
  }

  private static let nameRule = "A name is a letter or underscore followed by letters, digits and underscores, in ASCII."

  private func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, !(48...57).contains(first) else { return false }
    return name.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95 }
  }

  private func repeated(_ names: [String]) -> [String] {
    var seen: Set<String> = []
    return names.filter { !seen.insert($0.lowercased()).inserted }
  }

  private func problems(in attribute: AttributeDescription, of entity: EntityDescription) -> [ModelError.Problem] {
    guard let value = attribute.defaultValue, value != .null else { return [] }
    if value.fits(attribute.type) { return [] }
    return [problem("\(entity.name).\(attribute.name)", "The default value is not a \(attribute.type.rawValue).")]
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
      if relationship.minCount < 0 || relationship.maxCount < 0 { found.append(problem(path, "A count cannot be negative.")) }
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
    let stored = Set(family.flatMap { $0.attributes.map(\.name) + $0.relationships.filter { !$0.isToMany }.map(\.name) })
    var found: [ModelError.Problem] = []
    let groups =
      entity.uniquenessConstraints.map { ("uniqueness constraint", $0) } + entity.indexes.map { ("index \($0.name)", $0.properties) }
    for (kind, names) in groups {
      if names.isEmpty { found.append(problem(entity.name, "A \(kind) names no property.")) }
      for name in names where !stored.contains(name) {
        found.append(
          problem("\(entity.name).\(name)", "The \(kind) names a property that is neither an attribute nor a to-one relationship."))
      }
    }
    found += repeated(entity.indexes.map(\.name)).map { problem("\(entity.name).\($0)", "There are two indexes of this name.") }
    return found
  }
}
