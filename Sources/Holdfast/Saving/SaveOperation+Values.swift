import HoldfastStore

/// Checks of values that couldn't be encoded, IDs of unsaved objects, and transient attributes.
extension SaveOperation {
  /// The failures of these checks, which are reported together with those of the validation.
  func valueFailures() -> [PersistenceError] {
    var failures = refusedValues()
    forEachTemporaryID(inserted) { object, slot, id in check(id, object, slot, &failures) }
    forEachTemporaryID(updated) { object, slot, id in check(id, object, slot, &failures) }
    // Their values last no longer than the objects, so a check after several saves wouldn't find them.
    let checksTransients = context.graph.hasTransients && context.saving.unchecked == nil
    if checksTransients { for object in inserted + updated { checkTransients(object, &failures) } }
    return failures
  }

  private func refusedValues() -> [PersistenceError] {
    if context.changes.refusedValues.isEmpty { return [] }
    let saved = Set((inserted + updated).map { ObjectIdentifier($0) })
    return context.changes.refusedValues.compactMap { refused in saved.contains(refused.object) ? refused.error as? PersistenceError : nil }
  }

  private func checkTransients(_ object: ManagedObject, _ failures: inout [PersistenceError]) {
    failures += context.graph.checks[object.flags.entityIndex].transients.compactMap { $0.failure(object) }
  }

  // MARK: IDs of objects

  private func check(_ id: ManagedObjectID, _ object: ManagedObject, _ slot: SlotIndex, _ failures: inout [PersistenceError]) {
    if target(of: id) != nil { return }
    failures.append(
      PersistenceError(
        .unsavedObjectID, objectID: object.id, property: object.entity.slots[slot].name,
        reason: "The attribute contains the temporary ID of an object that isn't being saved. Save that object, then set its new ID.",
        objectIDs: [id]))
  }

  /// The object with a temporary ID, if this save gives it a permanent one.
  private func target(of id: ManagedObjectID) -> ManagedObject? {
    guard let entity = coordinator.model.entity(named: id.entityName), let object = context.registered(entity.index, id.key),
      object.isInserted && !object.isDeleted
    else { return nil }
    return object
  }

  /// The temporary keys of the new objects whose IDs are values of objects that are saved in some stores.
  func temporaryKeys(inValuesOf parts: [StoreChanges]) -> Set<ObjectKey> {
    var found: Set<ObjectKey> = []
    for part in parts {
      for objects in [part.inserted, part.updated] {
        forEachTemporaryID(objects) { _, _, id in if let target = target(of: id) { found.insert(target.objectKey) } }
      }
    }
    return found
  }

  /// Builds rows in which permanent IDs replace temporary ones. The objects adopt them when the save succeeds.
  func replaceTemporaryIDs() {
    for part in parts {
      for objects in [part.inserted, part.updated] {
        forEachTemporaryID(objects) { object, slot, id in
          guard let target = target(of: id) else { return }
          let permanent = context.objectID(target.flags.entityIndex, permanent(target.objectKey))
          permanent.withRowBytes { part.replace(slot, of: object, by: $0) }
        }
      }
    }
  }

  /// Replaces temporary IDs in the values of changed objects.
  ///
  /// - Parameter permanent: The permanent key of a temporary key, if the object has it from now on.
  func replaceTemporaryIDs(in objects: some Sequence<ManagedObject>, _ permanent: (ObjectKey) -> ObjectKey?) {
    replaceIDs(in: objects) { id in
      guard id.isTemporaryID, let target = target(of: id), let key = permanent(target.objectKey), key != target.objectKey else {
        return nil
      }
      return context.objectID(target.flags.entityIndex, key)
    }
  }

  /// Replaces IDs in the values of changed objects.
  func replaceIDs(in objects: some Sequence<ManagedObject>, _ next: (ManagedObjectID) -> ManagedObjectID?) {
    var found: [(object: ManagedObject, slot: SlotIndex, id: ManagedObjectID)] = []
    // Replacing a value can move the object's row.
    forEachID(ContiguousArray(objects)) { object, slot, bytes in
      if let id = ManagedObjectID(rowBytes: bytes).flatMap(next) { found.append((object, slot, id)) }
    }
    for (object, slot, id) in found {
      guard let base = object.row else { continue }
      var row = PrivateRow(existing: base)
      id.withRowBytes { row.set(slot, bytes: $0, object.entity.layout, in: context.pool) }
      object.row = row.pointer
    }
  }

  private func forEachTemporaryID(_ objects: ContiguousArray<ManagedObject>, _ body: (ManagedObject, SlotIndex, ManagedObjectID) -> Void) {
    forEachID(objects) { object, slot, bytes in
      if ManagedObjectID.isTemporary(rowBytes: bytes), let id = ManagedObjectID(rowBytes: bytes) { body(object, slot, id) }
    }
  }

  private func forEachID(_ objects: ContiguousArray<ManagedObject>, _ body: (ManagedObject, SlotIndex, UnsafeRawBufferPointer) -> Void) {
    if !context.graph.hasObjectIDs { return }
    for object in objects where object.flags.contains(.hasPrivateRow) {
      guard let row = object.row else { continue }
      for slot in context.graph.objectIDSlots[object.flags.entityIndex] where row.isPresent(slot) { body(object, slot, row.bytes(slot)) }
    }
  }
}

extension StoreChanges {
  /// Replaces the bytes of a slot in the row that is saved for an object.
  fileprivate func replace(_ slot: SlotIndex, of object: ManagedObject, by bytes: UnsafeRawBufferPointer) {
    guard let base = object.row else { return }
    let layout = context.entities[object.flags.entityIndex].layout
    var row =
      completedRows[ObjectIdentifier(object)]
      ?? PrivateRow(copying: base, layout, room: bytes.count, committed: nil, in: context.pool)
    row.set(slot, bytes: bytes, layout, in: context.pool)
    completedRows[ObjectIdentifier(object)] = row
  }

  /// The row that is saved for an object.
  @inline(__always) func rowToSave(_ object: ManagedObject) -> RowPointer? {
    if completedRows.isEmpty { return object.row }
    return completedRows[ObjectIdentifier(object)].map(\.pointer) ?? object.row
  }
}
