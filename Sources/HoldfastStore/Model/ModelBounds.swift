/// Size limits of models. Models come from files, so checking one takes bounded time and memory.
package enum ModelBounds {
  /// The maximum number of entities.
  static let entities = 4096
  /// The maximum number of properties of an entity, including inherited ones.
  static let properties = 4096
  /// The maximum number of values in a row, including elements of composite attributes.
  package static let values = 8192
  /// The maximum number of superentities of an entity.
  static let superentities = 100
  /// The maximum nesting of composites.
  static let nestedComposites = 32
  /// The maximum number of composites.
  static let composites = 4096
  /// The maximum number of properties of all entities, including inherited ones. Each entity has tables with all its properties.
  static let allProperties = 1_000_000

  /// The first limit that is exceeded. Runs before other checks, in time proportional to the declarations.
  static func problems(_ entities: [EntityDescription], _ composites: [CompositeDescription]) -> [ModelError.Problem] {
    if entities.count > Self.entities {
      return [problem("model", "The model has \(entities.count) entities; the maximum is \(Self.entities).")]
    }
    if composites.count > Self.composites {
      return [problem("model", "The model has \(composites.count) composites; the maximum is \(Self.composites).")]
    }
    if let large = composites.first(where: { $0.elements.count > CompositeCheck.largestCount }) {
      return [problem("composite \(large.name)", "It has \(large.elements.count) elements; the maximum is \(CompositeCheck.largestCount).")]
    }
    var byName: [String: EntityDescription] = [:]
    for entity in entities { byName[entity.name] = entity }
    for entity in entities {
      if let reason = reason(against: entity, byName) { return [problem(entity.name, reason)] }
    }
    return problems(entities, byName, propertyCount)
  }

  /// The problem if all entities together have too many properties, including inherited ones.
  private static func problems(
    _ entities: [EntityDescription], _ byName: [String: EntityDescription], _ propertyCount: (EntityDescription) -> Int
  ) -> [ModelError.Problem] {
    var own: [String: Int] = [:]
    for entity in entities {
      own[entity.name, default: 0] += propertyCount(entity) + entity.uniquenessConstraints.count
      // The destination and its subentities have a list of these.
      for relationship in entity.relationships where relationship.isToMany && relationship.inverse == nil {
        own[relationship.destination, default: 0] += 1
      }
    }
    var count = 0
    for entity in entities {
      var next: EntityDescription? = entity
      // A circle is reported as inheritance from itself.
      for _ in 0...superentities {
        guard let current = next else { break }
        count += own[current.name] ?? 0
        next = current.superentity.flatMap { $0 == entity.name ? nil : byName[$0] }
      }
    }
    if count <= allProperties { return [] }
    return [
      problem(
        "model",
        "The entities have \(count) properties, uniqueness constraints and relationships to them without an inverse, including inherited "
          + "ones; the maximum is \(allProperties).")
    ]
  }

  /// The entities whose rows have too many values. Requires a model without other problems.
  static func problems(_ entities: [EntityDescription], _ check: ModelCheck) -> [ModelError.Problem] {
    func valueCount(_ entity: EntityDescription) -> Int {
      entity.attributes.reduce(entity.relationships.count) { $0 + check.composites.valueCount($1) }
    }
    let large = entities.compactMap { entity in
      let count = check.superentities(of: entity).reduce(valueCount(entity)) { $0 + valueCount($1) }
      return count > values ? problem(entity.name, "Its rows have \(count) values; the maximum is \(values).") : nil
    }
    return large.isEmpty ? problems(entities, check.byName) { valueCount($0) + $0.fetchedProperties.count } : large
  }

  private static func reason(against entity: EntityDescription, _ byName: [String: EntityDescription]) -> String? {
    var names = [entity.name]
    var next = entity
    var count = propertyCount(entity)
    while let above = next.superentity.flatMap({ byName[$0] }) {
      // A circle is reported as inheritance from itself.
      if names.contains(above.name) { return nil }
      names.append(above.name)
      count += propertyCount(above)
      next = above
      if names.count > superentities + 1 { return "It has more than \(superentities) superentities." }
    }
    return count > properties ? "It has \(count) properties, including inherited ones; the maximum is \(properties)." : nil
  }

  private static func propertyCount(_ entity: EntityDescription) -> Int {
    entity.attributes.count + entity.relationships.count + entity.fetchedProperties.count
  }

  private static func problem(_ path: String, _ reason: String) -> ModelError.Problem { ModelError.Problem(path: path, reason: reason) }
}
