import Foundation
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

@testable import Holdfast

/// Deadlines, labels and cancellations of a context's requests.
@Suite struct RequestTimeoutTests {
  /// Notes the options of requests, and can let a deadline pass before it forwards one.
  private final class NotingStore: ForwardingStore {
    let base: any IncrementalStore
    /// The options of each request, and the request before which the deadline passes.
    private let state = Mutex((options: [(String, RequestOptions)](), late: ""))

    init(_ base: any IncrementalStore) { self.base = base }

    var noted: [(request: String, options: RequestOptions)] { state.withLock { $0.options } }

    func clear(late: String = "") { state.withLock { $0 = ([], late) } }

    private func note(_ request: String, _ options: RequestOptions) {
      let isLate = state.withLock { state in
        state.options.append((request, options))
        return state.late == request
      }
      if isLate, let deadline = options.deadline { while ContinuousClock.now <= deadline { usleep(1000) } }
    }

    func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
      note("view", options)
      return try base.beginRead(kind, options: options)
    }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      note("fetch", options)
      try base.fetch(plan, in: view, options: options, into: sink)
    }

    func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      note("rows", options)
      try base.rows(request, in: view, options: options, into: sink)
    }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      note("relationships", options)
      return try base.relationships(request, in: view, options: options)
    }

    func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
      note("keys", options)
      return try base.reserveKeys(demands, options: options)
    }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      note("save", options)
      if options.deadline != nil { try options.check("save") }
      return try base.prepare(request, options: options)
    }
  }

  private func open(_ place: TestStore.Place) throws -> (ManagedObjectContext, NotingStore) {
    let found = Mutex<NotingStore?>(nil)
    let (context, _) = try place.recording { base in
      let store = NotingStore(base)
      found.withLock { $0 = store }
      return store
    }
    let store = try #require(found.withLock { $0 })
    store.clear()
    return (context, store)
  }

  private func makeDogs(_ place: TestStore.Place, _ count: Int = 3) throws -> [ManagedObjectID] {
    let context = try place.context()
    let ann = context.person("Ann")
    let dogs = (0..<count).map { context.dog("d\($0)", age: 3, owner: ann) }
    try context.save()
    return dogs.map(\.objectID) + [ann.objectID]
  }

  @Test(arguments: TestStore.allCases) func everyRequestHasTheDeadlineAndTheNameOfItsContext(_ store: TestStore) throws {
    let place = try store.makePlace(), ids = try makeDogs(place)
    let (context, noted) = try open(place)
    context.name = "import"
    context.requestTimeout = .seconds(1000)
    let before = ContinuousClock.now
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]) { $0.owner.name == "Ann" })
    #expect(dogs.map(\.age) == [3, 3, 3])
    #expect((try context.existingObject(with: try #require(ids.last)) as? Person)?.dogs.count == 3)
    dogs[0].age = 4
    context.dog("new")
    try context.save()
    let requests = noted.noted
    // Faults have no cancellation, even with a deadline.
    noted.clear()
    #expect((try context.object(with: ids[1]) as? Dog)?.owner?.name == "Ann")
    #expect(noted.noted.allSatisfy { $0.options.cancellation == nil && $0.options.deadline != nil })
    #expect(Set(requests.map(\.request)).isSuperset(of: ["view", "fetch", "relationships", "keys", "save"]))
    for (request, options) in requests {
      let deadline = try #require(options.deadline, "\(request)")
      #expect(deadline > before + .seconds(999) && deadline < .now + .seconds(1001) && options.label == "import", "\(request)")
      // Only the fetch, and the view that it begins, can be cancelled.
      #expect(options.cancellation == nil || ["view", "fetch", "rows", "relationships"].contains(request), "\(request)")
    }
    #expect(requests.contains { $0.request == "fetch" && $0.options.cancellation != nil })
  }

  @Test(arguments: TestStore.allCases) func requestsHaveNoOptionsByDefault(_ store: TestStore) throws {
    let place = try store.makePlace(), ids = try makeDogs(place)
    let (context, noted) = try open(place)
    let dog = try #require(try context.existingObject(with: ids[0]) as? Dog)
    #expect(dog.owner?.dogs.count == 3)
    dog.age = 4
    context.dog("new")
    try context.save()
    #expect(!noted.noted.isEmpty && noted.noted.allSatisfy { $0.options.isUnlimited && $0.options.label == nil })
  }

  @Test(arguments: TestStore.allCases) func aFetchWithoutTimeLeftThrows(_ store: TestStore) throws {
    let place = try store.makePlace()
    _ = try makeDogs(place, 2000)
    let (context, noted) = try open(place)
    context.requestTimeout = .milliseconds(5)
    noted.clear(late: "fetch")
    let error = #expect(throws: StoreError.self) { try context.fetch(FetchRequest<Dog>()) }
    #expect(error?.code == .timedOut && error?.isRetryable == true, "\(String(describing: error))")
    noted.clear()
    context.requestTimeout = nil
    #expect(try context.fetch(FetchRequest<Dog>()).count == 2000)
  }

  @Test(arguments: TestStore.allCases) func aSaveWithoutTimeLeftSavesNothingAndCanBeRepeated(_ store: TestStore) throws {
    let place = try store.makePlace(), ids = try makeDogs(place)
    let (context, noted) = try open(place)
    let dog = try #require(try context.existingObject(with: ids[0]) as? Dog)
    #expect(dog.age == 3)
    dog.age = 4
    context.dog("new")
    context.requestTimeout = .milliseconds(50)
    noted.clear(late: "save")
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .timedOut && context.hasChanges, "\(String(describing: error))")
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    #expect(try other.count(for: FetchRequest<Dog> { $0.age == 3 }) == 3)
    noted.clear()
    context.requestTimeout = nil
    try context.save()
    #expect(try other.count(for: FetchRequest<Dog>()) == 4)
  }

  /// Reports a conflict of an object in each save, when the deadline of the save has passed.
  private final class ContendedStore: ForwardingStore {
    let base: any IncrementalStore
    private let state = Mutex((id: ManagedObjectID?.none, attempts: 0))

    init(_ base: any IncrementalStore) { self.base = base }

    /// The number of conflicts so far.
    var attempts: Int { state.withLock { $0.attempts } }

    func contend(for id: ManagedObjectID?) { state.withLock { $0.id = id } }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      guard let id = state.withLock({ $0.id }) else { return try base.prepare(request, options: options) }
      state.withLock { $0.attempts += 1 }
      if let deadline = options.deadline { while ContinuousClock.now <= deadline { usleep(1000) } }
      throw StoreError(
        .conflict, operation: "save", reason: "The test says so.",
        conflicts: [SaveConflict(objectID: id, expectedVersion: 1, persisted: nil)])
    }
  }

  @Test func theAttemptsOfASaveWithConflictsShareItsDeadline() throws {
    let place = try TestStore.memory.makePlace(), ids = try makeDogs(place)
    let found = Mutex<ContendedStore?>(nil)
    let (context, _) = try place.recording { base in
      let store = ContendedStore(base)
      found.withLock { $0 = store }
      return store
    }
    let store = try #require(found.withLock { $0 }), dog = try #require(try context.existingObject(with: ids[0]) as? Dog)
    dog.age = 4
    context.mergePolicy = .mergeByPropertyObjectTrump
    context.requestTimeout = .milliseconds(50)
    store.contend(for: dog.objectID)
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .timedOut && store.attempts <= 1 && context.hasChanges, "\(store.attempts) attempts")
    store.contend(for: nil)
    context.requestTimeout = nil
    try context.save()
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    #expect((try other.existingObject(with: ids[0]) as? Dog)?.age == 4)
  }

  @Test(arguments: TestStore.allCases) func aFaultWithoutTimeLeftIsUnreadAndReadLater(_ store: TestStore) throws {
    let place = try store.makePlace(), ids = try makeDogs(place)
    let (context, noted) = try open(place)
    let dog = try #require(try context.object(with: ids[0]) as? Dog)
    context.requestTimeout = .zero
    _ = dog.age
    #expect((context.faultError as? StoreError)?.code == .timedOut, "\(String(describing: context.faultError))")
    #expect(noted.noted.isEmpty)
    context.requestTimeout = nil
    #expect(dog.age == 3)
  }

  /// A store that waits until its request is cancelled.
  private final class WaitingStore: ForwardingStore {
    let base: any IncrementalStore
    let hasBegun = DispatchSemaphore(value: 0)
    init(_ base: any IncrementalStore) { self.base = base }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      let end = DispatchSemaphore(value: 0)
      try options.withCancellationHandler({ end.signal() }) {
        hasBegun.signal()
        end.wait()
      }
      try options.check("fetch rows")
      try base.fetch(plan, in: view, options: options, into: sink)
    }
  }

  @Test func cancellingATaskEndsTheWaitOfAFetchInABackgroundContext() async throws {
    let place = try TestStore.memory.makePlace()
    let store = WaitingStore(place.description.makeStore())
    let container = try PersistentContainer(
      model: Kennel.model, classes: Kennel.classes, stores: [StoreDescription(type: "waiting") { store }])
    let background = container.newBackgroundContext()
    let task = Task { try await background.perform { try $0.fetch(FetchRequest<Dog>()).count } }
    startThread {
      store.hasBegun.wait()
      task.cancel()
    }
    let error = await #expect(throws: StoreError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    // The next closure isn't cancelled.
    let name = try await background.perform { context in
      context.dog("Fido")
      try context.save()
      return context.name
    }
    #expect(name == "")
  }

  /// The bug: nothing but the store ended the wait of a child's fetch.
  @Test func cancellingATaskEndsTheWaitOfAFetchInAChildOfABackgroundContext() async throws {
    let place = try TestStore.memory.makePlace()
    let store = WaitingStore(place.description.makeStore())
    let container = try PersistentContainer(
      model: Kennel.model, classes: Kennel.classes, stores: [StoreDescription(type: "waiting") { store }])
    let background = container.newBackgroundContext()
    let task = Task {
      try await background.perform { context in
        let child = ManagedObjectContext(parent: ManagedObjectContext(parent: context))
        return try child.fetch(FetchRequest<Dog>()).count
      }
    }
    startThread {
      store.hasBegun.wait()
      task.cancel()
    }
    let error = await #expect(throws: StoreError.self) { try await task.value }
    #expect(error?.code == .cancelled)
  }
}
