import HoldfastStore

extension StoreChanges {
  /// Checks the uniqueness constraints that the store doesn't check: all of them, or those of attributes that it can't compare.
  ///
  /// Runs under the save lock; a race with other processes remains.
  func checkUniqueness() throws {
    let isChecked = store.capabilities.uniqueness, incomparable = store.incomparable
    if isChecked && incomparable.isEmpty { return }
    var conflicts: [ConstraintConflict] = []
    for entity in context.entities {
      // Inherited constraints are checked with the entity that declares them.
      for (place, slots) in entity.uniqueSlots.enumerated().dropFirst(entity.inheritedConstraintCount) {
        if isChecked && !slots.contains(where: { incomparable.contains($0, of: entity.index) }) { continue }
        conflicts += try sharing(entity, slots, entity.uniquenessConstraints[place])
      }
    }
    guard conflicts.isEmpty else {
      // As in a store that checks both. Outdated values may be those in conflict.
      try compareVersions()
      throw StoreError(
        .constraintConflict, operation: "save", path: store.locationDescription,
        reason: "Uniqueness constraints are violated \(conflicts.count) times: two objects would have the same values.",
        constraintConflicts: conflicts)
    }
  }

  private func sharing(
    _ entity: ManagedObjectModel.Entity, _ slots: [SlotIndex], _ constraint: [String]
  ) throws -> [ConstraintConflict] {
    var saving: [[StoreValue]: ManagedObject] = [:]
    var conflicts: [ConstraintConflict] = []
    // The indexes of the conflicts with the first of several objects that get the same values.
    var followers: [[StoreValue]: [Int]] = [:]
    // If another object keeps the values, the first one doesn't get them, so all are in conflict with the other object.
    func redirect(_ values: [StoreValue], to keeper: ManagedObjectID) {
      for place in followers[values] ?? [] { conflicts[place].existing = keeper }
    }
    // A new object can become a saved one, but not the reverse, so the new one is in conflict.
    for object in changedInOrder + Array(inserted) where entity.familyIndexes.contains(object.flags.entityIndex) {
      let values = slots.map { object.valueToSave($0).inConstraint }
      // Nil and NaN are equal to no value.
      if values.contains(where: { $0 == .null || $0.isNaN }) { continue }
      if let other = saving[values] {
        // An object that gets the values is in conflict with one that keeps them.
        let keeps = !object.isInserted && !changes(slots, of: object), (one, existing) = keeps ? (other, object) : (object, other)
        conflicts.append(ConstraintConflict(objectID: one.id, existing: existing.id, constraint: constraint))
        if keeps {
          // Further objects with the values are in conflict with the one that keeps them, too.
          saving[values] = object
          redirect(values, to: object.id)
        } else {
          followers[values, default: []].append(conflicts.count - 1)
        }
      } else {
        saving[values] = object
      }
    }
    // Values that an object keeps are as old as its row. If that is outdated, its version shows it.
    let new = saving.filter { $0.value.isInserted || changes(slots, of: $0.value) }
    if new.isEmpty { return conflicts }
    let stored = RowCollector()
    for predicate in predicates(finding: new, entity, slots, constraint) {
      try stored.append(fetched(FetchQuery(entity: entity, predicate: predicate, options: options)))
    }
    try coordinator.check(stored, entity)
    stored.forEach { batch, index in
      let row = batch.pointer(index)
      let values = slots.map { row.value($0, entity.layout.columns[$0]).inConstraint }
      guard let object = new[values], object.objectKey != row.key else { return }
      // The stored values of a row that this save changes or deletes don't count.
      if let registered = context.registered(entity.index, row.key), registered.isDeleted || registered.changesItsRow { return }
      let keeper = context.objectID(coordinator.entityIndex(of: batch) ?? entity.index, row.key)
      conflicts.append(ConstraintConflict(objectID: object.id, existing: keeper, constraint: constraint))
      redirect(values, to: keeper)
    }
    return conflicts
  }

  /// The changed objects in the order of the request. Stores that check uniqueness let the first of them have a value.
  private var changedInOrder: [ManagedObject] {
    updated.filter(\.changesItsRow).sortedByKey()
  }

  /// With more values, one request for all rows usually takes less time than one for each value.
  private static let lookUpLimit = 16

  /// The predicates of the requests for the rows that may have the unique values of some objects: a look-up for each, or nil for all rows.
  private func predicates(
    finding new: [[StoreValue]: ManagedObject], _ entity: ManagedObjectModel.Entity, _ slots: [SlotIndex], _ constraint: [String]
  ) -> [QueryExpression?] {
    guard store.capabilities.uniqueLookups, new.count <= StoreChanges.lookUpLimit, slots.allSatisfy({ canLookUp($0, entity) }) else {
      return [nil]
    }
    // In the same order in each run.
    let sorted = new.sorted { ($0.value.flags.entityIndex, $0.value.objectKey) < ($1.value.flags.entityIndex, $1.value.objectKey) }
    return sorted.map { values, _ in
      QueryExpression.conjunction(
        zip(constraint, values).map { name, value in
          QueryExpression.comparison(.property(PropertyPath(name)), .equalTo, .constant(value), [])
        })
    }
  }

  /// Whether the store can look up the values of a slot. Keys of destinations aren't constants of a query.
  private func canLookUp(_ slot: SlotIndex, _ entity: ManagedObjectModel.Entity) -> Bool {
    if store.incomparable.contains(slot, of: entity.index) { return false }
    switch entity.layout.columns[slot] {
    case .toOne, .attribute(.objectID), .attribute(.transformable): return false
    case .attribute: return true
    }
  }

  private func changes(_ slots: [SlotIndex], of object: ManagedObject) -> Bool {
    guard let base = object.committedRow else { return true }
    let columns = object.entity.layout.columns
    return slots.contains { object.valueToSave($0).inConstraint != base.value($0, columns[$0]).inConstraint }
  }

  /// Compares the stored rows with what the context had read, for stores that don't compare versions.
  ///
  /// Reports all conflicts in one error.
  func checkVersions() throws {
    if !store.capabilities.versions || onlyComparesVersions { try compareVersions() }
  }

  private func compareVersions() throws {
    let conflicts = try versionConflicts()
    guard conflicts.isEmpty else {
      coordinator.rowCache.removeAll()
      throw SaveFailure.conflict(
        StoreError(
          .conflict, operation: "save", path: store.locationDescription, reason: "Rows were changed since they were read.",
          conflicts: conflicts))
    }
  }

  /// The rows of the request whose versions in the store aren't those that the context had read. Sends a request for each entity.
  func versionConflicts() throws -> [SaveConflict] {
    try request.entities.flatMap { changes in
      var expected: [ObjectKey: (ManagedObject?, RowVersion)] = [:]
      for (key, version) in changes.expectedVersions { expected[key] = (context.registered(changes.entity, key), version) }
      return try differences(changes.entity, expected)
    }
  }

  /// Whether the request changes nothing, and only contains versions to compare.
  private var onlyComparesVersions: Bool {
    request.links.isEmpty && request.orders.isEmpty
      && request.entities.allSatisfy { $0.inserted.isEmpty && $0.updated.isEmpty && $0.deleted.keys.isEmpty && $0.derived.isEmpty }
  }

  /// Drops a request that only compares versions, after they were compared. The store may be read-only.
  func dropNeedlessRequest() { if onlyComparesVersions { request.entities = [] } }

  private func differences(_ entity: EntityIndex, _ expected: [ObjectKey: (ManagedObject?, RowVersion)]) throws -> [SaveConflict] {
    if expected.isEmpty { return [] }
    let collector = RowCollector()
    try store.reading(.latest, "compare versions", options) { view in
      try store.store.rows(FaultRequest(entity: entity, keys: expected.keys.sorted()), in: view, options: options, into: collector)
    }
    try coordinator.check(collector, context.entities[entity])
    var found: [ObjectKey: RowView] = [:]
    collector.forEach { batch, index in found[batch.pointer(index).key] = batch[index] }
    return expected.compactMap { key, known in
      let persisted = found[key]
      if let persisted, isAsRead(persisted, known.0, known.1) { return nil }
      return SaveConflict(objectID: context.objectID(entity, key), expectedVersion: known.1, persisted: persisted)
    }.sorted { $0.objectID.key < $1.objectID.key }
  }

  /// Whether a row is unchanged since the context read it: by version, or by bytes if the store has no versions.
  private func isAsRead(_ persisted: RowView, _ object: ManagedObject?, _ version: RowVersion) -> Bool {
    if persisted.version != 0 || version != 0 { return persisted.version == version }
    guard let committed = object?.committedRow else { return true }
    let derived = object.map { context.graph.derivedSlots($0.flags.entityIndex) } ?? []
    return committed.hasSameValues(as: persisted.pointer, persisted.batch.layout, butFor: derived)
  }
}

extension StoreValue {
  /// The value as uniqueness constraints compare it: an ID in an attribute by its URI, as stores do. Equal IDs can have different URIs.
  var inConstraint: StoreValue { if case .objectID(let id) = self { .uri(id.uriRepresentation) } else { self } }
}

extension ManagedObject {
  /// The value of a slot that a save writes: for a derived attribute, the new derived value, or the stored one if it isn't derived again.
  final func valueToSave(_ slot: SlotIndex) -> StoreValue {
    let row = readRow
    // Date 0 represents the date of the save. It is equal for all objects of a save, so models don't require it to be unique.
    guard let own = context.graph.derivations?.own[flags.entityIndex].first(where: { $0.slot == slot }) else {
      return row.value(slot, entity.layout.columns[slot])
    }
    guard !isInserted, let base = committedRow, !own.isDue(row, base, entity.layout.kinds) else { return own.value(row, date: 0) }
    return base.value(slot, entity.layout.columns[slot])
  }
}
