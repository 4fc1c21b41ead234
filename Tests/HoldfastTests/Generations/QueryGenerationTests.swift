import Dispatch
import Foundation
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

@testable import Holdfast

/// Contexts that are pinned to a generation.
@Suite struct QueryGenerationTests {
  static let stores = TestStore.allCases.filter { $0 != .weakest }

  /// Ann with Fido and Rex, Bob with none, and two contexts.
  private struct Kennels {
    let place: TestStore.Place
    let ours: ManagedObjectContext, theirs: ManagedObjectContext

    init(_ store: TestStore) throws {
      place = try store.makeKennelsOfTwo()
      (ours, theirs) = (try place.context(), try place.context())
    }

    /// Renames Fido, gives Rex to Bob, and inserts Max; all of that in another context.
    func change() throws {
      let dogs = try theirs.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
      dogs[0].name = "Changed"
      dogs[0].age = 30
      let bob = try #require(try theirs.one(Person.self) { $0.name == "Bob" })
      dogs[1].owner = bob
      theirs.dog("Max", age: 7, owner: bob).chip = 3
      try theirs.save()
    }
  }

  @Test(arguments: stores) func allRequestsReadTheGeneration(_ store: TestStore) throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current)
    try kennels.change()
    #expect(try context.count(for: FetchRequest<Dog>()) == 2)
    let sums = try context.fetch(
      DictionaryFetchRequest<Dog>(columns: ["owner": .property("owner"), "sum": .sum("age")], groupedBy: ["owner"]))
    #expect(sums.count == 1 && sums[0]["sum"] == .int64(8))
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
    let bob = try #require(try context.one(Person.self) { $0.dogs.count == 0 })
    #expect(ann.dogs.map(\.name).sorted() == ["Fido", "Rex"] && bob.dogs.isEmpty)
    #expect(try context.one(Dog.self) { $0.owner.name == "Bob" } == nil)
    #expect(try namesOfDogs(context) == ["Fido", "Rex"])
    #expect(try context.fetchObjectIDs(FetchRequest<Dog>()).count == 2)
    // Unsaved changes are combined with the rows of the generation.
    ann.city = "Oslo"
    let fidoOfOslo = try context.one(Dog.self) { $0.owner.city == "Oslo" && $0.age == 3 }
    #expect(fidoOfOslo?.name == "Fido")
    context.rollback()
    #expect(try namesOfDogs(context) == ["Fido", "Rex"])
    try context.setQueryGeneration(from: nil)
    try context.refreshAllObjects()
    #expect(try namesOfDogs(context) == ["Changed", "Max", "Rex"] && bob.dogs.count == 2)
  }

  @Test(arguments: stores) func aFaultOfDeletedOrChangedRowsReadsTheGeneration(_ store: TestStore) throws {
    let kennels = try Kennels(store)
    let ids = try kennels.theirs.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map(\.objectID)
    try kennels.ours.setQueryGeneration(from: .current)
    let fido = try kennels.ours.dog(of: ids[0]), rex = try kennels.ours.dog(of: ids[1])
    let others = try kennels.theirs.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    others[0].name = "Changed"
    kennels.theirs.delete(others[1])
    try kennels.theirs.save()
    // The cache has the new row of Fido.
    #expect(rex.name == "Rex")
    try kennels.ours.refresh(fido, mergeChanges: false)
    #expect(fido.name == "Fido" && rex.owner?.name == "Ann")
    // Rows of a generation don't enter the cache either.
    let third = try kennels.place.context()
    #expect(try third.dog(of: ids[0]).name == "Changed")
  }

  @Test(arguments: stores) func aPinnedContextSendsTheSameRequests(_ store: TestStore) throws {
    func requests(_ isPinned: Bool) throws -> RequestCounts {
      let kennels = try Kennels(store), coordinator = try kennels.place.coordinator(), before = coordinator.requestCounts
      coordinator.rowCache.removeAll()
      if isPinned { try kennels.ours.setQueryGeneration(from: .current) }
      #expect(coordinator.requestCounts - before == RequestCounts())
      let dogs = try kennels.ours.fetch(FetchRequest<Dog>())
      #expect(dogs.map { $0.owner?.name } == ["Ann", "Ann"])
      #expect(try kennels.ours.one(Person.self) { $0.name == "Ann" }?.dogs.count == 2)
      return coordinator.requestCounts - before
    }
    let (pinned, unpinned) = (try requests(true), try requests(false))
    #expect(pinned == unpinned, "pinned: \(pinned); unpinned: \(unpinned)")
  }

  /// The bug: only the row determines the entity, and it was looked for in the newest generation.
  @Test(arguments: stores) func aHandlerReceivesTheObjectsOfTheGenerationThatLoseADeletedOne(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Owner", relationships: [.toMany("pets", to: "Pet", inverse: "owner")]),
      EntityDescription("Pet", relationships: [.toOne("owner", to: "Owner", inverse: "pets")]),
      EntityDescription("Cat", superentity: "Pet"),
    ])
    let place = try store.makePlace(model: model, classes: []), ours = try place.context(), theirs = try place.context()
    let owner = try theirs.insert(entityNamed: "Owner"), cat = try theirs.insert(entityNamed: "Cat")
    try cat.setValue(.objectID(owner.objectID), forKey: "owner")
    try theirs.save()
    let id = cat.objectID
    try ours.setQueryGeneration(from: .current)
    theirs.delete(cat)
    try theirs.save()
    var updated: [ManagedObjectID] = []
    let observation = ours.onChange { _, changes in updated += changes.updated }
    ours.delete(try ours.existingObject(with: owner.objectID))
    try ours.processPendingChanges()
    #expect(updated == [id])
    withExtendedLifetime(observation) {}
  }

  // MARK: Going on to the newest generation

  @Test(arguments: stores) func savedChangesLeadToTheNewestGeneration(_ store: TestStore) throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current)
    let first = context.queryGenerationToken
    try kennels.change()
    try context.save()  // nothing
    #expect(try namesOfDogs(context) == ["Fido", "Rex"] && context.queryGenerationToken == first)
    context.person("Cleo")
    try context.save()
    #expect(context.queryGenerationToken == .current)
    try context.refreshAllObjects()
    #expect(try namesOfDogs(context) == ["Changed", "Max", "Rex"])
    #expect(try context.count(for: FetchRequest<Person>()) == 3)
    let second = try #require(context.queryGenerationToken)
    #expect(second != first && second != .current)
    // The context is still pinned.
    try kennels.theirs.one(Person.self) { $0.name == "Bob" }.map { $0.name = "Bert" }
    try kennels.theirs.save()
    #expect(try context.one(Person.self) { $0.name == "Bert" } == nil)
    // So does a save that fails.
    context.dog("Twin").chip = 3
    #expect(throws: PersistenceError.self) { try context.save() }
    #expect(context.queryGenerationToken == .current)
    _ = try context.fetch(FetchRequest<Dog>())
    #expect(context.queryGenerationToken != .current)
    context.reset()
    #expect(context.queryGenerationToken == .current)
    #expect(try context.one(Person.self) { $0.name == "Bert" } != nil)
  }

  @Test(arguments: stores) func aSaveOfAPinnedContextFindsConflicts(_ store: TestStore) throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current)
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    try kennels.change()
    dogs[0].notes = "ours"
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .conflict && dogs[0].name == "Fido")
    context.mergePolicy = .mergeByPropertyObjectTrump
    try context.save()
    #expect(dogs[0].name == "Changed" && dogs[0].notes == "ours")
    #expect(try namesOfDogs(context) == ["Changed", "Max", "Rex"])
  }

  /// Counts all dogs when it gets its row.
  private final class Counter: ManagedObject {
    override class var entityName: String { "Dog" }
    override func awakeFromFetch() { _ = try? managedObjectContext.count(for: FetchRequest<Counter>()) }
  }

  /// The save reads a fault whose links have changed. The object is awakened when the save has found a conflict.
  ///
  /// The bug: the object's request began the generation that the context then read, without what the save saved afterwards.
  @Test(arguments: stores) func aSaveThatResolvesAConflictLeadsToTheNewestGeneration(_ store: TestStore) throws {
    let place = try store.makePlace(classes: [Counter.self]), theirs = try ManagedObjectContext(coordinator: place.coordinator())
    let dogs = try (0..<2).map { number in
      let dog = try theirs.insert(entityNamed: "Dog")
      try dog.setValue(.string("dog \(number)"), forKey: "name")
      return dog
    }
    try theirs.save()
    let ours = try place.context()
    ours.mergePolicy = .mergeByPropertyObjectTrump
    try ours.setQueryGeneration(from: .current)
    let read = try ours.existingObject(with: dogs[0].objectID), fault = try ours.object(with: dogs[1].objectID)
    try dogs[0].setValue(.string("theirs"), forKey: "name")
    try theirs.save()
    try read.setValue(.int16(9), forKey: "age")
    try fault.toMany(forKey: "friends").insert(read)
    try ours.insert(entityNamed: "Dog").setValue(.string("new"), forKey: "name")
    #expect(fault.isFault)
    try ours.save()
    #expect(!fault.isFault && !ours.hasChanges && ours.queryGenerationToken == .current)
    #expect(try ours.count(for: FetchRequest<Counter>()) == 3)
  }

  @Test(arguments: stores) func mergedChangesLeadToTheNewestGeneration(_ store: TestStore) throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current)
    context.automaticallyMergesChanges = true
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    try kennels.change()
    try context.processPendingChanges()
    #expect(dogs.map(\.name) == ["Changed", "Rex"] && dogs[1].owner?.name == "Bob")
    #expect(try namesOfDogs(context) == ["Changed", "Max", "Rex"])
  }

  @Test(arguments: stores) func deleteRulesOfASaveSeeWhatOthersHaveSaved(_ store: TestStore) throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current)
    let bob = try #require(try context.one(Person.self) { $0.name == "Bob" })
    let licence = kennels.theirs.insert(Licence.self)
    licence.number = 7
    licence.holder = try kennels.theirs.one(Person.self) { $0.name == "Bob" }
    try kennels.theirs.save()
    // The relationship has the rule deny.
    context.delete(bob)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .deniedDelete)
  }

  @Test(arguments: stores) func anObjectNewerThanTheGenerationAppearsLater(_ store: TestStore) throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current)
    try kennels.change()
    let id = try #require(try kennels.theirs.one(Dog.self) { $0.name == "Max" }).objectID
    let max = try context.dog(of: id)
    #expect(max.name == "" && max.isInaccessible)
    #expect(throws: PersistenceError.self) { try context.existingObject(with: id) }
    try context.setQueryGeneration(from: nil)
    #expect(max.name == "Max" && max.owner?.name == "Bob")
    // A pinned context also finds it when it goes on, and uses it for a conflict.
    let second = try kennels.place.context()
    try second.setQueryGeneration(from: .current)
    kennels.theirs.dog("Zoe").chip = 4
    try kennels.theirs.save()
    let zoe = try second.dog(of: try #require(try kennels.theirs.one(Dog.self) { $0.name == "Zoe" }).objectID)
    #expect(zoe.isInaccessible == false && zoe.name == "" && zoe.isInaccessible)
    second.mergePolicy = .mergeByPropertyObjectTrump
    second.dog("Zoe II").chip = 4
    try second.save()
    #expect(zoe.name == "Zoe II" && !zoe.isInaccessible)
  }

  /// The bug: a child kept the rows that it had read ahead in the former generation, and objects that weren't in it stayed missing.
  @Test(arguments: stores) func aChildReadsTheGenerationThatItsParentGoesOnTo(_ store: TestStore) throws {
    let kennels = try Kennels(store), parent = kennels.ours
    let child = ManagedObjectContext(parent: ManagedObjectContext(parent: parent))
    try parent.setQueryGeneration(from: .current)
    for dog in try kennels.theirs.fetch(FetchRequest<Dog>()) { dog.name += " II" }
    let max = kennels.theirs.dog("Max")
    try kennels.theirs.save()
    let ann = try #require(try child.one(Person.self) { $0.name == "Ann" }), newer = try child.dog(of: max.objectID)
    var dogs = ann.dogs.makeIterator()
    // The row of the other dog is read as well.
    let one = dogs.next(), first = try #require(one)
    #expect(["Fido", "Rex"].contains(first.name) && newer.name == "" && newer.isInaccessible)
    try parent.setQueryGeneration(from: nil)
    let other = dogs.next(), second = try #require(other)
    #expect(["Fido II", "Rex II"].contains(second.name) && newer.name == "Max")
    second.age = 9
    try child.save()
  }

  /// Fetches, relationships and the overlay of unsaved changes agree. In the newest generation, the object is missing again.
  @Test(arguments: stores) func aFormerGenerationHasWhatTheContextHasDeletedSince(_ store: TestStore) throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current)
    let token = try #require(context.queryGenerationToken), before = try KennelState(context)
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
    let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" }), id = rex.objectID
    #expect(ann.dogs.count == 2)
    context.delete(rex)
    try context.save()
    #expect(try ann.dogs.map(\.name) == ["Fido"] && namesOfDogs(context) == ["Fido"])
    try context.setQueryGeneration(from: token)
    #expect(try ann.dogs.map(\.name).sorted() == ["Fido", "Rex"] && namesOfDogs(context) == ["Fido", "Rex"])
    context.dog("Zoe", owner: ann)
    #expect(try namesOfDogs(context) == ["Fido", "Rex", "Zoe"])
    #expect(try context.count(for: FetchRequest<Dog>()) == 3 && context.fetchObjectIDs(FetchRequest<Dog>()).count == 3)
    context.rollback()
    try context.refreshAllObjects()
    #expect(try KennelState(context) == before)
    let again = try context.dog(of: id)
    #expect(again !== rex && again.name == "Rex" && again.owner === ann && rex.isInaccessible)
    again.age = 9
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .conflict && error.objectIDs == [id])
    context.rollback()
    try context.setQueryGeneration(from: nil)
    try context.refreshAllObjects()
    #expect(try namesOfDogs(context) == ["Fido"] && ann.dogs.map(\.name) == ["Fido"])
    #expect(again.name == "" && again.isInaccessible)
  }

  /// The bug: lists of the child hid the object, although its fetches returned it.
  @Test(arguments: stores) func aChildInAFormerGenerationHasWhatItHasDeletedSince(_ store: TestStore) throws {
    let kennels = try Kennels(store), parent = kennels.ours, child = ManagedObjectContext(parent: parent)
    try parent.setQueryGeneration(from: .current)
    let token = try #require(parent.queryGenerationToken)
    let ann = try #require(try child.one(Person.self) { $0.name == "Ann" })
    child.delete(try #require(try child.one(Dog.self) { $0.name == "Rex" }))
    try child.save()
    try parent.save()
    #expect(ann.dogs.map(\.name) == ["Fido"])
    try parent.setQueryGeneration(from: token)
    #expect(ann.dogs.map(\.name).sorted() == ["Fido", "Rex"])
    #expect(try namesOfDogs(child) == ["Fido", "Rex"])
  }

  /// The bug: lists of the pinned context hid the object, and so did its fetches if it had unsaved changes.
  @Test(arguments: stores, MergeLinkTests.Finding.allCases)
  func aLaterGenerationHasWhatOthersHaveInsertedAgain(_ store: TestStore, _ finding: MergeLinkTests.Finding) throws {
    let kennels = try Kennels(store), context = kennels.ours
    kennels.theirs.mergePolicy = .mergeByPropertyObjectTrump
    let theirRex = try #require(try kennels.theirs.one(Dog.self) { $0.name == "Rex" })
    #expect(theirRex.age == 5)
    try context.setQueryGeneration(from: .current)
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
    context.delete(try #require(try context.one(Dog.self) { $0.name == "Rex" }))
    try context.save()
    #expect(try ann.dogs.map(\.name) == ["Fido"] && namesOfDogs(context) == ["Fido"])
    theirRex.age = 9
    try kennels.theirs.save()
    #expect(try ann.dogs.map(\.name) == ["Fido"] && namesOfDogs(context) == ["Fido"])
    try context.setQueryGeneration(from: .current)
    if finding == .overlaidFetch { context.dog("Zoe", age: 1) }
    let child = ManagedObjectContext(parent: context), names = try namesOfDogs(finding == .childFetch ? child : context)
    #expect(names.filter { $0 != "Zoe" } == ["Fido", "Rex"] && ann.dogs.map(\.name).sorted() == ["Fido", "Rex"])
    let found = ann.dogs.first { $0.name == "Rex" }, rex = try #require(found)
    rex.age = 10
    try context.save()
    #expect(try kennels.place.context().one(Dog.self) { $0.name == "Rex" }?.age == 10)
  }

  /// The deletion isn't saved, so it is a change like others.
  @Test(arguments: stores) func aFormerGenerationDoesNotHaveWhatTheContextIsDeleting(_ store: TestStore) throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current)
    let token = try #require(context.queryGenerationToken)
    context.delete(try #require(try context.one(Dog.self) { $0.name == "Fido" }))
    try context.save()
    context.delete(try #require(try context.one(Dog.self) { $0.name == "Rex" }))
    try context.setQueryGeneration(from: token)
    #expect(try namesOfDogs(context) == ["Fido"])
    #expect(try context.one(Person.self) { $0.name == "Ann" }?.dogs.map(\.name) == ["Fido"])
    try context.save()
    #expect(try kennels.place.context().count(for: FetchRequest<Dog>()) == 0)
  }

  // MARK: Tokens

  @Test(arguments: stores) func contextsShareAGeneration(_ store: TestStore) throws {
    let kennels = try Kennels(store)
    #expect(kennels.ours.queryGenerationToken == nil)
    try kennels.ours.setQueryGeneration(from: .current)
    let token = try #require(kennels.ours.queryGenerationToken)
    try kennels.change()
    try kennels.ours.setQueryGeneration(from: nil)
    #expect(kennels.ours.queryGenerationToken == nil)
    // The token keeps the generation.
    let other = try kennels.place.context()
    try other.setQueryGeneration(from: token)
    #expect(try namesOfDogs(other) == ["Fido", "Rex"] && other.queryGenerationToken == token)
    #expect(try namesOfDogs(kennels.ours) == ["Changed", "Max", "Rex"])
    let third = try kennels.place.context()
    try third.setQueryGeneration(from: other.queryGenerationToken)
    #expect(try namesOfDogs(third) == ["Fido", "Rex"])
  }

  @Test(arguments: stores) func threadsReadOneGenerationDuringSaves(_ store: TestStore) async throws {
    let kennels = try Kennels(store), coordinator = try kennels.place.coordinator()
    try kennels.ours.setQueryGeneration(from: .current)
    let token = try #require(kennels.ours.queryGenerationToken), isDone = OpenFlag()
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<4 {
        group.addTask {
          var rounds = 0
          repeat {
            let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
            try context.setQueryGeneration(from: token)
            let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
            #expect(ann.dogs.map(\.name).sorted() == ["Fido", "Rex"])
            // A fetch that reads further rows while it receives some.
            #expect(try context.one(Dog.self) { $0.owner.dogs.count == 2 && $0.age == 3 }?.name == "Fido")
            rounds += 1
          } while !isDone.value || rounds < 3
          return rounds
        }
      }
      let writer = try kennels.place.context()
      for round in 0..<TestTier.count(20, full: 300) {
        for dog in try writer.fetch(FetchRequest<Dog>()) { dog.name = "Round \(round)" }
        if round % 5 == 0 { writer.dog("New \(round)") }
        try writer.save()
      }
      isDone.set(true)
      for try await rounds in group { #expect(rounds >= 3) }
    }
  }

  @Test func aTokenOfAnotherCoordinatorIsRefused() throws {
    let kennels = try Kennels(.memory), others = try Kennels(.memory)
    try others.ours.setQueryGeneration(from: .current)
    try kennels.ours.setQueryGeneration(from: .current)
    let before = kennels.ours.queryGenerationToken
    let error = #expect(throws: PersistenceError.self) {
      try kennels.ours.setQueryGeneration(from: others.ours.queryGenerationToken)
    }
    #expect(error?.code == .invalidRequest && kennels.ours.queryGenerationToken == before)
  }

  @Test func aStoreWithoutSnapshotsIsRefused() throws {
    let kennels = try Kennels(.weakest)
    let error = #expect(throws: StoreError.self) { try kennels.ours.setQueryGeneration(from: .current) }
    #expect(error?.code == .unsupportedRequest && error?.reason.contains("no snapshots") == true)
    #expect(kennels.ours.queryGenerationToken == nil)
    #expect(try namesOfDogs(kennels.ours) == ["Fido", "Rex"])
  }

  // MARK: Limits

  @Test(arguments: stores) func aGenerationEndsAfterItsTimeLimit(_ store: TestStore) async throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current, timeLimit: .milliseconds(20))
    let token = try #require(context.queryGenerationToken), views = try #require(token.views)
    while !views.hasEnded { try await Task.sleep(for: .milliseconds(2)) }
    let error = #expect(throws: PersistenceError.self) { try context.fetch(FetchRequest<Dog>()) }
    #expect(error?.code == .expiredGeneration)
    #expect(throws: PersistenceError.self) { try kennels.theirs.setQueryGeneration(from: token) }
    try context.setQueryGeneration(from: nil)
    #expect(try namesOfDogs(context) == ["Fido", "Rex"])
  }

  /// New objects can be saved, and then the context reads the newest generation, with the same limit.
  /// A store whose next fetch waits for a signal.
  private final class HeldStore: ForwardingStore {
    let base: any IncrementalStore = MemoryStore()
    let holdsNext = Atomic(false), isHeld = Atomic(false)
    let released = DispatchSemaphore(value: 0)

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      if holdsNext.exchange(false, ordering: .sequentiallyConsistent) {
        isHeld.store(true, ordering: .sequentiallyConsistent)
        released.wait()
      }
      try base.fetch(plan, in: view, options: options, into: sink)
    }
  }

  /// The bug: it waited until the fetch of the other context had ended.
  @Test func aFetchThatWaitsForAnotherOneOfItsGenerationEndsAtItsDeadline() async throws {
    let held = HeldStore(), description = StoreDescription(type: "held") { held }
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: description)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    try context.setQueryGeneration(from: .current)
    let token = try #require(context.queryGenerationToken)
    held.holdsNext.store(true, ordering: .sequentiallyConsistent)
    let other = Task {
      try await onThread {
        let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
        try context.setQueryGeneration(from: token)
        return try context.fetch(FetchRequest<Dog>()).count
      }
    }
    #expect(await eventually { held.isHeld.load(ordering: .sequentiallyConsistent) })
    context.requestTimeout = .milliseconds(20)
    let error = #expect(throws: StoreError.self) { try context.fetch(FetchRequest<Dog>()) }
    #expect(error?.code == .timedOut)
    held.released.signal()
    #expect(try await other.value == 0)
    context.requestTimeout = nil
    #expect(try context.fetch(FetchRequest<Dog>()).isEmpty)
  }

  @Test(arguments: stores) func nothingIsLostWhenAGenerationEnds(_ store: TestStore) throws {
    let kennels = try Kennels(store), context = kennels.ours
    try context.setQueryGeneration(from: .current, timeLimit: .seconds(3600))
    let views = try #require(context.queryGenerationToken?.views)
    views.endViews()
    #expect(throws: PersistenceError.self) { try context.fetch(FetchRequest<Dog>()) }
    context.person("Cleo")
    try context.save()
    #expect(try context.count(for: FetchRequest<Person>()) == 3)
    let next = try #require(context.queryGenerationToken?.views)
    #expect(next !== views && !next.hasEnded && next.timeLimit == .seconds(3600))
    next.endViews()
    try context.setQueryGeneration(from: nil)
    #expect(try namesOfDogs(context) == ["Fido", "Rex"])
  }

  @Test func sqliteLimitsTheNumberOfGenerations() throws {
    let kennels = try Kennels(.sqlite)
    var contexts = try (0..<4).map { _ in try kennels.place.context() }
    for context in contexts { try context.setQueryGeneration(from: .current) }
    let error = #expect(throws: StoreError.self) { try kennels.ours.setQueryGeneration(from: .current) }
    #expect(error?.code == .tooManyReadViews && kennels.ours.queryGenerationToken == nil)
    // A context that goes on releases its generation first.
    contexts[0].person("Cleo")
    try contexts[0].save()
    #expect(try contexts[0].count(for: FetchRequest<Person>()) == 3)
    // A released context releases its generation.
    contexts.removeLast()
    try kennels.ours.setQueryGeneration(from: .current)
    #expect(try namesOfDogs(kennels.ours) == ["Fido", "Rex"])
  }

  /// A token keeps the context's own generation, so releasing it makes no room for another one.
  @Test func aContextThatCannotBeginAGenerationReadsTheFormerOne() throws {
    let kennels = try Kennels(.sqlite), context = kennels.ours
    let others = try (0..<3).map { _ in try kennels.place.context() }
    for context in others + [context] { try context.setQueryGeneration(from: .current) }
    let token = try #require(context.queryGenerationToken)
    try kennels.change()
    let error = #expect(throws: StoreError.self) { try context.setQueryGeneration(from: .current) }
    #expect(error?.code == .tooManyReadViews && context.queryGenerationToken == token)
    #expect(try namesOfDogs(context) == ["Fido", "Rex"])
    withExtendedLifetime(others) {}
  }

  @Test(arguments: stores) func aRemovedStoreIsMissingFromTheGeneration(_ store: TestStore) throws {
    let kennels = try Kennels(store), coordinator = try kennels.place.coordinator()
    try kennels.ours.setQueryGeneration(from: .current)
    let fido = try #require(try kennels.ours.one(Dog.self) { $0.name == "Fido" })
    try coordinator.remove(try #require(coordinator.persistentStores.last))
    #expect(throws: PersistenceError.self) { try kennels.ours.fetch(FetchRequest<Dog>()) }
    #expect(fido.name == "" && fido.isInaccessible)
  }

  @Test func storesOfATokenMayBeRemovedAndOthersAdded() throws {
    let stack = try StorePack([.memory, .sqlite]), setup = try stack.context()
    for (number, store) in stack.stores.enumerated() { try setup.assign(setup.dog("Dog \(number)"), to: store) }
    try setup.save()
    let first = try stack.context(), second = try stack.context()
    try first.setQueryGeneration(from: .current)
    let token = first.queryGenerationToken
    try stack.coordinator.remove(stack.stores[1])
    try second.setQueryGeneration(from: token)
    for context in [first, second] { #expect(try context.fetch(FetchRequest<Dog>()).map(\.name) == ["Dog 0"]) }
    // A store that is added later isn't part of the generation.
    try stack.coordinator.addPersistentStore(.memory())
    let other = try stack.context(), dog = other.dog("Later")
    try other.assign(dog, to: stack.coordinator.persistentStores[1])
    dog.friends.insert(other.dog("Friend"))
    try other.assign(dog.friends.first ?? dog, to: stack.coordinator.persistentStores[1])
    try other.save()
    #expect(try second.count(for: FetchRequest<Dog>()) == 1)
    let later = try second.dog(of: dog.objectID)
    #expect(throws: PersistenceError.self) { try second.reading { later.friends.count } }
    try second.setQueryGeneration(from: nil)
    #expect(later.friends.count == 1)
  }

  @Test func aContextCanGoOnWhenAllGenerationsAreInUse() throws {
    let place = try TestStore.sqlite.makePlace(), contexts = try (0..<4).map { _ in try place.context() }
    for context in contexts { try context.setQueryGeneration(from: .current) }
    for context in contexts { try context.setQueryGeneration(from: .current) }
    for context in contexts { #expect(try context.count(for: FetchRequest<Dog>()) == 0) }
  }

  // MARK: Several stores

  @Test(arguments: StorePair.allCases.filter { !$0.kinds.contains(.weakest) })
  func aGenerationIsOfAllStores(_ pair: StorePair) throws {
    let stack = try StorePack(pair), setup = try stack.context()
    for store in stack.coordinator.persistentStores {
      for number in 0..<3 { try setup.assign(setup.dog("Dog \(number)", age: number), to: store) }
    }
    try setup.save()
    let ours = try stack.context(), theirs = try stack.context()
    try ours.setQueryGeneration(from: .current)
    for dog in try theirs.fetch(FetchRequest<Dog>()) { dog.name = "Changed" }
    for store in stack.coordinator.persistentStores { try theirs.assign(theirs.dog("New", age: 9), to: store) }
    try theirs.save()
    let sorted = FetchRequest<Dog>(sortedBy: [.descending(\.age), .ascending(\.name)])
    let names = ["Dog 2", "Dog 2", "Dog 1", "Dog 1", "Dog 0", "Dog 0"]
    #expect(try ours.fetch(sorted).map(\.name) == names && ours.count(for: sorted) == 6)
    try ours.setQueryGeneration(from: nil)
    try ours.refreshAllObjects()
    #expect(try ours.fetch(sorted).map(\.name) == ["New", "New"] + names.map { _ in "Changed" })
  }

  // MARK: Random programs

  /// Contexts that are pinned at random moments keep seeing the state of that moment. Prints its seed if it fails.
  @Test(arguments: stores) func pinnedContextsSeeTheStateOfTheirMoment(_ store: TestStore) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(3, full: 100) {
      let place = try store.makePlace()
      try MergeRound.fill(place, &random)
      let writer = try place.context()
      var pinned: [(context: ManagedObjectContext, state: KennelState)] = []
      for step in 0..<12 {
        let comment = Comment(rawValue: "seed \(random.seed), round \(round), step \(step) on \(store)")
        if pinned.count == 3 { pinned.remove(at: Int.random(in: 0..<3, using: &random)) }
        let context = try place.context()
        try context.setQueryGeneration(from: .current)
        let state = try KennelState(place.context())
        // Some contexts have read nothing before the saves.
        if Bool.random(using: &random) { #expect(try KennelState(context) == state, comment) }
        pinned.append((context, state))
        try MergeRound.change(writer, &random)
        if Bool.random(using: &random) { writer.dog("New", age: step).chip = Int64(100 + step) }
        try writer.save()
        for (context, state) in pinned {
          #expect(try KennelState(context) == state, comment)
          if Bool.random(using: &random) { try context.refreshAllObjects() }
        }
      }
    }
  }
}

extension ManagedObjectContext {
  fileprivate func dog(of id: ManagedObjectID) throws -> Dog { try #require(try object(with: id) as? Dog) }
}
