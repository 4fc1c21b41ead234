import HoldfastStore

/// A new object and the object with the same unique values.
struct Upsert {
  /// The objects that objects in conflict have become.
  typealias Merged = [ManagedObjectID: ManagedObject]

  let object: ManagedObject
  private let existingID: ManagedObjectID
  /// The other object's row, if the object isn't in the context; the new object then takes its place.
  private let current: CurrentRow?

  private var context: ContextCore { object.context }

  /// - Parameter current: The row of the other object if it isn't in the context.
  /// - Returns: Nil if the objects are of different entities, or the other one is being deleted.
  init?(_ object: ManagedObject, _ existingID: ManagedObjectID, _ current: CurrentRow?) {
    guard existingID.entityName == object.entity.name, existingID != object.id else { return nil }
    self.object = object
    self.existingID = existingID
    self.current = current
    if object.context.registeredObject(for: existingID)?.isDeleted == true { return nil }
  }

  // MARK: Merging

  /// Merges the new object into the other one.
  ///
  /// Links are removed and set again, so that both ends know the remaining object.
  ///
  /// - Parameters:
  ///   - merged: The objects that were merged before. The other object may be one of them.
  ///   - references: The references by relationships without an inverse to all objects that are merged.
  func run(_ resolution: MergeResolution, _ merged: inout Merged, _ references: inout ForeignReferences) throws {
    // A link to the other object makes it, if the context doesn't have it.
    let id = object.id, links = ObjectLinks(of: object, referencedBy: references.owners(of: object))
    let existing = Upsert.remaining(merged[existingID] ?? registered, merged)
    if existing === object { return }
    links.cut()
    let slots = slotsToCopy(resolution), row = object.row ?? context.graph.emptyRow(object.flags.entityIndex)
    let values = PrivateRow(copying: row, object.entity.layout, room: 0, committed: nil, in: context.pool)
    defer { values.destroy(in: context.pool) }
    let remaining = existing ?? takePlace()
    merged[id] = remaining
    if remaining !== object { context.temporaryIDs.replace(object.objectKey, by: remaining.objectKey, root: object.plan.root) }
    for slot in slots { remaining.copy(slot, of: values.pointer) }
    links.connect(to: remaining, replacesAll: resolution == .overwrite) { relationship in
      if resolution.prefersObject { return true }
      return relationship.isTransient ? remaining.toOne(relationship) == nil : !remaining.readRow.isPresent(relationship.slot)
    }
    if remaining !== object {
      copyTransients(to: remaining, resolution)
      context.removeFromGraph(object)
    }
    for destination in links.destinationsWithoutInverse { references.note(remaining, referencing: destination) }
    guard case .values(let chosen) = resolution else { return }
    for case .objectID(let id) in chosen.values {
      if let destination = context.registeredObject(for: id) { references.note(remaining, referencing: destination) }
    }
    try remaining.setPolicyValues(chosen, merged)
  }

  /// The object that an object has become, possibly by several steps; the object itself if it wasn't merged.
  static func remaining(_ object: ManagedObject?, _ merged: Merged) -> ManagedObject? {
    var object = object
    while let next = object.flatMap({ merged[$0.id] }), next !== object { object = next }
    return object
  }

  /// The other object, if the context has it by now. One that a link has made gets the row that was read.
  private var registered: ManagedObject? {
    guard let other = context.registeredObject(for: existingID), context.isStillOf(object.flags.entityIndex, other) else { return nil }
    if let current, other.row == nil || other.isInaccessible && !other.flags.contains(.hasPrivateRow) { context.attach(other, current) }
    return other
  }

  /// The attributes whose new values are kept: for the merging policies, those that differ from the default values.
  private func slotsToCopy(_ resolution: MergeResolution) -> [SlotIndex] {
    guard resolution.prefersObject, let row = object.row else { return [] }
    let entity = object.flags.entityIndex, layout = object.entity.layout
    let derived = context.graph.derivedSlots(entity), initial = context.graph.newRow(entity)
    return layout.slots.filter { slot in
      if layout.kinds[slot] == .key || derived.contains(slot) { return false }
      return resolution == .overwrite || row.differs(from: initial, slot, layout.kinds[slot])
    }
  }

  /// Copies transient values to the other object: those that are preferred, and those that it lacks.
  private func copyTransients(to other: ManagedObject, _ resolution: MergeResolution) {
    _ = other.readRow
    for attribute in object.entity.transientAttributes {
      let index = attribute.index, value: Any? = object[transient: index]
      let isSet = value != nil && (attribute.defaultValue == nil || (try? object.transientValue(attribute)) != attribute.defaultValue)
      let isPreferred = resolution == .overwrite || resolution.prefersObject && isSet
      if isPreferred || value != nil && !other.hasTransient(index) { other[transient: index] = value }
    }
  }

  /// Replaces the IDs of merged objects, which may be permanent already, in attributes of changed objects.
  static func replaceIDs(_ merged: Merged, in context: ContextCore) {
    if merged.isEmpty { return }
    SaveOperation(context).replaceIDs(in: context.changes.objects) { remaining(merged[$0], merged)?.id }
  }

  /// Gives the new object the key and the row of the other one, which isn't in the context.
  private func takePlace() -> ManagedObject {
    guard let current else { return object }
    object.dropPrivateRow(nil)
    context.rekey(object, to: current.pointer.key)
    context.forgetLinks(object)
    context.attach(object, current)
    object.flags.remove(.inserted)
    object.flags.insert(.updated)
    return object
  }
}
