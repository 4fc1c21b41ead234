import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

/// Stores that decline plans because of the values in them.
@Suite struct DecliningTests {
  /// Declines plans of some kinds, and records the plans that it receives.
  final class DecliningStore: ForwardingStore {
    enum Part: CaseIterable { case nothing, sorts, predicate, everything, afterRows }

    let base: any IncrementalStore
    let declined: Part
    let plans = Mutex<[FetchPlan]>([])

    init(_ base: any IncrementalStore, _ declined: Part) { (self.base, self.declined) = (base, declined) }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      plans.withLock { $0.append(plan) }
      let isWindowed = plan.offset > 0 || plan.limit != nil, reduces = plan.output != .rows && plan.output != .keys
      let declines =
        switch declined {
        case .nothing: false
        case .sorts: !plan.sorts.isEmpty || isWindowed || reduces
        case .predicate: plan.predicate != nil
        case .everything: true
        case .afterRows: false
        }
      if declines { throw StoreError(.unsupportedRequest, operation: "fetch rows", reason: "The values are too long for the server.") }
      try base.fetch(plan, in: view, options: options, into: sink)
      if declined == .afterRows {
        throw StoreError(.unsupportedRequest, operation: "fetch rows", reason: "The values are too long for the server.")
      }
    }
  }

  private func open(_ store: TestStore, _ declined: DecliningStore.Part) throws -> (ManagedObjectContext, DecliningStore) {
    let place = try store.makePlace(), filling = try place.context()
    for number in 0..<40 { filling.dog("d\(number % 7)", age: number % 11).chip = Int64(100 - number) }
    try filling.save()
    let box = Mutex<DecliningStore?>(nil)
    let (context, _) = try place.recording { base in
      let declining = DecliningStore(base, declined)
      box.withLock { $0 = declining }
      return declining
    }
    return (context, try #require(box.withLock { $0 }))
  }

  private func answers(_ context: ManagedObjectContext) throws -> [String] {
    let predicate = FetchPredicate<Dog> { $0.age > 2 && $0.name != "d3" }
    let sorts: [FetchSortDescriptor<Dog>] = [.descending(\.age), .ascending(\.name)]
    let sorted = FetchRequest<Dog>(where: predicate, sortedBy: sorts, offset: 1, limit: 9)
    let ages = DictionaryFetchRequest<Dog>(
      where: predicate, columns: ["age": .property("age"), "dogs": .count(), "largest": .maximum("chip")], groupedBy: ["age"])
    return [
      try context.fetch(sorted).map { "\($0.age)\($0.name)\($0.chip ?? 0)" }.joined(separator: " "),
      try context.fetch(FetchRequest<Dog>(where: predicate, offset: 3, limit: 4)).map { "\($0.chip ?? 0)" }.joined(separator: " "),
      try context.fetchObjectIDs(sorted).map { "\((try context.existingObject(with: $0) as? Dog)?.chip ?? 0)" }.joined(separator: " "),
      "\(try context.count(for: FetchRequest<Dog>(where: predicate)))",
      "\(try context.fetch(ages).map { $0.sorted { $0.key < $1.key }.map { "\($0)" } })",
      try context.fetch(FetchRequest<Dog> { $0.chip == 77 }).map { "\($0.chip ?? 0)" }.joined(separator: " "),
    ]
  }

  @Test(arguments: TestStore.allCases) func answersAreTheSameWhateverAStoreDeclines(_ store: TestStore) throws {
    let expected = try answers(open(.memory, .nothing).0)
    #expect(expected[5] == "77" && expected.allSatisfy { !$0.isEmpty })
    for declined in [DecliningStore.Part.nothing, .sorts, .predicate] {
      #expect(try answers(open(store, declined).0) == expected, "\(declined)")
    }
  }

  @Test func aDeclinedPlanIsSentWithoutSortsAndThenWithoutPredicate() throws {
    let request = FetchRequest<Dog>(sortedBy: [.ascending(\.age)], limit: 2) { $0.age > 2 }
    for (declined, count) in [(DecliningStore.Part.nothing, 1), (.sorts, 2), (.predicate, 3)] {
      let (context, store) = try open(.sqlite, declined)
      #expect(try context.fetch(request).count == 2)
      let plans = store.plans.withLock { $0 }
      #expect(plans.count == count, "\(plans)")
      #expect(plans[0].predicate != nil && !plans[0].sorts.isEmpty && plans[0].limit == 2)
      if count > 1 { #expect(plans[1].predicate != nil && plans[1].sorts.isEmpty && plans[1].limit == nil) }
      if count > 2 { #expect(plans[2].predicate == nil && plans[2].sorts.isEmpty) }
    }
  }

  /// The bug: the store read all rows, because the other condition was left out with the look-up. SQLite stores compare no decimals.
  @Test func `a store that declines a look-up gets the other conditions`() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Coin",
        attributes: [AttributeDescription("worth", .decimal, isOptional: true), AttributeDescription("name", .string, isOptional: true)],
        uniquenessConstraints: [["worth"]])
    ])
    let place = try TestStore.sqlite.makePlace(model: model, classes: []), filling = try place.context()
    for number in 0..<9 {
      let coin = try filling.insert(entityNamed: "Coin")
      try coin.setValue(.decimal(Decimal(number)), forKey: "worth")
      try coin.setValue(.string("c\(number % 3)"), forKey: "name")
    }
    try filling.save()
    let (context, recorder) = try place.recording()
    let isFour = QueryExpression.comparison(.property("worth"), .equalTo, .constant(.decimal(4)), [])
    let isNamed = QueryExpression.comparison(.property("name"), .equalTo, .constant(.string("c1")), [])
    let request = FetchRequest<ManagedObject>(entityName: "Coin", where: FetchPredicate(.and([isFour, isNamed])))
    #expect(try context.fetch(request).count == 1)
    let plans = recorder.requests.compactMap { if case .fetch(let plan) = $0 { plan } else { nil } }
    #expect(plans.map(\.predicate) == [isFour, isNamed], "\(plans)")
  }

  @Test func aRefusalAfterRowsIsAnError() throws {
    let (context, store) = try open(.sqlite, .afterRows)
    #expect(throws: StoreError.self) { try context.fetch(FetchRequest<Dog> { $0.age > 2 }) }
    #expect(store.plans.withLock { $0.count } == 1, "Rows would have been delivered twice.")
  }

  @Test(arguments: [DecliningStore.Part.nothing, .sorts, .predicate]) func severalStoresMayDecline(_ declined: DecliningStore.Part) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("declining-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    func context(_ stores: [StoreDescription]) throws -> ManagedObjectContext {
      let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: stores)
      let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
      for number in 0..<30 {
        let dog = context.dog("d\(number % 7)", age: number % 5), owner = context.insert(Person.self)
        (owner.name, dog.owner, dog.chip) = ("o\(number % 4)", owner, Int64(100 - number))
        for object in [dog, owner] { try context.assign(object, to: coordinator.persistentStores[number % 2]) }
      }
      try context.save()
      context.reset()
      return context
    }
    let requests = [
      FetchRequest<Dog>(sortedBy: [.ascending(\.owner.name), .ascending(\.chip)], offset: 2, limit: 9) {
        $0.owner.name != "o1" && $0.age > 0
      },
      FetchRequest<Dog>(offset: 2, limit: .max) { $0.chip > 0 }, FetchRequest<Dog>(offset: .max, limit: 3) { $0.chip > 0 },
    ]
    let memory = try context([.memory(), .memory()])
    let files = try context(
      [0, 1].map { number in
        StoreDescription(type: "declining") {
          DecliningStore(SQLiteStore(path: folder.appendingPathComponent("\(number).sqlite").path), declined)
        }
      })
    for hasChanges in [false, true] {
      if hasChanges { for context in [memory, files] { context.dog("new", age: 3).chip = 1000 } }
      for request in requests {
        #expect(try files.fetch(request).map(\.chip) == memory.fetch(request).map(\.chip), "\(request)")
      }
      for predicate in [FetchPredicate<Dog> { $0.age > 0 }, FetchPredicate<Dog> { $0.age > 0 && $0.owner.name != "o1" }] {
        let ages = DictionaryFetchRequest<Dog>(
          where: predicate, columns: ["age": .property("age"), "dogs": .count(), "largest": .maximum("chip")], groupedBy: ["age"])
        #expect(try files.fetch(ages) == memory.fetch(ages), "\(ages)")
        #expect(try files.count(for: FetchRequest<Dog>(where: predicate)) == memory.count(for: FetchRequest<Dog>(where: predicate)))
      }
    }
  }

  @Test func aStoreThatDeclinesAllPlansFailsWithItsError() throws {
    let (context, store) = try open(.sqlite, .everything)
    let error = #expect(throws: StoreError.self) { try context.fetch(FetchRequest<Dog> { $0.age > 2 }) }
    #expect(error?.code == .unsupportedRequest && error?.reason.contains("server") == true)
    #expect(store.plans.withLock { $0.count } == 2, "A plan was repeated.")
  }
}
