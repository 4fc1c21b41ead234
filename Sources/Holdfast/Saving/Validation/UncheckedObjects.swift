import HoldfastStore

/// The objects that saves wrote without checking the rules of the model, because they become complete in several saves.
///
/// Confined to a context.
///
/// It has what each save would have checked. If only a relationship of an object changed, its values are those of before.
final class UncheckedObjects {
  /// The objects whose rows weren't checked.
  private(set) var rows = KeysByEntity()
  /// The objects whose destinations weren't counted, by the index of the relationship among the to-many relationships of their entity.
  private(set) var counts: [Int: KeysByEntity] = [:]
  /// The objects that the saves deleted.
  private var deleted = KeysByEntity()

  func noteRows(of ids: [ManagedObjectID]) { rows.insert(ids) }

  func noteCounts(_ toManyIndex: Int, of ids: [ManagedObjectID]) { counts[toManyIndex, default: KeysByEntity()].insert(ids) }

  func noteDeleted(_ ids: [ManagedObjectID]) { deleted.insert(ids) }

  /// Whether one of the saves has deleted an object.
  func hasDeleted(_ key: ObjectKey, of entityName: String) -> Bool { deleted.contains(key, of: entityName) }
}

extension SaveOperation {
  /// Notes the new objects, which have permanent keys, and the deleted ones. Called after the commit.
  func noteCommitted(in unchecked: UncheckedObjects) {
    note(inserted, in: unchecked) { context.objectID($0.flags.entityIndex, permanent($0.objectKey)) }
    unchecked.noteDeleted(deleted.map { $0.id })
  }

  /// Notes the changed objects. Called where they would be checked.
  func noteUpdated(in unchecked: UncheckedObjects) { note(updated, in: unchecked) { $0.id } }

  private func note(_ objects: ContiguousArray<ManagedObject>, in unchecked: UncheckedObjects, _ id: (ManagedObject) -> ManagedObjectID) {
    var rows: [ManagedObjectID] = [], counts: [Int: [ManagedObjectID]] = [:]
    for object in objects {
      if object.isInserted || object.flags.contains(.hasPrivateRow) { rows.append(id(object)) }
      for relationship in context.graph.checks[object.flags.entityIndex].counted where isTouched(object, relationship) {
        counts[relationship.toManyIndex, default: []].append(id(object))
      }
    }
    unchecked.noteRows(of: rows)
    for (index, ids) in counts { unchecked.noteCounts(index, of: ids) }
  }
}
