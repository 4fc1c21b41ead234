import HoldfastStore

/// The row of an object as the store has it now, with the group that keeps it alive.
struct CurrentRow {
  let pointer: RowPointer
  let group: RowGroup
  let position: Int
}

extension ContextCore {
  /// Reads the newest rows of the saved ones among some objects. A saved object without a row was deleted.
  func currentRows(of objects: some Sequence<ManagedObject>) throws -> [ObjectIdentifier: CurrentRow] {
    let saved = objects.filter { $0.objectKey >= 0 }
    reading.groups.removeAll()
    for (root, keys) in keysByRoot(saved) { storeCoordinator.rowCache.remove(root: root, keys: keys.sorted()) }
    let found = try storedRows(of: saved)
    try showAgain(foundIn: found.values)
    return found
  }

  /// Reads the rows of saved objects.
  ///
  /// - Parameter pinned: The stores of a generation; nil for the newest rows.
  func storedRows(of objects: [ManagedObject], in pinned: StoreSet? = nil) throws -> [ObjectIdentifier: CurrentRow] {
    var byKey: [EntityIndex: [ObjectKey: ManagedObject]] = [:], found: [ObjectIdentifier: CurrentRow] = [:]
    for object in objects { byKey[object.flags.entityIndex, default: [:]][object.objectKey] = object }
    try forEachCurrentRow(byKey.mapValues { Array($0.keys) }, in: pinned) { entity, row in
      if let object = byKey[entity]?[row.pointer.key] { found[ObjectIdentifier(object)] = row }
    }
    return found
  }

  /// The objects among some saved ones that still have a row in the store. Faults among them receive it.
  func existing(_ objects: some Collection<ManagedObject>) throws -> Set<ManagedObject> {
    let rows = try currentRows(of: objects)
    return Set(
      objects.filter { object in
        guard let current = rows[ObjectIdentifier(object)] else { return false }
        if object.isFault { attach(object, current) }
        return true
      })
  }

  /// Reads rows from the store: one request for each entity and 1,024 keys.
  ///
  /// - Parameter pinned: The stores of a generation; nil for the newest rows.
  func forEachCurrentRow(
    _ keys: [EntityIndex: [ObjectKey]], in pinned: StoreSet? = nil, _ body: (EntityIndex, CurrentRow) -> Void
  ) throws {
    for (entity, keys) in keys.sorted(by: { $0.key < $1.key }) {
      for window in keys.sorted().windows(of: RowGroup.size) {
        let rows = try persistentStoreCoordinator.rows(FaultRequest(entity: entity, keys: Array(window)), in: pinned, requests.ofOthers)
        forEachGroup(of: rows, entity) { group in
          if group.entity != entity { return }
          group.forEachRow { position, row in body(entity, CurrentRow(pointer: row, group: group, position: position)) }
        }
      }
    }
  }

  /// Gives an object its stored row. The object keeps no changes of its own.
  func attach(_ object: ManagedObject, _ current: CurrentRow) { attach(object, current.pointer, current.group, current.position) }

  /// Gives an object a row of its own that is based on its stored row. It keeps the values of some slots. A fault stays one.
  func rebase(_ object: ManagedObject, on current: CurrentRow, keeping slots: some Sequence<SlotIndex>) {
    if let own = object.row {
      let layout = object.entity.layout
      var merged = PrivateRow(copying: current.pointer, layout, room: 64, committed: current.pointer, in: pool)
      for slot in slots { merged.copy(slot, of: own, layout, in: pool) }
      object.dropPrivateRow(merged.pointer)
      object.flags.insert(.hasPrivateRow)
    }
    object.joinGroup(current.group, at: current.position)
  }
}
