internal import HoldfastStore
internal import Synchronization

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Counts the requests to a store, by kind.
final class RequestCounter: Sendable {
  let fetches = Atomic(0)
  let faults = Atomic(0)
  let relationships = Atomic(0)
  let keyAllocations = Atomic(0)
  let saves = Atomic(0)
  /// Returns the store's statement count. Set when the store is created, and again when it is closed.
  private let statementCount = Mutex<(@Sendable () -> Int?)?>(nil)

  /// The number of all requests.
  var total: Int { [fetches.value, faults.value, relationships.value, keyAllocations.value, saves.value].reduce(0, +) }

  /// The number of statements that the store executed; nil if it has no statements.
  var statements: Int? { statementCount.withLock { $0 }?() }

  /// Keeps the current number, because a closed store doesn't have one.
  func keepStatements() {
    let last = statements
    statementCount.withLock { $0 = { last } }
  }

  /// A description whose stores count requests.
  func counting(_ kind: StoreKind, at path: String) -> StoreDescription {
    var description = kind.describe(path)
    let makeStore = description.makeStore
    description.makeStore = { [self] in
      let store = makeStore()
      statementCount.withLock { $0 = { kind.statements(store) } }
      return RequestCountingStore(store, self)
    }
    return description
  }
}

extension Atomic where Value == Int {
  fileprivate var value: Int { load(ordering: .relaxed) }
  fileprivate func increment() { add(1, ordering: .relaxed) }
}

/// Forwards every request to another store and counts it.
///
/// Counting takes a little time, so stores are wrapped only in runs whose times aren't used.
final class RequestCountingStore: IncrementalStore {
  private let store: any IncrementalStore
  private let counter: RequestCounter

  init(_ store: any IncrementalStore, _ counter: RequestCounter) {
    self.store = store
    self.counter = counter
  }

  var capabilities: StoreCapabilities { store.capabilities }

  func open(model: ManagedObjectModel) throws -> StoreMetadata { try store.open(model: model) }

  func close() throws {
    counter.keepStatements()
    try store.close()
  }

  func beginRead(_ kind: ReadViewKind) throws -> any ReadView { try store.beginRead(kind) }

  func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    counter.fetches.increment()
    try store.fetch(plan, in: view, into: sink)
  }

  func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws {
    counter.faults.increment()
    try store.rows(request, in: view, into: sink)
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer {
    counter.relationships.increment()
    return try store.relationships(request, in: view)
  }

  func allocateKeys(entity: Int, count: Int) throws -> [Int64] {
    counter.keyAllocations.increment()
    return try store.allocateKeys(entity: entity, count: count)
  }

  func prepare(_ request: SaveRequest) throws -> any PreparedSave {
    counter.saves.increment()
    return try store.prepare(request)
  }

  func perform(_ request: BatchRequest) throws -> BatchResult { try store.perform(request) }

  func externalData(_ request: ExternalDataRequest) throws -> Data { try store.externalData(request) }

  func history(_ request: HistoryRequest) throws -> [HistoryTransaction] { try store.history(request) }

  func setMetadata(_ metadata: [String: StoreValue]) throws { try store.setMetadata(metadata) }
}
