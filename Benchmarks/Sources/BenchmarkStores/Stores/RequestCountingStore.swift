internal import HoldfastStore
internal import Synchronization

/// Counts the requests to a store, by kind.
final class RequestCounter: Sendable {
  let fetches = Atomic(0)
  let faults = Atomic(0)
  let relationships = Atomic(0)
  let keyReservations = Atomic(0)
  let saves = Atomic(0)
  /// Returns the number of statements, including those of stores that were closed. It is set when a store is created, and again when it is
  /// closed.
  private let statementCount = Mutex<(@Sendable () -> Int?)?>(nil)

  /// The number of all requests.
  var total: Int { [fetches.value, faults.value, relationships.value, keyReservations.value, saves.value].reduce(0, +) }

  /// The number of statements that the stores executed; nil if they have no statements.
  var statements: Int? { statementCount.withLock { $0 }?() }

  /// Keeps the current number of statements, because a closed store doesn't report one.
  func keepStatements() {
    let last = statements
    statementCount.withLock { $0 = { last } }
  }

  /// A description whose stores count requests.
  func counting(_ kind: StoreKind, at path: String) -> StoreDescription {
    var description = kind.describe(path)
    let makeStore = description.makeStore
    description.makeStore = { [self] in
      let store = makeStore(), former = statements ?? 0
      statementCount.withLock { $0 = { kind.statements(store).map { former + $0 } } }
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
final class RequestCountingStore: ForwardingStore {
  let base: any IncrementalStore
  private let counter: RequestCounter

  init(_ store: any IncrementalStore, _ counter: RequestCounter) {
    base = store
    self.counter = counter
  }

  func close() throws {
    counter.keepStatements()
    try base.close()
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    counter.fetches.increment()
    try base.fetch(plan, in: view, options: options, into: sink)
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    counter.faults.increment()
    try base.rows(request, in: view, options: options, into: sink)
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    counter.relationships.increment()
    return try base.relationships(request, in: view, options: options)
  }

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    counter.keyReservations.increment()
    return try base.reserveKeys(demands, options: options)
  }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    counter.saves.increment()
    return try base.prepare(request, options: options)
  }
}
