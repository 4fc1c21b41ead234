import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastStoreWrappers
import Testing

/// A store whose answers contain the destinations of one source only.
final class OneSourceStore: ForwardingStore {
  let base: any IncrementalStore
  init(_ base: any IncrementalStore) { self.base = base }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    guard request.sources.count <= 1 else {
      throw StoreError(.tooLarge, operation: "read a relationship", reason: "The answer has more than one source.")
    }
    return try base.relationships(request, in: view, options: options)
  }
}

/// A store whose answers about relationships break the contract.
final class WrongAnswerStore: ForwardingStore {
  enum Flaw: CaseIterable, Sendable {
    case fewOffsets, largeOffset, fewOrderKeys
  }
  let base: any IncrementalStore
  private let flaw: Flaw
  init(_ base: any IncrementalStore, _ flaw: Flaw) { (self.base, self.flaw) = (base, flaw) }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    let answer = try base.relationships(request, in: view, options: options)
    var offsets = answer.offsets
    switch flaw {
    case .fewOffsets: return RelationshipAnswer(offsets: [0], targets: [])
    case .fewOrderKeys: return RelationshipAnswer(offsets: offsets, targets: answer.targets, orderKeys: [])
    case .largeOffset:
      if offsets.count > 2 { offsets[1] = Int32(answer.targets.count) + 1 }
      return RelationshipAnswer(offsets: offsets, targets: answer.targets, entities: answer.entities, orderKeys: answer.orderKeys)
    }
  }
}

/// A store whose rows have another layout than that of their entity.
final class MisfitStore: ForwardingStore {
  let base: any IncrementalStore
  private let layout: RowLayout
  init(_ base: any IncrementalStore, _ layout: RowLayout) { (self.base, self.layout) = (base, layout) }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try base.fetch(plan, in: view, options: options, into: plan.output == .rows ? MisfitSink(sink, layout) : sink)
  }

  private final class MisfitSink: RowSink {
    private let next: any RowSink
    private let layout: RowLayout
    init(_ next: any RowSink, _ layout: RowLayout) { (self.next, self.layout) = (next, layout) }

    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
      let builder = RowBatchBuilder(layout: layout, idPrefix: batch.idPrefix)
      rows.forEach(in: batch) { index in
        builder.beginRow(key: batch[index].key, version: batch[index].version)
        for _ in layout.slots { builder.appendNull() }
        builder.endRow()
      }
      return try next.take(builder.seal(), .all)
    }
  }
}

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

  /// A store that can't compare the attributes of dogs.
  private final class BlindStore: ForwardingStore {
    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }

    func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
      var metadata = try base.open(model: model, host: host)
      for entity in model.entities { metadata.incomparableSlots[entity.index] = Set(entity.slotIndexes) }
      return metadata
    }
  }

  /// The bug: neither the store nor the framework checked the uniqueness of attributes that the store can't compare.
  @Test func uniqueAttributesThatTheStoreCannotCompareAreReported() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Cat", attributes: [AttributeDescription("age", .integer16)]),
      EntityDescription(
        "Dog", attributes: [AttributeDescription("age", .integer16), AttributeDescription("chip", .integer64)],
        uniquenessConstraints: [["chip"]]),
      EntityDescription("Puppy", superentity: "Dog", attributes: [AttributeDescription("weight", .double)]),
    ])
    let dog = try #require(model.entity(named: "Dog")), puppy = try #require(model.entity(named: "Puppy"))
    let chip = try #require(dog.slot(named: "chip"))
    let expected: [(base: any IncrementalStore, reported: [EntityIndex: Set<SlotIndex>])] = [
      (MemoryStore(), [dog.index: [chip], puppy.index: [chip]]), (MinimalStore.description().makeStore(), [:]),
    ]
    for (base, reported) in expected {
      let store = EvaluatingStore(BlindStore(base))
      #expect(try store.open(model: model).incomparableSlots == reported)
      try store.close()
    }
  }

  /// The number of dogs with a friend, of whom there are four, in a store that is wrapped.
  private func dogsWithFriends(_ wrap: (any IncrementalStore) -> any IncrementalStore) throws -> Int {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", relationships: [.toMany("friends", to: "Dog", inverse: "friendOf"), .toMany("friendOf", to: "Dog", inverse: "friends")])
    ])
    let description = StoreDescription.memory(contents: MemoryStoreContents())
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: description))
    let dogs = try (0..<5).map { _ in try context.insert(entityNamed: "Dog") }
    for dog in dogs[..<4] { try dog.setValue([dogs[4]], forKey: "friends") }
    try context.save()
    try context.persistentStoreCoordinator.close()

    let store = EvaluatingStore(wrap(description.makeStore()))
    _ = try store.open(model: model)
    let view = try store.beginRead(.latest), sink = CountingRows()
    defer { view.end() }
    let hasFriend = QueryExpression.comparison(.count("friends"), .greaterThan, .constant(.int64(0)), [])
    try store.fetch(FetchPlan(entity: 0, concreteEntities: [0], predicate: hasFriend), in: view, into: sink)
    try store.close()
    return sink.count
  }

  @Test func anAnswerThatIsTooLargeForTheStoreIsRequestedInParts() throws {
    #expect(try dogsWithFriends { OneSourceStore($0) } == 4)
  }

  @Test(arguments: WrongAnswerStore.Flaw.allCases) func aWrongAnswerIsAnError(_ flaw: WrongAnswerStore.Flaw) throws {
    let error = #expect(throws: StoreError.self) { try dogsWithFriends { WrongAnswerStore($0, flaw) } }
    #expect(error?.code == .damaged)
  }

  @Test func rowsOfAnotherLayoutAreAnError() throws {
    let error = #expect(throws: StoreError.self) { try dogsWithFriends { MisfitStore($0, RowLayout([.attribute(.integer64)])) } }
    #expect(error?.code == .damaged)
  }

  private final class CountingRows: RowSink {
    private(set) var count = 0

    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
      rows.forEach(in: batch) { _ in count += 1 }
      return .more
    }
  }

  private final class IgnoringSink: RowSink {
    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand { .more }
  }
}
