import HoldfastStore

extension MappingModel {
  /// The destination without the uniqueness constraints that objects may violate until code has changed them; nil if there are none.
  ///
  /// - Parameter incomplete: The entities into which code inserts objects that are complete only at its end.
  func destinationWithoutNewConstraints(incomplete: Set<String>) throws -> ManagedObjectModel? {
    var entities = destination.declarations
    for place in entities.indices {
      guard let entity = destination.entity(named: entities[place].name) else { continue }
      entities[place].uniquenessConstraints.removeAll { constraint in
        entity.familyIndexes.contains { incomplete.contains(destination.entities[$0].name) || isNew(constraint, mapping(of: $0)) }
      }
    }
    if entities.map(\.uniquenessConstraints) == destination.declarations.map(\.uniquenessConstraints) { return nil }
    return try ManagedObjectModel(
      entities: entities, versionIdentifiers: destination.versionIdentifiers, configurations: destination.configurations,
      composites: destination.composites, fetchRequestTemplates: destination.fetchRequestTemplates)
  }

  /// Whether existing objects of an entity get a constraint that they haven't had.
  private func isNew(_ constraint: [String], _ entity: EntityMapping) -> Bool {
    guard let source = entity.source.map({ self.source.entities[$0] }) else { return false }
    let new = destination.entities[entity.destination]
    let former = constraint.map { name in new.slot(named: name).flatMap { formerName(of: $0, new, entity, source) } }
    return !source.uniquenessConstraints.contains { Set($0.map { Optional($0) }) == Set(former) }
  }

  /// The name of the source's attribute or to-one relationship from which a slot is filled.
  private func formerName(
    of slot: SlotIndex, _ new: ManagedObjectModel.Entity, _ entity: EntityMapping, _ source: ManagedObjectModel.Entity
  ) -> String? {
    guard let relationship = new.relationship(inSlot: slot) else {
      return entity.values[slot.rawValue].source.map { source.slots[$0].name }
    }
    return entity.links[relationship.index.rawValue].flatMap {
      $0.isReversed ? self.source.inverse(of: self.relationship($0)) : self.relationship($0)
    }?
    .name
  }
}
