import Foundation
import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Merge policies that throw, conflicts that never end, and changes of objects that don't exist any more.
@Suite struct MergeFailureTests {
  typealias Two = MergePolicyTests.Two

  private struct Refusal: Error {}
  private static let refusing = MergePolicy.custom { _ in throw Refusal() }

  // MARK: Policies that throw

  /// The object isn't merged, and its next save is the conflict. Other objects are merged.
  @Test(arguments: TestStore.allCases, [false, true])
  func aPolicyThatThrowsLeavesAnObjectAsItIs(_ store: TestStore, _ isAutomatic: Bool) async throws {
    let two = try Two(store, Self.refusing) { context, _ in context.dog("Rex", age: -1) }
    let rex = try #require(try two.ours.one(Dog.self) { $0.name == "Rex" })
    two.ours.automaticallyMergesChanges = isAutomatic
    var saves = two.theirs.persistentStoreCoordinator.savedChanges().makeAsyncIterator()
    two.fido.name = "Ours"
    two.theirFido.name = "Theirs"
    try two.theirs.existingDog(rex.objectID).notes = "by them"
    try two.theirs.save()
    let changes = try #require(await saves.next(isolation: #isolation))
    if isAutomatic { try two.ours.processPendingChanges() } else { try two.ours.mergeChanges(from: changes) }
    #expect(two.fido.name == "Ours" && two.fido.isUpdated && rex.notes == "by them" && !rex.hasChanges)
    #expect(try two.ours.fetch(FetchRequest<Dog>()).count == 2)
    let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
    #expect(error.code == .conflict && error.coreDataCode == 133020 && error.objectIDs == [two.fido.objectID])
    #expect(error.cause is Refusal && two.fido.name == "Ours" && two.fido.isUpdated)
    two.ours.mergePolicy = .mergeByPropertyObjectTrump
    try two.ours.save()
    #expect(try two.saved()?.name == "Ours")
  }

  /// The other object is in the context, or isn't.
  @Test(arguments: TestStore.allCases, [false, true])
  func aPolicyThatThrowsLeavesDuplicatesAsTheyAre(_ store: TestStore, _ isKnown: Bool) throws {
    let place = try store.makeKennelsOfTwo(), context = try place.context()
    let bob = try #require(try context.one(Person.self) { $0.name == "Bob" }), chip: Int64 = isKnown ? 1 : 99
    let known = try context.one(Dog.self) { $0.chip == chip }
    context.mergePolicy = Self.refusing
    let max = context.dog("Max"), twin = context.dog("Twin", age: 9, owner: bob)
    twin.chip = 1
    twin.friends.insert(max)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .constraintConflict && error.coreDataCode == 133021)
    #expect(error.objectIDs == [twin.objectID] && error.cause is Refusal)
    #expect(twin.isInserted && twin.name == "Twin" && twin.chip == 1 && twin.owner === bob)
    #expect(twin.friends.contains(max) && max.friendOf.contains(twin) && bob.dogs.contains(twin))
    #expect(known?.name == (isKnown ? "Fido" : nil) && known?.hasChanges != true)
    #expect(try namesOfDogs(place.context()) == ["Fido", "Rex"])
    context.mergePolicy = .mergeByPropertyObjectTrump
    try context.save()
    let saved = try #require(try place.context().one(Dog.self) { $0.chip == 1 })
    #expect(saved.name == "Twin" && saved.age == 9 && saved.owner?.name == "Bob" && saved.friends.map(\.name) == ["Max"])
    #expect(try namesOfDogs(place.context()) == ["Max", "Rex", "Twin"])
  }

  @Test(arguments: TestStore.allCases) func aPolicyOfAChildThatThrowsChangesNeitherContext(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context()
    let child = ManagedObjectContext(parent: parent), sibling = ManagedObjectContext(parent: parent)
    child.mergePolicy = Self.refusing
    let mine = try #require(try child.one(Dog.self) { $0.chip == 1 }), theirs = try #require(try sibling.one(Dog.self) { $0.chip == 1 })
    (mine.age, theirs.age) = (10, 20)
    let new = child.dog("New")
    try sibling.save()
    let error = try #require(throws: PersistenceError.self) { try child.save() }
    #expect(error.code == .conflict && error.objectIDs == [mine.objectID] && error.cause is Refusal)
    let parents = try #require(try parent.one(Dog.self) { $0.chip == 1 })
    #expect(mine.age == 10 && mine.isUpdated && new.isInserted && parents.age == 20)
    #expect(try namesOfDogs(parent) == ["Fido", "Rex"])
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    #expect(try parents.age == 10 && namesOfDogs(parent) == ["Fido", "New", "Rex"])
    try parent.save()
    #expect(try namesOfDogs(place.context()) == ["Fido", "New", "Rex"])
  }

  /// The policy of the parent decides about the changes of its child that the parent saves.
  @Test(arguments: TestStore.allCases) func aPolicyOfAParentThatThrowsKeepsTheChangesOfTheChild(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    parent.mergePolicy = Self.refusing
    let mine = try #require(try child.one(Dog.self) { $0.chip == 1 })
    mine.age = 10
    try child.save()
    let other = try place.context()
    try #require(try other.one(Dog.self) { $0.chip == 1 }).age = 20
    try other.save()
    let error = try #require(throws: PersistenceError.self) { try parent.save() }
    #expect(error.code == .conflict && error.objectIDs == [mine.objectID] && error.cause is Refusal)
    mine.notes = "again"
    try child.save()
    parent.mergePolicy = .mergeByPropertyObjectTrump
    try parent.save()
    let saved = try #require(try place.context().one(Dog.self) { $0.chip == 1 })
    #expect(saved.age == 10 && saved.notes == "again")
  }

  // MARK: After a failed save

  /// The error names the objects, and everything else can be saved without their changes.
  @Test(arguments: TestStore.allCases) func theOtherChangesOfAFailedSaveCanBeSaved(_ store: TestStore) throws {
    let two = try Two(store, .error) { context, _ in context.dog("Rex", age: -1) }
    let rex = try #require(try two.ours.one(Dog.self) { $0.name == "Rex" }), ann = two.ours.person("Ann")
    two.theirFido.name = "Theirs"
    try two.theirs.save()
    two.fido.name = "Ours"
    two.fido.owner = ann
    rex.name = "Max"
    let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [two.fido.objectID] && error.reason.contains("resolveConflicts(of:using:)"))
    try two.ours.discardChanges(of: error.objectIDs)
    #expect(two.fido.name == "Theirs" && two.fido.owner == nil && ann.dogs.isEmpty && rex.name == "Max" && ann.isInserted)
    try two.ours.save()
    let context = try two.place.context()
    #expect(try namesOfDogs(context) == ["Max", "Theirs"] && context.count(for: FetchRequest<Person>()) == 1)
  }

  // MARK: Conflicts that never end

  /// Another context, which causes a new conflict each time a policy has resolved one.
  private final class Rival: @unchecked Sendable {  // because each test uses it on one thread
    let context: ManagedObjectContext
    var dog: Dog?
    var count = 0

    init(_ context: ManagedObjectContext, _ dog: Dog? = nil) { (self.context, self.dog) = (context, dog) }

    func change() throws {
      count += 1
      dog?.age += 1
      try context.save()
    }

    /// Deletes its dog, and inserts another one with the same unique value.
    func replace() throws {
      count += 1
      if let dog { context.delete(dog) }
      try context.save()
      dog = context.dog("Rival \(count)")
      dog?.chip = 7
      try context.save()
    }
  }

  @Test(arguments: TestStore.allCases) func aSaveWhoseDuplicateIsAlwaysAnotherOneGivesUp(_ store: TestStore) throws {
    let place = try store.makePlace(), rival = Rival(try place.context())
    try rival.replace()
    let context = try place.context(), new = context.dog("Ours", age: 3)
    new.chip = 7
    context.mergePolicy = .custom { _ in
      try rival.replace()
      return .mergeByPropertyObjectTrump
    }
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    // The other object is missing, or a new one is there.
    #expect([.conflict, .constraintConflict].contains(error.code), "\(error)")
    #expect(rival.count <= 1 + 100 && new.name == "Ours" && new.hasChanges)
    #expect(try place.context().fetch(Dog.self) { $0.chip == 7 }.map(\.name) == ["Rival \(rival.count)"])
    context.rollback()
    context.mergePolicy = .mergeByPropertyObjectTrump
    context.dog("Again").chip = 7
    try context.save()
    #expect(try namesOfDogs(place.context()) == ["Again"])
  }

  @Test(arguments: TestStore.allCases) func aSaveOfAChildThatAlwaysMeetsANewConflictGivesUp(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context()
    let child = ManagedObjectContext(parent: parent), sibling = ManagedObjectContext(parent: parent)
    let rival = Rival(sibling, try sibling.one(Dog.self) { $0.chip == 1 }), mine = try #require(try child.one(Dog.self) { $0.chip == 1 })
    #expect(mine.age == 3)
    try rival.change()
    child.mergePolicy = .custom { _ in
      try rival.change()
      return .mergeByPropertyObjectTrump
    }
    mine.name = "Ours"
    let error = try #require(throws: PersistenceError.self) { try child.save() }
    #expect(error.code == .conflict && error.objectIDs == [mine.objectID] && rival.count == 1 + 100)
    #expect(mine.name == "Ours" && mine.isUpdated)
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    try parent.save()
    let saved = try #require(try place.context().one(Dog.self) { $0.chip == 1 })
    #expect(saved.name == "Ours" && saved.age == 3 + 101)
  }

  // MARK: Changes of missing objects

  /// A message from elsewhere says that an object was updated, and it was deleted since.
  @Test(arguments: TestStore.allCases) func anUpdatedObjectThatDoesNotExistCountsAsDeleted(_ store: TestStore) throws {
    for policy in [MergePolicy.error, .mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump] {
      for hasChanges in [false, true] {
        let two = try Two(store, policy) { context, fido in fido.owner = context.person("Ann") }
        let ann = try #require(two.fido.owner), id = two.fido.objectID
        #expect(ann.dogs.count == 1)
        two.theirs.delete(two.theirFido)
        try two.theirs.save()
        if hasChanges { two.fido.name = "Ours" }
        let identifier = try #require(two.ours.persistentStoreCoordinator.persistentStores.last).identifier
        // Merging it again has no further effect.
        for _ in 0..<2 { try two.ours.mergeChanges(from: SavedChanges(storeIdentifier: identifier, contextName: "", updated: [id])) }
        if !hasChanges {
          #expect(try #require(throws: PersistenceError.self) { try two.ours.existingObject(with: id) }.code == .missingObject)
          #expect(ann.dogs.isEmpty && !two.ours.hasChanges)
          two.ours.person("Bob")
          try two.ours.save()
          continue
        }
        switch policy.fixed {
        case .error?:
          #expect(two.fido.name == "Ours" && two.fido.isUpdated)
          let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
          #expect(error.code == .conflict && error.objectIDs == [id])
          try two.ours.resolveConflicts(of: error, using: .rollback)
          #expect(two.fido.isInaccessible && ann.dogs.isEmpty && !two.ours.hasChanges)
        case .mergeByPropertyObjectTrump?:
          try two.ours.save()
          let saved = try #require(try two.saved())
          #expect(saved.name == "Ours" && saved.objectID == id && saved.owner?.name == "Ann")
        default:
          #expect(two.fido.isInaccessible && ann.dogs.isEmpty && !two.ours.hasChanges)
          #expect(try two.saved() == nil)
        }
      }
    }
  }

  // MARK: Changes that can't be merged at once

  /// Another context has inserted Fido again, without the links that were deleted with him. The first attempt to merge can't read Rex.
  @Test(arguments: TestStore.allCases) func aSecondAttemptToMergeReadsListsWithObjectsThatExistAgain(_ store: TestStore) async throws {
    let place = try store.makePlace(), setup = try place.context(), friend = setup.dog("Max")
    setup.dog("Rex")
    setup.dog("Fido").friends.insert(friend)
    try setup.save()
    let (ours, failing) = try place.faulty()
    let theirs = try ManagedObjectContext(coordinator: ours.persistentStoreCoordinator, classes: Kennel.classes)
    (ours.mergePolicy, theirs.mergePolicy) = (.mergeByPropertyObjectTrump, .mergeByPropertyObjectTrump)
    func dog(_ name: String, _ context: ManagedObjectContext) throws -> Dog { try #require(try context.one(Dog.self) { $0.name == name }) }
    let max = try dog("Max", ours), rex = try dog("Rex", ours), theirFido = try dog("Fido", theirs), theirRex = try dog("Rex", theirs)
    #expect(max.friendOf.map(\.name) == ["Fido"])
    ours.delete(try dog("Fido", ours))
    try ours.save()
    rex.age = 9
    var saves = ours.persistentStoreCoordinator.savedChanges().makeAsyncIterator()
    (theirFido.age, theirRex.notes) = (5, "by them")
    try theirs.save()
    let changes = try #require(await saves.next(isolation: #isolation))
    failing.fail(.rows, with: StoreError(.inputOutput, operation: "read", reason: "The test says so."))
    #expect(throws: StoreError.self) { try ours.mergeChanges(from: changes) }
    try ours.mergeChanges(from: changes)
    #expect(max.friendOf.isEmpty && rex.age == 9 && rex.notes == "by them")
    #expect(try namesOfDogs(ours) == ["Fido", "Max", "Rex"])
  }
}
