import HoldfastStore

/// The old and the new objects during a stage of a ``MigrationPlan``.
public final class MigrationStage {
  /// A context of the migrated store, with the new model. The stage saves it at the end.
  public let context: ManagedObjectContext
  private let reader: GraphReader
  private let mapping: MappingModel
  private let identity: StoreIdentity
  /// What is saved; nil if the stage isn't resumable.
  private let journal: StageJournal?
  /// What is left for loops that haven't begun.
  private var progress: PlanProgress
  private var isInLoop = false

  init(
    _ reader: GraphReader, _ mapping: MappingModel, _ context: ManagedObjectContext, _ identity: StoreIdentity, _ journal: StageJournal?,
    _ progress: PlanProgress
  ) {
    (self.reader, self.mapping, self.context, self.identity, self.journal, self.progress) = (
      reader, mapping, context, identity, journal, progress
    )
  }

  /// Calls a closure with each object of an entity of the former model, and the object that it became. Includes subentities, except for removed
  /// ones.
  ///
  /// The objects come entity by entity, in the order of their keys. Changes are saved from time to time, and the objects are released, so that
  /// the memory doesn't depend on their number. Don't keep objects from one call of the closure to the next. Traps in the closure of another
  /// `forEach`, and if the former model doesn't have the entity.
  ///
  /// Objects that the closure has deleted, itself or by delete rules, are left out.
  ///
  /// In a resumable stage that was interrupted, objects whose changes were saved are left out.
  ///
  /// - Parameters:
  ///   - entityName: The name of the entity in the former model.
  ///   - count: The number of objects after which changes are saved. Defaults to 5,000.
  ///   - body: Reads the old object, and sets values of the new one.
  /// - Throws: The closure's error, those of reading the objects, and those of saving. ``/HoldfastStore/MigrationError`` with code
  ///   `cancelled` if the task was cancelled.
  public func forEach(
    _ entityName: String, savingEvery count: Int = 5_000, _ body: (_ old: FormerObject, _ new: ManagedObject) throws -> Void
  ) throws {
    guard let entity = mapping.source.entity(named: entityName) else {
      preconditionFailure("The former model has no entity \(entityName).")
    }
    precondition(!isInLoop, "forEach was called in the closure of another forEach, which would release the objects of that one.")
    isInLoop = true
    defer { isInLoop = false }
    let kinds = entity.concreteIndexes.filter { mapping.destination(of: $0) != nil }
    let done = try journal?.beginLoop(entityName) ?? 0
    try forEachBatch(of: kinds, after: done, savingEvery: count) { index, old in
      guard let destination = mapping.destination(of: index).map({ mapping.destination.entities[$0] }) else { return }
      let read = try objects(old.map(\.key), of: destination), isCascaded = mayCascade(to: destination)
      for old in old {
        guard var new = read[old.key] else { continue }
        if isCascaded { try context.core.applyDeleteRules() }
        // The closure has deleted the object, or has reset the context.
        if new.isDeleted || new.flags.contains(.detached) {
          guard let found = try objects([old.key], of: destination)[old.key] else { continue }
          new = found
        }
        try body(old, new)
      }
    }
  }

  /// Whether the deletion of another object can delete objects of an entity.
  private func mayCascade(to entity: ManagedObjectModel.Entity) -> Bool {
    let model = mapping.destination
    return model.entities.contains { other in
      (other.relationships + other.transientRelationships).contains {
        $0.deleteRule == .cascade && model.entities[$0.destinationIndex].rootIndex == entity.rootIndex
      }
    }
  }

  /// Calls a closure with the objects of some entities of the former model, in batches, and saves from time to time.
  ///
  /// - Parameters:
  ///   - done: The number of objects that are left out. Defaults to 0.
  ///   - count: The number of objects after which changes are saved. Defaults to 5,000.
  package func forEachBatch(
    of kinds: [EntityIndex], after done: Int = 0, savingEvery count: Int = 5_000, _ body: (EntityIndex, [FormerObject]) throws -> Void
  ) throws {
    let count = max(count, 1)
    let total = kinds.reduce(0) { $0 + reader.ownKeys[$1.rawValue].count }
    var completed = 0
    let loop = progress.part(0...0.5)
    progress = progress.part(0.5...1)
    for index in kinds {
      let keys = reader.ownKeys[index.rawValue], step = min(count, 1_000)
      for start in stride(from: 0, to: keys.count, by: step) {
        try throwIfCancelled()
        let part = keys[start..<min(start + step, keys.count)], rest = part.dropFirst(max(done - completed, 0))
        completed += part.count
        if rest.isEmpty { continue }
        try body(index, try reader.objects(Array(rest), of: index))
        if let unread = reader.unread { throw unread }
        if completed % count < part.count || completed == total { try save(after: completed) }
        loop.report(Double(completed) / Double(total), completedCount: completed, totalCount: total)
      }
    }
  }

  /// Calls a closure whose saves don't check the rules of the model, because its objects become complete in several saves.
  ///
  /// Afterwards saves, and checks what these saves would have checked. Each save checks delete rules. Transient properties aren't checked.
  ///
  /// - Throws: The closure's error, those of saving, and ``PersistenceError`` with the failures of up to 1,000 objects.
  package func completingObjects(_ body: () throws -> Void) throws {
    let unchecked = UncheckedObjects()
    context.core.saving.unchecked = unchecked
    defer { context.core.saving.unchecked = nil }
    try body()
    try save()
    var rows = unchecked.rows
    try rows.forEachBatch { name, keys in
      try check(keys, name) { checks, object, failures in
        if let row = object.row { checks.collectFailures(row, object, &failures) }
      }
    }
    for (index, counts) in unchecked.counts.sorted(by: { $0.key < $1.key }) {
      var counts = counts
      try counts.forEachBatch { name, keys in
        try check(keys, name) { checks, object, failures in
          for relationship in checks.counted where relationship.toManyIndex == index {
            checks.collectCountFailure(relationship, object, &failures)
          }
        }
      }
    }
  }

  /// Reads objects that still exist, checks and releases them.
  private func check(
    _ keys: [ObjectKey], _ entityName: String, _ body: (EntityChecks, ManagedObject, inout [PersistenceError]) -> Void
  ) throws {
    try throwIfCancelled()
    guard let entity = mapping.destination.entity(named: entityName) else { return }
    let checks = context.core.graph.checks[entity.index]
    var failures: [PersistenceError] = []
    try context.core.refusingFaultErrors {
      for object in try context.core.existingObjects(with: ids(keys, of: entity), of: entity.index) { body(checks, object, &failures) }
    }
    if !failures.isEmpty { throw PersistenceError.together(failures) }
    context.reset()
  }

  private func throwIfCancelled() throws {
    if Task.isCancelled { throw MigrationError(.cancelled, reason: "The task was cancelled. The store is unchanged.") }
  }

  /// The object that an old one became; nil if its entity was removed. May be a fault, so that no request is sent.
  ///
  /// - Throws: The errors of ``ManagedObjectContext/object(with:)``.
  public func object(for old: FormerObject) throws -> ManagedObject? {
    guard let destination = mapping.destination(of: old.entity.index) else { return nil }
    return try object(mapping.destination.entities[destination], old.key)
  }

  /// A new object, which may be a fault.
  package func object(_ entity: ManagedObjectModel.Entity, _ key: ObjectKey) throws -> ManagedObject {
    try context.object(with: identity.objectID(entity: entity, key: key))
  }

  /// Whether the code has deleted a new object, in ``completingObjects(_:)``. Sends no request.
  package func hasDeleted(_ key: ObjectKey, of entity: ManagedObjectModel.Entity) -> Bool {
    context.core.isDeleted(entity.index, key) || context.core.saving.unchecked?.hasDeleted(key, of: entity.name) ?? false
  }

  /// New objects of an entity by their keys. Leaves out those that the code has deleted.
  package func objects(_ keys: [ObjectKey], of entity: ManagedObjectModel.Entity) throws -> [ObjectKey: ManagedObject] {
    let found = try context.core.existingObjects(with: ids(keys, of: entity), of: entity.index)
    return Dictionary(found.map { ($0.objectID.key, $0) }, uniquingKeysWith: { first, _ in first })
  }

  private func ids(_ keys: [ObjectKey], of entity: ManagedObjectModel.Entity) -> [ManagedObjectID] {
    let prefix = identity.prefix(for: entity)
    return keys.map { prefix.withKey($0) }
  }

  /// The objects of a batch for which a condition holds.
  ///
  /// - Parameter condition: A condition on objects of their entity in the former model.
  package func objects(_ batch: [FormerObject], fulfilling condition: RowPredicate) throws -> [FormerObject] {
    let related = RelatedRows(reader, reader.model, condition.relationshipPaths)
    try related.prepare(batch.map { $0.row.pointer })
    return batch.filter { condition.matches($0.row.pointer, related) }
  }

  private func save(after objectCount: Int) throws {
    if let journal { try journal.save(objectCount: objectCount) } else { try save() }
  }

  /// Saves, and releases all objects.
  package func save() throws {
    try context.save()
    context.reset()
  }
}
