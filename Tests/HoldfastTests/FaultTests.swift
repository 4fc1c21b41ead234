import Foundation
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// The requests that reach a store, and operations that need no request.
@Suite struct FaultTests {
  /// Saved dogs with owners and friends.
  private func kennel(_ store: TestStore, dogs count: Int) throws -> TestStore.Place {
    let place = try store.makePlace()
    let context = try place.context()
    let people = (0..<max(1, count / 10)).map { context.person("person \($0)") }
    let dogs = (0..<count).map { context.dog("dog \($0)", age: $0 % 20, owner: people[$0 % people.count]) }
    for (number, dog) in dogs.enumerated() { dog.friends.insert(dogs[(number + 1) % count]) }
    try context.save()
    return place
  }

  private func reads(_ store: RecordingStore) -> [RecordedRequest] {
    store.requests.filter {
      switch $0 {
      case .fetch, .rows, .relationships: true
      default: false
      }
    }
  }

  @Test(arguments: TestStore.withChild) func walkingAThousandObjectsTakesAHandfulOfRequests(_ store: TestStore) throws {
    let (context, recorder) = try kennel(store, dogs: 1000).recording()
    let dogs = try context.fetch(FetchRequest<Dog>())
    var length = 0
    for dog in dogs {
      length += dog.owner?.name.utf8.count ?? 0
      for friend in dog.friends { length += friend.name.utf8.count }
    }
    #expect(length > 10_000)
    // A store with resident rows gets single requests for a few objects before one for all others.
    #expect(reads(recorder).count <= (store.hasResidentRows ? 100 : 8), "\(reads(recorder).count) requests")
  }

  /// The dogs are released before their owners are read.
  @Test(arguments: TestStore.withChild) func destinationsOfReleasedObjectsAreReadTogether(_ store: TestStore) throws {
    let (context, recorder) = try kennel(store, dogs: 400).recording()
    let owners = try context.fetch(FetchRequest<Dog>()).compactMap(\.owner)
    recorder.clear()
    for owner in owners { #expect(owner.name.hasPrefix("person")) }
    // A store with resident rows gets single requests for 32 of the 40 owners.
    #expect(reads(recorder).count <= (store.hasResidentRows ? 33 : 2), "\(reads(recorder).count) requests")
  }

  @Test(arguments: TestStore.withChild) func withoutBatchingEveryFaultIsARequestOfItsOwn(_ store: TestStore) throws {
    let (context, recorder) = try kennel(store, dogs: 40).recording()
    context.firesFaultsInBatches = false
    let dogs = try context.fetch(FetchRequest<Dog>())
    let owners = dogs.compactMap(\.owner)
    for owner in owners { _ = owner.name }
    let single = reads(recorder).filter { if case .rows(let request) = $0 { request.keys.count == 1 } else { false } }
    #expect(single.count == 4)
  }

  @Test(arguments: TestStore.withChild) func whatWasReadIsServedWithoutTheStore(_ store: TestStore) throws {
    let (context, recorder) = try kennel(store, dogs: 50).recording()
    let dogs = try context.fetch(FetchRequest<Dog>())
    for dog in dogs { _ = (dog.owner?.name, dog.friends.map(\.name)) }
    recorder.clear()
    recorder.withStoreBlocked {
      for dog in dogs {
        #expect(dog.owner?.name.hasPrefix("person") == true)
        #expect(dog.friends.first { _ in true }?.name.hasPrefix("dog") == true)
        #expect(dog.friends.count == 1)
      }
    }
    #expect(context.faultError == nil)
    #expect(recorder.requests.isEmpty)
  }

  @Test(arguments: TestStore.withChild) func settingAnInverseReadsNoRelationship(_ store: TestStore) throws {
    let (context, recorder) = try kennel(store, dogs: 30).recording()
    let owner = try #require(try context.one(Person.self) { $0.name == "person 0" })
    let dog = try #require(try context.one(Dog.self) { $0.name == "dog 1" })
    recorder.clear()
    for number in 0..<100 {
      let fresh = context.dog("new \(number)", owner: owner)
      dog.friends.insert(fresh)
    }
    #expect(recorder.requests.isEmpty)
    #expect(owner.dogs.count == 110)
    #expect(reads(recorder).count == 1)
  }

  @Test(arguments: TestStore.withChild) func insertingAndSavingNothingAsksNothing(_ store: TestStore) throws {
    let (context, recorder) = try kennel(store, dogs: 3).recording()
    try context.save()
    #expect(recorder.requests.isEmpty)
    let dog = context.dog("never saved")
    dog.age = 4
    _ = (dog.name, dog.friends.count, dog.owner, context.hasChanges, context.insertedObjects)
    context.delete(dog)
    try context.save()
    #expect(recorder.requests.isEmpty)
  }

  @Test(arguments: TestStore.withChild) func aSaveSendsOnlyWhatChanged(_ store: TestStore) throws {
    let (context, recorder) = try kennel(store, dogs: 20).recording()
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    dogs[0].age = 90
    dogs[1].age = dogs[1].age
    dogs[2].friends.insert(dogs[3])
    recorder.clear()
    try context.save()
    let saves = recorder.requests.compactMap { if case .prepare(let save) = $0 { save } else { nil } }
    let save = try #require(saves.first)
    #expect(saves.count == 1)
    let changes = try #require(save.entities[dogs[0].entity.index])
    #expect(changes.updated[dogs[0].objectID.key] == [Dog.Slot.age])
    #expect(changes.updated[dogs[1].objectID.key] == nil)
    #expect(changes.updated[dogs[2].objectID.key] == [] && changes.updated[dogs[3].objectID.key] == [])
    #expect(save.entities.count == 1 && save.links.count == 1 && save.links[0].added.count == 1 && save.links[0].removed.isEmpty)
  }

  @Test(arguments: TestStore.withChild) func faultsWhoseLinksChangedAreReadTogetherByTheSave(_ store: TestStore) throws {
    let place = try kennel(store, dogs: 300)
    let ids = try place.context().fetchObjectIDs(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    let (context, recorder) = try place.recording()
    let coordinator = context.persistentStoreCoordinator
    let dogs = try ids.map { try #require(coordinator.managedObjectID(forURIRepresentation: $0.uriRepresentation)) }
      .compactMap { try context.object(with: $0) as? Dog }
    for (number, dog) in dogs.enumerated() { dog.friends.insert(dogs[(number + 7) % dogs.count]) }
    #expect(recorder.requests.isEmpty)
    try context.save()
    #expect(reads(recorder).count <= 2, "\(reads(recorder).count) requests")
    #expect(dogs[0].friends.contains(dogs[7]))
  }

  @Test(arguments: TestStore.withChild) func anObjectIsTheSameObjectWheneverItIsMet(_ store: TestStore) throws {
    let context = try kennel(store, dogs: 20).context()
    let dogs = try context.fetch(FetchRequest<Dog>())
    for dog in dogs {
      #expect(try context.object(with: dog.objectID) === dog)
      #expect(dog.owner === dog.owner)
      for friend in dog.friends { #expect(dogs.contains { $0 === friend }) }
    }
    #expect(try context.fetch(FetchRequest<Dog> { $0.age > 3 }).allSatisfy { found in dogs.contains { $0 === found } })
  }

  /// A client can send any URI, also that of the next new object.
  @Test(arguments: TestStore.withChild)
  func aNewObjectIsTheOnlyOneWithItsIDAlsoIfTheProgramHasFaultsWithTheNextIDs(_ store: TestStore) throws {
    let context = try kennel(store, dogs: 3).context(), dogs = try context.fetch(FetchRequest<Dog>())
    let last = try #require(dogs.map(\.objectID).max { $0.key < $1.key })
    let faults = try (1...4).map { try context.object(with: last.withKey(last.key.advanced(by: $0))) }
    let new = (0..<2).map { context.dog("new \($0)") }
    try context.save()
    let unsaved = context.dog("unsaved")
    try context.obtainPermanentIDs(for: [unsaved])
    let ids = (dogs + new + [unsaved]).map(\.objectID) + faults.map(\.objectID)
    #expect(Set(ids).count == 10 && !unsaved.objectID.isTemporaryID)
    for dog in new {
      #expect(context.registeredObject(for: dog.objectID) === dog)
      #expect(try context.existingObject(with: dog.objectID) === dog)
    }
    let found = try context.fetch(FetchRequest<Dog> { $0.name != "unsaved" })
    #expect(Set(found) == Set(dogs + new))
    for fault in faults { #expect(throws: PersistenceError.self) { try context.existingObject(with: fault.objectID) } }
  }

  @Test(arguments: TestStore.withChild) func unreferencedObjectsAreReleased(_ store: TestStore) throws {
    let context = try kennel(store, dogs: 100).context()
    do {
      let dogs = try context.fetch(FetchRequest<Dog>())
      #expect(context.registeredObjects.count == 100 && dogs.count == 100)
    }
    #expect(context.registeredObjects.isEmpty)
    do {
      let dog = try #require(try context.one(Dog.self) { $0.name == "dog 7" })
      dog.age = 99
    }
    #expect(context.registeredObjects.count == 1)
    try context.save()
    #expect(context.registeredObjects.isEmpty)
  }

  @Test(arguments: TestStore.withChild) func aStoreThatFailsWhileAFaultIsReadNeverTraps(_ store: TestStore) throws {
    let place = try kennel(store, dogs: 10)
    let faulty = FaultInjectingStoreBox()
    let (context, _) = try place.recording { base in
      let store = FaultInjectingStore(base)
      faulty.store = store
      return store
    }
    let dog = try #require(try context.one(Dog.self) { $0.name == "dog 1" })
    let failing = try #require(faulty.store)
    failing.fail(.rows, with: StoreError(.inputOutput, operation: "read", reason: "The test says so."))
    let owner = try #require(dog.owner)
    #expect(owner.name == "" && owner.isInaccessible)
    #expect((context.faultError as? StoreError)?.code == .inputOutput)
    failing.clear()
    #expect((try context.existingObject(with: owner.objectID) as? Person)?.name == "person 0")
    #expect(!owner.isInaccessible)
  }

  @Test(arguments: TestStore.withChild) func aSaveThatFailsAtAnyStepLeavesStoreAndContextAsTheyWere(_ store: TestStore) throws {
    for call in [FaultInjectingStore.Call.reserveKeys, .prepare, .commit] {
      let place = try kennel(store, dogs: 4)
      let box = FaultInjectingStoreBox()
      let (context, _) = try place.recording { base in
        let store = FaultInjectingStore(base)
        box.store = store
        return store
      }
      let failing = try #require(box.store)
      let dog = try #require(try context.one(Dog.self) { $0.name == "dog 1" })
      dog.age = 77
      let fresh = context.dog("fresh", owner: dog.owner)
      failing.fail(call, with: StoreError(.diskFull, operation: "save", reason: "The test says so.", isRetryable: true))
      let error = #expect(throws: StoreError.self) { try context.save() }
      #expect(error?.code == .diskFull)
      #expect(context.hasChanges && dog.isUpdated && fresh.isInserted && fresh.objectID.isTemporaryID && dog.age == 77)
      failing.clear()
      #expect(try context.persistentStoreCoordinator.count(FetchQuery(entity: dog.entity)) == 4)
      try context.save()
      #expect(try context.persistentStoreCoordinator.count(FetchQuery(entity: dog.entity)) == 5)
      #expect(!context.hasChanges && !fresh.objectID.isTemporaryID)
    }
  }

  @Test(arguments: TestStore.withChild) func aBackgroundContextThatGoesWithChangesGivesTheStoreBack(_ store: TestStore) async throws {
    let place = try store.makePlace()
    func leaveChanges() async throws {
      let container = try PersistentContainer(model: Kennel.model, classes: Kennel.classes, store: place.description)
      let count = try await container.performBackgroundTask { context in
        context.dog("never saved")
        return try context.count(for: FetchRequest<Dog>())
      }
      #expect(count == 1)
    }
    try await leaveChanges()
    // The context is released on its own queue. Until then, the store is open.
    let isClosed = try await eventually {
      do {
        try await leaveChanges()
        return true
      } catch let error as StoreError where error.code == .alreadyOpen { return false }
    }
    #expect(isClosed)
  }

  /// In its own process, because other tests allocate memory as well.
  @Test(.ownThreads) func aMillionObjectsAreWalkedInConstantMemory() async {
    await #expect(processExitsWith: .success) {
      let context = try TestStore.memory.makePlace().context()
      for batch in 0..<20 {
        for number in 0..<1000 { context.dog("dog \(batch) \(number)", age: number % 30) }
        try context.save()
      }
      var walked = 0
      var sum = 0
      func walk(_ times: Int) throws {
        for _ in 0..<times {
          for dog in try context.fetch(FetchRequest<Dog>()) { sum += dog.age }
          walked += 20_000
        }
      }
      try walk(5)
      let before = residentBytes()
      try walk(45)
      precondition(walked == 1_000_000 && sum > 0 && context.registeredObjects.isEmpty)
      precondition(residentBytes() - before < 8 << 20, "The walk took \(residentBytes() - before) bytes.")
    }
  }
}

private func residentBytes() -> Int {
  let statm = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
  return (statm.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
}

/// Gives a test access to the store that a description created. Used by one test, on one thread.
private final class FaultInjectingStoreBox: @unchecked Sendable {  // because each test reads it after the store was made
  var store: FaultInjectingStore?
}
