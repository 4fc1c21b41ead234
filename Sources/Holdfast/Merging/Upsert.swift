import HoldfastStore

/// A new object and the object with the same unique values.
struct Upsert {
  let object: ManagedObject
  /// The other object if it is in the context; otherwise the new object takes its place.
  private let existing: ManagedObject?
  private let existingKey: ObjectKey
  /// The other object's row.
  private let current: CurrentRow?

  private var context: ContextCore { object.context }

  /// Reads the other object's row. Returns nil if the objects are of different entities, or the other one doesn't exist any more.
  init?(_ object: ManagedObject, _ existingID: ManagedObjectID) throws {
    self.object = object
    let context = object.context
    guard existingID.entityName == object.entity.name else { return nil }
    if let known = context.registeredObject(for: existingID) {
      if known === object || known.isDeleted { return nil }
      existing = known
      existingKey = known.objectKey
      if !known.isInserted && !known.isUpdated { _ = try context.throwingFaultErrors { known.readRow } }
      if known.row == nil || known.isInaccessible { return nil }
      current = nil
      return
    }
    guard let key = context.places.key(of: existingID) else { return nil }
    existing = nil
    existingKey = key
    let entity = object.flags.entityIndex
    let rows = try context.persistentStoreCoordinator.rows(FaultRequest(entity: entity, keys: [key]), context.requests.ofOthers)
    guard let group = context.groups(rows.runs, entity).first(where: { $0.entity == entity }), let (row, position) = group.row(key) else {
      return nil
    }
    current = CurrentRow(pointer: row, group: group, position: position)
  }

  /// The values of the other object, for a policy.
  var stored: (object: ManagedObject, row: RowPointer)? {
    if let existing { return existing.row.map { (existing, $0) } }
    return current.map { (object, $0.pointer) }
  }

  // MARK: Merging

  /// Merges the new object into the other one.
  ///
  /// Links are removed and set again, so that both ends know the remaining object.
  func run(_ resolution: MergeResolution) throws {
    let links = ObjectLinks(of: object)
    links.cut()
    let slots = slotsToCopy(resolution)
    let values = PrivateRow(
      copying: object.row ?? context.graph.emptyRow(object.flags.entityIndex), object.entity.layout, room: 0, committed: nil)
    defer { values.destroy() }
    replaceIDs()
    let remaining = existing ?? takePlace()
    for slot in slots { remaining.copy(slot, of: values.pointer) }
    links.connect(to: remaining) { slot in resolution.prefersObject || !remaining.readRow.isPresent(slot) }
    if let existing { leave(for: existing) }
    if case .values(let values) = resolution {
      for (name, value) in values.sorted(by: { $0.key < $1.key }) { try remaining.setValue(value, forKey: name) }
    }
  }

  /// The attributes whose new values are kept: for the merging policies, those that differ from the default values.
  private func slotsToCopy(_ resolution: MergeResolution) -> [SlotIndex] {
    guard resolution.prefersObject, let row = object.row else { return [] }
    let entity = object.flags.entityIndex, layout = object.entity.layout
    let derived = context.graph.derivations?.slots[entity] ?? [], initial = context.graph.newRow(entity)
    return layout.slots.filter { slot in
      if layout.kinds[slot] == .key || derived.contains(slot) { return false }
      return resolution == .overwrite || row.differs(from: initial, slot, layout.kinds[slot])
    }
  }

  /// Replaces the new object's temporary ID in attributes of other objects.
  private func replaceIDs() {
    if object.objectKey >= 0 || existingKey < 0 { return }
    SaveOperation(context).replaceTemporaryIDs(in: context.changes.objects) { $0 == object.objectKey ? existingKey : nil }
  }

  /// Gives the new object the key and the row of the other one, which isn't in the context.
  private func takePlace() -> ManagedObject {
    guard let current else { return object }
    context.registry.remove(object)
    object.dropPrivateRow(nil)
    object.objectKey = existingKey
    context.registry.insert(object)
    context.forgetLinks(object)
    context.attach(object, current)
    object.flags.remove(.inserted)
    object.flags.insert(.updated)
    return object
  }

  /// Removes the new object, which another object represents from now on.
  private func leave(for existing: ManagedObject) {
    context.observers?.noteRemoval(object)
    context.changes.forgetRefusedValues(object)
    context.detach(object)
    object.flags.subtract([.inserted, .updated, .deleted, .propagated])
  }
}
