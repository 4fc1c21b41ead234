public import HoldfastStore
import Synchronization

/// Stands between contexts and the store: opens it, plans fetches, does what it cannot, keeps rows that were read, and
/// lets one save at a time through. Thread-safe; readers do not block readers.
public final class PersistentStoreCoordinator: Sendable {
  /// The model.
  public let model: ManagedObjectModel
  /// What was opened.
  public let storeDescription: StoreDescription
  /// The user's metadata as it was when the store was opened.
  public let metadata: [String: StoreValue]
  /// The store's UUID as upper-case text.
  public var storeIdentifier: String { identity.storeUUID }
  let graph: GraphPlan
  let store: any IncrementalStore
  let capabilities: StoreCapabilities
  let identity: StoreIdentity
  /// What the IDs of each entity's objects begin with, by entity index.
  let prefixes: [ManagedObjectID]
  let rowCache = RowCache()
  let saveListeners = SaveListeners()
  /// How often contexts have saved.
  let saveCount = Atomic<Int>(0)
  /// Only one save of the store runs at a time; the lock protects the store's write side, no data of ours.
  let saveLock = Mutex(())

  /// Opens a store.
  ///
  /// - Throws: ``StoreError`` when the store cannot be opened; see ``IncrementalStore/open(model:)``.
  public init(model: ManagedObjectModel, store description: StoreDescription) throws {
    self.model = model
    storeDescription = description
    graph = GraphPlan(model)
    let store = description.makeStore()
    let opened = try PersistentStoreCoordinator.wrapping("open the store", description.path) { try store.open(model: model) }
    self.store = store
    capabilities = store.capabilities
    identity = opened.identity
    prefixes = model.entities.map { opened.identity.prefix(for: $0) }
    metadata = opened.userInfo
  }

  deinit {
    // Nobody is left to be told; the store itself logs what it cannot give back.
    try? store.close()
  }

  /// Closes the store. Contexts can do nothing with it afterwards but fail.
  ///
  /// - Throws: ``StoreError``.
  public func close() throws { try wrapping("close the store") { try store.close() } }

  /// Replaces the user's metadata of the store.
  ///
  /// - Throws: ``StoreError``.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    try saveLock.withLock { _ in try wrapping("write the metadata") { try store.setMetadata(metadata) } }
  }

  /// The ID that a URI names, when it is one of this coordinator's store and of an entity of its model.
  public func managedObjectID(forURIRepresentation uri: String) -> ManagedObjectID? {
    guard let id = ManagedObjectID(uriRepresentation: uri), id.storeNumber == identity.number else { return nil }
    return model.entity(named: id.entityName) == nil ? nil : id
  }

  // MARK: Requests

  /// Runs something against the store and wraps what is no ``StoreError`` in one.
  func wrapping<Result>(_ operation: @autoclosure () -> String, _ body: () throws -> Result) throws -> Result {
    try PersistentStoreCoordinator.wrapping(operation(), storeDescription.path, body)
  }

  private static func wrapping<Result>(_ operation: @autoclosure () -> String, _ path: String?, _ body: () throws -> Result) throws
    -> Result
  {
    do {
      return try body()
    } catch let error as StoreError {
      throw error
    } catch let error as ContextError {
      throw error
    } catch let error as QueryError {
      throw error
    } catch {
      throw StoreError(.general, operation: operation(), path: path, reason: "The store failed in a way of its own.", cause: error)
    }
  }

  /// Runs something in a read view that ends afterwards.
  func reading<Result>(_ kind: ReadViewKind = .latest, _ operation: @autoclosure () -> String, _ body: (any ReadView) throws -> Result)
    throws -> Result
  {
    try wrapping(operation()) {
      let view = try store.beginRead(kind)
      defer { view.end() }
      return try body(view)
    }
  }

  /// The rows with certain keys.
  func rows(_ request: FaultRequest) throws -> RowCollector {
    // Not cancelled with the task: a fault that is not read would look like an object without values.
    let collector = RowCollector(checksCancellation: false)
    let epoch = rowCache.epoch
    try reading(.latest, "read rows") { try store.rows(request, in: $0, into: collector) }
    try check(collector)
    for run in collector.runs { publish(run.batch, readIn: epoch) }
    return collector
  }

  /// The targets of a to-many relationship.
  func relationships(_ request: RelationshipRequest) throws -> RelationshipAnswer {
    let epoch = request.welcomesRows ? rowCache.epoch : 0
    let answer = try reading(.latest, "read a relationship") { try store.relationships(request, in: $0) }
    if !answer.rows.isEmpty { try takeRows(answer, request, readIn: epoch) }
    guard answer.offsets.count == request.sources.count + 1 else {
      throw StoreError(
        .damaged, operation: "read a relationship", path: storeDescription.path,
        reason: "The store answered for \(answer.offsets.count - 1) objects where \(request.sources.count) were asked for (rule L1).")
    }
    if model.entities[request.entity].relationships[request.relationship].isOrdered, answer.orderKeys?.count != answer.targets.count {
      throw StoreError(
        .damaged, operation: "read a relationship", path: storeDescription.path,
        reason: "The store answered without a key for each target of an ordered relationship (rule L5).")
    }
    for place in request.sources.indices where answer.offsets[place] > answer.offsets[place + 1] {
      throw StoreError(
        .damaged, operation: "read a relationship", path: storeDescription.path, reason: "The store's answer goes backwards (rule L1).")
    }
    return answer
  }

  /// Rows that came along with targets.
  private func takeRows(_ answer: RelationshipAnswer, _ request: RelationshipRequest, readIn epoch: Int) throws {
    let destination = model.destination(of: model.entities[request.entity].relationships[request.relationship])
    guard answer.rows.allSatisfy({ entityIndex(of: $0).map(destination.familyIndexes.contains) ?? false }) else {
      throw StoreError(
        .damaged, operation: "read a relationship", path: storeDescription.path,
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
      .damaged, operation: "read rows", path: storeDescription.path,
      reason: "The store delivered rows without the layout or the ID prefix of an entity of the model (rule F5).")
  }

  /// The entity of a batch's rows; nil when the batch has not the layout and the ID prefix of any.
  func entityIndex(of batch: RowBatch) -> Int? {
    guard let prefix = batch.idPrefix, prefix.storeNumber == identity.number else { return nil }
    for index in prefixes.indices where prefixes[index].entityNumber == prefix.entityNumber {
      return batch.layout == model.entities[index].layout ? index : nil
    }
    return nil
  }

  func publish(_ batch: RowBatch, readIn epoch: Int) {
    guard !capabilities.residentRows, let entity = entityIndex(of: batch) else { return }
    rowCache.publish(batch, root: graph.entities[entity].root, readIn: epoch)
  }
}
