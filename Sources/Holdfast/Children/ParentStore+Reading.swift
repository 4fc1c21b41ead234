import HoldfastStore

extension ParentStore {
  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    var query = FetchQuery(
      entity: parent.entities[plan.entity], predicate: plan.predicate, sorts: plan.sorts, offset: plan.offset, limit: plan.limit,
      output: plan.output, options: options, restriction: plan.concreteEntities)
    // A save of a child would discard what handlers change in the child while it sends its changes. They are called when it has ended.
    let callsHandlers = child?.isSendingChanges != true
    let isOverlaid = try !plan.concreteEntities.isEmpty && parent.needsOverlay(query, callsHandlers: callsHandlers)
    // Afterwards, because handlers of the parent's changes may insert objects.
    try identifyNewObjects()
    let coordinator = parent.persistentStoreCoordinator
    if plan.output == .count {
      query.output = .rows
      let count =
        plan.concreteEntities.isEmpty
        ? 0 : isOverlaid ? try parent.overlaidCount(query) : try coordinator.count(query, in: parent.pinnedStores())
      return try deliver(count: count, into: sink)
    }
    if plan.concreteEntities.isEmpty { return }
    if !isOverlaid {
      return try coordinator.fetch(query, in: parent.pinnedStores(), into: plan.output == .keys ? sink : adapting(sink))
    }
    query.output = .rows
    let rows = ParentRows(self, isKeys: plan.output == .keys, sink)
    for object in try parent.overlaid(query) where try rows.append(object) == .enough { return }
    _ = try rows.flush()
  }

  /// A sink for rows of the parent's stores, which the parent may see with other versions and without references to deleted objects.
  private func adapting(_ sink: any RowSink) -> any RowSink {
    let hasDeleted = parent.graph.model.entityIndexes.contains(where: parent.hasDeleted)
    return children.seesStoredVersions && !hasDeleted ? sink : StoredRowsOfParent(self, sink)
  }

  private func deliver(count: Int, into sink: any RowSink) throws {
    let builder = RowBatchBuilder(layout: RowLayout([.attribute(.integer64)]), idPrefix: nil)
    builder.beginRow(key: 0, version: 0)
    builder.append(integer: Int64(count))
    builder.endRow()
    _ = try sink.take(builder.seal(), .all)
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try parent.applyDeleteRules()
    try identifyNewObjects()
    let (entity, family) = (request.entity, parent.graph.entities[request.entity].family)
    let rows = ParentRows(self, isKeys: false, sink)
    let sink = adapting(sink)
    var unknown: [ObjectKey] = []
    if parent.readsNewest { parent.persistentStoreCoordinator.noticeOtherProcesses() }
    for key in request.keys {
      if let object = parent.registered(entity, key) {
        if object.isDeleted { continue }
        // A fault may have been made for a superentity. Only its row determines its entity. An inaccessible object with changes needn't be
        // missing: the parent can have changed it while its row couldn't be read.
        if object.row == nil || object.isInaccessible {
          unknown.append(key)
        } else if family.contains(object.flags.entityIndex) {
          _ = try rows.append(object)
        }
      } else if !parent.isDeleted(entity, key), let (batch, index) = parent.cachedRow(entity, key),
        parent.places.entityIndex(of: batch).map(family.contains) == true
      {
        _ = try sink.take(batch, .one(index))
      } else {
        // Others may have inserted an object again whose deletion the parent has saved. The sink then shows it again.
        unknown.append(key)
      }
    }
    _ = try rows.flush()
    if unknown.isEmpty { return }
    let stored = try parent.persistentStoreCoordinator.rows(
      FaultRequest(entity: entity, keys: unknown), in: parent.pinnedStores(), options)
    for run in stored.runs {
      if try sink.take(run.batch, run.rows) == .enough { return }
    }
  }

  // MARK: Relationships

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    try parent.applyDeleteRules()
    try identifyNewObjects()
    let coordinator = parent.persistentStoreCoordinator
    var stored = request
    // These rows could be older than the parent's objects.
    if !parent.changes.isEmpty || !children.seesStoredVersions { stored.acceptsRows = false }
    let relationship = parent.entities[request.entity].relationships[request.relationship]
    if parent.changes.isEmpty { return try coordinator.relationships(stored, in: parent.pinnedStores(), options) }
    var changed: [ObjectKey] = []
    stored.sources = []
    for source in request.sources {
      if isKnown(source, relationship) { changed.append(source) } else { stored.sources.append(source) }
    }
    var answers: [(sources: [ObjectKey], answer: RelationshipAnswer)] = []
    if !changed.isEmpty { answers.append((changed, try targets(of: changed, relationship, options))) }
    if !stored.sources.isEmpty {
      answers.append((stored.sources, try coordinator.relationships(stored, in: parent.pinnedStores(), options)))
    }
    let answer = RelationshipAnswer(joining: answers, for: request.sources)
    return parent.hasDeleted(relationship.destinationIndex)
      ? answer.filtered { !parent.isDeleted(relationship.destinationIndex, $0) } : answer
  }

  /// Whether the parent has its own list of a source's destinations, or changes to it.
  private func isKnown(_ source: ObjectKey, _ relationship: ManagedObjectModel.Relationship) -> Bool {
    guard let object = parent.registeredOwner(relationship.entityIndex, source) else { return false }
    return object.isInserted || (object.toMany?[relationship.toManyIndex].base ?? .untouched) != .untouched
  }

  private func targets(
    of sources: [ObjectKey], _ relationship: ManagedObjectModel.Relationship, _ options: RequestOptions
  ) throws -> RelationshipAnswer {
    let (index, destination) = (relationship.toManyIndex, relationship.destinationIndex)
    var offsets: [Int32] = [0], targets: [ObjectKey] = [], orderKeys: [Int64] = []
    // Their lists are then read together as well.
    let faults = sources.compactMap { parent.registered(relationship.entityIndex, $0) }.filter(\.isFault)
    try parent.fire(together: ContiguousArray(faults), options)
    try parent.refusingFaultErrors {
      for source in sources {
        defer { offsets.append(Int32(targets.count)) }
        // A fault of a superentity has left the parent if its row is of a subentity.
        guard let object = parent.registered(relationship.entityIndex, source) ?? parent.target(relationship.entityIndex, source) else {
          continue
        }
        if relationship.isOrdered {
          // The save of the parent assigns its new order keys. The child needs some, to say where it has put an object.
          let entries = object.orderedList(index)?.orderedEntries() ?? []
          targets += entries.map(\.key)
          orderKeys += entries.map(\.order)
        } else {
          object.targets(index).withKeys { targets += $0 }
        }
        noteRead(ofList: index, of: object)
      }
    }
    let entities = try entities(of: targets, destination, options)
    return RelationshipAnswer(
      offsets: offsets, targets: targets, entities: entities, orderKeys: relationship.isOrdered ? orderKeys : nil)
  }
}

extension ParentStore {
  /// Notes that the child reads a list: its owner, or its objects, whichever contain the links. The parent may revert changes of these.
  private func noteRead(ofList index: Int, of owner: ManagedObject) {
    if owner.containsLinks(index) { children.noteRead(of: owner) }
    let link = owner.plan.toMany[index]
    guard link.inverseSlot >= 0, let states = owner.toMany else { return }
    // All objects of a new owner's list are additions, but aren't recorded as such.
    let changed = states[index].base == .new ? states[index].keys : states[index].added + states[index].removed
    for key in changed {
      if let object = parent.registered(link.destination, key), object.isUpdated { children.noteRead(of: object) }
    }
  }

  /// The concrete entities of destinations; nil if the destination has no subentities.
  private func entities(of targets: [ObjectKey], _ destination: EntityIndex, _ options: RequestOptions) throws -> [EntityIndex]? {
    if parent.entities[destination].familyIndexes.count == 1 { return nil }
    let unknown = Set(targets.filter { knownEntity(of: $0, destination) == nil })
    let stored = try parent.storedEntities(of: unknown.sorted(), destination, options)
    return targets.map { knownEntity(of: $0, destination) ?? stored[$0] ?? destination }
  }

  /// The entity of an object of the parent; nil if only its row determines it.
  private func knownEntity(of key: ObjectKey, _ destination: EntityIndex) -> EntityIndex? {
    guard let object = parent.registered(destination, key) else { return nil }
    let entity = object.flags.entityIndex
    return object.isFault && parent.graph.entities[entity].family.count > 1 ? nil : entity
  }
}

extension RelationshipAnswer {
  /// The answer without some destinations.
  fileprivate func filtered(_ isIncluded: (ObjectKey) -> Bool) -> RelationshipAnswer {
    var offsets: [Int32] = [0], kept: [Int] = []
    for source in 0..<self.offsets.count - 1 {
      kept += (Int(self.offsets[source])..<Int(self.offsets[source + 1])).filter { isIncluded(targets[$0]) }
      offsets.append(Int32(kept.count))
    }
    return RelationshipAnswer(
      offsets: offsets, targets: kept.map { targets[$0] }, entities: entities.map { all in kept.map { all[$0] } },
      orderKeys: orderKeys.map { all in kept.map { all[$0] } }, rows: rows)
  }
}

/// Finds the to-one relationships in rows of an entity whose destinations the parent has deleted, and that its save clears.
struct DeletedLinks {
  private struct Link {
    let relationship: ManagedObjectModel.Relationship
    /// Whether the save clears references to all deleted objects. If not, it clears those to new objects, which it doesn't save.
    let isClearedAlways: Bool
  }

  private let parent: ContextCore
  private let links: [Link]

  init(_ parent: ContextCore, _ entity: EntityIndex) {
    self.parent = parent
    links = parent.entities[entity].relationships.compactMap { relationship in
      if relationship.isToMany || !parent.hasDeleted(relationship.destinationIndex) { return nil }
      let inverse = parent.graph.model.inverse(of: relationship)
      return Link(relationship: relationship, isClearedAlways: inverse.map { $0.deleteRule != .noAction } ?? false)
    }
  }

  func references(_ row: RowPointer) -> [ManagedObjectModel.Relationship] {
    if links.isEmpty { return [] }
    return links.compactMap { row.isPresent($0.relationship.slot) && isCleared($0, row) ? $0.relationship : nil }
  }

  private func isCleared(_ link: Link, _ row: RowPointer) -> Bool {
    let (entity, key) = (link.relationship.destinationIndex, row.key(link.relationship.slot))
    if link.isClearedAlways { return parent.isDeleted(entity, key) }
    return parent.registered(entity, key).map { $0.isInserted && $0.isDeleted } ?? false
  }
}

/// Delivers rows of the parent's stores with the versions that children see, and without references to objects that the parent has deleted.
private final class StoredRowsOfParent: RowSink {
  private let store: ParentStore
  private let parent: ContextCore
  private let children: ChildContexts
  private let next: any RowSink

  init(_ store: ParentStore, _ next: any RowSink) {
    (self.store, self.next) = (store, next)
    (parent, children) = (store.parent, store.children)
  }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let entity = try parent.persistentStoreCoordinator.checkedEntityIndex(of: batch), root = parent.graph.entities[entity].root
    let run = RowRun(batch: batch, rows: rows)
    // Others have inserted objects again that the parent has deleted.
    parent.showAgain(entity, Set((0..<run.count).map { run.pointer($0).key }.filter { parent.isDeleted(entity, $0) }))
    let links = DeletedLinks(parent, entity)
    let isChanged = (0..<run.count).contains { position in
      let row = run.pointer(position)
      return children.version(of: row, root: root) != row.version || !links.references(row).isEmpty
    }
    if !isChanged { return try next.take(batch, rows) }
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    for position in 0..<run.count {
      let row = run.pointer(position)
      builder.append(row, key: row.key, version: children.version(of: row, root: root))
      for relationship in links.references(row) {
        builder.removeInLastRow(relationship.slot)
        store.noteRead(of: row, entity, without: relationship)
      }
      if builder.isFull, try next.take(builder.seal(), .all) == .enough { return .enough }
    }
    return builder.count > 0 ? try next.take(builder.seal(), .all) : .more
  }
}

/// Delivers objects of a parent as rows of a store, without references to objects that the parent has deleted.
final class ParentRows {
  private let store: ParentStore
  private let parent: ContextCore
  private let children: ChildContexts
  private let isKeys: Bool
  private let sink: any RowSink
  private var builder: RowBatchBuilder?
  /// The store and the entity of the rows.
  private var prefix: ManagedObjectID?
  private var links: DeletedLinks?

  init(_ store: ParentStore, isKeys: Bool, _ sink: any RowSink) {
    (self.store, self.isKeys, self.sink) = (store, isKeys, sink)
    (parent, children) = (store.parent, store.children)
  }

  func append(_ object: ManagedObject) throws -> SinkDemand {
    guard let row = parent.presentRow(object) else { return .more }
    let prefix = parent.places.objectID(object.flags.entityIndex, object.objectKey).withKey(0)
    // IDs of different entities can be equal.
    if self.prefix?.entityNumber != prefix.entityNumber || self.prefix?.storeNumber != prefix.storeNumber || builder?.isFull == true {
      if try flush() == .enough { return .enough }
      self.prefix = prefix
      links = DeletedLinks(parent, object.flags.entityIndex)
    }
    let builder = self.builder ?? RowBatchBuilder(layout: isKeys ? RowLayout([]) : object.entity.layout, idPrefix: prefix)
    self.builder = builder
    let version = children.version(of: object)
    if isKeys {
      builder.beginRow(key: object.objectKey, version: version)
      builder.endRow()
    } else {
      children.noteRead(of: object)
      builder.append(row, key: object.objectKey, version: version)
      for relationship in links?.references(row) ?? [] {
        builder.removeInLastRow(relationship.slot)
        store.noteRead(of: row, object.flags.entityIndex, without: relationship)
      }
    }
    return .more
  }

  func flush() throws -> SinkDemand {
    guard let builder else { return .more }
    self.builder = nil
    return try sink.take(builder.seal(), .all)
  }
}
