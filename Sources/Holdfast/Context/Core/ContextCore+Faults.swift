import HoldfastStore

extension ContextCore {
  /// Reads the row of a fault and the rows of its siblings.
  ///
  /// If the row can't be read, returns a row of nil and sets ``ManagedObject/isInaccessible``. An object whose row was deleted keeps that
  /// row. After an error the object stays a fault, so the next access tries again.
  ///
  /// - Parameter slot: The slot of the property that is accessed, for a log of requests; nil if it is unknown.
  func fireFault(_ object: ManagedObject, _ slot: SlotIndex? = nil) -> RowPointer {
    let empty = graph.emptyRow(object.flags.entityIndex)
    do {
      var readCount = 0
      while try fire(object, slot) {
        if let row = object.row { return row }
        // It became a fault again while it was awakened, for example because a fetch merged what others have saved.
        readCount += 1
        precondition(
          readCount < ContextCore.readLimit,
          "A \(entities[object.flags.entityIndex].name) became a fault in awakeFromFetch() each of \(readCount) times. Don't refresh an object "
            + "in its own awakeFromFetch().")
      }
      // A sibling that was awakened may have read and changed it, so it may have a row of its own.
      if let row = object.row { return row }
      if let error = reasonToRetry(object) { throw error }
      faults.errors.latest = PersistenceError(
        .missingObject, objectID: object.id,
        reason: reading.pin == nil
          ? "Another context or process has deleted the object."
          : "The generation that the context is pinned to doesn't contain the object.")
      reading.noteMissing()
      object.row = empty
      object.owner = nil
      object.flags.remove(.ownedByGroup)
    } catch {
      noteUnread(object.id, error)
    }
    object.flags.insert(.inaccessible)
    return empty
  }

  /// The maximum number of times that a fault is read because it became a fault again while it was awakened.
  private static let readLimit = 100

  /// Why an object has no row now but may have one later; nil if its row was deleted.
  private func reasonToRetry(_ object: ManagedObject) -> PersistenceError? {
    if isOfRemovedStore(object.objectKey) { return .missingStore([object.id]) }
    if object.objectKey < 0 && saving.loss != nil { return .lostChanges(object.id) }
    if object.mapIndex != .max || object.flags.contains(.detached) { return nil }
    return PersistenceError(
      .missingObject, objectID: object.id,
      reason: "The object is of a subentity, which was not known when it was read. Fetch it again.")
  }

  /// The row of an object, read if it is a fault; nil if it can't be read. A deleted row isn't an error here.
  func presentRow(_ object: ManagedObject) -> RowPointer? {
    let before = faults.errors.latest
    let row = object.readRow
    if !object.isInaccessible { return row }
    if (faults.errors.latest as? PersistenceError)?.code == .missingObject { faults.errors.latest = before }
    return nil
  }

  /// Reads the row of a fault, and awakens the object, which may make it a fault again.
  ///
  /// - Returns: False if it has none.
  func fire(_ object: ManagedObject, _ slot: SlotIndex? = nil) throws -> Bool {
    if object.objectKey < 0 || object.flags.contains(.detached) { return false }
    checkIsolation()
    let entity = object.flags.entityIndex
    let coordinator = persistentStoreCoordinator
    let isResident = places.hasResidentRow(object.objectKey)
    if !isResident && readsNewest { coordinator.noticeOtherProcesses(reading: object.objectKey) }
    if !isResident, let (batch, index) = cachedRow(entity, object.objectKey) {
      if graph.entities[entity].sharesRoot {
        guard let concrete = coordinator.entityIndex(of: batch), isStillOf(concrete, object) else { return false }
      }
      let group = RowGroup(RowRun(batch: batch, rows: .one(index)), entity: entity)
      showAgain(group)
      attach(object, batch.pointer(index), group, 0)
      awakenFulfilled()
      return true
    }
    discardOldGroups()
    // Objects with siblings received such rows when they were created.
    if object.owner == nil, !isResident, let (group, row, place) = recentRow(entity, object.objectKey),
      group.entity == entity
    {
      attachNewest(object, row, group, place)
      awakenFulfilled()
      return true
    }
    let siblings = object.flags.contains(.ownedByGroup) ? nil : object.owner.map { unsafeDowncast($0, to: FaultSiblings.self) }
    let keys = keysToRead(object, siblings)
    // Siblings may be of any entity that the relationship can reference.
    let request = FaultRequest(entity: siblings?.entity ?? entity, keys: keys)
    let collector = try coordinator.rows(request, in: pinnedStores(), options(firing: slot, of: entity))
    forEachGroup(of: collector, entity) { group in
      if keys.count > 1 { reading.groups.append(group) }
      attachFaults(group)
    }
    let isRead = object.row != nil
    awakenFulfilled()
    return isRead
  }

  /// The options of a request that fires a fault.
  private func options(firing slot: SlotIndex?, of entity: EntityIndex) -> RequestOptions {
    guard persistentStoreCoordinator.monitor.isObserved, let slot else { return requests.ofOthers }
    return requests.ofFault(entities[entity].slots[slot].name)
  }

  /// Reads the rows of several faults, up to 1,024 per request. Faults without a row stay faults.
  ///
  /// - Parameter options: The options of all requests; nil for those of a fault.
  func fire(together faults: ContiguousArray<ManagedObject>, _ options: RequestOptions? = nil) throws {
    if faults.isEmpty { return }
    var keys = [[ObjectKey]](repeating: [], count: entities.count)
    for fault in faults where fault.objectKey >= 0 { keys[fault.flags.entityIndex].append(fault.objectKey) }
    for (index, keys) in keys.enumerated() where !keys.isEmpty {
      let entity = EntityIndex(index)
      for window in keys.sorted().windows(of: RowGroup.size) {
        let request = FaultRequest(entity: entity, keys: Array(window))
        let collector = try persistentStoreCoordinator.rows(request, in: pinnedStores(), options ?? requests.ofOthers)
        forEachGroup(of: collector, entity, attachFaults)
      }
    }
    awakenFulfilled()
  }

  /// The keys of a fault and of its siblings that have no row yet, ascending.
  ///
  /// Rows of siblings without an object are kept for later, unless an ancestor has changed them. So these are left out, and a fault that an
  /// ancestor has changed is read without siblings that have no object: the next one would request them again. Siblings of other stores are
  /// left out, too. They need a request of their own, which can fail.
  private func keysToRead(_ object: ManagedObject, _ siblings: FaultSiblings?) -> [ObjectKey] {
    guard faults.areFiredInBatches, let siblings else { return [object.objectKey] }
    if places.hasResidentRow(object.objectKey) && siblings.isRarelyRead() { return [object.objectKey] }
    let entity = object.flags.entityIndex, isChanged = isChangedAbove(entity, object.objectKey)
    let keys = siblings.window(around: Int(object.position)).filter { key in
      guard key >= 0, areInOneStore(key, object.objectKey) else { return false }
      if let sibling = registered(entity, key) { return sibling.row == nil }
      return !isChanged && !isDeleted(entity, key) && !isChangedAbove(entity, key)
    }
    return keys.count < 2 ? [object.objectKey] : keys.sortedUniquely()
  }

  /// Fetches the destinations of a to-many relationship for all rows of a group.
  ///
  /// - Parameter readsTargets: Whether the caller is about to read the destinations. Their rows are then requested as well, if all of them
  ///   are likely to be read and they aren't in memory anyway.
  func fireToMany(_ group: RowGroup, _ link: LinkPlan, of object: ManagedObject, readsTargets: Bool) -> FaultSiblings? {
    let isWalkedOver = readsTargets && faults.areFiredInBatches && (group.count == 1 || group.isFetched)
    let acceptsRows = isWalkedOver && !group.hasResidentRows(places)
    // Before the request, so that rows that come with the keys aren't kept if another context saves meanwhile.
    discardOldGroups()
    guard let answer = relationship(link, of: object, in: group, acceptsRows: acceptsRows) else { return nil }
    // Rows that come with the keys are as recent as these.
    if answer.rows.isEmpty { discardGroupsBeforeOtherSaves() }
    takeRows(answer.rows, link.destination)
    let siblings = FaultSiblings(entity: link.destination, answer: answer)
    group.setAnswer(siblings, Int(link.toManyIndex))
    awakenFulfilled()
    return siblings
  }

  /// Keeps rows that were returned with keys for objects created later, and attaches them to registered faults.
  private func takeRows(_ batches: [RowBatch], _ entity: EntityIndex) {
    // Objects that have rows stay in their groups: for a row in two groups, the destinations would be fetched twice.
    var runs: ArraySlice<RowRun> = []
    for batch in batches {
      guard let run = missingRows(batch, entity) else { continue }
      // Most objects have few destinations.
      if batches.count == 1 && run.count <= RowGroup.size { return keep(run, [], entity) }
      runs += run.windows(of: RowGroup.size)
    }
    while let first = runs.popFirst() {
      var (rest, count): ([RowRun], Int) = ([], first.count)
      while let next = runs.first, count + next.count <= RowGroup.size {
        rest.append(next)
        count += next.count
        runs.removeFirst()
      }
      keep(first, rest, entity)
    }
  }

  /// The rows of a batch whose objects have no row yet; nil if there are none.
  private func missingRows(_ batch: RowBatch, _ entity: EntityIndex) -> RowRun? {
    func isMissing(_ index: Int) -> Bool { registered(entity, batch.pointer(index).key)?.row == nil }
    let count = (0..<batch.count).count { isMissing($0) }
    if count == 0 { return nil }
    if count == batch.count { return RowRun(batch: batch, rows: .all) }
    return RowRun(batch: batch, rows: .rows((0..<UInt32(batch.count)).filter { isMissing(Int($0)) }))
  }

  /// Keeps rows for objects created later, and attaches them to registered faults.
  private func keep(_ first: RowRun, _ rest: [RowRun], _ entity: EntityIndex) {
    forEachGroup(of: first, rest, entity) { group in
      reading.groups.append(group)
      attachFaults(group)
    }
  }

  /// Attaches the rows of a group to the registered objects that have none.
  func attachFaults(_ group: RowGroup) {
    showAgain(group)
    group.forEachRow { position, row in
      if let registered = registered(group.entity, row.key), registered.row == nil, isStillOf(group.entity, registered) {
        attach(registered, row, group, position)
      }
    }
  }

  /// Fetches the destinations of a to-many relationship, for an object or for its group. If the store fails, returns nil and records the
  /// error for the object.
  ///
  /// If the destinations of a group are too many for the store, or one of a group's several stores fails, returns nil and marks the group,
  /// whose objects then fetch theirs alone.
  func relationship(_ link: LinkPlan, of object: ManagedObject, in group: RowGroup? = nil, acceptsRows: Bool = false)
    -> RelationshipAnswer?
  {
    checkIsolation()
    let sources = group?.keys ?? [object.objectKey]
    do {
      let answer = try persistentStoreCoordinator.relationships(
        RelationshipRequest(
          entity: link.entity, relationship: link.relationship, sources: sources, acceptsRows: acceptsRows),
        in: pinnedStores(), requests.ofOthers)
      return link.isOrdered ? answer.inOrder() : answer
    } catch let error as StoreError where error.code == .tooLarge && sources.count > 1 {
      group?.isAnsweredAlone = true
      return nil
    } catch {
      // Another store may be the one that can't be read.
      if let group, sources.contains(where: { !areInOneStore($0, object.objectKey) }) {
        group.isAnsweredAlone = true
      } else {
        noteUnread(object.id, error)
      }
      return nil
    }
  }

  /// Whether an object fetches its destinations without those of its siblings.
  ///
  /// Always true without batching, or if the destinations of the group can't be read together. If the store keeps its rows in memory, it is
  /// true for the first few objects of a group, since a request costs less there than destinations that no caller reads. Further requests
  /// indicate a traversal of the group.
  func answersAlone(_ group: RowGroup, _ index: Int) -> Bool {
    if group.count == 1 { return false }
    if !faults.areFiredInBatches || group.isAnsweredAlone { return true }
    return group.hasResidentRows(places) && group.isRarelyAsked(index)
  }
}
