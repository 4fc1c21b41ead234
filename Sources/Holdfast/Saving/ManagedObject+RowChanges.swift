import HoldfastStore

extension ManagedObject {
  /// The slots whose values differ from a row, without those of derived attributes.
  final func slotsChanged(since former: RowPointer) -> [SlotIndex] {
    guard flags.contains(.hasPrivateRow), let row else { return [] }
    let kinds = entity.layout.kinds, derived = context.graph.derivedSlots(flags.entityIndex)
    return entity.layout.slots.filter { row.differs(from: former, $0, kinds[$0]) && !derived.contains($0) }
  }

  /// Whether a save would write the object's row and compare its version.
  final var changesItsRow: Bool {
    // Values that an object sets while it is awakened aren't changes.
    hasChanges && (committedRow.map { !slotsChanged(since: $0).isEmpty } == true || changesStoredLinks)
  }

  /// Whether links of many-to-many relationships or an order changed, which increments the versions of both ends.
  final var changesStoredLinks: Bool {
    toMany != nil && entity.toManyRelationships.contains { ($0.isOrdered || $0.inverseIsToMany) && changesLinks(of: $0) }
  }

  /// Whether destinations of a to-many relationship were added, removed or moved. Added objects that are being deleted don't count.
  private func changesLinks(of relationship: ManagedObjectModel.Relationship) -> Bool {
    guard let state = toMany?[relationship.toManyIndex] else { return false }
    if !context.hasDeleted(relationship.destinationIndex) { return state.isReordered }
    return state.isMoved || !state.removed.isEmpty || state.added.contains { !context.isDeleted(relationship.destinationIndex, $0) }
  }

  /// Whether a save needs the order of a saved object's ordered relationship.
  ///
  /// If destinations were only removed, the others keep their order keys. Those of a many-to-many relationship are read nevertheless: the
  /// removal may have no effect.
  final func needsOrder(of relationship: ManagedObjectModel.Relationship) -> Bool {
    guard let state = toMany?[relationship.toManyIndex], changesLinks(of: relationship) else { return false }
    return state.order != nil || state.isMoved || !state.added.isEmpty || relationship.inverseIsToMany
  }
}
