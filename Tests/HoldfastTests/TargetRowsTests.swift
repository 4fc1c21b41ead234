import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

@testable import Holdfast

/// Rows that are prefetched with the keys of a to-many relationship's targets.
@Suite struct TargetRowsTests {
  /// A saved dog with three friends.
  private func place(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.makePlace()
    let context = try place.context()
    let rex = context.dog("rex")
    for name in ["ada", "bob", "cid"] { rex.friends.insert(context.dog(name, age: 3)) }
    try context.save()
    return place
  }

  private func rex(_ context: ManagedObjectContext) throws -> Dog { try #require(try context.one(Dog.self) { $0.name == "rex" }) }

  private func reads(_ store: RecordingStore) -> [RecordedRequest] {
    store.requests.filter {
      switch $0 {
      case .fetch, .rows, .relationships: true
      default: false
      }
    }
  }

  @Test func goingOverTheTargetsOfOneObjectIsOneRequest() throws {
    let (context, recorder) = try place(.sqlite).recording()
    let rex = try rex(context)
    recorder.clear()
    #expect(rex.friends.map(\.name).sorted() == ["ada", "bob", "cid"])
    #expect(reads(recorder).count == 1)
  }

  @Test(arguments: TestStore.allCases) func theTargetsAreTheSameOnEveryStore(_ store: TestStore) throws {
    let context = try place(store).context()
    #expect(try rex(context).friends.map { "\($0.name) \($0.age)" }.sorted() == ["ada 3", "bob 3", "cid 3"])
  }

  @Test(arguments: TestStore.allCases) func rowsAreNotWelcomeForACountNorWithoutBatching(_ store: TestStore) throws {
    let (context, recorder) = try place(store).recording()
    let counted = try rex(context)
    #expect(counted.friends.count == 3)
    let walked = try rex(context)
    context.firesFaultsInBatches = false
    #expect(walked.friendOf.map(\.name) == [])
    let welcoming = recorder.requests.contains { if case .relationships(let request) = $0 { request.acceptsRows } else { false } }
    #expect(!welcoming)
  }

  /// A store that calls a closure once, before it returns the next destinations that it has read.
  private final class InterruptedStore: ForwardingStore {
    let base: any IncrementalStore
    let interruption = Mutex<(@Sendable () -> Void)?>(nil)

    init(_ base: any IncrementalStore) { self.base = base }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      let answer = try base.relationships(request, in: view, options: options)
      let interrupt = interruption.withLock { interruption in
        defer { interruption = nil }
        return interruption
      }
      interrupt?()
      return answer
    }
  }

  /// The bug: the rows were kept as if they had been read after the save. The cache doesn't have the rows of so large a save.
  @Test(arguments: TestStore.allCases) func targetsReadAfterALargeSaveAreThoseOfTheSave(_ store: TestStore) throws {
    let found = Mutex<InterruptedStore?>(nil)
    let (context, _) = try place(store).recording { base in
      let store = InterruptedStore(base)
      found.withLock { $0 = store }
      return store
    }
    let interrupted = try #require(found.withLock { $0 }), coordinator = context.persistentStoreCoordinator
    let rex = try rex(context)
    interrupted.interruption.withLock {
      $0 = {
        do {
          let other = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
          for dog in try other.fetch(Dog.self) { dog.age = 4 }
          for number in 0..<RowCache.largestPublication { other.dog("dog \(number)") }
          try other.save()
        } catch { Issue.record(error) }
      }
    }
    #expect(rex.friends.map(\.age) == [4, 4, 4])
    let hasSaved = interrupted.interruption.withLock { $0 == nil }
    #expect(hasSaved)
  }

  @Test(arguments: TestStore.allCases) func aTargetWithChangesKeepsThem(_ store: TestStore) throws {
    let context = try place(store).context()
    let ada = try #require(try context.one(Dog.self) { $0.name == "ada" })
    ada.age = 9
    let rex = try rex(context)
    #expect(rex.friends.map(\.age).sorted() == [3, 3, 9])
    context.rollback()
    #expect(ada.age == 3)
  }

  @Test(arguments: TestStore.allCases) func aFaultAmongTheTargetsGetsItsRow(_ store: TestStore) throws {
    let place = try place(store)
    let id = try #require(try place.context().one(Dog.self) { $0.name == "bob" }).objectID
    let (context, recorder) = try place.recording()
    let bob = try context.object(with: id)
    let rex = try rex(context)
    #expect(bob.isFault)
    for friend in rex.friends { _ = friend.age }
    recorder.clear()
    recorder.withStoreBlocked { #expect((bob as? Dog)?.name == "bob") }
    #expect(recorder.requests.isEmpty)
  }

  @Test(arguments: TestStore.allCases) func aTargetThatIsBeingDeletedDoesNotAppear(_ store: TestStore) throws {
    let context = try place(store).context()
    context.delete(try #require(try context.one(Dog.self) { $0.name == "cid" }))
    #expect(try rex(context).friends.map(\.name).sorted() == ["ada", "bob"])
    try context.save()
    #expect(try rex(context).friends.map(\.name).sorted() == ["ada", "bob"])
  }

  @Test(arguments: TestStore.allCases) func moreTargetsThanRowsComeAlongAreAllThere(_ store: TestStore) throws {
    let place = try store.makePlace()
    let writer = try place.context()
    let owner = writer.person("owner")
    for number in 0..<5000 { writer.dog("dog \(number)", age: number % 7, owner: owner) }
    try writer.save()
    let (context, recorder) = try place.recording()
    let read = try #require(try context.one(Person.self) { $0.name == "owner" })
    recorder.clear()
    var (count, ages) = (0, 0)
    for dog in read.dogs { (count, ages) = (count + 1, ages + dog.age) }
    #expect(count == 5000 && ages == (0..<5000).reduce(0) { $0 + $1 % 7 })
    // A store with resident rows gets requests for a few rows before those for a thousand at a time.
    #expect(reads(recorder).count <= (store.hasResidentRows ? 40 : 8), "\(reads(recorder).count) requests")
  }

  /// Prefetched rows must not cause requests for their own targets with every group of rows.
  @Test(arguments: TestStore.allCases) func aWalkOverTheGraphAsksForTargetsAFewTimesAtMost(_ store: TestStore) throws {
    let place = try store.makePlace()
    let maker = try place.context()
    let dogs = (0..<600).map { maker.dog("dog \($0)") }
    for (number, dog) in dogs.enumerated() { for step in 1...4 { dog.friends.insert(dogs[(number * 7 + step * 131) % dogs.count]) } }
    try maker.save()
    let (context, recorder) = try place.recording()
    var queue = [try #require(try context.one(Dog.self) { $0.name == "dog 0" })], seen = Set(queue)
    recorder.clear()
    while let dog = queue.popLast() {
      for friend in dog.friends where !friend.name.isEmpty && seen.insert(friend).inserted { queue.append(friend) }
    }
    let asked = recorder.requests.reduce(0) { if case .relationships(let request) = $1 { $0 + request.sources.count } else { $0 } }
    #expect(seen.count > 300 && asked <= seen.count * 4, "\(asked) for \(seen.count)")
  }
}
