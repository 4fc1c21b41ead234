import HoldfastStore

/// Resolves the conflicts of a failed save with a policy.
///
/// All decisions are made before anything changes, so the context is unchanged if a policy throws or refuses.
struct ConflictResolution {
  let context: ContextCore
  let policy: MergePolicy
  /// The error of the save.
  let error: PersistenceError
  /// Whether the program resolves the conflicts itself. A save doesn't resolve those of unchanged objects that the program wants detected.
  var isExplicit = false
  /// The objects that ``MergePolicy/overwrite`` overwrites; nil for all. During a save: those whose rows were changed before it
  /// resolved conflicts, and those that new objects became. Resolving has only changed links of the others.
  var overwritten: Set<ManagedObject>?

  /// Resolves the conflicts.
  ///
  /// - Returns: The objects that new objects have become.
  /// - Throws: The error of the save if the policy or the kind of conflict doesn't allow it.
  func run() throws -> [ManagedObject] {
    if policy.fixed == .error { throw error }
    return try context.reportingToChildren(resolveConflicts)
  }

  private func resolveConflicts() throws -> [ManagedObject] {
    switch error.code {
    case .conflict: try resolveVersions()
    case .constraintConflict: return try resolveDuplicates()
    default: throw error
    }
    return []
  }

  // MARK: Versions

  private func resolveVersions() throws {
    // An unchanged object, of which only the version was compared, may have been released.
    let objects = error.objectIDs.compactMap { context.registeredObject(for: $0) }
    if objects.isEmpty { throw error }
    let rows = try context.currentRows(of: objects)
    let named = try objects.map { ObjectMerge($0, rows[ObjectIdentifier($0)], try resolution(of: $0, rows[ObjectIdentifier($0)])) }
    let merges = try named + partnerMerges(of: objects, rows)
    try context.merge(merges + context.missingDestinations(of: merges))
  }

  /// The merges of outdated partners in one-to-one relationships of objects that this context and another one have inserted again.
  ///
  /// Their deletion and insertion have changed the rows of their partners, too, but the error doesn't name these.
  private func partnerMerges(of objects: [ManagedObject], _ rows: [ObjectIdentifier: CurrentRow]) throws -> [ObjectMerge] {
    let found = Set(objects.flatMap { partners(of: $0, rows[ObjectIdentifier($0)]) }).subtracting(objects)
    if found.isEmpty { return [] }
    let stored = try context.currentRows(of: found)
    return try found.sortedByKey().compactMap { partner in
      guard let current = stored[ObjectIdentifier(partner)], partner.isOutdated(by: current.pointer) else { return nil }
      return ObjectMerge(partner, current, try resolution(of: partner, current))
    }
  }

  /// The saved partners of an object that both contexts have inserted again, here and in the store.
  ///
  /// Objects whose versions the save compares keep their rows.
  private func partners(of object: ManagedObject, _ current: CurrentRow?) -> [ManagedObject] {
    guard object.isInserted, let current else { return [] }
    let rows: [RowPointer?] = [object.row, current.pointer]
    return context.graph.pairs[object.flags.entityIndex].flatMap { link in
      rows.compactMap { row -> ManagedObject? in
        guard let key = row?.destinationKey(link.slot), let partner = context.registered(link.destination, key) else { return nil }
        return partner.isInserted || partner.isDeleted || context.merging.isLocked(partner) ? nil : partner
      }
    }
  }

  func resolution(of object: ManagedObject, _ current: CurrentRow?) throws -> MergeResolution {
    // Its own row doesn't contain the links that only the rows of other objects do.
    let isRowUnchanged = !object.isDeleted && !object.isInserted && !object.changesItsRow
    if isRowUnchanged && !isExplicit && context.merging.isRequested(object) { throw error }
    // There is nothing to decide if only one side changed the object, or if both deleted it.
    if !object.hasChanges || object.isDeleted && current == nil { return .rollback }
    if isRowUnchanged { return .mergeByPropertyStoreTrump }
    let kind: MergeConflict.Kind = current == nil ? .deletedInStore : object.isDeleted ? .deletedInContext : .update
    let chosen = try chosen { try MergeConflict(kind, object, theirs: current.map { (object, $0.pointer) }) }
    // Nothing is known of an object that was never read, so it can't be inserted again.
    if current == nil && chosen.prefersObject { try checkInsertable(object) }
    if chosen == .overwrite, overwritten?.contains(object) == false { return .mergeByPropertyObjectTrump }
    return chosen
  }

  /// Throws if a deleted object can't be inserted again with all its values, or not now.
  private func checkInsertable(_ object: ManagedObject) throws {
    guard let row = object.row, !object.isInaccessible else { throw error }
    let derived = context.graph.derivedSlots(object.flags.entityIndex)
    // The store removes the external files of a deleted object. The save computes derived values again.
    for slot in object.entity.layout.slots where row.isExternal(slot, object.entity.layout) && !derived.contains(slot) {
      do { _ = try object.attributeValue(slot, row) } catch let error as StoreError
        where [.missingExternalData, .damaged, .tooLarge].contains(error.code)
      {
        throw PersistenceError(
          self.error.code, objectID: object.id, property: object.entity.slots[slot].name,
          reason: "The deleted object can't be inserted again, because the file of a value is missing or unreadable. Set the value, or "
            + "discard the changes.",
          objectIDs: self.error.objectIDs, cause: error)
      }
    }
  }

  /// The resolution that the policy chooses.
  func chosen(_ conflict: () throws -> MergeConflict) throws -> MergeResolution {
    switch policy.rule {
    case .always(let resolution): return resolution
    case .custom(let resolve):
      let conflict = try conflict()
      let resolution: MergeResolution
      do { resolution = try resolve(conflict) } catch { throw failure("The merge policy threw an error.", conflict, cause: error) }
      if resolution == .error { throw error }
      if case .values(let values) = resolution { try check(values, conflict) }
      return resolution
    }
  }

  private func failure(_ reason: String, _ conflict: MergeConflict, cause: (any Error)?) -> PersistenceError {
    PersistenceError(
      error.code, objectID: conflict.objectID, reason: "\(reason) Nothing was saved, and no object has changed.",
      objectIDs: error.objectIDs, cause: cause)
  }

  /// Checks values of a policy before any object changes.
  private func check(_ values: [String: StoreValue], _ conflict: MergeConflict) throws {
    guard let object = context.registeredObject(for: conflict.objectID) else { return }
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      do { try object.checkSettable(value, forKey: name) } catch {
        throw failure("The merge policy returned a value that \(object.entity.name).\(name) can't have.", conflict, cause: error)
      }
    }
  }
}

extension MergeConflict {
  /// - Parameter theirs: The stored row, and an object with its entity and key; nil if the object was deleted.
  init(_ kind: Kind, _ object: ManagedObject, theirs: (object: ManagedObject, row: RowPointer)?, existing: ManagedObjectID? = nil) throws {
    self.kind = kind
    objectID = object.id
    entityName = object.entity.name
    base = try object.isInserted ? nil : object.committedRow.map(object.mergeValues)
    ours = try object.isDeleted ? nil : object.row.map(object.mergeValues)
    self.theirs = try theirs.map { try $0.object.mergeValues($0.row) }
    existingObjectID = existing
  }
}

extension ManagedObject {
  /// The attributes and to-one relationships of a row of this object by name, without derived attributes.
  fileprivate final func mergeValues(_ row: RowPointer) throws -> [String: StoreValue] {
    let derived = context.graph.derivedSlots(flags.entityIndex)
    var values: [String: StoreValue] = [:]
    for slot in entity.slotIndexes where !derived.contains(slot) {
      guard let relationship = entity.relationship(inSlot: slot) else {
        // The file of a value that was replaced may be gone.
        if !row.isExternal(slot, entity.layout) { values[entity.slots[slot].name] = try attributeValue(slot, row) }
        continue
      }
      let destination = relationship.destinationIndex
      let id = row.destinationKey(slot).map { context.registered(destination, $0)?.id ?? context.objectID(destination, $0) }
      values[relationship.name] = id.map { .objectID($0) } ?? .null
    }
    return values
  }
}

extension ContextCore {
  /// Resolves the conflicts of a failed save.
  func resolveConflicts(of error: PersistenceError, using policy: MergePolicy) throws {
    checkIsolation()
    precondition(!saving.isInProgress, "Conflicts were resolved in a callback of a save or merge.")
    try settleUncertainSave()
    leaveGeneration()
    _ = try resolve(error, policy, isExplicit: true)
    tellChanges()
  }

  /// Resolves the conflicts of a failed save, or throws its error.
  ///
  /// - Parameter overwritten: See ``ConflictResolution/overwritten``.
  /// - Returns: The objects that new objects have become.
  func resolve(
    _ error: PersistenceError, _ policy: MergePolicy, isExplicit: Bool = false, overwritten: Set<ManagedObject>? = nil
  ) throws -> [ManagedObject] {
    let resolution = ConflictResolution(context: self, policy: policy, error: error, isExplicit: isExplicit, overwritten: overwritten)
    return try whileSaving { try holdingAwakening(resolution.run) }
  }

  /// Merges objects with their stored rows.
  func merge(_ merges: [ObjectMerge]) throws {
    var merges = merges
    let partners = children == nil ? [] : merges.flatMap(\.changedPartners)
    defer { if !partners.isEmpty { children?.report(StoreChange(updated: partners)) } }
    let undeleted = merges.filter(\.isUndeleted).map(\.object)
    try noteOtherEnds(regaining: undeleted)
    // All at once, because each of these calls looks at all changes or deletions.
    undelete(undeleted)
    let merged = Set(merges.map(\.object))
    for place in merges.indices { merges[place].noteLinks(merged) }
    var references = ForeignReferences(to: merges.filter(\.isRemovedInsertion).map(\.object), in: self)
    for merge in merges {
      merge.takeBackLinks(references)
      // Reverting its links may have restored references.
      references.note(merge.object)
    }
    noteDeletedElsewhere(merges.filter(\.isRemoved).map(\.object))
    // From here on the objects are changed. All of them are completed, so that both ends of each link agree.
    var failure: (any Error)?
    func attempt(_ object: ManagedObject, _ step: () throws -> Void) {
      do { try step() } catch {
        noteUnread(object.id, error)
        failure = failure ?? error
      }
    }
    var lists: Set<OwnedList> = []
    for merge in merges { attempt(merge.object) { try merge.adopt(&lists) } }
    // The links to objects that are inserted again were deleted with them.
    let again = merges.filter { $0.current == nil && $0.object.isInserted }.map(\.object)
    forgetLinks(toInsertedAgain: again, &lists)
    lists.formUnion(listsWithoutInverse(containing: again))
    // The lists of an owner that was inserted again are complete.
    for list in lists where !list.owner.isInserted && !list.owner.flags.contains(.detached) {
      attempt(list.owner) { try forgetList(of: list.owner, list.index) }
    }
    for merge in merges { attempt(merge.object, merge.setAgain) }
    for merge in merges { merge.setOthersAgain() }
    if let failure { throw failure }
  }

  /// The objects to which links may be set again, although other contexts or processes deleted them. They leave the context.
  ///
  /// Those whose rows have changed here are in conflict themselves, as are those whose conflicts the program wants detected.
  func missingDestinations(of merges: [ObjectMerge]) throws -> [ObjectMerge] {
    let merged = Set(merges.map(\.object)), destinations = Set(merges.flatMap(\.destinations)).subtracting(merged)
    let unchanged = destinations.filter { !$0.changesItsRow && !merging.isLocked($0) }
    if unchanged.isEmpty { return [] }
    return try unchanged.subtracting(existing(unchanged)).map { ObjectMerge($0, nil, .rollback) }
  }
}
