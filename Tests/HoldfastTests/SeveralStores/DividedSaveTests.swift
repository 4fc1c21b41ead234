import Holdfast
import HoldfastMemoryStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// How a save is divided among stores, and what happens if one of them refuses or fails.
@Suite struct DividedSaveTests {
  /// A prepared save may hold a lock, so processes that list the same stores in different orders could deadlock.
  @Test func storesAreAskedInAnOrderThatDoesNotDependOnTheirPlaces() throws {
    for first in [0, 1] {
      let pack = try StorePack([.memory, .memory])
      let ordered = [0, 1].sorted { pack.stores[$0].identifier < pack.stores[$1].identifier }
      let context = try pack.context()
      for store in pack.stores { try context.assign(context.dog("d"), to: store) }
      let refusing = ordered[first]
      pack.faults[refusing].fail(.prepare, with: StoreError(.diskFull, operation: "save", reason: "There is no room."))
      #expect(throws: StoreError.self) { try context.save() }
      // The stores after the refusing one got no request.
      #expect(pack.recorders[ordered[0]].saves.count == 1 && pack.recorders[ordered[1]].saves.count == first)
      try context.save()
    }
  }

  private let refusal = StoreError(.diskFull, operation: "save", reason: "A test said so.")

  @Test(arguments: StorePair.allCases) func assignedObjectsGoToTheirStoresAndOthersToTheFirst(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let here = context.dog("here"), there = context.dog("there")
    try context.assign(there, to: pack.stores[0])
    try context.assign(there, to: pack.stores[1])
    try context.save()
    #expect(pack.coordinator.persistentStore(for: here.objectID) == pack.stores[0])
    #expect(pack.coordinator.persistentStore(for: there.objectID) == pack.stores[1])
    #expect(there.objectID.storeIdentifier == pack.stores[1].identifier)
    #expect(try pack.context().fetch(FetchRequest<Dog>()).map(\.name).sorted() == ["here", "there"])
  }

  @Test(arguments: StorePair.allCases) func equalKeysOfTwoStoresAreDifferentObjects(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let (left, right) = ((0..<3).map { _ in context.dog("a") }, (0..<3).map { _ in context.dog("b") })
    for dog in right { try context.assign(dog, to: pack.stores[1]) }
    try context.save()
    // Stores may start at any key.
    let a = try #require(left.first { dog in right.contains { $0.objectID.key == dog.objectID.key } })
    let b = try #require(right.first { $0.objectID.key == a.objectID.key })
    #expect(a.objectID != b.objectID)
    for dog in left + right where dog != a && dog != b { context.delete(dog) }
    try context.save()
    let other = try pack.context()
    for id in [a.objectID, b.objectID] {
      let uri = id.uriRepresentation
      #expect(pack.coordinator.managedObjectID(forURIRepresentation: uri) == id)
      #expect(try (other.existingObject(with: id) as? Dog)?.name == (id == a.objectID ? "a" : "b"))
      #expect(try other.object(with: id).objectID == id)
    }
    // One of them changes, the other doesn't. Both are requested by ID.
    (try other.existingObject(with: b.objectID) as? Dog)?.age = 9
    try other.save()
    #expect(try pack.context().fetch(FetchRequest<Dog> { $0.age == 9 }).map(\.objectID) == [b.objectID])
    let onlyB = FetchPredicate<Dog>(.comparison(.object, .equalTo, .constant(.objectID(b.objectID)), []))
    #expect(try pack.context().fetch(FetchRequest(where: onlyB)).map(\.name) == ["b"])
    other.delete(try other.existingObject(with: a.objectID))
    try other.save()
    #expect(try pack.context().fetch(FetchRequest<Dog>()).map(\.name) == ["b"])
  }

  @Test(arguments: StorePair.allCases) func relationshipsWithinTheSecondStoreAreKept(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    // The first store has objects with the same keys.
    context.dog("other", owner: context.person("else"))
    let ann = context.person("Ann"), dogs = (0..<5).map { context.dog("d\($0)", owner: ann) }
    dogs[0].friends.insert(dogs[1])
    dogs[0].friends.insert(dogs[2])
    for object in [ann] + dogs { try context.assign(object, to: pack.stores[1]) }
    try context.save()
    let second = try pack.context()
    let found = try #require(try second.one(Person.self) { $0.name == "Ann" })
    #expect(found.dogs.map(\.name).sorted() == ["d0", "d1", "d2", "d3", "d4"])
    let first = try #require(try second.one(Dog.self) { $0.name == "d0" })
    #expect(first.owner === found && first.toOneID(Dog.Slot.owner) == found.objectID)
    #expect(try first.committedValues(forKeys: ["owner"]) == ["owner": .objectID(found.objectID)])
    #expect(first.friends.map(\.name).sorted() == ["d1", "d2"])
    first.friends.remove(try #require(try second.one(Dog.self) { $0.name == "d1" }))
    second.delete(try #require(try second.one(Dog.self) { $0.name == "d4" }))
    try second.refresh(first, mergeChanges: true)
    try second.save()
    let third = try pack.context()
    #expect(try third.one(Dog.self) { $0.name == "d0" }?.friends.map(\.name) == ["d2"])
    #expect(try third.one(Person.self) { $0.name == "Ann" }?.dogs.count == 4)
    #expect(try third.one(Person.self) { $0.name == "else" }?.dogs.map(\.name) == ["other"])
  }

  @Test(arguments: StorePair.allCases) func aStoreWithoutChangesIsAskedNothing(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let dog = context.dog("there")
    try context.assign(dog, to: pack.stores[1])
    pack.clearRecords()
    try context.save()
    #expect(pack.recorders[0].requests.isEmpty)
    #expect(pack.recorders[1].saves.count == 1)
    pack.clearRecords()
    dog.age = 7
    try context.save()
    #expect(pack.recorders[0].requests.isEmpty)
    #expect(pack.recorders[1].saves.first?.entities[dog.entity.index]?.updated == [dog.objectID.key: [Dog.Slot.age]])
  }

  @Test(arguments: StorePair.allCases) func relationshipsBetweenStoresAreRefusedAllTogether(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let ann = context.person("Ann")
    try context.save()
    let dog = context.dog("d", owner: ann), friend = context.dog("f")
    try context.assign(dog, to: pack.stores[1])
    dog.friends.insert(friend)
    // Until the save, the graph is complete.
    #expect(ann.dogs.map(\.name) == ["d"] && Array(friend.friendOf) == [dog])
    pack.clearRecords()
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .externalRelationship && error.coreDataCode == 133010)
    #expect(Set(error.failures.map(\.property)) == ["owner", error.failures.first { $0.property != "owner" }?.property])
    #expect(error.failures.count == 2)
    let owner = try #require(error.failures.first { $0.property == "owner" })
    #expect(owner.objectID == dog.objectID && owner.objectIDs == [dog.objectID, ann.objectID])
    #expect(pack.recorders.allSatisfy { $0.saves.isEmpty })
    // It can be saved after a correction.
    dog.owner = nil
    dog.friends.remove(friend)
    try context.save()
    #expect(try pack.context().count(for: FetchRequest<Dog>()) == 2)
  }

  @Test func linkingASavedObjectToAnotherStoreIsRefusedToo() throws {
    let pack = try StorePack(.memories), context = try pack.context()
    let dog = context.dog("d"), ann = context.person("Ann")
    try context.assign(ann, to: pack.stores[1])
    try context.save()
    ann.dogs.insert(dog)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .externalRelationship && error.property == "owner")
    #expect(error.objectIDs == [dog.objectID, ann.objectID])
    context.rollback()
    #expect(dog.owner == nil && ann.dogs.isEmpty && !context.hasChanges)
  }

  /// The bug: both ends recorded the removal, because their lists weren't in memory. The stores received it with keys that aren't theirs, and
  /// the versions of both objects were raised. A store whose history keeps values refused the save.
  @Test(arguments: StorePair.allCases) func aLinkBetweenStoresThatIsRemovedAgainIsNoChange(_ pair: StorePair) throws {
    let pack = try StorePack(pair), other = try pack.context(), context = try pack.context()
    let here = other.dog("here"), there = other.dog("there")
    try other.assign(there, to: pack.stores[1])
    try other.save()
    let (a, b) = (try context.existingDog(here.objectID), try context.existingDog(there.objectID))
    for (dog, friend) in [(a, b), (b, a)] {
      dog.friends.insert(friend)
      #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .externalRelationship)
      dog.friends.remove(friend)
      pack.clearRecords()
      try context.save()
      #expect(pack.recorders.allSatisfy { $0.saves.isEmpty })
    }
    #expect(a.friends.isEmpty && a.friendOf.isEmpty && b.friends.isEmpty && b.friendOf.isEmpty)
    // The versions are those that another context has read.
    (here.age, there.age) = (5, 6)
    try other.save()
    // A child removes a link that its parent hasn't saved.
    a.friends.insert(b)
    let child = ManagedObjectContext(parent: context)
    try child.existingDog(a.objectID).friends.remove(child.existingDog(b.objectID))
    try child.save()
    #expect(a.friends.isEmpty && b.friendOf.isEmpty)
  }

  @Test(arguments: ["one", "many", "ordered", "friends"]) func everyShapeOfRelationshipIsLookedAt(_ name: String) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Node", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [
          .toOne("one", to: "Node", inverse: nil), .toMany("many", to: "Node", inverse: nil),
          .toMany("ordered", to: "Node", inverse: "owner", isOrdered: true), .toOne("owner", to: "Node", inverse: "ordered"),
          .toMany("friends", to: "Node", inverse: "friends"),
        ])
    ])
    let pack = try StorePack([.memory, .sqlite], model: model), context = try ManagedObjectContext(coordinator: pack.coordinator)
    for savesFirst in [false, true] {
      let (a, b) = (try context.insert(entityNamed: "Node"), try context.insert(entityNamed: "Node"))
      try context.assign(b, to: pack.stores[1])
      if savesFirst { try context.save() }
      if name == "one" {
        try a.setValue(.objectID(b.objectID), forKey: name)
      } else if name == "ordered" {
        try b.setValue(.objectID(a.objectID), forKey: "owner")
      } else {
        try a.toMany(forKey: name).insert(b)
      }
      let error = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(error.coreDataCode == 133010 && Set(error.objectIDs) == [a.objectID, b.objectID])
      context.rollback()
    }
    #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Node")) == 2)
  }

  @Test(arguments: StorePair.allCases) func whenTheSecondStoreRefusesNothingIsSaved(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let (a, b) = (context.dog("a"), context.dog("b"))
    try context.assign(b, to: pack.stores[1])
    pack.clearRecords()
    pack.faults[1].fail(.prepare, with: refusal)
    #expect(try #require(throws: StoreError.self) { try context.save() }.code == .diskFull)
    // The first store may have got no request.
    #expect(pack.recorders[0].saves.isEmpty || pack.recorders[0].requests.last == .abort)
    #expect(context.insertedObjects == [a, b] && a.objectID.isTemporaryID)
    #expect(try pack.context().count(for: FetchRequest<Dog>()) == 0)
    try context.save()
    #expect(try pack.context().count(for: FetchRequest<Dog>()) == 2)
  }

  @Test(arguments: StorePair.allCases) func whenTheFirstCommitFailsNothingIsSaved(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    try context.assign(context.dog("b"), to: pack.stores[1])
    context.dog("a")
    pack.faults[0].fail(.commit, with: refusal)
    #expect(throws: StoreError.self) { try context.save() }
    #expect(pack.recorders[1].requests.last == .abort)
    #expect(try pack.context().count(for: FetchRequest<Dog>()) == 0)
    try context.save()
    #expect(try pack.context().count(for: FetchRequest<Dog>()) == 2)
  }

  @Test(arguments: StorePair.allCases) func whenALaterCommitFailsTheErrorSaysWhichStoresHaveTheirChanges(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let old = context.dog("old"), gone = context.dog("gone"), oldThere = context.dog("old there")
    try context.assign(oldThere, to: pack.stores[1])
    try context.save()
    let (a, b) = (context.dog("a", owner: context.person("p")), context.dog("b"))
    b.friends.insert(oldThere)
    try context.assign(b, to: pack.stores[1])
    old.age = 8
    oldThere.age = 9
    context.delete(gone)
    pack.faults[1].fail(.commit, with: refusal)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .incompleteSave && error.coreDataCode == 134040)
    #expect(error.savedStoreIdentifiers == [pack.stores[0].identifier])
    #expect((error.cause as? StoreError)?.code == .diskFull)
    #expect(error.objectIDs.contains(b.objectID) && error.objectIDs.contains(oldThere.objectID) && error.objectIDs.count == 2)
    // The first store's objects are unchanged now; the others still have changes.
    #expect(!a.objectID.isTemporaryID && !a.hasChanges && !old.hasChanges)
    #expect(b.isInserted && b.objectID.isTemporaryID && oldThere.isUpdated && context.hasChanges)
    #expect(context.insertedObjects == [b] && context.updatedObjects == [oldThere] && context.deletedObjects.isEmpty)
    let other = try pack.context()
    #expect(try other.fetch(FetchRequest<Dog>()).map(\.name).sorted() == ["a", "old", "old there"])
    #expect(try other.one(Dog.self) { $0.name == "old" }?.age == 8 && other.one(Dog.self) { $0.name == "old there" }?.age == 1)
    // The remaining changes can be saved, to the assigned store.
    pack.clearRecords()
    try context.save()
    #expect(pack.recorders[0].saves.isEmpty)
    #expect(pack.coordinator.persistentStore(for: b.objectID) == pack.stores[1])
    #expect(try pack.context().one(Dog.self) { $0.name == "b" }?.friends.map(\.name) == ["old there"])
  }

  private func unconfirmed(_ name: String) -> StoreError {
    StoreError(.durabilityUnknown, operation: "save", reason: "The disk of \(name) didn't confirm it.")
  }

  /// Objects in both stores that aren't saved.
  private func changed(_ pack: StorePack) throws -> ManagedObjectContext {
    let context = try pack.context()
    for (index, store) in pack.stores.enumerated() { try context.assign(context.dog("dog \(index)"), to: store) }
    return context
  }

  /// The bug: the error named only the store that failed.
  @Test(arguments: StorePair.allCases) func anIncompleteSaveReportsAStoreWhoseDiskDidNotConfirmIt(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try changed(pack)
    pack.faults[0].fail(.commit, with: unconfirmed("a"))
    pack.faults[1].fail(.commit, with: refusal)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .incompleteSave && error.savedStoreIdentifiers == [pack.stores[0].identifier])
    #expect(error.reason.contains("The disk of a didn't confirm it.") && (error.cause as? StoreError)?.code == .diskFull, "\(error)")
  }

  @Test(arguments: StorePair.allCases) func theErrorOfASaveReportsAllStoresWhoseDisksDidNotConfirmIt(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try changed(pack)
    pack.faults[0].fail(.commit, with: unconfirmed("a"))
    pack.faults[1].fail(.commit, with: unconfirmed("b"))
    let error = try #require(throws: StoreError.self) { try context.save() }
    #expect(error.code == .durabilityUnknown && !context.hasChanges)
    #expect(["a", "b"].allSatisfy { error.reason.contains("The disk of \($0) didn't confirm it.") }, "\(error)")
  }

  /// The first store has committed an ID that the second one hadn't given to the object yet.
  @Test(arguments: StorePair.allCases) func anObjectKeepsAnIDThatAnIncompleteSaveHasStored(_ pair: StorePair) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note", attributes: [AttributeDescription("about", .objectID, isOptional: true)],
        relationships: [.toMany("parts", to: "Note", inverse: "whole"), .toOne("whole", to: "Note", inverse: "parts")])
    ])
    let pack = try StorePack(pair.kinds, model: model), context = try ManagedObjectContext(coordinator: pack.coordinator)
    let (a, b, part) = (context.make("Note"), context.make("Note"), context.make("Note"))
    for object in [b, part] { try context.assign(object, to: pack.stores[1]) }
    b.many("parts").insert(part)
    a["about"] = .objectID(b.objectID)
    pack.faults[1].fail(.commit, with: refusal)
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .incompleteSave)
    #expect(!a.hasChanges && b.isInserted && part.isInserted)
    #expect(a["about"] == .objectID(b.objectID) && Array(b.many("parts")) == [part])
    try context.save()
    #expect(a["about"] == .objectID(b.objectID) && !context.hasChanges)
    let other = try ManagedObjectContext(coordinator: pack.coordinator)
    #expect(try other.existingObject(with: a.objectID)["about"] == .objectID(b.objectID))
    #expect(try other.existingObject(with: b.objectID).many("parts").map(\.objectID) == [part.objectID])
    #expect(pack.coordinator.persistentStore(for: b.objectID) == pack.stores[1])
  }

  @Test(arguments: StorePair.allCases) func aConflictInTheSecondStoreNamesItsObject(_ pair: StorePair) throws {
    let pack = try StorePack(pair), a = try pack.context()
    let here = a.dog("here"), there = a.dog("there")
    try a.assign(there, to: pack.stores[1])
    try a.save()
    let b = try pack.context()
    try b.one(Dog.self) { $0.name == "there" }?.age = 5
    try b.save()
    here.age = 6
    there.age = 7
    let error = try #require(throws: PersistenceError.self) { try a.save() }
    #expect(error.code == .conflict && error.objectIDs == [there.objectID])
    #expect(try pack.context().one(Dog.self) { $0.name == "here" }?.age == 1)
    try a.refresh(there, mergeChanges: true)
    try a.save()
    #expect(try pack.context().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.age)])).map(\.age) == [6, 7])
  }

  /// So a program can discard the changes that the error names, and save all others.
  @Test(arguments: StorePair.allCases) func theErrorNamesTheObjectsInConflictOfAllStores(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let here = context.dog("here"), there = context.dog("there"), own = context.dog("own")
    try context.assign(there, to: pack.stores[1])
    try context.save()
    let other = try pack.context()
    for dog in try other.fetch(FetchRequest<Dog>()) where dog.name != "own" { dog.age = 5 }
    try other.save()
    for dog in [here, there, own] { dog.age = 7 }
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .conflict && Set(error.objectIDs) == [here.objectID, there.objectID] && error.objectIDs.count == 2)
    try context.discardChanges(of: error.objectIDs)
    try context.save()
    #expect(try pack.context().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.age)])).map(\.age) == [5, 5, 7])
  }

  @Test(arguments: StorePair.allCases) func uniquenessHoldsPerStore(_ pair: StorePair) throws {
    let pack = try StorePack(pair), context = try pack.context()
    let (a, b) = (context.dog("a"), context.dog("b"))
    (a.chip, b.chip) = (7, 7)
    try context.assign(b, to: pack.stores[1])
    try context.save()
    let c = context.dog("c")
    c.chip = 7
    try context.assign(c, to: pack.stores[1])
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .constraintConflict && error.objectIDs == [c.objectID])
  }

  @Test func everyStoreAnnouncesWhatWasSavedInIt() async throws {
    let pack = try StorePack(.memories)
    let changes = pack.coordinator.savedChanges()
    let context = try pack.context()
    let (a, b) = (context.dog("a"), context.dog("b"))
    try context.assign(b, to: pack.stores[1])
    try context.save()
    let (ofA, ofB) = (a.objectID, b.objectID)
    var heard: [SavedChanges] = []
    for await change in changes {
      heard.append(change)
      if heard.count == 2 { break }
    }
    #expect(heard.map(\.inserted) == [[ofA], [ofB]])
    #expect(heard.map(\.storeIdentifier) == pack.stores.map(\.identifier))
  }

  @Test func aReadOnlyStoreIsPassedOver() throws {
    let contents = MemoryStoreContentsBox()
    try contents.fill()
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: [contents.readOnly, .memory()])
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let dog = context.dog("new")
    #expect(try #require(throws: StoreError.self) { try context.assign(dog, to: coordinator.persistentStores[0]) }.code == .readOnly)
    try context.save()
    #expect(coordinator.persistentStore(for: dog.objectID) == coordinator.persistentStores[1])
    #expect(try context.count(for: FetchRequest<Dog>()) == 2)
    try context.one(Dog.self) { $0.name == "old" }?.age = 3
    #expect(try #require(throws: StoreError.self) { try context.save() }.code == .readOnly)
  }

  @Test(.ownThreads) func assigningASavedObjectTraps() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: [.memory(), .memory()])
        let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
        let dog = context.dog("d")
        try context.save()
        try context.assign(dog, to: coordinator.persistentStores[1])
      }
    }
  }
}
