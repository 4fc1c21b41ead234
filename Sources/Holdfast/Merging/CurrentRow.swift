import HoldfastStore

/// The row of an object as the store has it now, with the group that keeps it alive.
struct CurrentRow {
  let pointer: RowPointer
  let group: RowGroup
  let position: Int
}

extension ContextCore {
  /// Reads the rows of saved objects again: one request for each entity and 1,024 objects. An object without a row was deleted.
  func currentRows(of objects: some Sequence<ManagedObject>) throws -> [ObjectIdentifier: CurrentRow] {
    var byEntity: [EntityIndex: [ManagedObject]] = [:]
    for object in objects where object.objectKey >= 0 { byEntity[object.flags.entityIndex, default: []].append(object) }
    recentGroups.removeAll()
    var found: [ObjectIdentifier: CurrentRow] = [:]
    for (entity, objects) in byEntity.sorted(by: { $0.key < $1.key }) {
      let keys = objects.map(\.objectKey).sorted()
      persistentStoreCoordinator.rowCache.remove(root: graph.entities[entity].root, keys: keys)
      for window in keys.windows(of: RowGroup.size) {
        let rows = try persistentStoreCoordinator.rows(FaultRequest(entity: entity, keys: Array(window)), requests.ofOthers)
        for group in groups(rows.runs, entity) where group.entity == entity {
          group.forEachRow { position, row in
            guard let object = registered(entity, row.key), object.flags.entityIndex == entity else { return }
            found[ObjectIdentifier(object)] = CurrentRow(pointer: row, group: group, position: position)
          }
        }
      }
    }
    return found
  }

  /// Gives an object its stored row. The object keeps no changes of its own.
  func attach(_ object: ManagedObject, _ current: CurrentRow) { attach(object, current.pointer, current.group, current.position) }
}
