import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PersistentStoreCoordinator {
  /// Reads the rows with the given keys, without rows of stores that were removed.
  ///
  /// - Parameter pinned: The stores of a generation; nil for the newest rows.
  func rows(_ request: FaultRequest, in pinned: StoreSet? = nil, _ options: RequestOptions) throws -> RowCollector {
    try options.check("read rows")
    let collector = RowCollector()
    let stores = pinned ?? storeSet, cache = cache(of: stores), epoch = cache.epoch
    func read(_ request: FaultRequest, _ store: PersistentStore) throws {
      try stores.reading(store, .latest, "read rows", options) { try store.store.rows(request, in: $0, options: options, into: collector) }
    }
    if let store = stores.sole {
      try read(request, store)
    } else {
      for (store, keys) in stores.split(request.keys) { try read(FaultRequest(entity: request.entity, keys: keys), store) }
    }
    try check(collector, model.entities[request.entity])
    collector.forEachRun { publish($0.batch, $0.rows, in: cache, readIn: epoch) }
    return collector
  }

  /// Reads a value from its external file.
  ///
  /// - Throws: ``PersistenceError`` when the object's store was removed.
  func externalData(_ request: ExternalDataRequest, _ options: RequestOptions) throws -> Data {
    try options.check("read a value from its file")
    guard let store = storeSet.store(ofKey: request.key) else { throw PersistenceError.missingStore() }
    return try store.wrapping("read a value from its file") { try store.store.answers.perform(request, options: options) }
  }

  /// Reads the destinations of a to-many relationship. Objects of removed stores have none.
  ///
  /// - Parameter pinned: The stores of a generation; nil for the newest rows.
  /// - Throws: ``PersistenceError`` when the stores of all the objects were removed.
  func relationships(_ request: RelationshipRequest, in pinned: StoreSet? = nil, _ options: RequestOptions) throws -> RelationshipAnswer {
    try options.check("read a relationship")
    let stores = pinned ?? storeSet
    if let store = stores.sole { return try relationships(request, store, stores, options) }
    let parts = stores.split(request.sources)
    if parts.isEmpty, !request.sources.isEmpty { throw PersistenceError.missingStore() }
    if pinned != nil { try refuseLaterStores(request, stores) }
    var answers: [(sources: [ObjectKey], answer: RelationshipAnswer)] = []
    for (store, sources) in parts {
      var request = request
      request.sources = sources
      answers.append((sources, try relationships(request, store, stores, options)))
    }
    if answers.count == 1 && answers[0].sources.count == request.sources.count { return answers[0].answer }
    return RelationshipAnswer(joining: answers, for: request.sources)
  }

  /// Refuses objects of stores that were added after a generation began. They would have no destinations.
  private func refuseLaterStores(_ request: RelationshipRequest, _ pinned: StoreSet) throws {
    let present = storeSet
    let later = request.sources.filter { pinned.store(ofKey: $0) == nil && present.store(ofKey: $0) != nil }
    if later.isEmpty { return }
    throw PersistenceError(
      .missingStore, reason: "The store was added after the generation began. Pin the context to the current one, or unpin it.",
      objectIDs: later.map { places.objectID(request.entity, $0) })
  }

  private func relationships(
    _ request: RelationshipRequest, _ store: PersistentStore, _ stores: StoreSet, _ options: RequestOptions
  ) throws -> RelationshipAnswer {
    let cache = cache(of: stores), epoch = request.acceptsRows ? cache.epoch : 0
    let answer = try stores.reading(store, .latest, "read a relationship", options) {
      try store.store.relationships(request, in: $0, options: options)
    }
    if !answer.rows.isEmpty {
      try check(answer.rows, request, store)
      for batch in answer.rows { publish(batch, in: cache, readIn: epoch) }
    }
    let isOrdered = model.entities[request.entity].relationships[request.relationship].isOrdered
    try answer.check(request, path: store.locationDescription, isOrdered: isOrdered)
    return answer
  }

  /// Refuses rows of another entity than the destination that a store returned together with destinations.
  private func check(_ rows: [RowBatch], _ request: RelationshipRequest, _ store: PersistentStore) throws {
    let destination = model.destination(of: model.entities[request.entity].relationships[request.relationship])
    guard rows.allSatisfy({ entityIndex(of: $0).map(destination.familyIndexes.contains) ?? false }) else {
      throw StoreError(
        .damaged, operation: "read a relationship", path: store.locationDescription,
        reason: "The store returned rows of another entity than the relationship's destination (rule L4).")
    }
  }

  /// Refuses rows that aren't of a requested entity or its subentities, before their slots are read as those of the entity.
  func check(_ collector: RowCollector, _ entity: ManagedObjectModel.Entity) throws {
    try collector.forEachRun { _ = try checkedEntityIndex(of: $0.batch, in: entity) }
  }

  /// Refuses keys of objects that aren't of a requested entity or its subentities. Batches of keys may omit their entity.
  func checkKeys(_ collector: RowCollector, _ entity: ManagedObjectModel.Entity) throws {
    var checked: ManagedObjectID?
    try collector.forEachRun { run in
      guard let prefix = run.batch.idPrefix, prefix != checked else { return }
      checked = prefix
      if let found = model.entity(named: prefix.entityName), entity.familyIndexes.contains(found.index) { return }
      throw damaged("read keys", "keys of \(prefix.entityName) for a request for keys of \(entity.name) (rule F6)")
    }
  }

  /// Refuses a result that is larger than the limit of its query.
  func check(count: Int, of query: FetchQuery) throws {
    guard let limit = query.limit, count > limit else { return }
    throw damaged("read rows", "\(count) rows of \(query.entity.name) for a request for at most \(limit) (rule F3)")
  }

  /// The entity of a batch's rows, which were requested as rows of an entity or its subentities.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/damaged`` when they are rows of another entity.
  func checkedEntityIndex(of batch: RowBatch, in entity: ManagedObjectModel.Entity) throws -> EntityIndex {
    let found = try checkedEntityIndex(of: batch)
    if entity.familyIndexes.contains(found) { return found }
    throw damaged("read rows", "rows of \(model.entities[found].name) for a request for rows of \(entity.name) (rules F1 and R2)")
  }

  /// The entity of a batch's rows.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/damaged`` when the rows don't match an entity.
  func checkedEntityIndex(of batch: RowBatch) throws -> EntityIndex {
    if let entity = entityIndex(of: batch) { return entity }
    throw damaged("read rows", "rows whose layout or ID prefix isn't that of an entity in the model (rule F5)")
  }

  /// The error for an answer that no store may give. Which of several stores gave it isn't known.
  private func damaged(_ operation: String, _ answer: String) -> StoreError {
    StoreError(.damaged, operation: operation, path: storeSet.sole?.locationDescription, reason: "The store returned \(answer).")
  }

  /// The entity of a batch's rows; nil when its layout and ID prefix match no entity.
  func entityIndex(of batch: RowBatch) -> EntityIndex? { places.entityIndex(of: batch) }

  /// The root entity of a batch's rows; nil if the shared cache doesn't admit them, because the store keeps them in memory anyway.
  func cachedRoot(of batch: RowBatch) -> EntityIndex? {
    guard !places.hasResidentRows(batch), let entity = entityIndex(of: batch) else { return nil }
    return graph.entities[entity].root
  }

  /// The cache of the rows that requests to a set of stores read: that of its generation, or the shared one.
  func cache(of stores: StoreSet) -> RowCache { stores.pinnedViews?.rowCache ?? rowCache }

  /// Inserts the rows of a batch that a store has delivered into a cache, unless the store keeps them in memory anyway.
  func publish(_ batch: RowBatch, _ rows: RowSelection = .all, in cache: RowCache, readIn epoch: Int) {
    if let root = cachedRoot(of: batch) { cache.publish(batch, rows, root: root, readIn: epoch) }
  }
}

extension RelationshipRequest {
  /// The same request for other sources.
  func of(_ sources: ArraySlice<ObjectKey>) -> RelationshipRequest {
    RelationshipRequest(entity: entity, relationship: relationship, sources: Array(sources), acceptsRows: acceptsRows)
  }
}

extension RelationshipAnswer {
  /// Joins several answers, in the order of the requested sources.
  ///
  /// The joined answer contains entities only if all answers do. Without them, the rows of the destinations determine their entities.
  convenience init(joining answers: [(sources: [ObjectKey], answer: RelationshipAnswer)], for sources: [ObjectKey]) {
    var found: [ObjectKey: (answer: Int, place: Int)] = [:]
    for (number, part) in answers.enumerated() {
      for (place, source) in part.sources.enumerated() { found[source] = (number, place) }
    }
    var (offsets, targets): ([Int32], [ObjectKey]) = ([0], [])
    var entities: [EntityIndex]? = answers.allSatisfy { $0.answer.entities != nil } ? [] : nil
    var orderKeys: [Int64]? = answers.contains { $0.answer.orderKeys != nil } ? [] : nil
    for source in sources {
      if let (number, place) = found[source] {
        let answer = answers[number].answer
        let range = Int(answer.offsets[place])..<Int(answer.offsets[place + 1])
        targets += answer.targets[range]
        if let found = answer.entities { entities?.append(contentsOf: found[range]) }
        orderKeys?.append(contentsOf: answer.orderKeys?[range] ?? Array(repeating: .max, count: range.count)[...])
      }
      offsets.append(Int32(targets.count))
    }
    self.init(offsets: offsets, targets: targets, entities: entities, orderKeys: orderKeys, rows: answers.flatMap(\.answer.rows))
  }
}
