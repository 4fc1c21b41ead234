extension MappingInference {
  private typealias Relationship = ManagedObjectModel.Relationship
  private typealias Entity = ManagedObjectModel.Entity

  /// The mapping of each relationship's links, by entity and relationship.
  mutating func links() -> [[LinkMapping?]] {
    let matches = destination.entities.map { matchedRelationships($0) }
    return destination.entities.map { entity in
      entity.relationships.map { relationship in link(relationship, of: entity, matches) }
    }
  }

  /// The relationship of the source for each relationship of an entity, by index; nil for new ones.
  private mutating func matchedRelationships(_ entity: Entity) -> [Relationship?] {
    guard let index = sources[entity.index.rawValue] else { return entity.relationships.map { _ in nil } }
    let origin = source.entities[index]
    let match = ModelMatch(names(origin, source), names(entity, destination))
    for place in match.ambiguous {
      problem(
        "\(entity.name).\(entity.relationships[place].name)", "Its renaming identifier fits several relationships of the former model.")
    }
    return match.sources.map { $0.map { origin.relationships[$0] } }
  }

  private func names(_ entity: Entity, _ model: ManagedObjectModel) -> [ModelMatch.Name] {
    entity.relationships.map { relationship in
      let declared = model.entities[relationship.entityIndex].declaration.relationships.first { $0.name == relationship.name }
      return ModelMatch.Name(relationship.name, declared?.renamingIdentifier)
    }
  }

  private mutating func link(_ relationship: Relationship, of entity: Entity, _ matches: [[Relationship?]]) -> LinkMapping? {
    let path = "\(entity.name).\(relationship.name)"
    let own = matches[entity.index.rawValue][relationship.index.rawValue]
    let inverse = destination.inverse(of: relationship)
    let other = inverse.flatMap { matches[$0.entityIndex.rawValue][$0.index.rawValue] }
    if let own, let other, source.inverse(of: own).map({ isSame($0, other) }) != true {
      problem(
        path,
        "In the former model, \(own.name) and \(other.name) weren't each other's inverse, so their links may differ. "
          + "Use a custom mapping.")
      return nil
    }
    guard let former = own ?? other else {
      if !relationship.isOptional && sources[entity.index.rawValue] != nil {
        problem(path, "It is required and new, and existing objects have no destination. Make it optional, or use a custom mapping.")
      }
      return nil
    }
    let isReversed = own == nil
    let back = source.inverse(of: former)
    // A new inverse of another entity's relationship: only objects of its destination have links.
    if isReversed && sources[entity.index.rawValue] == nil { return nil }
    return LinkMapping(
      entity: former.entityIndex, relationship: former.index, isReversed: isReversed,
      needsSingleDestination: !relationship.isToMany && (isReversed ? !hasSingleOwner(former, back) : former.isToMany),
      needsSingleOwner: hasSingleOwner(relationship, inverse) && (isReversed ? former.isToMany : !hasSingleOwner(former, back)),
      losesDestinations: checkDestinations(relationship, former, isReversed, path))
  }

  private func hasSingleOwner(_ relationship: Relationship, _ inverse: Relationship?) -> Bool {
    inverse.map { !$0.isToMany } ?? relationship.hasTargetsToItself
  }

  private func isSame(_ a: Relationship, _ b: Relationship) -> Bool {
    // An inherited relationship keeps the entity that declares it.
    a.entityIndex == b.entityIndex && a.index == b.index
  }

  /// Checks that the former destinations are objects of the new destination.
  ///
  /// - Returns: Whether some of them are removed.
  private mutating func checkDestinations(_ relationship: Relationship, _ former: Relationship, _ isReversed: Bool, _ path: String) -> Bool
  {
    let formerDestination = isReversed ? former.entityIndex : former.destinationIndex
    var loses = false
    for index in source.entities[formerDestination].concreteIndexes {
      guard let place = sources.firstIndex(of: index) else {
        loses = true
        continue
      }
      if destination.entities[place].isKind(of: destination.entities[relationship.destinationIndex]) { continue }
      problem(
        path,
        "It leads to \(destination.entities[relationship.destinationIndex].name), and \(source.entities[index].name) was among its "
          + "destinations. Use a custom mapping.")
    }
    return loses
  }
}
