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
        isNew(constraint, entity) || entity.familyIndexes.contains { incomplete.contains(destination.entities[$0].name) }
      }
    }
    if entities.map(\.uniquenessConstraints) == destination.declarations.map(\.uniquenessConstraints) { return nil }
    return try ManagedObjectModel(
      entities: entities, versionIdentifiers: destination.versionIdentifiers, configurations: destination.configurations,
      composites: destination.composites, fetchRequestTemplates: destination.fetchRequestTemplates)
  }

  /// Whether existing objects of an entity and its subentities get a constraint that they haven't had together.
  private func isNew(_ constraint: [String], _ entity: ManagedObjectModel.Entity) -> Bool {
    var owners: Set<EntityIndex>?
    for mapping in entity.familyIndexes.map({ mapping(of: $0) }) {
      guard let index = mapping.source else { continue }
      let found = formerOwners(of: constraint, mapping, source.entities[index])
      owners = owners?.intersection(found) ?? found
    }
    return owners?.isEmpty ?? false
  }

  /// The entities of the source that declare the constraint for an entity's objects. It holds among all objects of such an entity.
  private func formerOwners(
    of constraint: [String], _ entity: EntityMapping, _ source: ManagedObjectModel.Entity
  ) -> Set<EntityIndex> {
    let new = destination.entities[entity.destination], slots = constraint.map { new.slot(named: $0) }
    // Objects without a value were exempt, and several get the same one.
    if slots.contains(where: { slot in slot.map { entity.values[$0.rawValue].fallback != .null } ?? false }) { return [] }
    let former = Set(slots.map { slot in slot.flatMap { formerName(of: $0, new, entity, source) } })
    var owners: Set<EntityIndex> = []
    for (place, names) in source.uniquenessConstraints.enumerated() where Set(names.map { Optional($0) }) == former {
      var owner = source
      while place < owner.inheritedConstraintCount, let above = owner.superentityIndex { owner = self.source.entities[above] }
      owners.insert(owner.index)
    }
    return owners
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
