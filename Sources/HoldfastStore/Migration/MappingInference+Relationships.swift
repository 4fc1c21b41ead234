extension MappingInference {
  private typealias Relationship = ManagedObjectModel.Relationship
  private typealias Entity = ManagedObjectModel.Entity

  /// Links of the former model, read from one of their ends. A relationship and its inverse are the same links.
  private struct Links: Hashable {
    var relationship: Relationship
    /// Whether they are read from the relationship's destination.
    var isReversed: Bool

    /// The ends whose objects own the links, and are their destinations.
    var owner: EntityIndex { isReversed ? relationship.destinationIndex : relationship.entityIndex }
    var target: EntityIndex { isReversed ? relationship.entityIndex : relationship.destinationIndex }
  }

  /// The mapping of each relationship's links, by entity and relationship.
  mutating func links() -> [[LinkMapping?]] {
    let matches = destination.entities.map { matchedRelationships($0) }
    var mappings: [[LinkMapping?]] = destination.entities.map { Array(repeating: nil, count: $0.relationships.count) }
    for relationship in destination.entities.flatMap(\.ownRelationships) {
      let path = "\(destination.entities[relationship.entityIndex].name).\(relationship.name)"
      let found = formerLinks(relationship, matches)
      guard let links = found.first else {
        checkNewRelationship(relationship, path)
        continue
      }
      guard found.count == 1 else {
        let names = found.map { "\(source.entities[$0.relationship.entityIndex].name).\($0.relationship.name)" }.sorted()
        problem(
          path,
          "Its links, or those of its inverse, would come from \(names.joined(separator: " and ")), which weren't each other's inverse. "
            + "Use a plan with code.")
        continue
      }
      let mapping = mapping(relationship, links)
      for index in destination.entities[relationship.entityIndex].familyIndexes {
        // Only objects that had the former relationship have links.
        guard let origin = sources[index.rawValue].map({ source.entities[$0] }) else { continue }
        if origin.isKind(of: source.entities[links.owner]) {
          mappings[index.rawValue][relationship.index.rawValue] = mapping
        } else if !relationship.canBeEmpty && !origin.isAbstract {
          problem("\(destination.entities[index].name).\(relationship.name)", Self.isRequiredAndNew)
        }
      }
    }
    // Rules say what is kept.
    if rules == nil { checkKeptLinks(mappings) }
    return mappings
  }

  // MARK: Names

  /// The relationship of the source for each relationship of an entity, by index; nil for new ones.
  private mutating func matchedRelationships(_ entity: Entity) -> [Relationship?] {
    guard let index = sources[entity.index.rawValue] else { return entity.relationships.map { _ in nil } }
    let origin = source.entities[index]
    if let rules {
      let names = rules.entities[entity.name]?.relationships ?? [:]
      return entity.relationships.map { names[$0.name].flatMap { origin.relationship(named: $0) } }
    }
    let match = ModelMatch(names(origin, source), names(entity, destination))
    for place in match.ambiguous {
      problem(
        "\(entity.name).\(entity.relationships[place].name)", "Its renaming identifier fits several relationships, or several have it.")
    }
    return match.sources.map { $0.map { origin.relationships[$0] } }
  }

  private func names(_ entity: Entity, _ model: ManagedObjectModel) -> [ModelMatch.Name] {
    entity.relationships.map { relationship in
      let declared = model.entities[relationship.entityIndex].declaration.relationships.first { $0.name == relationship.name }
      return ModelMatch.Name(relationship.name, declared?.renamingIdentifier)
    }
  }

  // MARK: Links

  /// The former links that match a relationship or its inverse in any of the entities that have it.
  private func formerLinks(_ relationship: Relationship, _ matches: [[Relationship?]]) -> Set<Links> {
    var found: Set<Links> = []
    for index in destination.entities[relationship.entityIndex].familyIndexes {
      if let match = matches[index.rawValue][relationship.index.rawValue] { found.insert(canonical(match, isReversed: false)) }
    }
    guard let inverse = destination.inverse(of: relationship) else { return found }
    for index in destination.entities[inverse.entityIndex].familyIndexes {
      if let match = matches[index.rawValue][inverse.index.rawValue] { found.insert(canonical(match, isReversed: true)) }
    }
    return found
  }

  /// The same links named from the first of both ends, so that equal links are equal values.
  private func canonical(_ relationship: Relationship, isReversed: Bool) -> Links {
    guard let inverse = source.inverse(of: relationship), !relationship.isReflexive,
      (inverse.entityIndex, inverse.index) < (relationship.entityIndex, relationship.index)
    else { return Links(relationship: relationship, isReversed: isReversed && !relationship.isReflexive) }
    return Links(relationship: inverse, isReversed: !isReversed)
  }

  private func mapping(_ relationship: Relationship, _ links: Links) -> LinkMapping {
    let former = links.relationship, inverse = destination.inverse(of: relationship), back = source.inverse(of: former)
    let owners = kept(links.owner, as: relationship.entityIndex), targets = kept(links.target, as: relationship.destinationIndex)
    return LinkMapping(
      entity: former.entityIndex, relationship: former.index, isReversed: links.isReversed,
      needsSingleDestination: !relationship.isToMany && (links.isReversed ? !hasSingleOwner(former, back) : former.isToMany),
      needsSingleOwner: hasSingleOwner(relationship, inverse)
        && (links.isReversed ? former.isToMany : !hasSingleOwner(former, back)),
      owners: owners, destinations: targets, losesOwners: owners != source.entities[links.owner].concreteIndexes,
      losesDestinations: targets != source.entities[links.target].concreteIndexes)
  }

  /// The concrete entities of a former end whose objects are objects of a new end.
  private func kept(_ former: EntityIndex, as end: EntityIndex) -> [EntityIndex] {
    source.entities[former].concreteIndexes.filter { index in
      sources.firstIndex(of: index).map { destination.entities[$0].isKind(of: destination.entities[end]) } ?? false
    }
  }

  private func hasSingleOwner(_ relationship: Relationship, _ inverse: Relationship?) -> Bool {
    inverse.map { !$0.isToMany } ?? relationship.hasTargetsToItself
  }

  // MARK: Checks

  private mutating func checkNewRelationship(_ relationship: Relationship, _ path: String) {
    let hasObjects = destination.entities[relationship.entityIndex].concreteIndexes.contains { sources[$0.rawValue] != nil }
    if relationship.canBeEmpty || !hasObjects { return }
    problem(path, Self.isRequiredAndNew)
  }

  private static let isRequiredAndNew =
    "It is required and new, and existing objects have no destination. Make it optional, or use a plan with code."

  /// Checks that links between objects that remain aren't lost because a relationship got another destination.
  ///
  /// Links may be divided among several relationships, each with some of the destinations.
  private mutating func checkKeptLinks(_ mappings: [[LinkMapping?]]) {
    let used = Set(mappings.flatMap { $0.compactMap { $0 } })
    for relationship in destination.entities.flatMap(\.ownRelationships) {
      let family = destination.entities[relationship.entityIndex].familyIndexes
      guard let link = family.lazy.compactMap({ mappings[$0.rawValue][relationship.index.rawValue] }).first else { continue }
      let former = source.entities[link.entity].relationships[link.relationship]
      let places = used.filter { $0.entity == link.entity && $0.relationship == link.relationship }
      for owner in source.entities[former.entityIndex].concreteIndexes where sources.contains(owner) {
        for target in source.entities[former.destinationIndex].concreteIndexes where sources.contains(target) {
          let isKept = places.contains { place in
            let (from, to) = place.isReversed ? (target, owner) : (owner, target)
            return place.owners.contains(from) && place.destinations.contains(to)
          }
          if isKept { continue }
          problem(
            "\(destination.entities[relationship.entityIndex].name).\(relationship.name)",
            "Links between \(source.entities[owner].name) and \(source.entities[target].name) were possible, and no relationship of the new "
              + "model has them. Use a plan with code.")
        }
      }
    }
  }
}
