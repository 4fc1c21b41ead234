import HoldfastStore

extension ManagedObjectContext {
  /// Reads the row of a fault, and the rows of its siblings.
  ///
  /// What can't be read returns a row of nil, and ``ManagedObject/isInaccessible`` is true. An object whose row was deleted keeps that row.
  /// After an error the object stays a fault, so that the next access tries again.
  func fireFault(_ object: ManagedObject) -> RowPointer {
    let empty = graph.emptyRow(Int(object.flags.entityIndex))
    do {
      if try fire(object), let row = object.row { return RowPointer(row) }
      if let error = reasonToRetry(object) { throw error }
      faultErrors.latest = ContextError(.missingObject, objectID: object.id, reason: "Another context or process has deleted the object.")
      object.row = empty.base
      object.owner = nil
      object.flags.remove(.ownedByGroup)
    } catch {
      noteUnread(object.id, error)
    }
    object.flags.insert(.inaccessible)
    return empty
  }

  /// Why an object has no row now and may have one later; nil when its row was deleted.
  private func reasonToRetry(_ object: ManagedObject) -> ContextError? {
    if isOfRemovedStore(object.objectKey) { return .missingStore([object.id]) }
    if object.mapIndex != .max || object.flags.contains(.detached) { return nil }
    return ContextError(
      .missingObject, objectID: object.id,
      reason: "The object is of a sub-entity, which was not known when it was read. Fetch it again.")
  }

  /// The row of an object, read when it is a fault; nil when it can't be read. A deleted row is no error here.
  func presentRow(_ object: ManagedObject) -> RowPointer? {
    let before = faultErrors.latest
    let row = object.readRow
    if !object.isInaccessible { return row }
    if (faultErrors.latest as? ContextError)?.code == .missingObject { faultErrors.latest = before }
    return nil
  }

  /// Reads the row of a fault.
  ///
  /// - Returns: false when there is none.
  func fire(_ object: ManagedObject) throws -> Bool {
    if object.objectKey < 0 || object.flags.contains(.detached) { return false }
    checkIsolation()
    let entity = Int(object.flags.entityIndex)
    let coordinator = persistentStoreCoordinator
    let isResident = places.hasResidentRow(object.objectKey)
    if !isResident,
      let (batch, index) = coordinator.rowCache.row(root: graph.entities[entity].root, key: object.objectKey)
    {
      if graph.entities[entity].sharesRoot {
        guard let concrete = coordinator.entityIndex(of: batch), isStillOf(concrete, object) else { return false }
      }
      attach(object, batch.pointer(index), RowGroup(RowRun(batch: batch, rows: .one(index)), entity: entity), 0)
      awakenFulfilled()
      return true
    }
    forgetOldFiredGroups()
    // Objects with siblings have been given such rows when they were made.
    if object.owner == nil, !isResident, let (group, row, place) = firedRow(entity, object.objectKey),
      group.entity == entity
    {
      attachNewest(object, row, group, place)
      awakenFulfilled()
      return true
    }
    let siblings = object.flags.contains(.ownedByGroup) ? nil : object.owner.map { unsafeDowncast($0, to: FaultSiblings.self) }
    let keys = keysToRead(object, siblings)
    // Siblings may be of any entity that the relationship leads to.
    let collector = try coordinator.rows(FaultRequest(entity: siblings?.entity ?? entity, keys: keys))
    for group in groups(collector.runs, entity) {
      if keys.count > 1 { keepFired(group) }
      attachFaults(group)
    }
    awakenFulfilled()
    return object.row != nil
  }

  /// Reads the rows of several faults, a thousand to a request. Those that have no row stay faults.
  func fire(together faults: ContiguousArray<ManagedObject>) throws {
    if faults.isEmpty { return }
    var keys = [[Int64]](repeating: [], count: entities.count)
    for fault in faults where fault.objectKey >= 0 { keys[Int(fault.flags.entityIndex)].append(fault.objectKey) }
    for (entity, keys) in keys.enumerated() where !keys.isEmpty {
      let sorted = keys.sorted()
      for start in stride(from: 0, to: sorted.count, by: RowGroup.size) {
        let window = Array(sorted[start..<min(start + RowGroup.size, sorted.count)])
        let collector = try persistentStoreCoordinator.rows(FaultRequest(entity: entity, keys: window))
        for group in groups(collector.runs, entity) { attachFaults(group) }
      }
    }
    awakenFulfilled()
  }

  /// The key of a fault and those of its siblings that have no row yet, ascending.
  private func keysToRead(_ object: ManagedObject, _ siblings: FaultSiblings?) -> [Int64] {
    guard batchesFaults, let siblings else { return [object.objectKey] }
    if places.hasResidentRow(object.objectKey) && siblings.isRarelyRead() { return [object.objectKey] }
    let entity = Int(object.flags.entityIndex)
    var keys = siblings.window(around: Int(object.position)).filter { key in
      key >= 0 && registered(entity, key)?.row == nil && !isTombstone(entity, key)
    }
    if keys.count < 2 { return [object.objectKey] }
    keys.sort()
    var unique: [Int64] = []
    unique.reserveCapacity(keys.count)
    for key in keys where key != unique.last { unique.append(key) }
    return unique
  }

  /// Asks for the targets of a to-many relationship for all rows of a group.
  ///
  /// - Parameter readsTargets: whether the targets are about to be read. Their rows are then welcome where all of them are
  ///   likely to be read, unless they lie in memory anyway.
  func fireToMany(_ group: RowGroup, _ link: LinkPlan, of object: ManagedObject, readsTargets: Bool) -> FaultSiblings? {
    forgetOldFiredGroups()
    let isWalkedOver = readsTargets && batchesFaults && (group.count == 1 || group.isFetched)
    let welcomesRows = isWalkedOver && !group.hasResidentRows(places)
    guard let answer = relationship(link, of: object, group.keys, welcomesRows: welcomesRows) else { return nil }
    takeRows(answer.rows, Int(link.destination))
    let siblings = FaultSiblings(entity: Int(link.destination), answer: answer)
    group.setAnswer(siblings, Int(link.toManyIndex))
    awakenFulfilled()
    return siblings
  }

  /// Keeps rows that came along with keys for the objects that are going to be made of them, and gives them to those that
  /// are faults.
  private func takeRows(_ batches: [RowBatch], _ entity: Int) {
    // Objects that have rows stay with their groups: a row in two groups would be asked for its own targets twice.
    let map = maps[graph.entities[entity].root]
    var runs: ArraySlice<RowRun> = []
    for batch in batches {
      let missing = (0..<UInt32(batch.count)).filter { map.object(batch.pointer(Int($0)).key)?.row == nil }
      if !missing.isEmpty { runs.append(RowRun(batch: batch, rows: missing.count == batch.count ? .all : .rows(missing))) }
    }
    while let first = runs.popFirst() {
      var (rest, count): ([RowRun], Int) = ([], first.count)
      while let next = runs.first, count + next.count <= RowGroup.size {
        rest.append(next)
        count += next.count
        runs.removeFirst()
      }
      for group in groups([first] + rest, entity) {
        keepFired(group)
        attachFaults(group)
      }
    }
  }

  /// Gives the rows of a group to those registered objects that have none.
  func attachFaults(_ group: RowGroup) {
    let map = maps[graph.entities[group.entity].root]
    group.forEachRow { position, row in
      if let registered = map.object(row.key), registered.row == nil, isStillOf(group.entity, registered) {
        attach(registered, row, group, position)
      }
    }
  }

  /// Asks for the targets of a to-many relationship; nil when the store fails, which is noted for the object that was asked.
  func relationship(_ link: LinkPlan, of object: ManagedObject, _ sources: [Int64], welcomesRows: Bool = false) -> RelationshipAnswer? {
    checkIsolation()
    do {
      let answer = try persistentStoreCoordinator.relationships(
        RelationshipRequest(
          entity: Int(link.entity), relationship: Int(link.relationship), sources: sources, welcomesRows: welcomesRows))
      return link.isOrdered ? answer.inOrder() : answer
    } catch {
      noteUnread(object.id, error)
      return nil
    }
  }

  /// Whether an object of a group gets its targets without its siblings: always without batching; and from a store whose
  /// rows lie in memory for the first few objects of a group, since there a request costs less than targets that nobody
  /// wants. More of them show that somebody walks over the group.
  func answersAlone(_ group: RowGroup, _ index: Int) -> Bool {
    if group.count == 1 { return false }
    if !batchesFaults { return true }
    return group.hasResidentRows(places) && group.isRarelyAsked(index)
  }
}
