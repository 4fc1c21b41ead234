import HoldfastStore

/// Objects of entities that share a root with others. A key alone does not tell of which entity such an object is.
extension ManagedObjectContext {
  /// The object that a link to an entity leads to, registered when it is not; nil when it is being deleted or was.
  ///
  /// Where the entity has sub-entities and the link does not say which is meant, the row does: it is read, with those of
  /// its siblings.
  func familyTarget(_ entity: Int, _ key: Int64, _ siblings: FaultSiblings?, position: Int) -> ManagedObject? {
    let family = graph.entities[entity].family
    if let registered = registered(entity, key) {
      if !family.contains(Int(registered.flags.entityIndex)) { return strayTarget(entity, registered) }
      return registered.flags.contains(.deleted) ? nil : registered
    }
    if isTombstone(entity, key) { return nil }
    if let (group, row, place) = firedRow(entity, key) {
      let object = make(group.entity, key)
      attachNewest(object, row, group, place)
      awakenFulfilled()
      return object
    }
    let known = family.count == 1 || key < 0 ? entity : siblings?.entity(at: position).flatMap { family.contains($0) ? $0 : nil }
    if let known {
      let object = make(known, key)
      object.owner = siblings
      object.position = UInt32(truncatingIfNeeded: position)
      return object
    }
    return read(entity, key, siblings, position) ?? make(entity, key)
  }

  /// A row leads to an object of another kind than the model says: the file was changed by something else.
  private func strayTarget(_ entity: Int, _ object: ManagedObject) -> ManagedObject? {
    let error = StoreError(
      .damaged, operation: "follow a relationship", path: persistentStoreCoordinator.storeSet.store(ofKey: object.objectKey)?.path,
      reason: "It should lead to objects of \(entities[entity].name), and leads to \(object.id). Another program or a fault has changed "
        + "the file.")
    noteUnread(object.id, error)
    return nil
  }

  /// An object that stands for one that cannot be what a relationship says; it belongs to no graph and has no values.
  func strayObject(_ entity: Int, _ key: Int64) -> ManagedObject {
    let flags = ObjectFlags(entityIndex: entity).union([.inaccessible, .detached])
    let object = classes[entity].init(ManagedObjectSeed(context: self, key: key, flags: flags))
    object.row = graph.emptyRow(entity).base
    return object
  }

  /// Makes the object of a key from its row; nil when there is none or it can't be read, which is noted.
  private func read(_ entity: Int, _ key: Int64, _ siblings: FaultSiblings?, _ position: Int) -> ManagedObject? {
    let (coordinator, family) = (persistentStoreCoordinator, graph.entities[entity].family)
    if !places.hasResidentRow(key),
      let (batch, index) = coordinator.rowCache.row(root: graph.entities[entity].root, key: key),
      let concrete = coordinator.entityIndex(of: batch), family.contains(concrete)
    {
      let object = make(concrete, key)
      attach(object, batch.pointer(index), RowGroup(RowRun(batch: batch, rows: .one(index)), entity: concrete), 0)
      awakenFulfilled()
      return object
    }
    var keys = [key]
    if batchesFaults, let siblings, !(places.hasResidentRow(key) && siblings.isRarelyRead()) {
      keys = unreadKeys(siblings.window(around: position), entity)
    }
    do { return try readFamily(entity, keys, wanting: key) } catch { noteUnread(objectID(entity, key), error) }
    return nil
  }

  /// Reads rows of an entity and its sub-entities, so that objects can be made of them.
  ///
  /// - Returns: the object of a key among them; nil when it has no row.
  @discardableResult
  func readFamily(_ entity: Int, _ keys: [Int64], wanting key: Int64? = nil) throws -> ManagedObject? {
    checkIsolation()
    var found: ManagedObject?
    for group in groups(try persistentStoreCoordinator.rows(FaultRequest(entity: entity, keys: keys)).runs, entity) {
      if keys.count > 1 { keepFired(group) }
      attachFaults(group)
      guard let key, let (row, place) = group.row(key) else { continue }
      if let known = registered(group.entity, key) {
        found = known
        continue
      }
      let object = make(group.entity, key)
      attach(object, row, group, place)
      found = object
    }
    awakenFulfilled()
    return found
  }

  /// Whether reading ahead is of use before an object of a list is made, which is neither registered nor was read ahead.
  func readsAhead(_ entity: Int, _ key: Int64) -> Bool {
    mayReadAhead(entity, key) && key >= 0 && registered(entity, key) == nil && firedRow(entity, key) == nil
  }

  private func mayReadAhead(_ entity: Int, _ key: Int64) -> Bool {
    batchesFaults && (graph.entities[entity].family.count > 1 || !places.hasResidentRow(key))
  }

  /// Reads ahead the rows of objects that a list of keys leads to and that are not registered: where each would be a request of
  /// its own, or only the rows can tell of which entities the objects are.
  func readAhead(_ entity: Int, _ keys: ArraySlice<Int64>) {
    guard let first = keys.first, mayReadAhead(entity, first) else { return }
    let unread = unreadKeys(keys.filter { firedRow(entity, $0) == nil }[...], entity)
    if unread.count <= 1 { return }
    // What can't be read now is read again one by one, and only then noted.
    _ = try? readFamily(entity, unread)
  }

  /// The keys of objects that are not registered, ascending, without repetition.
  private func unreadKeys(_ keys: ArraySlice<Int64>, _ entity: Int) -> [Int64] {
    let wanted = keys.filter { $0 >= 0 && registered(entity, $0) == nil && !isTombstone(entity, $0) }.sorted()
    var unique: [Int64] = []
    unique.reserveCapacity(wanted.count)
    for key in wanted where key != unique.last { unique.append(key) }
    return unique
  }

  /// Puts rows into groups of one entity each.
  ///
  /// - Parameter entity: the one that all rows are of, unless it shares its root.
  func groups(_ runs: [RowRun], _ entity: Int) -> [RowGroup] {
    guard let first = runs.first else { return [] }
    if !graph.entities[entity].sharesRoot { return [RowGroup(first, Array(runs.dropFirst()), entity: entity)] }
    var byEntity: [(entity: Int, runs: [RowRun])] = []
    for run in runs {
      guard let concrete = persistentStoreCoordinator.entityIndex(of: run.batch) else { continue }
      if let place = byEntity.firstIndex(where: { $0.entity == concrete }) {
        byEntity[place].runs.append(run)
      } else {
        byEntity.append((concrete, [run]))
      }
    }
    return byEntity.map { RowGroup($0.runs[0], Array($0.runs.dropFirst()), entity: $0.entity) }
  }

  /// Whether a registered object is of the entity of its row. One that was made when nobody could tell may not be: it leaves
  /// the graph then, and another takes its place.
  func isStillOf(_ entity: Int, _ object: ManagedObject) -> Bool {
    if Int(object.flags.entityIndex) == entity { return true }
    unregister(object)
    object.mapIndex = .max
    return false
  }
}
