import HoldfastStore

/// Objects of entities that share a root with others. A key alone doesn't determine such an object's entity.
extension ContextCore {
  /// The object that the context has with a key, if it has an entity's slots and relationships. A fault that was made for a superentity
  /// hasn't.
  func registeredOwner(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? {
    registered(entity, key).flatMap { graph.entities[entity].family.contains($0.flags.entityIndex) ? $0 : nil }
  }

  /// The destination of a link, registered if necessary; nil if it is being deleted or was deleted.
  ///
  /// If the entity has subentities and the link doesn't specify one, the destination's row is read, with the rows of its siblings.
  func familyTarget(_ entity: EntityIndex, _ key: ObjectKey, _ siblings: FaultSiblings?, position: Int) -> ManagedObject? {
    let family = graph.entities[entity].family
    let known = registered(entity, key)
    if let known, family.contains(known.flags.entityIndex) { return known.flags.contains(.deleted) ? nil : known }
    if isDeleted(entity, key) { return nil }
    if let known {
      if !mayBe(known, of: entity) { return strayTarget(entity, known) }
      registry.remove(known)
    }
    if let (group, row, place) = recentRow(entity, key) {
      let object = make(group.entity, key)
      attachNewest(object, row, group, place)
      awakenFulfilled()
      return object
    }
    let concrete = family.count == 1 || key < 0 ? entity : siblings?.entity(at: position).flatMap { family.contains($0) ? $0 : nil }
    if let concrete {
      let object = make(concrete, key)
      object.owner = siblings
      object.position = UInt32(truncatingIfNeeded: position)
      return object
    }
    return read(entity, key, siblings, position) ?? make(entity, key)
  }

  /// Whether an object was created for a link to a superentity of an entity, and no row shows its entity.
  private func mayBe(_ object: ManagedObject, of entity: EntityIndex) -> Bool {
    graph.entities[object.flags.entityIndex].family.contains(entity) && (object.row == nil || object.isInaccessible) && !object.hasChanges
  }

  /// Records an error for a link to an object of an entity that the model doesn't allow.
  private func strayTarget(_ entity: EntityIndex, _ object: ManagedObject) -> ManagedObject? {
    let error = StoreError(
      .damaged, operation: "follow a relationship",
      path: persistentStoreCoordinator.storeSet.store(ofKey: object.objectKey)?.locationDescription,
      reason: "A relationship to \(entities[entity].name) references \(object.id), an object of another entity. The file is damaged, "
        + "or another program changed it. Restore it from a backup.")
    noteUnread(object.id, error)
    return nil
  }

  /// An object without values and outside the graph, used where a link references an object of a wrong entity.
  func strayObject(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject {
    let flags = ObjectFlags(entityIndex: entity).union([.inaccessible, .detached])
    let object = makeObject(ManagedObjectSeed(context: self, key: key, flags: flags))
    object.row = graph.emptyRow(entity)
    return object
  }

  /// Creates the object of a key from its row; nil if it has none or the read fails. An error is recorded.
  private func read(_ entity: EntityIndex, _ key: ObjectKey, _ siblings: FaultSiblings?, _ position: Int) -> ManagedObject? {
    let (coordinator, family) = (persistentStoreCoordinator, graph.entities[entity].family)
    let isResident = places.hasResidentRow(key)
    if !isResident && readsNewest { coordinator.noticeOtherProcesses(reading: key) }
    if !isResident,
      let (batch, index) = cachedRow(entity, key),
      let concrete = coordinator.entityIndex(of: batch), family.contains(concrete)
    {
      let object = make(concrete, key)
      attach(object, batch.pointer(index), RowGroup(RowRun(batch: batch, rows: .one(index)), entity: concrete), 0)
      awakenFulfilled()
      return object
    }
    var keys = [key]
    if faults.areFiredInBatches, let siblings, !isChangedAbove(entity, key), !(places.hasResidentRow(key) && siblings.isRarelyRead()) {
      keys = unreadKeys(siblings.window(around: position), entity, inStoreOf: key)
    }
    do { return try readFamily(entity, keys, wanting: key) } catch { noteUnread(objectID(entity, key), error) }
    return nil
  }

  /// Reads rows of an entity and its subentities, so that objects can be created from them.
  ///
  /// - Returns: The object of a key among them; nil if it has no row.
  @discardableResult
  func readFamily(_ entity: EntityIndex, _ keys: [ObjectKey], wanting key: ObjectKey? = nil) throws -> ManagedObject? {
    checkIsolation()
    var found: ManagedObject?
    let request = FaultRequest(entity: entity, keys: keys)
    forEachGroup(of: try persistentStoreCoordinator.rows(request, in: pinnedStores(), requests.ofOthers), entity) { group in
      if keys.count > 1 { reading.groups.append(group) }
      attachFaults(group)
      guard let key, let (row, place) = group.row(key) else { return }
      if let known = registered(group.entity, key) {
        found = known
        return
      }
      let object = make(group.entity, key)
      attach(object, row, group, place)
      found = object
    }
    awakenFulfilled()
    return found
  }

  /// Whether to read ahead before creating an object of a list: the object is neither registered nor read yet.
  func readsAhead(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
    mayReadAhead(entity, key) && key >= 0 && registered(entity, key) == nil && !isChangedAbove(entity, key)
      && recentRow(entity, key) == nil
  }

  private func mayReadAhead(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
    faults.areFiredInBatches && (graph.entities[entity].family.count > 1 || !places.hasResidentRow(key))
  }

  /// Reads ahead the rows of a list's unregistered objects.
  ///
  /// Used if each row would take a request of its own, or if only the rows determine the entities.
  func readAhead(_ entity: EntityIndex, _ keys: ArraySlice<ObjectKey>) {
    guard let first = keys.first, mayReadAhead(entity, first) else { return }
    let unread = unreadKeys(keys.filter { recentRow(entity, $0) == nil }[...], entity)
    if unread.count <= 1 { return }
    // A row that can't be read now is read again on access, and only then is the error recorded.
    _ = try? readFamily(entity, unread)
  }

  /// The keys of objects that aren't registered, ascending, without duplicates. Objects that an ancestor has changed are left out, because
  /// their rows can't be kept for later.
  ///
  /// - Parameter known: An object in whose store they must be; nil for all stores.
  private func unreadKeys(_ keys: ArraySlice<ObjectKey>, _ entity: EntityIndex, inStoreOf known: ObjectKey? = nil) -> [ObjectKey] {
    keys.filter { key in
      if let known, !areInOneStore(key, known) { return false }
      return key >= 0 && registered(entity, key) == nil && !isDeleted(entity, key) && !isChangedAbove(entity, key)
    }.sortedUniquely()
  }

  /// Calls a closure with the rows of a collector, as a group for each entity.
  ///
  /// - Parameter entity: The entity of all rows, unless it shares its root.
  func forEachGroup(of rows: RowCollector, _ entity: EntityIndex, _ body: (RowGroup) -> Void) {
    if let first = rows.first { forEachGroup(of: first, rows.rest, entity, body) }
  }

  /// Calls a closure with the rows of runs, as a group for each entity.
  func forEachGroup(of first: RowRun, _ rest: [RowRun], _ entity: EntityIndex, _ body: (RowGroup) -> Void) {
    if !graph.entities[entity].sharesRoot { return body(RowGroup(first, rest, entity: entity)) }
    var byEntity: [(entity: EntityIndex, runs: [RowRun])] = []
    for run in [first] + rest {
      guard let concrete = persistentStoreCoordinator.entityIndex(of: run.batch) else { continue }
      if let place = byEntity.firstIndex(where: { $0.entity == concrete }) {
        byEntity[place].runs.append(run)
      } else {
        byEntity.append((concrete, [run]))
      }
    }
    for (entity, runs) in byEntity { body(RowGroup(runs[0], Array(runs.dropFirst()), entity: entity)) }
  }

  /// Whether a registered object has the entity of its row. Removes the object from the registry if it doesn't.
  ///
  /// An object that was created before its entity was known may have another entity. The caller then creates a new object.
  func isStillOf(_ entity: EntityIndex, _ object: ManagedObject) -> Bool {
    if object.flags.entityIndex == entity { return true }
    registry.remove(object)
    return false
  }
}
