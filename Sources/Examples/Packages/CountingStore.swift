import HoldfastStore
import Synchronization

/// The number of requests of each kind that a store received.
struct Requests: CustomStringConvertible {
  var fetches = 0
  var rows = 0
  var relationships = 0
  var keys = 0
  var saves = 0

  var description: String {
    "Requests: fetches \(fetches), rows \(rows), relationships \(relationships), keys \(keys), saves \(saves)"
  }
}

/// Counts the requests to a store. Several threads send requests, so a lock protects the counts.
final class RequestCounter: Sendable {
  private let counts = Mutex(Requests())

  var requests: Requests { counts.withLock { $0 } }

  func count(_ note: (inout Requests) -> Void) { counts.withLock { note(&$0) } }

  func reset() { counts.withLock { $0 = Requests() } }
}

/// Wraps a store: counts each request and forwards it. Requests that aren't counted are forwarded by `ForwardingStore`.
///
/// To the coordinator the wrapper is a store, and to the wrapped store it is the coordinator.
final class CountingStore: ForwardingStore {
  let base: any IncrementalStore
  private let counter: RequestCounter

  init(_ base: any IncrementalStore, _ counter: RequestCounter) {
    self.base = base
    self.counter = counter
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    counter.count { $0.fetches += 1 }
    try base.fetch(plan, in: view, options: options, into: sink)
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    counter.count { $0.rows += 1 }
    try base.rows(request, in: view, options: options, into: sink)
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    counter.count { $0.relationships += 1 }
    return try base.relationships(request, in: view, options: options)
  }

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    counter.count { $0.keys += 1 }
    return try base.reserveKeys(demands, options: options)
  }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    counter.count { $0.saves += 1 }
    return try base.prepare(request, options: options)
  }
}

extension StoreDescription {
  /// Returns the description of a store that counts its requests.
  func counted(by counter: RequestCounter) -> StoreDescription {
    var description = self
    let makeStore = makeStore
    description.makeStore = { CountingStore(makeStore(), counter) }
    return description
  }
}
