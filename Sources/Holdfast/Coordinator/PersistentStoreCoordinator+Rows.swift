import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PersistentStoreCoordinator {
  /// The rows with certain keys. Those of stores that were removed are not there.
  func rows(_ request: FaultRequest) throws -> RowCollector {
    let collector = RowCollector()
    let (epoch, stores) = (rowCache.epoch, storeSet)
    func read(_ request: FaultRequest, _ store: PersistentStore) throws {
      try store.reading(.latest, "read rows") { try store.store.rows(request, in: $0, into: collector) }
    }
    if let store = stores.sole {
      try read(request, store)
    } else {
      for (store, keys) in stores.split(request.keys) { try read(FaultRequest(entity: request.entity, keys: keys), store) }
    }
    try check(collector)
    for run in collector.runs { publish(run.batch, readIn: epoch) }
    return collector
  }

  /// A value that lies in a file of its own.
  ///
  /// - Throws: ``ContextError`` when the object's store was removed.
  func externalData(_ request: ExternalDataRequest) throws -> Data {
    guard let store = storeSet.store(ofKey: request.key) else { throw ContextError.missingStore() }
    return try store.wrapping("read a value from its file") { try store.store.externalData(request) }
  }

  /// The targets of a to-many relationship. Objects of stores that were removed have none.
  ///
  /// - Throws: ``ContextError`` when all of the objects are of such stores.
  func relationships(_ request: RelationshipRequest) throws -> RelationshipAnswer {
    let stores = storeSet
    if let store = stores.sole { return try relationships(request, store) }
    let parts = stores.split(request.sources)
    if parts.isEmpty, !request.sources.isEmpty { throw ContextError.missingStore() }
    var answers: [(sources: [Int64], answer: RelationshipAnswer)] = []
    for (store, sources) in parts {
      var request = request
      request.sources = sources
      answers.append((sources, try relationships(request, store)))
    }
    if answers.count == 1 && answers[0].sources.count == request.sources.count { return answers[0].answer }
    return RelationshipAnswer(
      joining: answers, for: request.sources,
      destination: model.entities[request.entity].relationships[request.relationship].destinationIndex)
  }

  private func relationships(_ request: RelationshipRequest, _ store: PersistentStore) throws -> RelationshipAnswer {
    let epoch = request.welcomesRows ? rowCache.epoch : 0
    let answer = try store.reading(.latest, "read a relationship") { try store.store.relationships(request, in: $0) }
    if !answer.rows.isEmpty { try takeRows(answer, request, store, readIn: epoch) }
    try check(answer, request, store)
    return answer
  }

  private func check(_ answer: RelationshipAnswer, _ request: RelationshipRequest, _ store: PersistentStore) throws {
    func damaged(_ reason: String) -> StoreError {
      StoreError(.damaged, operation: "read a relationship", path: store.path, reason: reason)
    }
    guard answer.offsets.count == request.sources.count + 1 else {
      throw damaged(
        "The store answered for \(answer.offsets.count - 1) objects where \(request.sources.count) were asked for (rule L1).")
    }
    if model.entities[request.entity].relationships[request.relationship].isOrdered, answer.orderKeys?.count != answer.targets.count {
      throw damaged("The store answered without a key for each target of an ordered relationship (rule L5).")
    }
    for place in request.sources.indices where answer.offsets[place] > answer.offsets[place + 1] {
      throw damaged("The store's answer goes backwards (rule L1).")
    }
  }

  /// Rows that came along with targets.
  private func takeRows(_ answer: RelationshipAnswer, _ request: RelationshipRequest, _ store: PersistentStore, readIn epoch: Int) throws {
    let destination = model.destination(of: model.entities[request.entity].relationships[request.relationship])
    guard answer.rows.allSatisfy({ entityIndex(of: $0).map(destination.familyIndexes.contains) ?? false }) else {
      throw StoreError(
        .damaged, operation: "read a relationship", path: store.path,
        reason: "The store delivered rows that are not of the relationship's destination (rule L4).")
    }
    for batch in answer.rows { publish(batch, readIn: epoch) }
  }

  /// Refuses rows that do not look like those of their entity, before anybody reads them as such.
  func check(_ collector: RowCollector) throws {
    for run in collector.runs { _ = try checkedEntityIndex(of: run.batch) }
  }

  /// The entity of a batch's rows.
  ///
  /// - Throws: `damaged` when the rows do not look like those of an entity.
  func checkedEntityIndex(of batch: RowBatch) throws -> Int {
    if let entity = entityIndex(of: batch) { return entity }
    throw StoreError(
      .damaged, operation: "read rows", path: storeSet.sole?.path,
      reason: "The store delivered rows without the layout or the ID prefix of an entity of the model (rule F5).")
  }

  /// The entity of a batch's rows; nil when the batch has not the layout and the ID prefix of any.
  func entityIndex(of batch: RowBatch) -> Int? { places.entityIndex(of: batch) }

  /// Takes rows into the shared cache, where they are not in memory anyway.
  func publish(_ batch: RowBatch, readIn epoch: Int) {
    guard !places.hasResidentRows(batch), let entity = entityIndex(of: batch) else { return }
    rowCache.publish(batch, root: graph.entities[entity].root, readIn: epoch)
  }
}

extension RelationshipAnswer {
  /// The answers of several stores as one, in the order of the sources that were asked for.
  convenience init(joining answers: [(sources: [Int64], answer: RelationshipAnswer)], for sources: [Int64], destination: Int) {
    var found: [Int64: (answer: Int, place: Int)] = [:]
    for (number, part) in answers.enumerated() {
      for (place, source) in part.sources.enumerated() { found[source] = (number, place) }
    }
    var (offsets, targets): ([Int32], [Int64]) = ([0], [])
    var entities: [Int]? = answers.contains { $0.answer.entities != nil } ? [] : nil
    var orderKeys: [Int64]? = answers.contains { $0.answer.orderKeys != nil } ? [] : nil
    for source in sources {
      if let (number, place) = found[source] {
        let answer = answers[number].answer
        let range = Int(answer.offsets[place])..<Int(answer.offsets[place + 1])
        targets += answer.targets[range]
        entities?.append(contentsOf: answer.entities?[range] ?? Array(repeating: destination, count: range.count)[...])
        orderKeys?.append(contentsOf: answer.orderKeys?[range] ?? Array(repeating: .max, count: range.count)[...])
      }
      offsets.append(Int32(targets.count))
    }
    self.init(offsets: offsets, targets: targets, entities: entities, orderKeys: orderKeys, rows: answers.flatMap(\.answer.rows))
  }
}
