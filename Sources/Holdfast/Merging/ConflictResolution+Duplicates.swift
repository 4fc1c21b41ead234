import HoldfastStore

/// Uniqueness conflicts: a new object becomes the object that has the same unique values (an *upsert*).
///
/// If a new object has the same values as another one, new or saved, the two become one. The result is the same as if the other object had
/// been saved first, and then read and changed.
extension ConflictResolution {
  /// - Returns: The objects that new objects have become.
  func resolveDuplicates() throws -> [ManagedObject] {
    let decisions = try decide()
    try merge(decisions.outdated.values)
    for (object, constraint, resolution) in decisions.reversions { try revert(object, constraint, resolution) }
    let upserts = decisions.upserts
    var merged = Upsert.Merged(), references = ForeignReferences(to: upserts.map(\.upsert.object), in: context)
    // Also if a value of a policy can't be set.
    defer { Upsert.replaceIDs(merged, in: context) }
    for (upsert, resolution) in upserts { try upsert.run(resolution, &merged, &references) }
    return Array(merged.values)
  }

  /// What becomes of the objects in conflict.
  private struct Decisions {
    /// The new objects that become others.
    var upserts: [(upsert: Upsert, resolution: MergeResolution)] = []
    /// The changed objects that get former values of a constraint back.
    var reversions: [(object: ManagedObject, constraint: [String], resolution: MergeResolution)] = []
    /// The objects that new ones become, and whose rows others have changed.
    var outdated: [ManagedObjectID: ObjectMerge] = [:]
  }

  /// Decides what becomes of the objects in conflict. Reads the rows that the decisions need, but changes no values and links.
  private func decide() throws -> Decisions {
    let found = try duplicates()
    // A custom policy receives the values of reverted objects, so it decides in the next attempt.
    let conflicts = policy.fixed == nil ? found : ConstraintRound.addingChains(to: found, in: context)
    let ids = conflicts.map(\.existing), again = try readAgain(ids), rows = try rows(of: ids)
    var decisions = Decisions(), undecided: Set<ManagedObjectID> = []
    for conflict in conflicts {
      let id = conflict.existing, known = again[id]
      let isMissing = known.map { $0.current == nil } ?? (self.known(id) == nil && rows[id] == nil)
      // It was deleted since, or doesn't get its former value back now. The next attempt to save shows whether there is a conflict.
      if isMissing || undecided.contains(id) {
        undecided.insert(conflict.object.id)
        continue
      }
      let upsert = conflict.object.isInserted ? Upsert(conflict.object, id, rows[id]) : nil
      // A new object can't become one of another entity.
      if conflict.object.isInserted && upsert == nil { throw error }
      let resolution = try chosen {
        try MergeConflict(
          .uniqueness(conflict.constraint), conflict.object, theirs: known?.stored ?? stored(id, rows[id]), existing: id)
      }
      if let upsert {
        decisions.upserts.append((upsert, resolution))
        if let known, let current = known.current, known.object.isOutdated(by: current.pointer) {
          decisions.outdated[id] = ObjectMerge(known.object, current, try self.resolution(of: known.object, current))
        }
      } else {
        // Two saved objects can't become one.
        if resolution.prefersObject { throw error }
        decisions.reversions.append((conflict.object, conflict.constraint, resolution))
      }
    }
    return decisions
  }

  /// Merges objects with their stored rows, in the same order in each run.
  private func merge(_ outdated: some Collection<ObjectMerge>) throws {
    if outdated.isEmpty { return }
    let place = { (object: ManagedObject) in (object.flags.entityIndex, object.objectKey) }
    // Children aren't notified of changes of others that this context doesn't merge otherwise.
    defer { context.children?.report(StoreChange(updated: outdated.map(\.object.id))) }
    try context.merge(outdated.sorted { place($0.object) < place($1.object) })
  }

  /// An object in conflict with another one.
  struct Duplicate {
    let object: ManagedObject
    var existing: ManagedObjectID
    let constraint: [String]
  }

  /// The objects in conflict, each once, in the order of their first change: later objects are merged into earlier ones.
  ///
  /// Of several new objects with the same values, the store reports all but one, and names that one or another as the existing object. Which
  /// one, depends on their keys, which don't show the order of insertion: permanent ones ascend, temporary ones descend, and an object can
  /// get a permanent one before earlier objects do. So these objects become a saved object or the first of them, whatever the store reports.
  ///
  /// New objects wait while changed ones are reverted: these get former values back, so that others lose what they would have got.
  ///
  /// The next attempt to save reports other constraints that an object violates.
  private func duplicates() throws -> [Duplicate] {
    var found = try reportedDuplicates()
    if let duplicates = ConstraintRound.duplicates(reportedConflicts, in: context) {
      if duplicates.isEmpty { throw error }
      return duplicates
    }
    addUnreported(to: &found)
    var firsts: [ManagedObjectID: ManagedObjectID] = [:]
    var duplicates: [Duplicate] = []
    for object in context.changes.objects {
      guard var duplicate = found[object] else { continue }
      if object.isInserted {
        let last = lastExisting(duplicate.existing, found)
        if newObject(last) == nil {
          duplicate.existing = last
        } else if let first = firsts[last] {
          duplicate.existing = first
        } else {
          firsts[last] = object.id
          continue
        }
      }
      duplicates.append(duplicate)
    }
    let changed = duplicates.filter { !$0.object.isInserted }
    return changed.isEmpty ? duplicates : changed
  }

  /// The conflicts that the store has reported.
  private var reportedConflicts: [ConstraintConflict] { (error.cause as? StoreError)?.constraintConflicts ?? [] }

  /// The first conflict that the store has reported of each object.
  private func reportedDuplicates() throws -> [ManagedObject: Duplicate] {
    var found: [ManagedObject: Duplicate] = [:]
    for conflict in reportedConflicts {
      guard let object = context.registeredObject(for: conflict.objectID), let existing = conflict.existing else { throw error }
      if found[object] == nil { found[object] = Duplicate(object: object, existing: existing, constraint: conflict.constraint) }
    }
    if found.isEmpty { throw error }
    return found
  }

  /// Adds the new objects that have the values of others and weren't reported, each as a duplicate of itself.
  private func addUnreported(to found: inout [ManagedObject: Duplicate]) {
    let reported = found
    for object in context.changes.objects {
      guard object.isInserted, let duplicate = reported[object] else { continue }
      let last = lastExisting(duplicate.existing, reported)
      guard let other = newObject(last), found[other] == nil else { continue }
      found[other] = Duplicate(object: other, existing: last, constraint: duplicate.constraint)
    }
  }

  /// The object that an existing object is a duplicate of, the one which that is a duplicate of, and so on. Only new objects become others.
  private func lastExisting(_ id: ManagedObjectID, _ found: [ManagedObject: Duplicate]) -> ManagedObjectID {
    var id = id
    // A faulty store may report a cycle.
    for _ in found {
      guard let next = newObject(id).flatMap({ found[$0] })?.existing, next != id else { break }
      id = next
    }
    return id
  }

  private func newObject(_ id: ManagedObjectID) -> ManagedObject? {
    context.registeredObject(for: id).flatMap { $0.isInserted ? $0 : nil }
  }

  /// An object of the context, and its row as the store has it now.
  private struct Known {
    let object: ManagedObject
    /// Nil if the object was deleted.
    let current: CurrentRow?

    var stored: (object: ManagedObject, row: RowPointer)? { current.map { (object, $0.pointer) } }
  }

  /// Reads the rows again that the context has, and that the save hasn't compared with the stored ones: those of objects without changes of
  /// their own. Changes nothing.
  ///
  /// An outdated row hides new values that are equal to the outdated ones: they wouldn't be saved.
  private func readAgain(_ ids: [ManagedObjectID]) throws -> [ManagedObjectID: Known] {
    var objects: [ManagedObjectID: ManagedObject] = [:]
    for id in ids {
      guard let object = known(id), !object.isInserted, !object.isDeleted, !object.changesItsRow, !context.merging.isLocked(object) else {
        continue
      }
      objects[id] = object
    }
    if objects.isEmpty { return [:] }
    let rows = try context.currentRows(of: objects.values)
    return objects.mapValues { Known(object: $0, current: rows[ObjectIdentifier($0)]) }
  }

  /// The object with an ID, if the context has its row.
  private func known(_ id: ManagedObjectID) -> ManagedObject? {
    context.registeredObject(for: id).flatMap { $0.isFault || $0.isInaccessible ? nil : $0 }
  }

  /// The row of an object, with an object of its entity.
  ///
  /// - Parameter row: The row if the object isn't in the context.
  private func stored(_ id: ManagedObjectID, _ row: CurrentRow?) -> (object: ManagedObject, row: RowPointer)? {
    if let row { return (context.strayObject(row.group.entity, row.pointer.key), row.pointer) }
    return known(id).map { ($0, $0.readRow) }
  }

  /// Reads the rows that the context doesn't have. Faults receive theirs; those of objects that aren't in the context are returned.
  private func rows(of ids: [ManagedObjectID]) throws -> [ManagedObjectID: CurrentRow] {
    var keys: [EntityIndex: [ObjectKey: ManagedObjectID]] = [:]
    for id in ids where known(id) == nil {
      guard let entity = context.persistentStoreCoordinator.model.entity(named: id.entityName), let key = context.places.key(of: id) else {
        continue
      }
      keys[entity.index, default: [:]][key] = id
    }
    var all: [CurrentRow] = [], found: [ManagedObjectID: CurrentRow] = [:]
    try context.forEachCurrentRow(keys.mapValues { Array($0.keys) }) { entity, row in
      all.append(row)
      if let object = context.registered(entity, row.pointer.key), context.isStillOf(entity, object) {
        if !object.flags.contains(.hasPrivateRow) { context.attach(object, row) }
      } else if let id = keys[entity]?[row.pointer.key] {
        found[id] = row
      }
    }
    try context.showAgain(foundIn: all)
    return found
  }

  /// Gives the properties of a constraint their saved values, or all properties.
  private func revert(_ object: ManagedObject, _ constraint: [String], _ resolution: MergeResolution) throws {
    if resolution == .rollback { return try context.refreshUnreported(object, mergeChanges: false, keepsTransients: true) }
    for name in constraint {
      guard let named = object.entity.slot(named: name), let base = object.committedRow else { continue }
      let slot = source(of: named, object)
      if let relationship = object.entity.relationship(inSlot: slot) {
        context.restoreToOne(object, relationship)
      } else {
        object.copy(slot, of: base)
      }
    }
  }

  /// The slot from which a save computes the value of a slot: another one for a derived attribute.
  private func source(of slot: SlotIndex, _ object: ManagedObject) -> SlotIndex {
    switch context.graph.derivations?.own[object.flags.entityIndex].first(where: { $0.slot == slot })?.source {
    case .copy(let source)?, .text(_, let source)?: source
    case .now?, nil: slot
    }
  }
}
