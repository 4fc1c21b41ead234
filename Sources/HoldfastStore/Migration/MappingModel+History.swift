// What a migration keeps of a store's history, in which properties have the names of the former model.
extension MappingModel {
  /// Whether the former name of one of an entity's properties is now that of another one, or its new name was.
  ///
  /// Another one can also be a new property of another kind or type, such as a relationship with the name of a removed attribute.
  ///
  /// Then names in a history would mean other properties.
  ///
  /// - Parameter mapping: The mapping of the entity.
  public func exchangesNames(_ mapping: EntityMapping) -> Bool {
    guard let index = mapping.source else { return false }
    let former = source.entities[index], new = destination.entities[mapping.destination]
    let attributes = new.attributes.compactMap { attribute in
      mapping.values[attribute.slot.rawValue].source.map { (new: attribute.name, former: former.slots[$0].name) }
    }
    let relationships = new.relationships.compactMap { relationship in
      mapping.links[relationship.index.rawValue].flatMap { owning($0) }.map { (new: relationship.name, former: $0.name) }
    }
    return (attributes + relationships).contains { names in
      names.new != names.former && (new.property(named: names.former) != nil || former.property(named: names.new) != nil)
    } || reusesNames(new, former, mapping)
  }

  /// Whether a new property of an entity has the name of a former one of another kind or type.
  private func reusesNames(
    _ new: ManagedObjectModel.Entity, _ former: ManagedObjectModel.Entity, _ mapping: EntityMapping
  ) -> Bool {
    let isOtherAttribute = new.attributes.contains { attribute in
      if mapping.values[attribute.slot.rawValue].source != nil { return false }
      switch former.property(named: attribute.name) {
      case .attribute(let other)?: return other.type != attribute.type
      case .relationship?, .composite?: return true
      default: return false
      }
    }
    return isOtherAttribute
      || (new.relationships.map(\.name) + new.composites.map(\.name)).contains { name in
        switch (new.property(named: name), former.property(named: name)) {
        case (.relationship?, .attribute?), (.relationship?, .composite?), (.composite?, .attribute?), (.composite?, .relationship?): true
        default: false
        }
      }
  }

  /// The relationship of the source whose owners are the owners of a link mapping, if there is one.
  private func owning(_ link: LinkMapping) -> ManagedObjectModel.Relationship? {
    link.isReversed ? source.inverse(of: relationship(link)) : relationship(link)
  }

  /// Whether the values that a history keeps of an entity's deleted objects are those that it would keep now.
  ///
  /// Object IDs contain the names of entities, so they aren't if entities are renamed, removed or moved to another family.
  ///
  /// - Parameters:
  ///   - mapping: The mapping of the entity.
  ///   - former: What a history keeps of the source.
  ///   - plan: What it keeps of the destination.
  public func keepsTombstones(_ mapping: EntityMapping, _ former: HistoryPlan, _ plan: HistoryPlan) -> Bool {
    guard let index = mapping.source else { return false }
    let entity = source.entities[index], before = former.entities[index.rawValue], after = plan.entities[mapping.destination.rawValue]
    guard before.preservedNames(entity) == after.preservedNames(destination.entities[mapping.destination]) else { return false }
    let changesIDs = changesObjectIDs
    return zip(before.preserved, after.preserved).allSatisfy { old, new in
      mapping.values[new.rawValue].source == old && !(changesIDs && entity.layout.columns[old] == .attribute(.objectID))
    }
  }
}
