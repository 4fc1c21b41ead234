package import HoldfastStore

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// Reads all objects and links of an open store in one state.
///
/// Objects are named by their root entity and rank: their place among the family's keys in ascending order. A copy of the objects in another
/// store has other keys, but the same ranks.
///
/// Errors of the store that have no type of the framework are the causes of a `StoreError`. Those of closures pass unchanged.
package final class GraphReader {
  package let model: ManagedObjectModel
  let store: any IncrementalStore
  let identity: StoreIdentity
  private let view: any ReadView
  /// The store's location, for errors.
  private let path: String?
  /// Why a value couldn't be read, where the reading code can't throw.
  var unread: (any Error)?
  /// Receives the numbers of objects and owners that loops over all of them have passed; nil if nothing does.
  var observer: ((Int) -> Void)?
  /// The keys of each root entity's family, ascending; empty for other entities.
  package private(set) var keys: [[ObjectKey]]
  /// The keys of each entity's own objects, ascending.
  package private(set) var ownKeys: [[ObjectKey]]

  /// - Parameter path: The store's location, for errors. Defaults to nil.
  package init(_ store: any IncrementalStore, _ model: ManagedObjectModel, _ identity: StoreIdentity, path: String? = nil) throws {
    (self.store, self.model, self.identity, self.path) = (store, model, identity, path)
    view = try PersistentStore.wrapping("read the store", path) {
      try store.beginRead(store.capabilities.snapshots ? .snapshot : .latest, options: .none)
    }
    keys = model.entities.map { _ in [] }
    ownKeys = keys
    var mixedRoots: Set<EntityIndex> = []
    for entity in model.entities where !entity.isAbstract {
      let sink = KeySink()
      var plan = FetchPlan(entity: entity.index, concreteEntities: [entity.index])
      plan.output = .keys
      try deliver(to: sink) { try store.fetch(plan, in: view, options: .none, into: $0) }
      sink.keys.sort()
      ownKeys[entity.index] = sink.keys
      if keys[entity.rootIndex].isEmpty {
        // Both lists share their memory.
        keys[entity.rootIndex] = sink.keys
      } else if !sink.keys.isEmpty {
        keys[entity.rootIndex] += sink.keys
        mixedRoots.insert(entity.rootIndex)
      }
    }
    for root in mixedRoots { keys[root].sort() }
  }

  deinit { view.end() }

  /// The number of all objects.
  var objectCount: Int { ownKeys.reduce(0) { $0 + $1.count } }

  /// The rank of an object of a family; nil if the object doesn't exist.
  func rank(_ key: ObjectKey, _ root: EntityIndex) -> Int? { keys[root.rawValue].rank(of: key) }

  /// The number of objects and owners that ``observer`` receives if all rows and links are read once.
  var passCount: Int {
    linkRelationships.reduce(objectCount) { count, relationship in
      model.entities[relationship.entityIndex].concreteIndexes.reduce(count) { $0 + ownKeys[$1.rawValue].count }
    }
  }

  /// Throws in a cancelled task.
  static func checkCancellation(_ operation: String = "read the store") throws(StoreError) {
    guard Task.isCancelled else { return }
    throw StoreError(
      .cancelled, operation: operation, reason: "The task was cancelled. No store was changed.", cause: CancellationError())
  }

  /// Calls a closure with each row of an entity, without subentities, in batches.
  ///
  /// - Throws: `cancelled` in a cancelled task, the errors of the store and those of the closure.
  package func forEachRow(of entity: ManagedObjectModel.Entity, _ body: @escaping (RowView) throws -> Void) throws {
    if ownKeys[entity.index.rawValue].isEmpty { return }
    let plan = FetchPlan(entity: entity.index, concreteEntities: [entity.index])
    let sink = BatchClosure { [self, observer] batch, rows in
      try GraphReader.checkCancellation()
      try check(batch, entity)
      try rows.forEach(in: batch) { try body(batch[$0]) }
      observer?(rows.count(in: batch))
    }
    try deliver(to: sink) { try store.fetch(plan, in: view, options: .none, into: $0) }
  }

  /// Calls a closure with the rows of some objects of an entity, or its subentities, in any order.
  func forEachRow(
    _ keys: [ObjectKey], of entity: EntityIndex, _ body: @escaping (ManagedObjectModel.Entity, RowView) throws -> Void
  ) throws {
    if keys.isEmpty { return }
    let sink = BatchClosure { [self] batch, rows in
      let entity = batch.idPrefix.flatMap { model.entity(named: $0.entityName) } ?? model.entities[entity]
      try check(batch, entity)
      try rows.forEach(in: batch) { try body(entity, batch[$0]) }
    }
    try rows(FaultRequest(entity: entity, keys: keys), into: sink)
  }

  /// Calls a closure with which the store delivers rows to a sink. Errors of the sink pass unchanged.
  private func deliver(to sink: any RowSink, _ request: (any RowSink) throws -> Void) throws {
    let receiver = Receiver(sink)
    do { try request(receiver) } catch {
      if let failure = receiver.failure { throw failure }
      try PersistentStore.wrapping("read rows", path) { throw error }
    }
  }

  /// Refuses rows that don't have the layout of their entity, before they are read as rows of that entity.
  private func check(_ batch: RowBatch, _ entity: ManagedObjectModel.Entity) throws {
    if batch.layout == entity.layout { return }
    throw StoreError(
      .damaged, operation: "read rows", path: path,
      reason: "The store returned rows whose layout isn't that of the entity \(entity.name) (rule F5).")
  }

  /// The destinations of one object, in order or by key.
  func targets(of key: ObjectKey, _ relationship: ManagedObjectModel.Relationship) throws -> [ObjectKey] {
    try targets(of: [key], relationship).flatMap { $0 }.map(\.target)
  }

  /// The bytes of a slot, also those in an external file.
  package func bytes(_ row: RowPointer, _ slot: SlotIndex, of entity: ManagedObjectModel.Entity) throws -> Data? {
    guard row.isPresent(slot) else { return nil }
    guard let id = row.externalID(slot) else { return Data(row.bytes(slot)) }
    return try PersistentStore.wrapping("read a value from its file", path) {
      try store.answers.perform(ExternalDataRequest(entity: entity.index, slot: slot, key: row.key, id: id))
    }
  }

  /// The relationships whose links aren't in rows, or have an order.
  package var linkRelationships: [ManagedObjectModel.Relationship] {
    model.entities.flatMap(\.ownRelationships).filter { $0.storesLinks || $0.isOrdered }
  }

  /// Calls a closure with each owner of a to-many relationship, and its destinations with their order keys, in order or by key.
  ///
  /// Order keys are nil for unordered relationships.
  package func forEachOwner(
    of relationship: ManagedObjectModel.Relationship, _ body: (ObjectKey, [(target: ObjectKey, order: Int64?)]) throws -> Void
  ) throws {
    let owners = model.entities[relationship.entityIndex].concreteIndexes.flatMap { ownKeys[$0.rawValue] }
    for start in stride(from: 0, to: owners.count, by: 1_024) {
      try GraphReader.checkCancellation()
      let part = Array(owners[start..<min(start + 1_024, owners.count)])
      for (owner, targets) in zip(part, try targets(of: part, relationship)) where !targets.isEmpty { try body(owner, targets) }
      observer?(part.count)
    }
  }

  /// The destinations of up to 1,024 objects with their order keys, in order or by key.
  ///
  /// Order keys are nil for unordered relationships.
  func targets(
    of owners: [ObjectKey], _ relationship: ManagedObjectModel.Relationship
  ) throws -> [[(target: ObjectKey, order: Int64?)]] {
    if owners.isEmpty { return [] }
    let request = RelationshipRequest(entity: relationship.entityIndex, relationship: relationship.index, sources: owners)
    let answer: RelationshipAnswer
    do {
      answer = try PersistentStore.wrapping("read relationships", path) { try store.relationships(request, in: view, options: .none) }
    } catch let error as StoreError where error.code == .tooLarge && owners.count > 1 {
      let half = owners.count / 2
      return try targets(of: Array(owners[..<half]), relationship) + targets(of: Array(owners[half...]), relationship)
    }
    try answer.check(request, path: path, isOrdered: relationship.isOrdered)
    return owners.indices.map { index in
      let range = Int(answer.offsets[index])..<Int(answer.offsets[index + 1])
      let targets = range.map { (target: answer.targets[$0], order: relationship.isOrdered ? answer.orderKeys?[$0] : nil) }
      return targets.sorted { ($0.order ?? 0, $0.target) < ($1.order ?? 0, $1.target) }
    }
  }
}

/// Conditions read the rows that they reach through relationships.
extension GraphReader: RelatedRowReader {
  package func rows(_ request: FaultRequest, into sink: any RowSink) throws {
    try deliver(to: sink) { try store.rows(request, in: view, options: .none, into: $0) }
  }

  package func relationships(_ request: RelationshipRequest, _ body: (ObjectKey, [ObjectKey]) -> Void) throws {
    let relationship = model.entities[request.entity].relationships[request.relationship]
    for start in stride(from: 0, to: request.sources.count, by: 1_024) {
      let sources = Array(request.sources[start..<min(start + 1_024, request.sources.count)])
      for (source, found) in zip(sources, try targets(of: sources, relationship)) { body(source, found.map { $0.target }) }
    }
  }
}

extension [ObjectKey] {
  /// The index of a key among ascending keys; nil if it isn't among them.
  func rank(of key: ObjectKey) -> Int? {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < count && self[low] == key ? low : nil
  }
}

/// Collects keys.
private final class KeySink: RowSink {
  var keys: [ObjectKey] = []

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    rows.forEach(in: batch) { keys.append(batch.pointer($0).key) }
    return .more
  }
}

/// Passes batches on, and keeps the error of the sink that receives them. The store only rethrows it.
private final class Receiver: RowSink {
  private let sink: any RowSink
  private(set) var failure: (any Error)?

  init(_ sink: any RowSink) { self.sink = sink }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    do { return try sink.take(batch, rows) } catch {
      failure = error
      throw error
    }
  }
}

/// Calls a closure with each batch.
private final class BatchClosure: RowSink {
  private let body: (RowBatch, RowSelection) throws -> Void

  init(_ body: @escaping (RowBatch, RowSelection) throws -> Void) { self.body = body }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    try body(batch, rows)
    return .more
  }
}
