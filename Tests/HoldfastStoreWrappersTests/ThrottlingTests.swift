import Dispatch
import Holdfast
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastStoreWrappers
import Synchronization
import TestSupport
import Testing

@Suite struct ThrottlingTests {
  struct Harness: StoreHarness {
    var capabilities: StoreCapabilities { MemoryStore().capabilities }
    func makePlace() -> StorePlace {
      let contents = MemoryStoreContents(), limits = ThrottleLimits(concurrentRequests: 1, requestsPerSecond: 1e9)
      return StorePlace(StoreDescription.memory(contents: contents).wrapped { ThrottledStore($0, limits) })
    }
  }

  @Test(arguments: StoreConformance.share(for: Harness().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: Harness(), timeLimit: nil) }

  /// A store whose views begin when a test allows it, and that counts the requests in progress.
  private final class HeldStore: ForwardingStore {
    let base: any IncrementalStore = MemoryStore()
    let released = DispatchSemaphore(value: 0)
    let counts = Mutex((running: 0, most: 0))

    func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
      counts.withLock { counts in
        counts.running += 1
        counts.most = max(counts.most, counts.running)
      }
      released.wait()
      counts.withLock { $0.running -= 1 }
      return try base.beginRead(kind, options: options)
    }

    var running: Int { counts.withLock { $0.running } }
  }

  private static let model = Result { try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [])]) }

  private func open(_ limits: ThrottleLimits) throws -> (held: HeldStore, store: ThrottledStore) {
    let held = HeldStore(), store = ThrottledStore(held, limits)
    _ = try store.open(model: Self.model.get())
    return (held, store)
  }

  @Test func atMostTheAllowedNumberOfRequestsRunsAtATime() async throws {
    let (held, store) = try open(ThrottleLimits(concurrentRequests: 3))
    let ended = Atomic(0)
    for _ in 0..<12 {
      startThread {
        _ = try? store.beginRead(.latest)
        ended.add(1, ordering: .sequentiallyConsistent)
      }
    }
    #expect(await eventually { held.running == 3 })
    for _ in 0..<12 { held.released.signal() }
    #expect(await eventually { ended.load(ordering: .sequentiallyConsistent) == 12 })
    #expect(held.counts.withLock { $0.most } <= 3)
    #expect(held.running == 0)
  }

  @Test func aWaitingRequestEndsWithItsDeadlineOrCancellationAndLeavesTheOthersTheirTurn() async throws {
    let (held, store) = try open(ThrottleLimits(concurrentRequests: 1))
    async let first = onThread { try store.beginRead(.latest) }
    #expect(await eventually { held.running == 1 })
    let late = RequestOptions(deadline: .now + .milliseconds(1))
    #expect(try #require(throws: StoreError.self) { try store.beginRead(.latest, options: late) }.code == .timedOut)

    let cancellation = RequestCancellation()
    async let cancelled = onThread {
      try #require(throws: StoreError.self) { try store.beginRead(.latest, options: RequestOptions(cancellation: cancellation)) }.code
    }
    // Gives the request time to wait. On a busy machine it may begin later, and is refused at once.
    startThread(after: 0.02) { cancellation.cancel() }
    #expect(try await cancelled == .cancelled)

    held.released.signal()
    _ = try await first
    held.released.signal()
    _ = try store.beginRead(.latest)
  }

  @Test func requestsBeginAtTheAllowedRate() throws {
    let (held, store) = try open(ThrottleLimits(requestsPerSecond: 200))
    let start = ContinuousClock.now
    for _ in 0..<11 {
      held.released.signal()
      _ = try store.beginRead(.latest)
    }
    // The first begins at once; ten intervals of 5 ms follow.
    #expect(.now - start >= .milliseconds(50))
  }

  @Test func atTheLowestRateOnlyOneRequestBegins() throws {
    let (held, store) = try open(ThrottleLimits(requestsPerSecond: .leastNonzeroMagnitude))
    held.released.signal()
    _ = try store.beginRead(.latest)
    let late = RequestOptions(deadline: .now + .milliseconds(1))
    #expect(try #require(throws: StoreError.self) { try store.beginRead(.latest, options: late) }.code == .timedOut)
  }

  @Test func requestsThatEndWhileTheyWaitDoNotDelayTheNextOne() throws {
    let store = ThrottledStore(MemoryStore(), ThrottleLimits(requestsPerSecond: 1))
    _ = try store.open(model: Self.model.get())
    let late = RequestOptions(deadline: .now - .seconds(1))
    for _ in 0..<1000 { _ = try? store.beginRead(.latest, options: late) }
    _ = try store.beginRead(.latest, options: RequestOptions(deadline: .now + .seconds(60)))
    try store.close()
  }

  @Test func waitingRequestsBeginOneAfterTheOther() async throws {
    let store = ThrottledStore(MemoryStore(), ThrottleLimits(requestsPerSecond: 200))
    _ = try store.open(model: Self.model.get())
    let start = ContinuousClock.now, ended = Atomic(0)
    for _ in 0..<11 {
      startThread {
        _ = try? store.beginRead(.latest)
        ended.add(1, ordering: .sequentiallyConsistent)
      }
    }
    #expect(await eventually { ended.load(ordering: .sequentiallyConsistent) == 11 })
    #expect(.now - start >= .milliseconds(50))
    try store.close()
  }

  @Test(.ownThreads) func limitsThatArentPositiveAreMisuse() async {
    await #expect(processExitsWith: .failure) { _ = ThrottleLimits(concurrentRequests: 0) }
    await #expect(processExitsWith: .failure) { _ = ThrottleLimits(requestsPerSecond: 0) }
  }

  /// A view that isn't `latest` keeps a connection. A request waits for the only connection, with the only permission to run.
  @Test func aRequestInAViewDoesNotWaitForARequestThatWaitsForTheView() async throws {
    let folder = TemporaryFolder(), sqlite = SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(3600))
    let base = StoreDescription.sqlite(at: folder.file("a.sqlite"), options: sqlite).makeStore()
    let store = ThrottledStore(base, ThrottleLimits(concurrentRequests: 1)), model = try Self.model.get()
    _ = try store.open(model: model)
    let view = try store.beginRead(.consistent)
    async let waiting = onThread { try store.beginRead(.consistent).end() }
    // Most of the rounds run while the other request waits.
    let options = RequestOptions(deadline: .now + .seconds(600))
    for _ in 0..<50 {
      try store.fetch(FetchPlan(entity: 0, concreteEntities: [0]), in: view, options: options, into: CountingSink())
      try await Task.sleep(for: .milliseconds(1))
    }
    view.end()
    try await waiting
    try store.close()
  }
}
