import HoldfastStore

/// Creates objects from rows, in groups of neighbours, while the rows are still in the processor's cache.
final class ObjectSink: ReceivingSink {
  private let context: ContextCore
  private let requested: ManagedObjectModel.Entity
  @exclusivity(unchecked) private var objects: ContiguousArray<ManagedObject> = []
  var hasReceived: Bool { first != nil || !objects.isEmpty }
  /// The rows of the next group. Rows of several entities are split into one group for each entity.
  @exclusivity(unchecked) private var first: RowRun?
  @exclusivity(unchecked) private var rest: [RowRun] = []
  @exclusivity(unchecked) private var pendingCount = 0
  /// The entities of the runs; empty while all runs are of ``pendingEntity``.
  @exclusivity(unchecked) private var entities: [EntityIndex] = []
  @exclusivity(unchecked) private var pendingEntity: EntityIndex = 0

  /// - Parameter entity: The entity that was requested. An object of another one would be read as if it had the class of this one.
  init(_ context: ContextCore, _ entity: ManagedObjectModel.Entity) { (self.context, requested) = (context, entity) }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let run = RowRun(batch: batch, rows: rows)
    let entity = try context.persistentStoreCoordinator.checkedEntityIndex(of: batch, in: requested)
    if run.count > RowGroup.size {
      for window in run.windows(of: RowGroup.size) { append(window, entity) }
    } else if run.count > 0 {
      append(run, entity)
    }
    return .more
  }

  private func append(_ run: RowRun, _ entity: EntityIndex) {
    let count = run.count
    if pendingCount + count > RowGroup.size { makeObjects() }
    pendingCount += count
    guard first != nil else {
      first = run
      pendingEntity = entity
      return
    }
    if entities.isEmpty && entity != pendingEntity { entities = Array(repeating: pendingEntity, count: rest.count + 1) }
    if !entities.isEmpty { entities.append(entity) }
    rest.append(run)
  }

  private func makeObjects() {
    guard let first else { return }
    let rest = rest, entities = entities
    self.first = nil
    self.rest = []
    self.entities = []
    pendingCount = 0
    if entities.isEmpty {
      if rest.isEmpty, let known = context.knownObject(of: first, pendingEntity) { return objects.append(known) }
      context.materialize(RowGroup(first, rest, entity: pendingEntity, isFetched: true), into: &objects)
    } else {
      makeObjectsOfFamily([first] + rest, entities)
    }
  }

  /// Neighbours of the same entity become siblings, even if rows of other entities are between them.
  private func makeObjectsOfFamily(_ pending: [RowRun], _ entities: [EntityIndex]) {
    var made: [(entity: EntityIndex, objects: ArraySlice<ManagedObject>)] = []
    for entity in entities where !made.contains(where: { $0.entity == entity }) {
      let runs = zip(pending, entities).filter { $0.1 == entity }.map(\.0)
      var ofEntity: ContiguousArray<ManagedObject> = []
      context.materialize(RowGroup(runs[0], Array(runs.dropFirst()), entity: entity, isFetched: true), into: &ofEntity)
      made.append((entity, ofEntity[...]))
    }
    for (run, entity) in zip(pending, entities) {
      guard let place = made.firstIndex(where: { $0.entity == entity }) else { continue }
      objects += made[place].objects.prefix(run.count)
      made[place].objects.removeFirst(run.count)
    }
  }

  /// The objects, in the order of the rows.
  func finish() -> ContiguousArray<ManagedObject> {
    makeObjects()
    return objects
  }
}

extension ContextCore {
  /// Finds or creates the object of every row of a group.
  func materialize(_ group: RowGroup, into objects: inout ContiguousArray<ManagedObject>) {
    if group.count > 64 { registry.prepare(for: group) }
    showAgain(group)
    group.forEachRow { position, row in objects.append(object(row, group, position)) }
  }

  /// The object of a run of one row, if the context has it with a row, which it keeps; nil otherwise.
  ///
  /// The result is that of ``materialize(_:into:)``. Look-ups often find such objects, and they need no group.
  func knownObject(of run: RowRun, _ entity: EntityIndex) -> ManagedObject? {
    guard run.count == 1, !hasDeleted(entity), let known = registered(entity, run.pointer(0).key), known.flags.entityIndex == entity,
      known.row != nil, !known.isInaccessible
    else { return nil }
    return known
  }

  private func object(_ row: RowPointer, _ group: RowGroup, _ position: Int) -> ManagedObject {
    if let registered = registered(group.entity, row.key), isStillOf(group.entity, registered) {
      if registered.row == nil || (registered.isInaccessible && !registered.flags.contains(.hasPrivateRow)) {
        attach(registered, row, group, position)
      }
      return registered
    }
    let object = make(group.entity, row.key)
    attach(object, row, group, position)
    return object
  }
}
