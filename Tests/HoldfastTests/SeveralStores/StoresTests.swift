import Foundation
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

@testable import Holdfast

/// Contents of a memory store that are opened in several ways.
struct MemoryStoreContentsBox {
  let contents = MemoryStoreContents()
  var readOnly: StoreDescription { .memory(contents: contents, isReadOnly: true) }

  func fill() throws {
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: .memory(contents: contents))
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    context.dog("old")
    try context.save()
    try coordinator.close()
  }
}

/// Adding and removing stores, configurations, and metadata.
@Suite struct StoresTests {
  // MARK: Costs

  /// The bug: each fault asked all stores whether another process has saved.
  @Test func aFaultLooksForOtherSavesOnlyInTheStoreOfItsObject() throws {
    let checks = [SaveChecks(), SaveChecks(), SaveChecks()]
    let coordinator = try PersistentStoreCoordinator(
      model: Kennel.model,
      stores: checks.map { checks in MinimalStore.description(contents: MinimalStore.Contents()).wrapped { CheckedStore($0, checks) } })
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let dogs = (0..<10).map { context.dog("Dog \($0)") }
    for dog in dogs { try context.assign(dog, to: coordinator.persistentStores[1]) }
    try context.save()
    let other = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let before = checks.map { $0.count.load(ordering: .relaxed) }
    for dog in dogs {
      let same = try #require(try other.object(with: dog.objectID) as? Dog)
      #expect(same.isFault && same.name == dog.name)
    }
    let counts = zip(checks, before).map { $0.count.load(ordering: .relaxed) - $1 }
    #expect(counts == [0, 10, 0])
  }

  // MARK: Errors

  /// The bug: objects of several stores that a fetch had found together were read together, so an error of one store concerned all of them.
  @Test(arguments: StorePair.allCases, [0, 1]) func objectsAreReadWhileAnotherStoreCannotBeRead(_ pair: StorePair, _ broken: Int) throws {
    let pack = try StorePack(pair), setup = try pack.context()
    for (number, store) in pack.stores.enumerated() {
      let owner = setup.person("Owner \(number)"), dog = setup.dog("Dog \(number)", owner: owner)
      for object in [owner, dog] as [ManagedObject] { try setup.assign(object, to: store) }
    }
    try setup.save()
    let context = try pack.context(), dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    let other = try pack.context(), people = try other.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
    pack.coordinator.rowCache.removeAll()
    for call in [FaultInjectingStore.Call.rows, .relationships] {
      for number in 1...20 {
        pack.faults[broken].fail(call, onCall: number, with: StoreError(.inputOutput, operation: "read", reason: "A test said so."))
      }
    }
    let readable = 1 - broken
    let owners = dogs.map { $0.owner?.name }
    #expect(owners[readable] == "Owner \(readable)" && owners[broken] == "")
    let lists = people.map { $0.dogs.map(\.name) }
    #expect(lists[readable] == ["Dog \(readable)"] && lists[broken].isEmpty)
    // The error concerns only the objects of the broken store.
    dogs[readable].age = 9
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .unreadValues && error.objectIDs == [people[broken].objectID])
    context.acknowledgeFaultErrors()
    try context.save()
  }

  // MARK: Adding and removing

  @Test(arguments: StorePair.allCases) func aStoreThatIsAddedIsSeenByTheNextFetch(_ pair: StorePair) throws {
    let place = try pair.kinds[1].makePlace()
    let filler = try place.context()
    filler.dog("added", owner: filler.person("Ann"))
    try filler.save()
    try place.close()
    let first = try pair.kinds[0].makePlace(), coordinator = try first.coordinator()
    let context = try first.context()
    context.dog("there", owner: context.person("Bob"))
    try context.save()
    let added = try coordinator.addPersistentStore(place.description)
    #expect(coordinator.persistentStores.count == 2 && coordinator.persistentStores[1] == added)
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(dogs.map(\.name) == ["added", "there"] && dogs.map { $0.owner?.name } == ["Ann", "Bob"])
  }

  @Test(arguments: StorePair.allCases) func objectsOfARemovedStoreAreInaccessibleAndNothingTraps(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let stays = context.dog("stays"), goes = context.dog("goes"), changed = context.dog("changed"), waiting = context.dog("waiting")
    waiting.friends.insert(goes)
    for dog in [goes, changed, waiting] { try context.assign(dog, to: pack.stores[1]) }
    try context.save()
    changed.age = 9
    let new = context.dog("new")
    try context.assign(new, to: pack.stores[1])
    let removed = pack.stores[1], id = goes.objectID
    try pack.coordinator.remove(removed)
    #expect(pack.stores.count == 1 && pack.coordinator.persistentStore(for: id) == nil)
    #expect(pack.coordinator.managedObjectID(forURIRepresentation: id.uriRepresentation) == nil)
    #expect(throws: StoreError.self) { try removed.setMetadata([:]) }
    // Fetches don't return its saved objects.
    #expect(try pack.context().fetch(FetchRequest<Dog>()).map(\.name) == ["stays"])
    #expect(try context.fetch(FetchRequest<Dog> { $0.name == "goes" }).isEmpty)
    // Reading its objects returns nothing and records the reason.
    #expect(goes.name.isEmpty && goes.isInaccessible && goes.friendOf.isEmpty)
    #expect((context.faultError as? PersistenceError)?.code == .missingStore)
    #expect(try #require(throws: PersistenceError.self) { try context.existingObject(with: id) }.code == .missingStore)
    // A save that may depend on unread values is refused.
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .unreadValues)
    context.acknowledgeFaultErrors()
    // Their changes can't be saved, but can be discarded.
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .missingStore && Set(error.objectIDs) == [changed.objectID, new.objectID])
    context.delete(goes)
    #expect(throws: PersistenceError.self) { try context.save() }
    context.rollback()
    stays.age = 4
    try context.save()
    #expect(try pack.context().fetch(FetchRequest<Dog>()).map(\.age) == [4])
    #expect(throws: StoreError.self) { try pack.coordinator.remove(removed) }
  }

  @Test(arguments: StorePair.allCases) func objectsOfARemovedStoreBecomeInaccessibleWhenTheirContextSaves(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let stays = context.dog("stays"), goes = context.dog("goes")
    try context.assign(goes, to: pack.stores[1])
    try context.save()
    try pack.coordinator.remove(pack.stores[1])
    #expect(goes.name == "goes" && !goes.isInaccessible)
    stays.age = 4
    try context.save()
    #expect(goes.name.isEmpty && goes.isInaccessible)
    #expect((context.faultError as? PersistenceError)?.code == .missingStore)
    #expect(try pack.context().fetch(FetchRequest<Dog>()).map(\.age) == [4])
  }

  /// The bug: an object whose changes were rolled back showed its values forever.
  @Test(arguments: StorePair.allCases) func changedObjectsOfARemovedStoreBecomeInaccessibleAfterARollback(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let stays = context.dog("stays"), changed = context.dog("changed"), deleted = context.dog("deleted")
    for dog in [changed, deleted] { try context.assign(dog, to: pack.stores[1]) }
    try context.save()
    changed.age = 9
    context.delete(deleted)
    try context.processPendingChanges()
    try pack.coordinator.remove(pack.stores[1])
    _ = try context.fetch(FetchRequest<Dog>())
    #expect(changed.age == 9 && !changed.isInaccessible && deleted.isDeleted)
    context.rollback()
    #expect(try context.fetch(FetchRequest<Dog>()) == [stays])
    #expect(changed.name.isEmpty && changed.isInaccessible && deleted.name.isEmpty && deleted.isInaccessible)
    #expect((context.faultError as? PersistenceError)?.code == .missingStore)
    context.acknowledgeFaultErrors()
    stays.age = 4
    try context.save()
  }

  /// The bug: a fetch returned changed objects of a removed store, and threw an error if one of them hadn't been read.
  @Test(arguments: StorePair.allCases) func aFetchLeavesOutChangedObjectsOfARemovedStore(_ pair: StorePair) throws {
    let pack = try StorePack(pair), setup = try pack.context()
    let stays = setup.dog("stays"), changed = setup.dog("changed"), unread = setup.dog("unread")
    for dog in [changed, unread] { try setup.assign(dog, to: pack.stores[1]) }
    try setup.save()
    let context = try pack.context(), read = try context.existingDog(changed.objectID)
    let fault = try #require(try context.object(with: unread.objectID) as? Dog)
    read.age = 9
    read.friends.insert(fault)
    #expect(fault.isFault && fault.isUpdated)
    try pack.coordinator.remove(pack.stores[1])
    let all = FetchRequest<Dog>()
    #expect(try context.fetch(all).map(\.name) == ["stays"] && context.count(for: all) == 1)
    #expect(try context.fetchObjectIDs(all) == [stays.objectID])
    #expect(context.faultError == nil && read.age == 9 && read.isUpdated)
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .missingStore)
  }

  /// The bug: the delete rules of the object couldn't be applied, and references to it couldn't be cleared, so fetches threw an error.
  @Test(arguments: StorePair.allCases) func aDeletedObjectOfARemovedStorePreventsNoFetch(_ pair: StorePair) throws {
    let pack = try StorePack(pair), setup = try pack.context()
    let stays = setup.dog("stays", owner: setup.person("Ann")), dog = setup.dog("deleted"), person = setup.person("deleted")
    for object in [dog, person] as [ManagedObject] { try setup.assign(object, to: pack.stores[1]) }
    try setup.save()
    let context = try pack.context()
    for object in [dog, person] as [ManagedObject] { context.delete(try context.object(with: object.objectID)) }
    try pack.coordinator.remove(pack.stores[1])
    #expect(try context.fetchObjectIDs(FetchRequest<Dog>()) == [stays.objectID])
    #expect(try context.fetchObjectIDs(FetchRequest<Dog> { $0.owner.name == "Ann" }) == [stays.objectID])
    #expect(context.faultError == nil)
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .missingStore)
    context.rollback()
    try context.save()
  }

  @Test(arguments: StorePair.allCases) func mergingKeepsUnsavedChangesOfARemovedStore(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context(), other = try pack.context()
    let dog = context.dog("changed")
    try context.assign(dog, to: pack.stores[1])
    try context.save()
    context.automaticallyMergesChanges = true
    context.mergePolicy = .mergeByPropertyStoreTrump
    dog.age = 9
    try other.existingDog(dog.objectID).age = 5
    try other.save()
    try pack.coordinator.remove(pack.stores[1])
    try context.processPendingChanges()
    #expect(dog.age == 9 && dog.isUpdated)
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .missingStore)
  }

  @Test(arguments: StorePair.allCases) func theFirstStoreCanBeRemoved(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let a = context.dog("a"), b = context.dog("b")
    try context.assign(b, to: pack.stores[1])
    try context.save()
    try pack.coordinator.remove(pack.stores[0])
    #expect(try context.fetch(FetchRequest<Dog>()) == [b])
    #expect(a.name.isEmpty && a.isInaccessible)
    context.acknowledgeFaultErrors()
    b.friends.insert(context.dog("c"))
    try context.save()
    let dogs = try pack.context().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(dogs.map(\.name) == ["b", "c"] && Array(dogs[0].friends) == [dogs[1]])
    #expect(Set(dogs.map(\.objectID.storeIdentifier)) == [pack.stores[0].identifier])
    // A link to an object of the removed store can't be saved.
    b.friends.insert(a)
    #expect(throws: PersistenceError.self) { try context.save() }
  }

  @Test func ofThreeStoresTheMiddleOneGoes() throws {
    let pack = try StorePack([.memory, .sqlite, .weakest]), context = try pack.context()
    for index in 0..<30 {
      let dog = context.dog("d\(index)", age: index / 4)
      try context.assign(dog, to: pack.stores[index % 3])
      if index >= 3, let friend = try context.one(Dog.self, where: { $0.name == "d\(index - 3)" }) { dog.friends.insert(friend) }
    }
    try context.save()
    let sorts: [FetchSortDescriptor<Dog>] = [.descending(\.age)]
    let dogs = try pack.context().fetch(FetchRequest<Dog>(sortedBy: sorts))
    #expect(dogs.map(\.age) == dogs.map(\.age).sorted(by: >))
    // Objects that are equal in all sorts are in the order of their stores.
    let places = dogs.filter { $0.age == 5 }.compactMap { pack.coordinator.persistentStore(for: $0.objectID) }.map(\.place)
    #expect(places == places.sorted() && Set(places) == [0, 1, 2])
    try pack.coordinator.remove(pack.stores[1])
    let rest = try pack.context().fetch(FetchRequest<Dog>(sortedBy: sorts, limit: 15))
    #expect(rest.count == 15 && rest.allSatisfy { dog in dog.friends.allSatisfy { !$0.name.isEmpty } })
    #expect(try context.count(for: FetchRequest<Dog>()) == 20)
  }

  @Test func aStoreThatWasRemovedCanBeAddedAgain() throws {
    let contents = MemoryStoreContents()
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: [.memory(), .memory(contents: contents)])
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let dog = context.dog("d")
    try context.assign(dog, to: coordinator.persistentStores[1])
    try context.save()
    try coordinator.remove(coordinator.persistentStores[1])
    try coordinator.addPersistentStore(.memory(contents: contents))
    let again = try context.existingObject(with: dog.objectID)
    #expect(try again.value(forKey: "name") == .string("d") && again.objectID == dog.objectID)
    (again as? Dog)?.age = 3
    try context.save()
    #expect(try context.count(for: FetchRequest<Dog> { $0.age == 3 }) == 1)
  }

  @Test func aCoordinatorCanBeginWithoutAnyStore() throws {
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: [])
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let dog = context.dog("d")
    #expect(try #require(throws: PersistenceError.self) { try context.fetch(FetchRequest<Dog>()) }.code == .noStoreForEntity)
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .noStoreForEntity)
    #expect(throws: StoreError.self) { try coordinator.setMetadata([:]) }
    let store = try coordinator.addPersistentStore(.memory())
    try context.save()
    #expect(dog.objectID.storeIdentifier == store.identifier && coordinator.storeIdentifier == store.identifier)
  }

  @Test func theSameStoreIsNotOpenedTwice() throws {
    let contents = MemoryStoreContents()
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: .memory(contents: contents))
    #expect(try #require(throws: StoreError.self) { try coordinator.addPersistentStore(.memory(contents: contents)) }.code == .alreadyOpen)
    #expect(coordinator.persistentStores.count == 1)
  }

  @Test func aCopyOfAFileIsRefused() throws {
    let place = try TestStore.sqlite.makePlace()
    try place.context().save()
    try place.close()
    let file = place.folder.appendingPathComponent("Kennel.sqlite"), copy = place.folder.appendingPathComponent("Copy.sqlite")
    try FileManager.default.copyItem(at: file, to: copy)
    let coordinator = try place.coordinator()
    let error = try #require(throws: StoreError.self) { try coordinator.addPersistentStore(.sqlite(at: copy.path)) }
    #expect(error.code == .alreadyOpen && error.reason.contains("UUID"))
    #expect(try PersistentStoreCoordinator.metadata(for: .sqlite(at: copy.path)).storeUUID == coordinator.storeIdentifier)
  }

  @Test func placesComeToAnEnd() throws {
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: .memory())
    for _ in 0..<126 { try coordinator.remove(coordinator.addPersistentStore(.memory())) }
    #expect(throws: StoreError.self) { try coordinator.addPersistentStore(.memory()) }
    #expect(try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes).fetch(FetchRequest<Dog>()).isEmpty)
  }

  @Test func oneOfSeveralThatCannotBeOpenedClosesTheOthers() throws {
    let contents = MemoryStoreContents()
    #expect(throws: StoreError.self) {
      _ = try PersistentStoreCoordinator(
        model: Kennel.model, stores: [.memory(contents: contents), .memory().with(configuration: "unknown")])
    }
    _ = try PersistentStoreCoordinator(model: Kennel.model, store: .memory(contents: contents))
  }

  @Test func storesComeAndGoWhileOthersReadAndSave() async throws {
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: .memory())
    let filler = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    for index in 0..<50 { filler.dog("d\(index)") }
    try filler.save()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<2 {
        group.addTask {
          let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
          for round in 0..<60 {
            // Removing a store may make a fetch fail with this error only.
            do {
              let count = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).count
              #expect(count >= 50)
            } catch let error as StoreError { #expect(error.code == .notOpen, "\(error)") }
            if number == 0 {
              try context.assign(context.dog("n\(round)"), to: coordinator.persistentStores[0])
              try context.save()
            }
          }
        }
      }
      group.addTask {
        for _ in 0..<40 {
          let store = try coordinator.addPersistentStore(.memory())
          let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
          try context.assign(context.dog("passing"), to: store)
          try context.save()
          try coordinator.remove(store)
        }
      }
      try await group.waitForAll()
    }
    #expect(try filler.count(for: FetchRequest<Dog>()) == 110)
  }

  @Test(arguments: [false, true]) func closingWaitsForAStoreThatIsBeingAdded(_ destroys: Bool) async throws {
    let folder = TemporaryFolder(), progress = AddingProgress()
    let first = StoreDescription.memory().wrapped { WatchedStore($0, willClose: { progress.firstIsClosed.signal() }) }
    let added = StoreDescription.sqlite(at: folder.file("added.sqlite")).wrapped {
      WatchedStore($0, willOpen: { progress.open() }, willClose: { progress.isClosed.store(true, ordering: .releasing) })
    }
    let container = try PersistentContainer(model: Kennel.model, classes: Kennel.classes, stores: [first])
    let coordinator = container.persistentStoreCoordinator
    async let adding = onThread { try coordinator.addPersistentStore(added) }
    #expect(await eventually { progress.isOpening.load(ordering: .acquiring) })
    try await onThread { if destroys { try container.destroy() } else { try coordinator.close() } }
    _ = try await adding
    let isClosed = progress.isClosed.load(ordering: .acquiring)
    #expect(isClosed)
    #expect(folder.exists("added.sqlite") == !destroys)
  }

  /// The bug: the fetch inserted the rows into the coordinator's cache after the removal had emptied it. Other contexts then found them.
  @Test(arguments: TestStore.allCases) func objectsThatAFetchReadsWhileTheirStoreIsRemovedAreNotFoundLater(_ kind: TestStore) async throws {
    let late = LateFetch(), place = try kind.makePlace()
    let first = StoreDescription.memory().wrapped { WatchedStore($0, willFetch: { late.readFirst() }) }
    let second = place.description.wrapped { WatchedStore($0, willClose: { late.closeSecond() }) }
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: [first, second])
    let id = try saveDog("goes", in: coordinator.persistentStores[1], of: coordinator)
    late.isExpected.store(true, ordering: .releasing)
    async let fetched = onThread {
      // Also if it fails before it reaches the first store.
      defer { for semaphore in [late.hasBegun, late.hasEnded] { semaphore.signal() } }
      return try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes).fetch(FetchRequest<Dog>()).map(\.name)
    }
    try await onThread {
      late.hasBegun.wait()
      try coordinator.remove(coordinator.persistentStores[1])
    }
    let names = try await fetched
    #expect(names == ["goes"])
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    #expect(try #require(throws: PersistenceError.self) { try context.existingObject(with: id) }.code == .missingStore)
  }

  private func saveDog(_ name: String, in store: PersistentStore, of coordinator: PersistentStoreCoordinator) throws -> ManagedObjectID {
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes), dog = context.dog(name)
    try context.assign(dog, to: store)
    try context.save()
    return dog.objectID
  }

  // MARK: Keys

  @Test func theOnlyStoreIsReachedAsItIs() throws {
    let recorder = RecordingStore(MemoryStore())
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: StoreDescription(type: "memory") { recorder })
    #expect((coordinator.persistentStores[0].store as? MonitoredStore)?.base === recorder)
    try coordinator.addPersistentStore(.memory())
    #expect(!(coordinator.persistentStores[0].store is MonitoredStore))
  }

  @Test func keysThatCouldBeAnotherStoresAreAnError() throws {
    let largeKey = 1 << 57
    func description() -> StoreDescription { StoreDescription(type: "shifting") { ShiftingStore(by: largeKey) } }
    let alone = try PersistentStoreCoordinator(model: Kennel.model, store: description())
    let context = try ManagedObjectContext(coordinator: alone, classes: Kennel.classes)
    let dog = context.dog("alone")
    try context.save()
    #expect(dog.objectID.key.rawValue > largeKey)
    #expect(try alone.managedObjectID(forURIRepresentation: dog.objectID.uriRepresentation).map(context.existingObject(with:)) === dog)
    for stores in [[description(), .memory()], [.memory(), description()]] {
      let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: stores)
      let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
      let place = stores[0].type == "shifting" ? 0 : 1
      try context.assign(context.dog("d"), to: coordinator.persistentStores[place])
      let error = try #require(throws: StoreError.self) { try context.save() }
      #expect(error.code == .damaged && error.reason.contains("2^56"))
    }
    try alone.addPersistentStore(.memory())
    #expect(throws: StoreError.self) {
      try ManagedObjectContext(coordinator: alone, classes: Kennel.classes).fetch(FetchRequest<Dog>())
    }
  }
}

/// A store whose keys start at a large number, as in a store that derives keys from hashes.
private final class ShiftingStore: ForwardingStore {
  let base: any IncrementalStore = MemoryStore()
  private let distance: Int
  init(by distance: Int) { self.distance = distance }

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try base.reserveKeys(demands, options: options).map { $0.map { $0.advanced(by: distance) } }
  }
}

/// What happens while a store is added and another one is closed.
private final class AddingProgress: Sendable {
  let isOpening = Atomic(false), isClosed = Atomic(false)
  let firstIsClosed = DispatchSemaphore(value: 0)

  /// Opens slowly, so that a `close()` that doesn't wait for the store ends meanwhile.
  func open() {
    isOpening.store(true, ordering: .releasing)
    _ = firstIsClosed.wait(timeout: .now() + 0.2)
  }
}

/// A fetch from two stores that reads the second one after its removal has begun, and before it is closed.
private final class LateFetch: Sendable {
  let isExpected = Atomic(false)
  let hasBegun = DispatchSemaphore(value: 0), hasEnded = DispatchSemaphore(value: 0)
  private let isRemoved = DispatchSemaphore(value: 0)

  /// Waits in the first store until the second one isn't one of the coordinator's any more.
  func readFirst() {
    if !isExpected.load(ordering: .acquiring) { return }
    hasBegun.signal()
    isRemoved.wait()
  }

  /// Waits until the fetch has ended.
  func closeSecond() {
    if !isExpected.exchange(false, ordering: .acquiringAndReleasing) { return }
    isRemoved.signal()
    hasEnded.wait()
  }
}

/// A store that calls closures before it is opened, before each fetch, and before it is closed.
private final class WatchedStore: ForwardingStore {
  let base: any IncrementalStore
  private let willOpen: @Sendable () -> Void
  private let willFetch: @Sendable () -> Void
  private let willClose: @Sendable () -> Void

  init(
    _ base: any IncrementalStore, willOpen: @escaping @Sendable () -> Void = {}, willFetch: @escaping @Sendable () -> Void = {},
    willClose: @escaping @Sendable () -> Void = {}
  ) {
    (self.base, self.willOpen, self.willFetch, self.willClose) = (base, willOpen, willFetch, willClose)
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    willFetch()
    try base.fetch(plan, in: view, options: options, into: sink)
  }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    willOpen()
    return try base.open(model: model, host: host)
  }

  func close() throws {
    willClose()
    try base.close()
  }
}

/// Counts the checks for saves of other processes.
private final class SaveChecks: Sendable {
  let count = Atomic(0)
}

/// A store whose checks for saves of other processes are counted, and find none.
private final class CheckedStore: ForwardingStore {
  let base: any IncrementalStore
  private let checks: SaveChecks

  init(_ base: any IncrementalStore, _ checks: SaveChecks) { (self.base, self.checks) = (base, checks) }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    let metadata = try base.open(model: model, host: host)
    host.setCheckForOtherSaves { [checks] in
      checks.count.add(1, ordering: .relaxed)
      return false
    }
    return metadata
  }
}
