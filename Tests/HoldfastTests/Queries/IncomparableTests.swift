import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

/// Stores that can't compare some attributes, because they encrypt them.
@Suite struct IncomparableTests {
  /// Stores the names and chips of dogs in a form that depends on the row, so that equal values have different forms.
  private final class ScramblingStore: ForwardingStore {
    static let slots: Set<SlotIndex> = [Dog.Slot.name, Dog.Slot.chip]
    let base: any IncrementalStore
    let plans = Mutex<[FetchPlan]>([])

    init(_ base: any IncrementalStore) { self.base = base }

    var capabilities: StoreCapabilities {
      var capabilities = base.capabilities
      capabilities.residentRows = false
      return capabilities
    }

    func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
      var metadata = try base.open(model: model, host: host)
      metadata.incomparableSlots = [model.entity(named: "Dog")!.index: Self.slots]
      return metadata
    }

    private static func scrambled(_ batch: RowBatch, _ indexes: [Int], isReading: Bool) throws -> RowBatch {
      let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
      for index in indexes {
        var values = batch[index].values
        let key = batch[index].key.rawValue
        if case .string(let name) = values[Dog.Slot.name] {
          values[Dog.Slot.name] = .string(isReading ? String(name.drop { $0 != ":" }.dropFirst()) : "\(key % 7):\(name)")
        }
        if case .int64(let chip) = values[Dog.Slot.chip] { values[Dog.Slot.chip] = .int64(chip + (isReading ? -1 : 1) * key * 1_000_000) }
        try builder.append(key: batch[index].key, version: batch[index].version, values: values)
      }
      return builder.seal()
    }

    private static func isDog(_ batch: RowBatch) -> Bool { batch.idPrefix?.entityName == "Dog" && batch.layout.columns.count > 10 }

    private final class Unscrambling: RowSink {
      let next: any RowSink
      init(_ next: any RowSink) { self.next = next }

      func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
        if !ScramblingStore.isDog(batch) { return try next.take(batch, rows) }
        var indexes: [Int] = []
        rows.forEach(in: batch) { indexes.append($0) }
        return try next.take(ScramblingStore.scrambled(batch, indexes, isReading: true), .all)
      }
    }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      plans.withLock { $0.append(plan) }
      try base.fetch(plan, in: view, options: options, into: Unscrambling(sink))
    }

    func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      try base.rows(request, in: view, options: options, into: Unscrambling(sink))
    }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      let answer = try base.relationships(request, in: view, options: options)
      let rows = try answer.rows.map { Self.isDog($0) ? try Self.scrambled($0, Array(0..<$0.count), isReading: true) : $0 }
      return RelationshipAnswer(
        offsets: answer.offsets, targets: answer.targets, entities: answer.entities, orderKeys: answer.orderKeys, rows: rows)
    }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      var request = request
      func scramble(_ batch: inout RowBatch) throws {
        if Self.isDog(batch) { batch = try Self.scrambled(batch, Array(0..<batch.count), isReading: false) }
      }
      for entity in request.entities.indices {
        for place in request.entities[entity].inserted.indices { try scramble(&request.entities[entity].inserted[place]) }
        for place in request.entities[entity].updated.indices { try scramble(&request.entities[entity].updated[place].rows) }
      }
      return try base.prepare(request, options: options)
    }
  }

  private func open(_ store: TestStore, scrambles: Bool) throws -> (ManagedObjectContext, ScramblingStore?) {
    let place = try store.makePlace(), box = Mutex<ScramblingStore?>(nil)
    let (context, _) = try place.recording { base in
      if !scrambles { return base }
      let scrambling = ScramblingStore(base)
      box.withLock { $0 = scrambling }
      return scrambling
    }
    let owners = (0..<4).map { number in
      let owner = context.insert(Person.self)
      owner.name = "o\(number)"
      return owner
    }
    for number in 0..<40 {
      let dog = context.dog("d\(number * 5 % 7)", age: number % 11)
      (dog.chip, dog.owner) = (Int64(100 - number), owners[number % 4])
    }
    try context.save()
    context.reset()
    return (context, box.withLock { $0 })
  }

  private func answers(_ context: ManagedObjectContext) throws -> [String] {
    func show(_ request: FetchRequest<Dog>) throws -> String {
      try context.fetch(request).map { "\($0.age)\($0.name)\($0.chip ?? 0)" }.joined(separator: " ")
    }
    let groups = DictionaryFetchRequest<Dog>(
      where: FetchPredicate { $0.age > 2 }, columns: ["name": .property("name"), "dogs": .count(), "largest": .maximum("chip")],
      groupedBy: ["name"])
    let owners = FetchRequest<Person>(
      where: FetchPredicate(
        .any(PropertyPath("dogs"), .comparison(.property(PropertyPath("name")), .equalTo, .constant(.string("d3")), []))),
      sortedBy: [.ascending(\.name)])
    return [
      try show(FetchRequest<Dog>(sortedBy: [.ascending(\.chip)]) { $0.name == "d3" && $0.age > 2 }),
      try show(FetchRequest<Dog>(sortedBy: [.ascending(\.name), .ascending(\.chip)], offset: 3, limit: 9)),
      try show(FetchRequest<Dog> { $0.chip == 77 }), try show(FetchRequest<Dog> { $0.chip > 90 || $0.age == 1 }),
      "\(try context.count(for: FetchRequest<Dog> { $0.name != "d1" }))",
      "\(try context.fetch(groups).map { $0.sorted { $0.key < $1.key }.map { "\($0)" } }.sorted { "\($0)" < "\($1)" })",
      try context.fetch(owners).map(\.name).joined(separator: " "),
    ]
  }

  @Test(arguments: TestStore.allCases) func answersAreThoseOfAStoreThatComparesAllValues(_ store: TestStore) throws {
    let expected = try answers(open(store, scrambles: false).0)
    #expect(expected.allSatisfy { !$0.isEmpty })
    let (context, scrambling) = try open(store, scrambles: true)
    #expect(try answers(context) == expected)
    let dog = try #require(Kennel.model.entity(named: "Dog")).index
    for plan in try #require(scrambling).plans.withLock({ $0 }) where plan.entity == dog {
      let text = "\(plan)"
      #expect(!text.contains("name") && !text.contains("chip"), "\(text)")
      if case .aggregates(let aggregates) = plan.output {
        #expect(ScramblingStore.slots.isDisjoint(with: aggregates.columns.compactMap(\.slot)), "\(text)")
      }
    }
  }

  @Test func whatTheStoreCanCompareIsStillSent() throws {
    let (context, scrambling) = try open(.sqlite, scrambles: true)
    _ = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.age)]) { $0.name == "d3" && $0.age > 2 })
    let plan = try #require(scrambling?.plans.withLock { $0.last })
    #expect(plan.predicate.map { "\($0)" } == "age > 2", "\(plan)")
    #expect(plan.sorts.count == 1)
  }

  @Test(arguments: TestStore.allCases) func theFrameworkChecksTheirUniqueness(_ store: TestStore) throws {
    let (context, _) = try open(store, scrambles: true)
    context.dog("twin").chip = 77
    let error = #expect(throws: (any Error).self) { try context.save() }
    #expect((error as? PersistenceError)?.code == .constraintConflict, "\(String(describing: error))")
    context.rollback()
    context.dog("other").chip = 1
    try context.save()
    #expect(try context.count(for: FetchRequest<Dog> { $0.chip == 1 }) == 1)
  }

  @Test func aRelationshipOrAnUnknownSlotIsRefused() {
    final class Refused: ForwardingStore {
      let base: any IncrementalStore = MemoryStore()
      let slot: SlotIndex
      init(_ slot: SlotIndex) { self.slot = slot }

      func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
        var metadata = try base.open(model: model, host: host)
        metadata.incomparableSlots = [model.entity(named: "Dog")!.index: [slot]]
        return metadata
      }
    }
    for slot in [Dog.Slot.owner, 99, -1] {
      let error = #expect(throws: StoreError.self) {
        try PersistentStoreCoordinator(model: Kennel.model, store: StoreDescription(type: "refused") { Refused(slot) })
      }
      #expect(error?.code == .unsupportedModel)
    }
  }
}
