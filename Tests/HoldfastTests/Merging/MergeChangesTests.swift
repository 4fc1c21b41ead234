import Foundation
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

@testable import Holdfast

/// Merging of changes that other contexts and processes have saved.
@Suite struct MergeChangesTests {
  typealias Two = MergePolicyTests.Two
  typealias Policy = MergePolicyTests.Policy

  /// Saves a context and returns the changes.
  private func save(_ context: ManagedObjectContext) async throws -> SavedChanges {
    var changes = context.persistentStoreCoordinator.savedChanges().makeAsyncIterator()
    try context.save()
    return try #require(await changes.next(isolation: #isolation))
  }

  @Test(arguments: TestStore.allCases) func objectsShowWhatWasSavedElsewhere(_ store: TestStore) async throws {
    let two = try Two(store, .error) { context, fido in
      fido.owner = context.person("Ann")
      context.dog("Rex", owner: context.person("Bob"))
    }
    let dogs = try two.ours.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    let (ann, bob) = (try #require(dogs[0].owner), try #require(dogs[1].owner))
    #expect(ann.dogs.count == 1 && bob.dogs.count == 1)
    var heard: [ObjectChanges] = []
    let observation = two.ours.onChange { _, changes in heard.append(changes) }
    two.theirFido.name = "Max"
    two.theirFido.owner = try two.theirs.existingObject(with: bob.objectID) as? Person
    let new = two.theirs.dog("New", owner: two.theirFido.owner)
    two.theirs.delete(try two.theirs.existingDog(dogs[1].objectID))
    let changes = try await save(two.theirs)
    #expect(dogs[0].name == "Fido" && !dogs[1].isInaccessible)
    try two.ours.mergeChanges(from: changes)
    #expect(dogs[0].name == "Max" && dogs[0].owner === bob && ann.dogs.isEmpty)
    #expect(bob.dogs.map(\.name).sorted() == ["Max", "New"] && dogs[1].isInaccessible && !two.ours.hasChanges)
    let told = try #require(heard.first)
    #expect(heard.count == 1 && told.inserted == [new.objectID] && told.deleted == [dogs[1].objectID] && told.updated.isEmpty)
    #expect(Set(told.refreshed) == [dogs[0].objectID, ann.objectID, bob.objectID])
    // A second merge of the same changes, and saves, have nothing to do.
    try two.ours.mergeChanges(from: changes)
    #expect(dogs[0].name == "Max" && bob.dogs.count == 2)
    dogs[0].age = 9
    try two.ours.save()
    withExtendedLifetime(observation) {}
  }

  /// The bug: handlers received the insertions of objects that the context didn't have, but not their deletions.
  @Test(arguments: TestStore.allCases) func deletionsOfObjectsThatTheContextDoesNotHaveAreReported(_ store: TestStore) throws {
    let two = try Two(store, .error)
    two.ours.automaticallyMergesChanges = true
    var heard: [ObjectChanges] = []
    let observation = two.ours.onChange { _, changes in heard.append(changes) }
    let rex = two.theirs.dog("Rex")
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(heard == [ObjectChanges(inserted: [rex.objectID])])
    two.theirs.delete(rex)
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(heard.count == 2 && heard.last == ObjectChanges(deleted: [rex.objectID]))
    // An object that was inserted and deleted since the last notification is in no list.
    let bella = two.theirs.dog("Bella")
    try two.theirs.save()
    two.theirs.delete(bella)
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(heard.count == 2)
    // Own deletions aren't reported again.
    two.ours.delete(two.fido)
    try two.ours.save()
    #expect(heard.count == 3 && heard.last == ObjectChanges(deleted: [two.fido.objectID]))
    let identifier = try #require(two.ours.persistentStoreCoordinator.persistentStores.last).identifier
    try two.ours.mergeChanges(from: SavedChanges(storeIdentifier: identifier, contextName: "", deleted: [two.fido.objectID]))
    #expect(heard.count == 3)
    withExtendedLifetime(observation) {}
  }

  /// A changed link doesn't change the row of the owner, whose own changes aren't in conflict.
  @Test(arguments: TestStore.allCases, [false, true])
  func listsOfOwnersWithChangesShowWhatWasSavedElsewhere(_ store: TestStore, _ isLocked: Bool) async throws {
    let place = try store.makeKennelsOfTwo(), ours = try place.context(), theirs = try place.context()
    let ann = try #require(try ours.one(Person.self) { $0.name == "Ann" }),
      bob = try #require(try ours.one(Person.self) { $0.name == "Bob" })
    #expect(ann.dogs.count == 2 && bob.dogs.isEmpty)
    let mine = ours.dog("Mine", owner: ann)
    if isLocked { try ours.detectConflicts(for: bob) } else { bob.city = "Rome" }
    let rex = try #require(try theirs.one(Dog.self) { $0.name == "Rex" })
    rex.owner = try theirs.one(Person.self) { $0.name == "Bob" }
    theirs.dog("New", owner: try theirs.one(Person.self) { $0.name == "Ann" })
    try ours.mergeChanges(from: try await save(theirs))
    for _ in 0..<2 {
      #expect(ann.dogs.map(\.name).sorted() == ["Fido", "Mine", "New"] && bob.dogs.map(\.name) == ["Rex"])
      #expect(mine.owner === ann && bob.dogs.allSatisfy { $0.owner === bob })
      try ours.save()
    }
    let saved = try #require(try place.context().one(Person.self) { $0.name == "Bob" })
    #expect(saved.dogs.map(\.name) == ["Rex"] && saved.city == (isLocked ? nil : "Rome"))
  }

  @Test(arguments: TestStore.allCases) func aMergedOwnerDoesNotDeleteWhatHasLeftIt(_ store: TestStore) async throws {
    let two = try Two(store, .error) { context, fido in
      context.insert(Vaccination.self) {
        $0.kind = "rabies"
        $0.dog = fido
      }
      context.dog("Rex")
    }
    #expect(two.fido.vaccinations.count == 1)
    two.fido.name = "Ours"
    let shot = try #require(two.theirFido.vaccinations.first)
    shot.dog = try two.theirs.one(Dog.self) { $0.name == "Rex" }
    try two.ours.mergeChanges(from: try await save(two.theirs))
    two.ours.delete(two.fido)
    try two.ours.save()
    let saved = try two.place.context().fetch(FetchRequest<Vaccination>())
    #expect(saved.count == 1 && saved.first?.dog?.name == "Rex")
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func unsavedChangesAreMergedByThePolicy(_ store: TestStore, _ policy: Policy) async throws {
    let two = try Two(store, policy.policy)
    two.theirFido.name = "Theirs"
    two.theirFido.notes = "by them"
    let changes = try await save(two.theirs)
    two.fido.name = "Ours"
    two.fido.weight = 7.5
    try two.ours.mergeChanges(from: changes)
    let name = policy.prefersOurs ? "Ours" : "Theirs"
    let notes = policy == .overwrite ? nil : "by them", weight = policy == .rollback ? nil : 7.5
    #expect(two.fido.name == name && two.fido.notes == notes && two.fido.weight == weight)
    two.ours.mergePolicy = .error
    try two.ours.save()
    let saved = try #require(try two.saved())
    #expect(saved.name == name && saved.notes == notes && saved.weight == weight)
  }

  @Test(arguments: TestStore.allCases)
  func withoutAPolicyOnlyObjectsWithoutContradictionsAreMerged(_ store: TestStore) async throws {
    let two = try Two(store, .error) { context, _ in context.dog("Rex", age: -1) }
    let rex = try #require(try two.ours.one(Dog.self) { $0.name == "Rex" })
    two.theirFido.name = "Theirs"
    try two.theirs.existingDog(rex.objectID).notes = "by them"
    let changes = try await save(two.theirs)
    two.fido.name = "Ours"
    rex.weight = 7
    try two.ours.mergeChanges(from: changes)
    #expect(two.fido.name == "Ours" && rex.notes == "by them" && rex.weight == 7)
    let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [two.fido.objectID])
    try two.ours.resolveConflicts(of: error, using: .mergeByPropertyStoreTrump)
    try two.ours.save()
    #expect(two.fido.name == "Theirs")
  }

  @Test(arguments: TestStore.allCases)
  func aDeletedObjectWithChangesStaysUntilTheSaveIfThePolicyPrefersIt(_ store: TestStore) async throws {
    for policy in [MergePolicy.error, .mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump] {
      let two = try Two(store, policy)
      two.theirs.delete(two.theirFido)
      let changes = try await save(two.theirs)
      two.fido.name = "Ours"
      try two.ours.mergeChanges(from: changes)
      switch policy.fixed {
      case .error?:
        #expect(two.fido.name == "Ours")
        #expect(throws: PersistenceError.self) { try two.ours.save() }
      case .mergeByPropertyObjectTrump?:
        try two.ours.save()
        #expect(try two.saved()?.name == "Ours")
      default:
        #expect(two.fido.isInaccessible && !two.ours.hasChanges)
        #expect(try two.saved() == nil)
      }
    }
  }

  @Test(arguments: TestStore.allCases)
  func anObjectThatIsInsertedAgainIsShownAgain(_ store: TestStore) async throws {
    let two = try Two(store, .mergeByPropertyObjectTrump) { context, fido in fido.owner = context.person("Ann") }
    let third = try two.place.context()
    let ann = try #require(try third.fetch(FetchRequest<Person>()).first)
    #expect(ann.dogs.count == 1)
    two.theirs.delete(two.theirFido)
    try third.mergeChanges(from: try await save(two.theirs))
    #expect(ann.dogs.isEmpty)
    two.fido.name = "Ours"
    try third.mergeChanges(from: try await save(two.ours))
    #expect(ann.dogs.map(\.name) == ["Ours"])
  }

  @Test(arguments: TestStore.allCases)
  func changesThatNoContextAnnouncedAreMergedWithTheirOwners(_ store: TestStore) async throws {
    let two = try Two(store, .error) { context, fido in
      fido.owner = context.person("Ann")
      context.person("Bob")
    }
    let people = try two.ours.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
    #expect(people.map { $0.dogs.count } == [1, 0])
    two.theirFido.owner = try two.theirs.existingObject(with: people[1].objectID) as? Person
    let new = two.theirs.dog("New", owner: two.theirFido.owner)
    try two.theirs.save()
    // A message from elsewhere, such as another process, may name the rows only.
    let identifier = try #require(two.ours.persistentStoreCoordinator.persistentStores.last).identifier
    try two.ours.mergeChanges(
      from: SavedChanges(storeIdentifier: identifier, contextName: "", inserted: [new.objectID], updated: [two.fido.objectID]))
    #expect(two.fido.owner === people[1] && people.map { $0.dogs.count } == [0, 2])
    new.name = "Newer"
    two.theirFido.name = "Max"
    try two.theirs.save()
    try two.ours.mergeChanges(from: SavedChanges(storeIdentifier: identifier, contextName: "", mayIncludeOthers: true))
    #expect(two.fido.name == "Max" && people[1].dogs.map(\.name).sorted() == ["Max", "Newer"])
  }

  /// Without an inverse, an object that gets another owner leaves the former one's list, and only the new owner's row changes.
  ///
  /// The bug: the former owner's list kept the object.
  @Test(arguments: TestStore.allCases) func aFormerOwnerThatNoMessageNamesLosesItsObject(_ store: TestStore) throws {
    let place = try store.makePlace(model: Albums.model(), classes: []), ours = try place.context(), theirs = try place.context()
    let albums = try ["Album", "SharedAlbum"].map { try ours.insert(entityNamed: $0) }, photo = try ours.insert(entityNamed: "Photo")
    try albums[0].toMany(forKey: "photos").insert(photo)
    try ours.save()
    #expect(try albums.map { try $0.toMany(forKey: "photos").count } == [1, 0])
    let new = try theirs.existingObject(with: albums[1].objectID)
    try new.toMany(forKey: "photos").insert(theirs.existingObject(with: photo.objectID))
    try theirs.save()
    let identifier = try #require(ours.persistentStoreCoordinator.persistentStores.last).identifier
    try ours.mergeChanges(from: SavedChanges(storeIdentifier: identifier, contextName: "", updated: [new.objectID]))
    #expect(try albums.map { try $0.toMany(forKey: "photos").count } == [0, 1] && !ours.hasChanges)
  }

  /// The bug: handlers weren't called after the save, which shortens the list of the former owner.
  @Test(arguments: TestStore.allCases) func theFormerOwnerOfTheSavingContextIsReportedAsRefreshed(_ store: TestStore) throws {
    let place = try store.makePlace(model: Albums.model(), classes: []), context = try place.context()
    let albums = try ["Album", "SharedAlbum"].map { try context.insert(entityNamed: $0) }, photo = try context.insert(entityNamed: "Photo")
    try albums[0].toMany(forKey: "photos").insert(photo)
    try context.save()
    #expect(try albums.map { try $0.toMany(forKey: "photos").count } == [1, 0])
    var heard: [ObjectChanges] = []
    let observation = context.onChange { _, changes in heard.append(changes) }
    try albums[1].toMany(forKey: "photos").insert(photo)
    try context.save()
    #expect(try albums.map { try $0.toMany(forKey: "photos").count } == [0, 1] && !context.hasChanges)
    #expect(heard == [ObjectChanges(updated: [albums[1].objectID]), ObjectChanges(refreshed: [albums[0].objectID])])
    withExtendedLifetime(observation) {}
  }

  /// The bug: the object isn't merged, because both sides have changed its name, and handlers didn't learn of its new list.
  @Test(arguments: TestStore.allCases) func anObjectInConflictIsReportedIfItsListHasChanged(_ store: TestStore) throws {
    let two = try Two(store, .error) { context, fido in fido.owner = context.person("Ann") }
    two.ours.automaticallyMergesChanges = true
    let ann = try #require(two.fido.owner), theirAnn = try #require(two.theirFido.owner)
    #expect(ann.dogs.count == 1)
    ann.name = "Anna"
    try two.ours.processPendingChanges()
    var heard: Set<ManagedObjectID> = []
    let observation = two.ours.onChange { _, changes in heard.formUnion(changes.updated + changes.refreshed) }
    theirAnn.name = "Annie"
    two.theirs.dog("Rex", owner: theirAnn)
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(heard.contains(ann.objectID) && ann.name == "Anna" && ann.dogs.count == 2)
    #expect(try #require(throws: PersistenceError.self) { try two.ours.save() }.code == .conflict)
    withExtendedLifetime(observation) {}
  }

  /// The bug: the owner of a dog that was linked to it after its deletion appeared without a report.
  @Test(arguments: TestStore.allCases) func anObjectThatRegainsADeletedOneByARollbackIsReported(_ store: TestStore) throws {
    let two = try Two(store, .error) { context, _ in
      context.person("Ann")
      context.dog("Rex")
    }
    two.ours.automaticallyMergesChanges = true
    let ann = try #require(try two.ours.one(Person.self) { $0.name == "Ann" })
    let rex = try #require(try two.ours.one(Dog.self) { $0.name == "Rex" })
    var heard: Set<ManagedObjectID> = []
    let observation = two.ours.onChange { _, changes in heard.formUnion(changes.updated + changes.refreshed) }
    two.ours.delete(ann)
    try two.ours.processPendingChanges()
    try two.theirs.existingDog(rex.objectID).owner = try two.theirs.existingObject(with: ann.objectID) as? Person
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(heard.contains(rex.objectID) && rex.owner == nil)
    heard = []
    two.ours.rollback()
    #expect(heard.contains(rex.objectID) && rex.owner === ann && ann.dogs.map(\.name) == ["Rex"])
    withExtendedLifetime(observation) {}
  }

  @Test func foreignIDsAreIgnored() throws {
    let two = try Two(.memory, .error), other = try Two(.sqlite, .error)
    let unsaved = other.ours.dog("New").objectID
    let changes = SavedChanges(
      storeIdentifier: "?", contextName: "", inserted: [unsaved], updated: [other.fido.objectID, unsaved], deleted: [other.fido.objectID],
      mayIncludeOthers: true)
    two.fido.name = "Ours"
    try two.ours.mergeChanges(from: changes)
    #expect(two.fido.name == "Ours" && two.fido.isUpdated)
    try two.ours.save()
  }

  /// A program with another version of the model may have saved them.
  @Test(arguments: TestStore.allCases) func idsOfEntitiesThatTheModelDoesNotHaveAreIgnored(_ store: TestStore) throws {
    let two = try Two(store, .mergeByPropertyStoreTrump)
    let identifier = try #require(two.ours.persistentStoreCoordinator.persistentStores.last).identifier
    let unknown = try #require(ManagedObjectID(uriRepresentation: "x-coredata://\(identifier)/Aardvark/p1"))
    var heard: [ObjectChanges] = []
    let observation = two.ours.onChange { _, changes in heard.append(changes) }
    two.fido.name = "Ours"
    for isComplete in [true, false] {
      try two.ours.mergeChanges(
        from: SavedChanges(
          storeIdentifier: identifier, contextName: "", inserted: [unknown], updated: [two.fido.objectID, unknown], deleted: [unknown],
          mayIncludeOthers: !isComplete))
    }
    #expect(heard.allSatisfy { $0.inserted.isEmpty && $0.deleted.isEmpty })
    #expect(two.fido.name == "Ours" && two.fido.isUpdated)
    try two.ours.save()
    #expect(try two.saved()?.name == "Ours")
    withExtendedLifetime(observation) {}
  }

  @Test func mergingSendsRequestsOnlyForObjectsWithChanges() throws {
    let place = try TestStore.sqlite.makePlace(), setup = try place.context()
    for number in 0..<2_000 { setup.dog("Dog \(number)", age: number) }
    try setup.save()
    let (ours, requests) = try place.recording()
    let theirs = try ManagedObjectContext(coordinator: ours.persistentStoreCoordinator, classes: Kennel.classes)
    ours.automaticallyMergesChanges = true
    let held = try ours.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.age)], limit: 10))
    for dog in try theirs.fetch(FetchRequest<Dog>()) { dog.name += "!" }
    try theirs.save()
    requests.clear()
    try ours.processPendingChanges()
    #expect(requests.requests.isEmpty && held.allSatisfy(\.isFault))
    #expect(held.allSatisfy { $0.name.hasSuffix("!") })
    held[3].notes = "unsaved"
    held[4].notes = "unsaved"
    for dog in try theirs.fetch(FetchRequest<Dog>()) { dog.name += "?" }
    try theirs.save()
    requests.clear()
    try ours.processPendingChanges()
    #expect(requests.requests.map { "\($0)".prefix { $0 != "(" } } == ["beginRead", "rows"])
    #expect(held[3].notes == "unsaved" && held[3].name.hasSuffix("!?"))
  }

  // MARK: Automatic merging

  @Test func aBackgroundContextMergesByItself() async throws {
    let container = try PersistentContainer(model: Kennel.model, classes: Kennel.classes, store: .memory())
    let id = try container.withContext { context in
      let fido = context.dog("Fido")
      try context.save()
      return fido.objectID
    }
    let background = container.newBackgroundContext(), (told, teller) = AsyncStream<[ManagedObjectID]>.makeStream()
    let observation = try await background.perform { context in
      context.automaticallyMergesChanges = true
      // Unsaved changes keep the object in the context.
      try context.existingDog(id).notes = "unsaved"
      return context.onChange { _, changes in teller.yield(changes.refreshed) }
    }
    try container.withContext { context in
      try context.existingDog(id).name = "Max"
      try context.save()
    }
    for await refreshed in told {
      #expect(refreshed == [id])
      break
    }
    #expect(try await background.perform { try $0.existingDog(id).name } == "Max")
    withExtendedLifetime(observation) {}
  }

  enum Ending: CaseIterable, Sendable { case resolution, refresh, rollback, reset }

  /// The bug: the changes waited until the context was used again, or for a further save.
  @Test(arguments: [OutcomeStore.Loss.withoutCommitting, .afterCommitting], Ending.allCases)
  func aBackgroundContextMergesByItselfWhenTheOutcomeOfItsSaveIsKnown(_ loss: OutcomeStore.Loss, _ ending: Ending) async throws {
    let place = try TestStore.memory.makePlace(), store = OutcomeStore(place.description.makeStore())
    let container = try PersistentContainer(
      model: Kennel.model, classes: Kennel.classes, stores: [StoreDescription(type: "lossy") { store }])
    let background = container.newBackgroundContext()
    await background.perform { context in
      context.automaticallyMergesChanges = true
      context.dog("Fido")
      store.loseCommit(loss)
      #expect(throws: StoreError.self) { try context.save() }
    }
    try container.withContext { context in
      context.dog("Max")
      try context.save()
    }
    try await background.perform { context in
      #expect(context.hasUncertainSave && context.core.merging.inbox?.isEmpty == false)
      switch ending {
      case .resolution: context.resolveUncertainSave(wasCommitted: loss != .withoutCommitting)
      case .refresh: try context.refreshAllObjects()
      case .rollback: context.rollback()
      case .reset: context.reset()
      }
    }
    // The queue merges before it runs the next closure.
    await background.perform { context in #expect(!context.hasUncertainSave && context.core.merging.inbox?.isEmpty == true) }
  }

  @MainActor @Test func theViewContextMergesByItself() async throws {
    let container = try PersistentContainer(model: Kennel.model, classes: Kennel.classes, store: .memory())
    let context = container.viewContext, fido = context.dog("Fido"), id: ManagedObjectID
    try context.save()
    id = fido.objectID
    context.automaticallyMergesChanges = true
    let (told, teller) = AsyncStream<[ManagedObjectID]>.makeStream()
    let observation = context.onChange { _, changes in teller.yield(changes.refreshed) }
    try await container.performBackgroundTask { context in
      try context.existingDog(id).name = "Max"
      try context.save()
    }
    for await refreshed in told {
      #expect(refreshed == [id] && fido.name == "Max")
      break
    }
    withExtendedLifetime(observation) {}
  }

  /// Holds the only reference to a container.
  private final class Holder: Sendable {
    let container = Mutex<PersistentContainer?>(nil)
  }

  /// A saved object of the view context, which merges automatically.
  @MainActor private func dogOfViewContext(_ holder: Holder) throws -> Dog {
    let container = try PersistentContainer(model: Kennel.model, classes: Kennel.classes, store: .memory())
    holder.container.withLock { $0 = container }
    let fido = container.viewContext.dog("Fido")
    try container.viewContext.save()
    container.viewContext.automaticallyMergesChanges = true
    return fido
  }

  /// The main actor learns later that another thread has released the context, and an object gives the program a context before that.
  @MainActor @Test func aContextThatAnObjectReturnsAfterTheFormerOneWasReleasedElsewhereMergesByItself() async throws {
    let holder = Holder(), fido = try dogOfViewContext(holder), id = fido.objectID, isReleased = Atomic(false)
    startThread {
      holder.container.withLock { $0 = nil }
      isReleased.store(true, ordering: .releasing)
    }
    waitUntil { isReleased.load(ordering: .acquiring) }
    let context = fido.managedObjectContext
    #expect(context.automaticallyMergesChanges)
    let (told, teller) = AsyncStream<[ManagedObjectID]>.makeStream()
    let observation = context.onChange { _, changes in teller.yield(changes.refreshed) }
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    try other.existingDog(id).name = "Max"
    try other.save()
    for await refreshed in told {
      #expect(refreshed == [id] && fido.name == "Max")
      break
    }
    withExtendedLifetime((context, observation)) {}
  }

  @Test func ownSavesAreNotMerged() throws {
    let place = try TestStore.memory.makePlace(), context = try place.context()
    context.automaticallyMergesChanges = true
    let fido = context.dog("Fido")
    try context.save()
    #expect(context.core.merging.inbox?.isEmpty == true && !fido.isFault)
    context.automaticallyMergesChanges = false
    #expect(!context.automaticallyMergesChanges)
  }

  /// It is a conflict, so the object stays as it is until its changes are gone.
  @Test(arguments: TestStore.allCases, [false, true])
  func anObjectThatWasNotMergedIsReadAgainWhenItsChangesAreGone(_ store: TestStore, _ rollsBack: Bool) throws {
    let two = try Two(store, .error), age = two.fido.age
    two.ours.automaticallyMergesChanges = true
    two.fido.age = 50
    two.theirFido.age = 60
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(two.fido.age == 50 && two.fido.isUpdated)
    if rollsBack {
      two.ours.rollback()
    } else {
      two.fido.age = age
      try two.ours.save()
    }
    #expect(two.fido.age == 60 && !two.ours.hasChanges)
  }

  /// So a program that reads a change in the sequence can merge it.
  /// Two saves wait. The first one has changed the item, whose row already contains what the second one has saved: another list, whose name
  /// has changed as well. Taking the item back changes that list.
  @Test(arguments: TestStore.allCases) func anObjectOfALaterSaveIsReadAgainBeforeAnEarlierOneIsMerged(_ store: TestStore) throws {
    let lists = try Lists(store, ["a"], also: "other"), place = lists.place
    let ours = try place.context(), first = try place.context(), second = try place.context()
    (ours.automaticallyMergesChanges, ours.mergePolicy) = (true, .overwrite)
    let item = try lists.item("a", ours), other = try lists.list("other", ours)
    #expect(try other.ordered(forKey: "items").isEmpty)
    try item.setValue("ours", forKey: "name")
    try lists.item("a", first).setValue("first", forKey: "name")
    try first.save()
    let theirs = try lists.list("other", second)
    try theirs.setValue("renamed", forKey: "name")
    try theirs.ordered(forKey: "items").append(lists.item("first", second))
    try second.save()
    try ours.save()
    let check = try place.context(), saved = try lists.list("renamed", check)
    #expect(try saved.ordered(forKey: "items").isEmpty && lists.items(check).map(\.objectID) == [item.objectID])
    #expect(try lists.item("ours", check).objectID == item.objectID)
  }

  @Test func aContextReceivesAChangeBeforeTheSequenceDeliversIt() async throws {
    let two = try Two(.memory, .error), coordinator = two.ours.persistentStoreCoordinator
    two.ours.automaticallyMergesChanges = true
    let inbox = try #require(two.ours.core.merging.inbox)
    var changes = coordinator.savedChanges().makeAsyncIterator()
    for round in 0..<100 {
      async let save: Void = onThread {
        let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
        context.dog("\(round)")
        try context.save()
      }
      _ = await changes.next(isolation: #isolation)
      #expect(inbox.takeAll().count == 1)
      try await save
    }
  }

  @Test func tooManyWaitingChangesRefreshEverything() throws {
    let two = try Two(.memory, .error)
    two.ours.automaticallyMergesChanges = true
    let inbox = try #require(two.ours.core.merging.inbox)
    let store = try #require(two.ours.persistentStoreCoordinator.persistentStores.first).identifier
    for _ in 0..<30 {
      inbox.add(SavedChanges(storeIdentifier: store, contextName: "", updated: Array(repeating: two.fido.objectID, count: 10_000)))
    }
    let waiting = inbox.takeAll()
    #expect(waiting.count < 12 && waiting[0].mayIncludeOthers && waiting.reduce(0) { $0 + $1.count } <= MergeInbox.limit)
    inbox.putBack(waiting[...])
    two.theirFido.name = "Max"
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(two.fido.name == "Max")
  }

  /// A store that knows only of commits reports each of them. Merging reads the newest rows, so one report is enough.
  @Test func reportsWithoutIDsAreMergedOnce() throws {
    let two = try Two(.memory, .error)
    two.ours.automaticallyMergesChanges = true
    let inbox = try #require(two.ours.core.merging.inbox)
    let store = try #require(two.ours.persistentStoreCoordinator.persistentStores.first).identifier
    let note = SavedChanges(storeIdentifier: store, contextName: "", mayIncludeOthers: true)
    let named = SavedChanges(storeIdentifier: store, contextName: "", updated: [two.fido.objectID], mayIncludeOthers: true)
    let other = SavedChanges(storeIdentifier: "another", contextName: "", mayIncludeOthers: true)
    for changes in [named] + Array(repeating: note, count: 1000) + [other, named, note, other] { inbox.add(changes) }
    let waiting = inbox.takeAll()
    #expect(waiting == [named, note, other, named])
    inbox.putBack(waiting[...])
    two.theirFido.name = "Max"
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(two.fido.name == "Max" && inbox.isEmpty)
  }

  @Test func aMergeThatCannotReadKeepsItsChangesForTheNext() throws {
    let place = try TestStore.sqlite.makePlace(), setup = try place.context()
    setup.dog("Fido")
    try setup.save()
    let (ours, requests) = try place.recording()
    let theirs = try ManagedObjectContext(coordinator: ours.persistentStoreCoordinator, classes: Kennel.classes)
    ours.automaticallyMergesChanges = true
    let fido = try #require(try ours.fetch(FetchRequest<Dog>()).first)
    fido.notes = "unsaved"
    try theirs.existingDog(fido.objectID).name = "Max"
    try theirs.save()
    requests.withStoreBlocked { _ = #expect(throws: StoreError.self) { try ours.save() } }
    #expect(fido.notes == "unsaved" && fido.name == "Fido")
    try ours.save()
    #expect(fido.name == "Max" && fido.notes == "unsaved")
  }
}
