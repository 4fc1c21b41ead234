import BenchmarkRunner
import HoldfastMemoryStore
import HoldfastStore

/// Measures what a wrapper adds to a request: reading one row by its key.
public struct WrapperCost {
  /// The measured costs in nanoseconds.
  public struct Result: Sendable {
    /// The cost of a request to the bare store: the median of all rounds.
    public var request: Double
    /// The cost that each wrapper adds to a request: the median, the minimum and the maximum of all rounds.
    public var median, least, most: Double
  }

  private let bare: any IncrementalStore
  private let wrapped: any IncrementalStore
  private let depth: Int
  private let request: FaultRequest

  /// Creates a store with one row, and a number of wrappers around it.
  public init(depth: Int) throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("Item", attributes: [AttributeDescription("number", .integer64)])])
    let store = MemoryStore()
    _ = try store.open(model: model, host: .none)
    let key = try store.reserveKeys([KeyDemand(entity: 0, count: 1)], options: .none)[0][0]
    let builder = RowBatchBuilder(entity: model.entities[0], identity: StoreIdentity.intern(storeUUID: "", model: model))
    try builder.append(key: key, version: 1, values: [.int64(7)])
    var changes = SaveRequest.EntityChanges(entity: 0)
    changes.inserted = [builder.seal()]
    try store.prepare(SaveRequest(entities: [changes]), options: .none).commit()
    bare = store
    wrapped = (0..<depth).reduce(store as any IncrementalStore) { store, _ in ForwardingWrapper(store) }
    request = FaultRequest(entity: 0, keys: [key])
    self.depth = depth
  }

  /// Measures requests to the bare store and to the wrapped store, in turn.
  public func measured(rounds: Int, requests: Int) throws -> Result {
    var plain: [Double] = [], added: [Double] = []
    for _ in 0..<rounds {
      let base = try time(bare, requests), whole = try time(wrapped, requests)
      plain.append(base)
      added.append((whole - base) / Double(depth))
    }
    let spread = Spread(added)
    return Result(request: Spread(plain).median, median: spread.median, least: spread.least, most: spread.greatest)
  }

  private func time(_ store: any IncrementalStore, _ requests: Int) throws -> Double {
    let view = try store.beginRead(.latest, options: .none), sink = CountingSink()
    defer { view.end() }
    let time = try ContinuousClock().measure {
      for _ in 0..<requests { try store.rows(request, in: view, options: .none, into: sink) }
    }
    precondition(sink.count == requests, "The store didn't deliver the row.")
    return time / .nanoseconds(1) / Double(requests)
  }
}

private final class ForwardingWrapper: ForwardingStore {
  let base: any IncrementalStore
  init(_ base: any IncrementalStore) { self.base = base }
}
