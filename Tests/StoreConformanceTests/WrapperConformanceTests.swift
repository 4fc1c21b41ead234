import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastStoreWrappers
import TestSupport
import Testing

/// The places of another harness, with stores in a wrapper.
struct WrappedHarness: StoreHarness {
  let base: any StoreHarness
  let capabilities: StoreCapabilities
  private let wrap: @Sendable (any IncrementalStore) -> any IncrementalStore

  /// - Parameter capabilities: Those of the wrapper. Defaults to those of the other harness.
  init(
    base: any StoreHarness, capabilities: StoreCapabilities? = nil,
    _ wrap: @escaping @Sendable (any IncrementalStore) -> any IncrementalStore
  ) {
    self.base = base
    self.capabilities = capabilities ?? base.capabilities
    self.wrap = wrap
  }

  func makePlace() throws -> StorePlace { wrapped(try base.makePlace()) }

  private func wrapped(_ place: StorePlace) -> StorePlace {
    var place = place
    place.description = place.description.wrapped(wrap)
    place.readOnly = place.readOnly?.wrapped(wrap)
    place.cramped = place.cramped?.wrapped(wrap)
    if let copy = place.copy { place.copy = { wrapped(try copy()) } }
    if let describe = place.onFileSystem { place.onFileSystem = { [wrap] in describe($0).wrapped(wrap) } }
    return place
  }
}

/// Wrappers around a store with files, so that the cases of full disks, damage, killed processes and power losses run through them. The
/// other suites of wrappers have stores in memory.
@Suite struct WrapperConformanceTests {
  static let tracing = WrappedHarness(base: WholeFileHarness.json) { TracingStore($0) { _ in } }

  /// A case of each rule that depends on files; all cases in the full tier.
  private static let cases = StoreConformance.share(for: tracing.capabilities).filter {
    TestTier.isFull || ["C3", "K1", "M1", "O1", "O2", "O3", "O5", "O6", "O7", "S3", "S5", "S6", "S7", "V4", "X2", "X4"].contains($0.rule)
  }

  @Test(arguments: cases)
  func aTracingStoreOverFilesHoldsTheRules(_ rule: StoreConformanceCase) async throws {
    try await rule.run(on: Self.tracing, timeLimit: nil)
  }
}

/// The wrappers of the kit itself.
@Suite struct KitStoreConformanceTests {
  static let recording = WrappedHarness(base: MemoryHarness()) { RecordingStore($0) }
  static let outcome = WrappedHarness(base: MemoryHarness()) { OutcomeStore($0) }
  static let faultInjecting = WrappedHarness(base: MemoryHarness()) { FaultInjectingStore($0) }

  @Test(arguments: StoreConformance.share(for: recording.capabilities))
  func aRecordingStoreHoldsTheRules(_ rule: StoreConformanceCase) async throws { try await rule.run(on: Self.recording, timeLimit: nil) }

  @Test(arguments: StoreConformance.share(for: outcome.capabilities))
  func anOutcomeStoreHoldsTheRules(_ rule: StoreConformanceCase) async throws { try await rule.run(on: Self.outcome, timeLimit: nil) }

  @Test(arguments: StoreConformance.share(for: faultInjecting.capabilities))
  func aFaultInjectingStoreWithoutFaultsHoldsTheRules(_ rule: StoreConformanceCase) async throws {
    try await rule.run(on: Self.faultInjecting, timeLimit: nil)
  }

  @Test func aSaveWhoseCommitABlockedStoreRefusesIsAborted() throws {
    let inner = RecordingStore(MemoryStore()), store = RecordingStore(inner)
    _ = try store.open(
      model: ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [AttributeDescription("age", .integer16)])]))
    let save = try store.prepare(SaveRequest())
    store.withStoreBlocked { _ = #expect(throws: StoreError.self) { try save.commit() } }
    #expect(store.requests.last == .commit && inner.requests.last == .abort)
    try store.close()
  }
}
