import Dispatch
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

/// A store that may be opened several times at one place, as a database server. Saves wait for each other.
struct ServerHarness: StoreHarness {
  var losesSaves = false
  var capabilities: StoreCapabilities { MemoryStore().capabilities }

  func makePlace() -> StorePlace {
    let server = SharedServer(losesSaves: losesSaves)
    return StorePlace(StoreDescription(type: "server") { ServerStore(server) })
  }
}

@Suite struct ServerConformanceTests {
  @Test(arguments: StoreConformance.cases(for: ServerHarness().capabilities).filter { ["K1", "O6", "S10", "O5"].contains($0.rule) })
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: ServerHarness(), timeLimit: nil) }
}

/// One memory store for all sessions.
final class SharedServer: Sendable {
  private struct State {
    var metadata: StoreMetadata?
    /// The save that is prepared, if it loses saves of other sessions.
    var prepared: ServerPreparation?
  }

  let base: any IncrementalStore
  fileprivate let turn = DispatchSemaphore(value: 1)
  fileprivate let losesSaves: Bool
  private let state = Mutex(State())

  init(losesSaves: Bool) {
    base = MemoryStore()
    self.losesSaves = losesSaves
  }

  fileprivate func open(_ model: ManagedObjectModel, _ host: StoreHost) throws -> StoreMetadata {
    try state.withLock { state in
      let metadata = try state.metadata ?? base.open(model: model, host: host)
      state.metadata = metadata
      return metadata
    }
  }

  fileprivate func prepare(_ request: SaveRequest, _ options: RequestOptions) throws -> any PreparedSave {
    guard losesSaves else {
      turn.wait()
      do { return ServerPreparation(try base.prepare(request, options: options), turn) } catch {
        turn.signal()
        throw error
      }
    }
    // The save of another session is discarded, and its commit has no effect.
    return try state.withLock { state in
      state.prepared?.discard()
      let next = ServerPreparation(try base.prepare(request, options: options), nil)
      state.prepared = next
      return next
    }
  }
}

private final class ServerPreparation: PreparedSave {
  private let base: Mutex<(any PreparedSave)?>
  private let turn: DispatchSemaphore?

  init(_ base: any PreparedSave, _ turn: DispatchSemaphore?) {
    self.base = Mutex(base)
    self.turn = turn
  }

  private func take() -> (any PreparedSave)? {
    base.withLock { base in
      defer { base = nil }
      return base
    }
  }

  func discard() { take()?.abort() }

  func commit() throws -> SaveReceipt {
    defer { turn?.signal() }
    return try take()?.commit() ?? SaveReceipt()
  }

  func abort() {
    take()?.abort()
    turn?.signal()
  }
}

/// A session of a server.
final class ServerStore: ForwardingStore {
  private let server: SharedServer
  private let isOpen = Atomic(false)
  var base: any IncrementalStore { server.base }

  init(_ server: SharedServer) { self.server = server }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    let metadata = try server.open(model, host)
    isOpen.store(true, ordering: .sequentiallyConsistent)
    return metadata
  }

  /// The server keeps running.
  func close() { isOpen.store(false, ordering: .sequentiallyConsistent) }

  private func check() throws {
    guard isOpen.load(ordering: .sequentiallyConsistent) else {
      throw StoreError(.notOpen, operation: "answer a request", reason: "The session has ended.")
    }
  }

  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try check()
    return try base.beginRead(kind, options: options)
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try check()
    try base.fetch(plan, in: view, options: options, into: sink)
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try check()
    try base.rows(request, in: view, options: options, into: sink)
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    try check()
    return try base.relationships(request, in: view, options: options)
  }

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try check()
    return try base.reserveKeys(demands, options: options)
  }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try check()
    return try server.prepare(request, options)
  }

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    try check()
    try base.setMetadata(metadata)
  }
}
