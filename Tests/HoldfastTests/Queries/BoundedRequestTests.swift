import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

/// How large the requests are that a store receives, and what stores do about it.
@Suite struct BoundedRequestTests {
  /// A store that declares other capabilities, and refuses to read a relationship of more than some sources at once.
  private final class ModestStore: ForwardingStore {
    let base: any IncrementalStore
    let capabilities: StoreCapabilities
    private let largestSourceCount: Int
    let refusalCount = Mutex(0)

    init(_ base: any IncrementalStore, largestSourceCount: Int = .max, _ change: (inout StoreCapabilities) -> Void = { _ in }) {
      var capabilities = base.capabilities
      change(&capabilities)
      (self.base, self.capabilities, self.largestSourceCount) = (base, capabilities, largestSourceCount)
    }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      if request.sources.count > largestSourceCount {
        refusalCount.withLock { $0 += 1 }
        throw StoreError(.tooLarge, operation: "read a relationship", reason: "The answer would be too large.")
      }
      return try base.relationships(request, in: view, options: options)
    }
  }

  private func place(_ store: TestStore = .memory, people count: Int) throws -> TestStore.Place {
    let place = try store.makePlace(), context = try place.context()
    for number in 0..<count { context.dog("d\(number)", age: number % 20, owner: context.person("p\(number)")) }
    try context.save()
    return place
  }

  private func open(_ place: TestStore.Place, largestSourceCount: Int = .max) throws -> (ManagedObjectContext, RecordingStore, ModestStore)
  {
    let box = Mutex<ModestStore?>(nil)
    let (context, recorder) = try place.recording { base in
      let store = ModestStore(base, largestSourceCount: largestSourceCount) { capabilities in
        // Rows that aren't resident are read in groups.
        (capabilities.residentRows, capabilities.traversal) = (false, .init())
      }
      box.withLock { $0 = store }
      return store
    }
    return (context, recorder, try #require(box.withLock { $0 }))
  }

  private func sourceCounts(_ recorder: RecordingStore) -> [Int] {
    recorder.requests.compactMap { if case .relationships(let request) = $0 { request.sources.count } else { nil } }
  }

  /// The bug: each saved object between two unsaved ones was alone, so that the destinations of each took a request.
  @Test func `saved objects between unsaved ones read their destinations together`() throws {
    let (context, recorder, _) = try open(try place(people: 30))
    for number in 0..<30 { context.person("p\(number)x") }
    let people = try context.fetch(Person.self, sortedBy: \.name)
    #expect(people.count == 60 && people.map(\.name) == people.map(\.name).sorted())
    #expect(people.reduce(0) { $0 + $1.dogs.count } == 30)
    #expect(sourceCounts(recorder) == [30])
  }

  @Test func noRequestForDestinationsHasMoreThan1024Sources() throws {
    let (context, recorder, _) = try open(try place(people: 2500))
    let people = try context.fetch(FetchRequest<Person>())
    #expect(people.reduce(0) { $0 + $1.dogs.count } == 2500)
    #expect(sourceCounts(recorder).reduce(0, +) == 2500 && sourceCounts(recorder).allSatisfy { $0 <= 1024 })
    recorder.clear()
    // A predicate that the framework evaluates.
    #expect(try context.count(for: FetchRequest<Person> { $0.dogs.count == 1 }) == 2500)
    #expect(sourceCounts(recorder).reduce(0, +) == 2500 && sourceCounts(recorder).allSatisfy { $0 <= 1024 })
  }

  @Test func aStoreDividesARequestForDestinationsByRefusingIt() throws {
    let (context, recorder, store) = try open(try place(people: 300), largestSourceCount: 40)
    let people = try context.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
    for person in people { #expect(person.dogs.map(\.name) == ["d" + person.name.dropFirst()]) }
    #expect(try context.count(for: FetchRequest<Person> { $0.dogs.count == 1 }) == 300)
    #expect(store.refusalCount.withLock { $0 } > 0 && context.faultError == nil)
    #expect(sourceCounts(recorder).contains { $0 <= 40 })
  }

  /// A paging server reads one row for a limit of 1, even if it doesn't sort.
  @Test func aWindowReachesAStoreThatDoesNotSort() throws {
    let place = try place(.sqlite, people: 500), box = Mutex<ModestStore?>(nil)
    let (context, recorder) = try place.recording { base in
      let store = ModestStore(base) { ($0.sorting, $0.windowing) = (false, true) }
      box.withLock { $0 = store }
      return store
    }
    func lastPlan() throws -> FetchPlan {
      try #require(recorder.requests.compactMap { if case .fetch(let plan) = $0 { plan } else { nil } }.last)
    }
    #expect(try context.fetch(FetchRequest<Dog>(limit: 1)).count == 1)
    let first = try lastPlan()
    #expect(first.limit == 1)
    #expect(try context.fetch(FetchRequest<Dog>(offset: 490, limit: 20)).count == 10)
    let second = try lastPlan()
    #expect(second.offset == 490 && second.limit == 20)
    // What the store doesn't sort, it can't window.
    let youngest = FetchRequest<Dog>(sortedBy: [.ascending(\.age)], limit: 3)
    #expect(try context.fetch(youngest).map(\.age) == [0, 0, 0])
    let third = try lastPlan()
    #expect(third.limit == nil && third.sorts.isEmpty)
  }

  @Test func aSaveWhoseCommitFailedIsNotAborted() throws {
    let place = try TestStore.memory.makePlace(), box = Mutex<FaultInjectingStore?>(nil)
    let (context, recorder) = try place.recording { base in
      let store = FaultInjectingStore(base)
      box.withLock { $0 = store }
      return store
    }
    context.dog("d")
    try #require(box.withLock { $0 }).fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test."))
    #expect(throws: StoreError.self) { try context.save() }
    #expect(recorder.requests.last == .commit && !recorder.requests.contains(.abort))
    try context.save()
    #expect(recorder.requests.count { $0 == .commit } == 2 && !recorder.requests.contains(.abort))
  }
}
