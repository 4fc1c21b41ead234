extension MappingModel {
  /// Finds the mapping between two versions of a model, as Core Data infers it.
  ///
  /// What the comparison understands:
  /// - Entities, attributes, elements of composites, and relationships are found by their names. Renamed ones have the former name as their
  ///   renaming identifier.
  /// - New attributes get their default value in all existing objects. A required one must have a default value.
  /// - A required attribute that was optional gets its default value where there was none.
  /// - An attribute may change to a type that has all values of the former one: to wider integers, and from `Float` to `Double`.
  /// - Relationships may become to-many or ordered, and gain or lose an inverse. They may become to-one if no object has several
  ///   destinations, which is checked during the migration.
  /// - Entities may get, lose or change a superentity, unless objects of two families would come together.
  /// - Removed entities and properties are removed with their objects and values.
  ///
  /// - Throws: ``MigrationError`` with code ``MigrationError/Code/inferredMappingModel`` (134190) and everything that needs a decision.
  public static func inferred(from source: ManagedObjectModel, to destination: ManagedObjectModel) throws(MigrationError) -> MappingModel {
    let (mapping, problems) = try partial(from: source, to: destination)
    if problems.isEmpty { return mapping }
    var error = undecided(problems)
    error.suggestion = mapping.suggestion(for: problems)
    throw error
  }

  /// A mapping in which the properties that need a decision begin without a value or links, and the decisions that are needed.
  ///
  /// - Parameter rules: What belongs together, instead of names and renaming identifiers. Defaults to nil.
  /// - Throws: ``MigrationError`` if entities can't be mapped at all.
  package static func partial(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, by rules: MappingRules? = nil
  ) throws(MigrationError) -> (mapping: MappingModel, problems: [MigrationError.Problem]) {
    var inference = MappingInference(source, destination, rules)
    let mapping = inference.mapping()
    if !inference.obstacles.isEmpty { throw undecided(inference.obstacles + inference.problems) }
    return (mapping, inference.problems)
  }

  private static func undecided(_ problems: [MigrationError.Problem]) -> MigrationError {
    MigrationError(
      .inferredMappingModel, reason: "The differences between the store's model and the new one need a decision. Nothing was changed.",
      problems: problems)
  }
}

/// The comparison of two models.
struct MappingInference {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  let rules: MappingRules?
  /// The source entity of each destination entity.
  private(set) var sources: [EntityIndex?] = []
  /// What needs a decision: the property begins without a value or links.
  var problems: [MigrationError.Problem] = []
  /// What no code of a stage could decide afterwards.
  var obstacles: [MigrationError.Problem] = []

  init(_ source: ManagedObjectModel, _ destination: ManagedObjectModel, _ rules: MappingRules?) {
    self.source = source
    self.destination = destination
    self.rules = rules
  }

  mutating func mapping() -> MappingModel {
    matchEntities()
    checkFamilies()
    let values = destination.entities.map { entity in sources[entity.index.rawValue].map { self.values(entity, source.entities[$0]) } }
    let links = self.links()
    let mappings = destination.entities.map { entity in
      let origin = sources[entity.index.rawValue]
      return EntityMapping(
        destination: entity.index, source: origin, kind: kind(entity, origin, values[entity.index.rawValue]),
        values: values[entity.index.rawValue] ?? entity.slots.map { _ in ValueMapping(source: nil, fallback: .null) },
        links: links[entity.index.rawValue])
    }
    return MappingModel(source: source, destination: destination, entityMappings: withRightDerivedValues(mappings), rules: rules)
  }

  /// - Parameter values: The mapping of each slot; nil for a new entity.
  private func kind(_ entity: ManagedObjectModel.Entity, _ origin: EntityIndex?, _ values: [ValueMapping]?) -> EntityMapping.Kind {
    guard let origin, let values else { return .add }
    if rules != nil { return .transform }
    let former = source.entities[origin]
    guard former.versionHash == entity.versionHash, former.layout == entity.layout else { return .transform }
    // Elements of composite attributes and renaming identifiers aren't part of the version hash.
    let isSame = entity.slotIndexes.allSatisfy { slot in
      guard former.slots[slot].name == entity.slots[slot].name else { return false }
      if case .attribute = entity.slots[slot] { return values[slot].source == slot }
      return true
    }
    return isSame ? .copy : .transform
  }

  private mutating func obstacle(_ path: String, _ reason: String) { obstacles.append(MigrationError.Problem(path, reason)) }

  mutating func problem(_ path: String, _ reason: String) {
    let problem = MigrationError.Problem(path, reason)
    // Subentities inherit the problems of their superentities.
    if !problems.contains(problem) { problems.append(problem) }
  }

  // MARK: Entities

  private mutating func matchEntities() {
    if let rules {
      matchEntities(by: rules)
    } else {
      matchEntitiesByName()
    }
    for entity in destination.entities where entity.isAbstract {
      guard let origin = sources[entity.index.rawValue], !source.entities[origin].isAbstract else { continue }
      obstacle(
        entity.name,
        "It becomes abstract, but may have objects. Give the entity that they become the renaming identifier "
          + "\(source.entities[origin].name).")
    }
  }

  private mutating func matchEntities(by rules: MappingRules) {
    sources = destination.entities.map { rules.entities[$0.name].flatMap { source.entity(named: $0.source)?.index } }
    for (place, origin) in sources.enumerated() where origin != nil && sources[..<place].contains(origin) {
      obstacle(
        destination.entities[place].name,
        "Its objects would keep their keys, as those of another entity do. Insert them in a plan with code.")
    }
  }

  private mutating func matchEntitiesByName() {
    func names(_ model: ManagedObjectModel) -> [ModelMatch.Name] {
      model.entities.map { ModelMatch.Name($0.name, $0.declaration.renamingIdentifier) }
    }
    let match = ModelMatch(names(source), names(destination))
    sources = match.sources.map { $0.map { EntityIndex($0) } }
    for place in match.ambiguous {
      let entity = destination.entities[place]
      obstacle(
        entity.name, "Its renaming identifier \(entity.declaration.renamingIdentifier ?? "") fits several entities, or several have it.")
    }
  }

  /// Objects of two families can have the same key, so they can't come together.
  private mutating func checkFamilies() {
    for root in destination.entities where root.rootIndex == root.index {
      let roots = Set(root.familyIndexes.compactMap { sources[$0.rawValue].map { source.entities[$0].rootIndex } })
      if roots.count < 2 { continue }
      let names = roots.sorted().map { source.entities[$0].name }.joined(separator: " and ")
      obstacle(
        root.name,
        "Objects of \(names), which had no common superentity, would get one, and so could have the same key. Migrate to a version "
          + "between first, whose code inserts the objects of one family as those of a new entity. Then rename that entity.")
    }
  }
}
