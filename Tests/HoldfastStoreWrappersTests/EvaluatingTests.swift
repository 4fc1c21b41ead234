import HoldfastStore
import HoldfastStoreConformance
import HoldfastStoreWrappers
import Testing

/// A store that only delivers all rows passes every query case of the kit if another one evaluates queries for it.
@Suite struct EvaluatingTests {
  struct Harness: StoreHarness {
    var capabilities: StoreCapabilities { EvaluatingStore(MinimalStore.description().makeStore()).capabilities }
    func makePlace() -> StorePlace { StorePlace(MinimalStore.description().wrapped { EvaluatingStore($0) }) }
  }

  @Test(arguments: StoreConformance.cases(for: Harness().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: Harness(), timeLimit: nil) }

  @Test func itDeclaresEveryQueryAbility() {
    let capabilities = Harness().capabilities
    #expect(capabilities.comparisons == .all && capabilities.comparedTypes == .all && capabilities.traversal == .all)
    #expect(StoreConformance.cases(for: capabilities).count > StoreConformance.cases(for: StoreCapabilities()).count)
  }

  @Test func aPlanThatEveryStoreAnswersIsPassedOn() throws {
    let recording = RecordingStore(MinimalStore.description().makeStore()), store = EvaluatingStore(recording)
    _ = try store.open(
      model: ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [AttributeDescription("age", .integer16)])]))
    let view = try store.beginRead(.latest), sink = IgnoringSink()
    defer { view.end() }
    let all = FetchPlan(entity: 0, concreteEntities: [0])
    var sorted = all
    sorted.sorts = [SortTerm(PropertyPath("age"))]
    for plan in [all, sorted] {
      recording.clear()
      try store.fetch(plan, in: view, into: sink)
      let plans = recording.requests.compactMap { if case .fetch(let plan) = $0 { plan } else { nil } }
      #expect(plans == [all])
    }
  }

  private final class IgnoringSink: RowSink {
    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand { .more }
  }
}
