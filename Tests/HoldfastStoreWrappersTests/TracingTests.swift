import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastStoreWrappers
import Logging
import Synchronization
import TestSupport
import Testing

@Suite struct TracingTests {
  struct Harness: StoreHarness {
    var capabilities: StoreCapabilities { MemoryStore().capabilities }
    func makePlace() -> StorePlace {
      let contents = MemoryStoreContents()
      return StorePlace(
        StoreDescription.memory(contents: contents).wrapped { TracingStore($0) { _ in } },
        readOnly: StoreDescription.memory(contents: contents, isReadOnly: true).wrapped { TracingStore($0) { _ in } })
    }
  }

  @Test(arguments: StoreConformance.share(for: Harness().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: Harness(), timeLimit: nil) }

  /// Collects traces of several threads.
  private final class Traces: Sendable {
    let all = Mutex<[StoreTrace]>([])
    func take() -> [StoreTrace] {
      all.withLock { all in
        defer { all = [] }
        return all
      }
    }
  }

  private func open(_ traces: Traces, wrapping base: any IncrementalStore = MemoryStore()) throws -> (ManagedObjectContext, TracingStore) {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("friends", to: "Dog", inverse: "friends")])
    ])
    let store = TracingStore(base) { trace in traces.all.withLock { $0.append(trace) } }
    let coordinator = try PersistentStoreCoordinator(model: model, store: StoreDescription(type: "traced") { store })
    return (try ManagedObjectContext(coordinator: coordinator), store)
  }

  private func dog(_ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    let dog = try context.insert(entityNamed: "Dog")
    try dog.setValue(.string(name), forKey: "name")
    return dog
  }

  @Test func eachRequestIsReportedWithItsEntityAndCounts() throws {
    let traces = Traces(), (context, store) = try open(traces)
    context.name = "kennel"
    let (rex, ajax) = (try dog("Rex", context), try dog("Ajax", context))
    try rex.setValue([ajax], forKey: "friends")
    try context.save()
    context.reset()
    let saved = traces.take()
    #expect(saved.map(\.operation) == [.open, .reserveKeys, .prepare, .commit])
    #expect(saved.dropFirst().map(\.entity) == ["Dog", "Dog", "Dog"])
    #expect(saved[1].requestedCount == 2 && saved[1].returnedCount == 2 && saved[2].requestedCount == 2)
    #expect(saved[2].label == "kennel")

    let named = FetchPredicate<ManagedObject>(.comparison(.property("name"), .equalTo, .constant(.string("Rex")), []))
    let found = try context.fetch(FetchRequest(entityName: "Dog", where: named))
    #expect(try found[0].value(forKey: "friends").objects?.count == 1)
    let read = traces.take().filter { $0.operation != .beginRead }
    #expect(read.map(\.operation) == [.fetch, .relationships])
    #expect(read.map(\.returnedCount) == [2, 1] && read[1].relationship == "friends" && read[1].requestedCount == 1)
    #expect(store.metrics[.fetch].requestCount == 1 && store.metrics[.commit].failureCount == 0)
    #expect(store.metrics.sum.requestCount == saved.count + read.count + store.metrics[.beginRead].requestCount)
    #expect(read.allSatisfy { $0.duration >= .zero && $0.errorCode == nil })
    let commits = saved.filter { $0.operation == .commit }.map(\.duration)
    #expect(store.metrics[.commit].maximumDuration == commits[0] && store.metrics.sum.maximumDuration >= commits[0])
  }

  @Test func attributesHaveTheNamesOfOpenTelemetryAndNoValues() throws {
    let traces = Traces(), (context, _) = try open(traces)
    _ = try dog("Secret", context)
    try context.save()
    let commit = try #require(traces.take().last).attributes(system: "memory")
    #expect(commit["db.system.name"] == "memory" && commit["db.operation.name"] == "commit" && commit["db.collection.name"] == "Dog")
    #expect(commit["error.type"] == nil && !commit.values.contains { $0.contains("Secret") })
  }

  @Test func aFailedRequestIsReportedWithItsCode() throws {
    let faults = FaultInjectingStore(MemoryStore()), traces = Traces(), (context, store) = try open(traces, wrapping: faults)
    _ = try dog("Rex", context)
    faults.fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test."))
    #expect(throws: (any Error).self) { try context.save() }
    #expect(traces.take().last?.errorCode == .diskFull)
    #expect(store.metrics[.commit].failureCount == 1)
    try context.save()
    #expect(store.metrics[.commit].requestCount == 2 && store.metrics[.commit].failureCount == 1)
  }

  private final class CancelledStore: ForwardingStore {
    let base: any IncrementalStore = MemoryStore()
    func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView { throw CancellationError() }
  }

  /// The caller receives a `StoreError` with the code `cancelled`.
  @Test func aRequestThatAStoreCancelsIsReportedAsCancelled() {
    let traces = Traces(), store = TracingStore(CancelledStore()) { trace in traces.all.withLock { $0.append(trace) } }
    #expect(throws: CancellationError.self) { try store.beginRead(.latest) }
    #expect(traces.take().map(\.errorCode) == [.cancelled])
  }

  /// Collects the levels of messages.
  private struct Levels: LogHandler {
    let levels: Traced
    var logLevel = Logger.Level.trace
    var metadata: Logger.Metadata = [:]
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }
    func log(event: LogEvent) { levels.all.withLock { $0.append(event.level) } }
    func log(
      level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source: String, file: String, function: String, line: UInt
    ) { levels.all.withLock { $0.append(level) } }
  }
  private final class Traced: Sendable { let all = Mutex<[Logger.Level]>([]) }

  @Test func slowAndFailedRequestsAreLoggedAsWarnings() throws {
    let levels = Traced(), faults = FaultInjectingStore(MemoryStore())
    let logger = Logger(label: "test") { _ in Levels(levels: levels) }
    let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [])])
    func isWarned(slow: Duration?, _ body: (TracingStore) throws -> Void) rethrows -> Bool {
      levels.all.withLock { $0 = [] }
      try body(TracingStore(faults, system: "memory", logger: logger, slow: slow))
      return levels.all.withLock { $0.last } == .warning
    }
    #expect(try !isWarned(slow: .seconds(1_000_000)) { _ = try $0.open(model: model) })
    #expect(try isWarned(slow: .zero) { _ = try $0.beginRead(.latest) })
    faults.fail(.beginRead, with: StoreError(.inputOutput, operation: "read", reason: "A test."))
    #expect(isWarned(slow: nil) { store in #expect(throws: StoreError.self) { try store.beginRead(.latest) } })
  }
}
