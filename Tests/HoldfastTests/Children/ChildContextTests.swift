import Foundation
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

@testable import Holdfast

/// Contexts whose store is another context.
@Suite struct ChildContextTests {
  /// A context with two people, Ann with Fido and Rex, and Bob without dogs; and its child.
  private struct Family {
    let place: TestStore.Place
    let parent: ManagedObjectContext, child: ManagedObjectContext

    init(_ store: TestStore) throws {
      place = try store.makeKennelsOfTwo()
      parent = try place.context()
      child = ManagedObjectContext(parent: parent)
    }

    /// The ID of an unsaved dog of the parent, which the child or the parent has inserted.
    func newDog(isOfChild: Bool) throws -> ManagedObjectID {
      let dog = (isOfChild ? child : parent).dog("New")
      if isOfChild { try child.save() } else { try parent.obtainPermanentIDs(for: [dog]) }
      return dog.objectID
    }

    /// Makes the child change the age of Fido and insert a dog, and saves it.
    func pushChanges() throws -> (fido: Dog, new: Dog) {
      let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" }), new = child.dog("New")
      fido.age = 10
      try child.save()
      return (fido, new)
    }

    /// A save of the child's object is a conflict. When it is refreshed, its weight can be raised and saved.
    func expectOutdated(_ mine: Dog) throws {
      mine.weight = (mine.weight ?? 0) + 1
      #expect(throws: PersistenceError.self) { try child.save() }
      try child.refresh(mine, mergeChanges: false)
      mine.weight = (mine.weight ?? 0) + 1
      try child.save()
    }
  }

  private final class Page: ManagedObject {
    var calls: [String] = []
    override func awakeFromInsert() { calls.append("awakeFromInsert") }
    override func prepareForDeletion() { calls.append("prepareForDeletion") }
    override func willSave() { calls.append("willSave") }
    override func validateForInsert() throws { calls.append("validateForInsert") }
    override func validateForDelete() throws { calls.append("validateForDelete") }
    override func didSave() { calls.append("didSave") }
  }

  @Test func theCallbacksOfASaveRunInTheChildAndInTheParent() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Page", attributes: [AttributeDescription("name", .string, isOptional: true)])
    ])
    let parent = try TestStore.memory.makePlace(model: model, classes: [Page.self]).context(), child = ManagedObjectContext(parent: parent)
    let mine = child.insert(Page.self)
    try child.save()
    let theirs = try #require(parent.registeredObject(for: mine.objectID) as? Page)
    #expect(mine.calls == ["awakeFromInsert", "willSave", "validateForInsert", "didSave"] && theirs.calls.isEmpty)
    try parent.save()
    #expect(theirs.calls == ["willSave", "validateForInsert", "didSave"])
    (mine.calls, theirs.calls) = ([], [])
    child.delete(mine)
    try child.save()
    try parent.save()
    #expect(mine.calls == ["prepareForDeletion", "willSave", "validateForDelete", "didSave"])
    #expect(theirs.calls == ["willSave", "validateForDelete", "didSave"])
  }

  @Test(arguments: TestStore.allCases) func aSavePushesChangesOneLevelUp(_ store: TestStore) throws {
    let family = try Family(store), child = family.child
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" }), rex = try #require(try child.one(Dog.self) { $0.name == "Rex" })
    let bob = try #require(try child.one(Person.self) { $0.name == "Bob" })
    fido.name = "Fido II"
    fido.owner = bob
    child.delete(rex)
    let max = child.dog("Max", age: 1, owner: bob)
    max.friends.insert(fido)
    #expect(try namesOfDogs(family.parent) == ["Fido", "Rex"] && !family.parent.hasChanges)
    try child.save()
    #expect(!child.hasChanges && !max.objectID.isTemporaryID)
    // The parent has unsaved changes, with the same IDs; the store has none.
    #expect(try namesOfDogs(family.parent) == ["Fido II", "Max"] && family.parent.hasChanges)
    let theirs = try #require(try family.parent.object(with: max.objectID) as? Dog)
    #expect(theirs.isInserted && theirs.owner?.name == "Bob" && theirs.friends.map(\.name) == ["Fido II"])
    #expect(theirs.owner?.dogs.map(\.name).sorted() == ["Fido II", "Max"])
    #expect(try namesOfDogs(family.place.context()) == ["Fido", "Rex"])
    try family.parent.save()
    #expect(try namesOfDogs(family.place.context()) == ["Fido II", "Max"])
    let saved = try #require(try family.place.context().one(Dog.self) { $0.name == "Max" })
    #expect(saved.objectID == max.objectID && saved.owner?.dogs.count == 2 && saved.friends.first?.name == "Fido II")
    // The child goes on.
    max.age = 2
    fido.notes = "older"
    try child.save()
    try family.parent.save()
    #expect(try family.place.context().one(Dog.self) { $0.age == 2 }?.name == "Max")
    #expect(try family.place.context().one(Dog.self) { $0.notes == "older" }?.name == "Fido II")
  }

  @Test(arguments: TestStore.allCases) func aChildSeesUnsavedChangesOfItsParent(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let ann = try #require(try parent.one(Person.self) { $0.name == "Ann" })
    let fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" })
    fido.name = "Changed"
    parent.delete(try #require(try parent.one(Dog.self) { $0.name == "Rex" }))
    let new = parent.dog("New", age: 9, owner: ann)
    #expect(try namesOfDogs(child) == ["Changed", "New"])
    #expect(try child.count(for: FetchRequest<Dog>()) == 2 && child.fetchObjectIDs(FetchRequest<Dog>()).contains(new.objectID))
    #expect(!new.objectID.isTemporaryID && new.isInserted)
    let theirs = try #require(try child.one(Person.self) { $0.name == "Ann" })
    #expect(theirs.dogs.map(\.name).sorted() == ["Changed", "New"])
    #expect(try child.one(Dog.self) { $0.owner.name == "Ann" && $0.age == 9 }?.objectID == new.objectID)
    #expect(try child.one(Dog.self) { $0.name == "Rex" } == nil)
    let sums = try child.fetch(DictionaryFetchRequest<Dog>(columns: ["sum": .sum("age")]))
    #expect(sums.first?["sum"] == .int64(12))
    // Unsaved changes of the child come on top.
    try #require(try child.one(Dog.self) { $0.age == 9 }).age = 10
    #expect(try child.one(Dog.self) { $0.age == 10 }?.name == "New" && new.age == 9)
    #expect(try child.fetch(Dog.self, sortedBy: \.age, limit: 1) { $0.age > 0 }.map(\.name) == ["Changed"])
  }

  /// The parent's save doesn't write the row, so it has no new version.
  @Test(arguments: TestStore.allCases, [false, true])
  func aChildNoticesThatTheParentHasSetAValueBack(_ store: TestStore, _ merges: Bool) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    child.automaticallyMergesChanges = merges
    let fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" }), age = fido.age
    fido.age = 50
    let theirs = try child.existingDog(fido.objectID)
    #expect(theirs.age == 50)
    fido.age = age
    try parent.save()
    if merges {
      try child.processPendingChanges()
      #expect(theirs.age == age)
    }
    theirs.notes = "old"
    if merges { try child.save() } else { #expect(throws: PersistenceError.self) { try child.save() } }
    #expect(fido.notes == (merges ? "old" : nil))
  }

  /// The child has read the value that the parent had between two equal ones, and has saved another value since.
  @Test(arguments: TestStore.allCases, [false, true])
  func aChildThatHasSavedNoticesThatTheParentHadSetAValueBack(_ store: TestStore, _ isNew: Bool) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    child.automaticallyMergesChanges = true
    let id = isNew ? try family.newDog(isOfChild: true) : try #require(try parent.one(Dog.self) { $0.name == "Fido" }).objectID
    let dog = try parent.existingDog(id), age = dog.age, reader = ManagedObjectContext(parent: parent)
    reader.automaticallyMergesChanges = true
    dog.age = 50
    let theirs = try reader.existingDog(id)
    #expect(theirs.age == 50)
    dog.age = age
    theirs.notes = "seen"
    try reader.save()
    try parent.save()
    try reader.processPendingChanges()
    #expect(theirs.age == age && dog.notes == "seen" && dog.age == age)
  }

  /// An object of a to-many relationship without an inverse has one owner. The store takes it from the former one, whose row doesn't change.
  @Test(arguments: TestStore.allCases) func aChildNoticesThatAnotherOwnerHasTakenAnObject(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Box", attributes: [], relationships: [.toMany("things", to: "Thing", inverse: nil, isOrdered: true)]),
      EntityDescription("Thing", attributes: [AttributeDescription("name", .string)]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let boxes = try (0..<2).map { _ in try setup.insert(entityNamed: "Box") }, thing = try setup.insert(entityNamed: "Thing")
    try thing.setValue("thing", forKey: "name")
    try boxes[0].toMany(forKey: "things").insert(thing)
    try setup.save()
    let parent = try place.context(), child = ManagedObjectContext(parent: parent), grandchild = ManagedObjectContext(parent: child)
    for context in [child, grandchild] { context.automaticallyMergesChanges = true }
    func things(_ box: ManagedObject, _ context: ManagedObjectContext) throws -> Int {
      try context.existingObject(with: box.objectID).toMany(forKey: "things").count
    }
    #expect(try things(boxes[0], child) == 1 && things(boxes[0], grandchild) == 1 && things(boxes[1], grandchild) == 0)
    try parent.existingObject(with: boxes[1].objectID).toMany(forKey: "things").insert(parent.existingObject(with: thing.objectID))
    try parent.save()
    for context in [child, grandchild] {
      try context.processPendingChanges()
      #expect(try things(boxes[0], context) == 0 && things(boxes[1], context) == 1)
    }
  }

  /// Links to new objects and to those of the parent, whose keys have gaps in between: lists, pairs, and ends of both kinds.
  @Test(arguments: TestStore.allCases) func linksAmongNewAndOldObjectsArePushed(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let ann = try #require(try child.one(Person.self) { $0.name == "Ann" }),
      fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    let eve = child.person("Eve")
    var dogs: [Dog] = []
    for number in 0..<12 {
      let dog = child.dog("D\(number)", owner: number % 3 == 0 ? ann : eve)
      dogs.append(dog)
      if number % 4 == 1 { try child.obtainPermanentIDs(for: [dog]) }
      if number % 4 == 2 { try parent.obtainPermanentIDs(for: [parent.dog("P\(number)")]) }
      let vaccination = child.insert(Vaccination.self)
      (vaccination.kind, vaccination.dog) = ("V\(number)", dog)
    }
    for (number, dog) in dogs.enumerated() {
      dog.friends.insert(dogs[(number * 5 + 3) % 12])
      dog.friends.insert(number % 2 == 0 ? fido : dog)
      if number % 5 == 0 { fido.friends.insert(dog) }
    }
    let (collar, other) = (child.insert(Collar.self), child.insert(Collar.self))
    (dogs[7].collar, fido.collar) = (collar, other)
    func state(_ context: ManagedObjectContext) throws -> [String] {
      func names(_ dogs: ToMany<Dog>) -> String { dogs.map(\.name).sorted().joined(separator: " ") }
      let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).filter { !$0.name.hasPrefix("P") }
      let people = try context.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
      return dogs.map {
        "\($0.name) \($0.owner?.name ?? "-") \($0.collar?.dog?.name ?? "-"): \(names($0.friends)) / \(names($0.friendOf)) "
          + $0.vaccinations.map(\.kind).joined()
      } + people.map { "\($0.name): \(names($0.dogs))" }
    }
    let wanted = try state(child)
    try child.save()
    #expect(try state(child) == wanted && state(parent) == wanted)
    try parent.save()
    #expect(try state(parent) == wanted && state(family.place.context()) == wanted)
  }

  @Test(arguments: TestStore.allCases) func aDiscardedChildLeavesNothing(_ store: TestStore) throws {
    let family = try Family(store)
    var child: ManagedObjectContext? = ManagedObjectContext(parent: family.parent)
    try child?.one(Dog.self) { $0.name == "Fido" }?.name = "Draft"
    child?.person("Nobody")
    child = nil
    #expect(!family.parent.hasChanges)
    #expect(try namesOfDogs(family.parent) == ["Fido", "Rex"])
    family.child.dog("Draft")
    family.child.rollback()
    try family.child.save()
    #expect(!family.parent.hasChanges)
  }

  @Test(arguments: TestStore.allCases) func childrenOfChildrenPushLevelByLevel(_ store: TestStore) throws {
    let family = try Family(store)
    var contexts = [family.parent]
    for _ in 0..<5 { contexts.append(ManagedObjectContext(parent: contexts[contexts.count - 1])) }
    let deepest = contexts[5]
    let fido = try #require(try deepest.one(Dog.self) { $0.name == "Fido" })
    fido.age = 50
    let max = deepest.dog("Max", age: 1, owner: fido.owner)
    for level in (0...5).reversed() {
      #expect(contexts[level].hasChanges)
      #expect(level == 0 || contexts[level - 1].hasChanges == false)
      try contexts[level].save()
      #expect(!contexts[level].hasChanges)
    }
    let saved = try family.place.context()
    #expect(try saved.one(Dog.self) { $0.age == 50 }?.owner?.dogs.count == 3)
    #expect(try saved.one(Dog.self) { $0.name == "Max" }?.objectID == max.objectID)
    #expect(deepest.persistentStoreCoordinator === family.parent.persistentStoreCoordinator && deepest.parent === contexts[4])
  }

  // MARK: Conflicts

  @Test(arguments: TestStore.allCases) func anObjectThatAnotherChildHasChangedIsAConflict(_ store: TestStore) throws {
    let family = try Family(store), second = ManagedObjectContext(parent: family.parent)
    let mine = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    let theirs = try #require(try second.one(Dog.self) { $0.name == "Fido" })
    (mine.age, theirs.age, theirs.notes) = (10, 20, "theirs")
    try second.save()
    let error = try #require(throws: PersistenceError.self) { try family.child.save() }
    #expect(error.code == .conflict && error.objectIDs == [mine.objectID])
    family.child.mergePolicy = .mergeByPropertyObjectTrump
    try family.child.save()
    let parents = try #require(try family.parent.one(Dog.self) { $0.name == "Fido" })
    #expect(parents.age == 10 && parents.notes == "theirs" && mine.notes == "theirs")
    try family.parent.save()
    // What the parent has saved is what the child has.
    mine.age = 11
    family.child.mergePolicy = .error
    try family.child.save()
    try family.parent.save()
    #expect(try family.place.context().one(Dog.self) { $0.age == 11 }?.notes == "theirs")
  }

  @Test(arguments: TestStore.allCases) func whatThePropertyOfTheParentAndAnotherContextHaveChanged(_ store: TestStore) throws {
    let family = try Family(store)
    let mine = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    let parents = try #require(try family.parent.one(Dog.self) { $0.name == "Fido" })
    // Both keep what the other didn't change, and the child wins where both did.
    (parents.age, parents.weight) = (30, 3)
    (mine.age, mine.notes) = (10, "mine")
    try family.child.save()
    #expect(parents.age == 10 && parents.weight == 3 && parents.notes == "mine")
    try family.child.refresh(mine, mergeChanges: false)
    #expect(mine.weight == 3)
    try family.parent.save()
    // A change in the store is found by the save of the parent, or of a child that reads it.
    let other = try family.place.context()
    try #require(try other.one(Dog.self) { $0.name == "Fido" }).age = 99
    try other.save()
    mine.notes = "again"
    try family.child.save()
    let error = try #require(throws: PersistenceError.self) { try family.parent.save() }
    #expect(error.code == .conflict)
    family.parent.mergePolicy = .mergeByPropertyObjectTrump
    try family.parent.save()
    #expect(parents.age == 99 && parents.notes == "again")
  }

  @Test(arguments: TestStore.allCases) func whatTheParentDiscardsIsAConflict(_ store: TestStore) throws {
    let family = try Family(store)
    let mine = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    mine.age += 10
    try family.child.save()
    family.parent.rollback()
    mine.age += 10
    let error = try #require(throws: PersistenceError.self) { try family.child.save() }
    #expect(error.code == .conflict)
    try family.child.refresh(mine, mergeChanges: false)
    #expect(mine.age == 3)
    // A new object that the parent has discarded is gone.
    let new = family.child.dog("New")
    try family.child.save()
    family.parent.rollback()
    new.age = 9
    #expect(throws: PersistenceError.self) { try family.child.save() }
    try family.child.discardChanges(of: [new.objectID])
    #expect(try family.child.one(Dog.self) { $0.name == "New" } == nil && new.isInaccessible)
  }

  @Test(arguments: TestStore.allCases) func anObjectThatTheParentHasDeletedIsAConflict(_ store: TestStore) throws {
    let family = try Family(store)
    let mine = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    family.parent.delete(try #require(try family.parent.one(Dog.self) { $0.name == "Fido" }))
    mine.age = 10
    let error = try #require(throws: PersistenceError.self) { try family.child.save() }
    #expect(error.code == .conflict && error.objectIDs == [mine.objectID])
    family.child.mergePolicy = .mergeByPropertyStoreTrump
    try family.child.save()
    #expect(mine.isInaccessible)
    try family.parent.save()
    #expect(try namesOfDogs(family.place.context()) == ["Rex"])
  }

  @Test(arguments: TestStore.allCases) func aChildCanFollowItsParentAndItsSiblings(_ store: TestStore) throws {
    let family = try Family(store), second = ManagedObjectContext(parent: family.parent)
    family.child.automaticallyMergesChanges = true
    family.parent.automaticallyMergesChanges = true
    let mine = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    try #require(try second.one(Dog.self) { $0.name == "Fido" }).age = 20
    try second.save()
    try family.child.processPendingChanges()
    #expect(mine.age == 20)
    try family.parent.save()
    let other = try family.place.context()
    try #require(try other.one(Dog.self) { $0.name == "Fido" }).age = 30
    try other.save()
    try family.parent.processPendingChanges()
    try family.child.processPendingChanges()
    #expect(mine.age == 30)
  }

  @Test(arguments: TestStore.allCases) func aChildCanFollowWhatItsParentSavesAndDiscards(_ store: TestStore) throws {
    let family = try Family(store), child = family.child, parent = family.parent
    child.automaticallyMergesChanges = true
    let mine = try #require(try child.one(Dog.self) { $0.name == "Fido" }), rex = try #require(try child.one(Dog.self) { $0.name == "Rex" })
    let ann = try #require(mine.owner), fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" })
    #expect(mine.age == 3 && rex.age == 5 && ann.dogs.count == 2)
    fido.age = 20
    parent.dog("New", owner: fido.owner)
    parent.delete(try #require(try parent.one(Dog.self) { $0.name == "Rex" }))
    try parent.save()
    try child.processPendingChanges()
    #expect(mine.age == 20 && rex.isInaccessible && ann.dogs.map(\.name).sorted() == ["Fido", "New"])
    // Its changes aren't conflicts.
    mine.notes = "mine"
    try child.save()
    #expect(fido.notes == "mine")
    for discards in [true, false] {
      fido.age = 30
      try child.refresh(mine, mergeChanges: false)
      #expect(mine.age == 30)
      if discards { try parent.discardChanges(of: [fido.objectID]) } else { try parent.refresh(fido, mergeChanges: false) }
      try child.processPendingChanges()
      #expect(mine.age == 20)
      mine.weight = 2
      try child.save()
      try parent.save()
    }
  }

  /// The order of the child, which both have changed, wins. It has read the list from the store, or from the parent.
  @Test(arguments: TestStore.allCases, [false, true])
  func theOrderOfAListThatBothChangeIsTheChilds(_ store: TestStore, _ isReadFromParent: Bool) throws {
    let lists = try Lists(store, ["a", "b", "c"]), parent = try lists.place.context(), child = ManagedObjectContext(parent: parent)
    let theirs = try lists.items(parent)
    if isReadFromParent { theirs.move(from: 0, to: 2) }
    let mine = try lists.items(child), before = Array(mine)
    theirs.replaceAll(with: theirs.reversed())
    let added = try Lists.newItem("d", child)
    mine.append(added)
    try child.save()
    let expected = try Lists.names(of: before + [added])
    #expect(try Lists.names(of: theirs) == expected)
    try parent.save()
    #expect(try Lists.names(of: lists.items(lists.place.context())) == expected)
  }

  /// The child has moved objects twice before its parent was saved, which then has other order keys. Reading another list reads this one's
  /// order keys as well, because the owners were fetched together.
  @Test(arguments: TestStore.allCases) func theOrderOfAListDoesNotDependOnReadingAnotherOne(_ store: TestStore) throws {
    let lists = try Lists(store, ["a", "b", "c"], also: "other"), parent = try lists.place.context()
    let child = ManagedObjectContext(parent: parent), mine = try lists.items(child)
    for _ in 0..<2 {
      mine.move(from: 0, to: 1)
      try child.save()
    }
    try parent.save()
    let other = try lists.list("other", child)
    #expect(try other.ordered(forKey: "items").isEmpty)
    mine.move(from: 2, to: 1)
    try child.save()
    #expect(try Lists.names(of: lists.items(parent)) == ["a", "c", "b"])
    try parent.save()
    #expect(try Lists.names(of: lists.items(lists.place.context())) == ["a", "c", "b"])
  }

  /// The parent has changed the order after the child has read it, and the child then reads another list.
  @Test(arguments: TestStore.allCases) func theOrderOfTheChildWinsAfterReadingAnotherList(_ store: TestStore) throws {
    let lists = try Lists(store, ["a", "b", "c"], also: "other"), parent = try lists.place.context()
    let child = ManagedObjectContext(parent: parent), mine = try lists.items(child), theirs = try lists.items(parent)
    #expect(try Lists.names(of: mine) == ["a", "b", "c"])
    theirs.reverse()
    let other = try lists.list("other", child)
    #expect(try other.ordered(forKey: "items").isEmpty)
    mine.move(from: 2, to: 0)
    try child.save()
    #expect(try Lists.names(of: theirs) == ["c", "a", "b"])
    try parent.save()
    #expect(try Lists.names(of: lists.items(lists.place.context())) == ["c", "a", "b"])
  }

  @Test(arguments: TestStore.allCases) func theOrderOfTheParentStaysIfTheChildOnlyRemovesAnObject(_ store: TestStore) throws {
    let lists = try Lists(store, ["a", "b", "c"]), parent = try lists.place.context(), child = ManagedObjectContext(parent: parent)
    let mine = try lists.items(child), theirs = try lists.items(parent)
    #expect(try Lists.names(of: mine) == ["a", "b", "c"])
    theirs.reverse()
    mine.remove(at: 1)
    try child.save()
    #expect(try Lists.names(of: theirs) == ["c", "a"])
  }

  /// The child knows neither the parent's new object nor that another one was removed.
  @Test(arguments: TestStore.allCases) func objectsThatTheChildDoesNotKnowStayBehindTheirPredecessors(_ store: TestStore) throws {
    let lists = try Lists(store, ["a", "b", "c", "d"]), parent = try lists.place.context(), child = ManagedObjectContext(parent: parent)
    let mine = try lists.items(child), theirs = try lists.items(parent)
    #expect(try Lists.names(of: mine) == ["a", "b", "c", "d"])
    theirs.insert(try Lists.newItem("x", parent), at: 1)
    theirs.remove(at: 2)
    mine.move(from: 3, to: 0)
    try child.save()
    #expect(try Lists.names(of: theirs) == ["d", "a", "x", "c"])
  }

  /// The store clears references to deleted objects that the parent hasn't read.
  @Test(arguments: TestStore.allCases) func aChildFollowsDeletionsOfWhatItRefersTo(_ store: TestStore) throws {
    let family = try Family(store), child = family.child
    child.automaticallyMergesChanges = true
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    #expect(fido.age == 3)
    family.parent.delete(try #require(try family.parent.one(Person.self) { $0.name == "Ann" }))
    try family.parent.save()
    try child.processPendingChanges()
    #expect(fido.owner == nil)
    fido.age = 5
    try child.save()
    try family.parent.save()
    #expect(try family.place.context().one(Dog.self) { $0.name == "Fido" }?.age == 5)
  }

  /// The child has deleted what Fido refers to. Then it reads Fido, whom the parent hasn't read, or reads with its own unsaved changes.
  @Test(arguments: TestStore.allCases, [false, true])
  func aMergingChildFollowsReferencesThatTheStoreClears(_ store: TestStore, _ isPair: Bool) throws {
    for hasNewDog in [false, true] {
      let family = try Family(store), (parent, child) = (family.parent, family.child), setup = try family.place.context()
      try #require(try setup.one(Dog.self) { $0.name == "Fido" }).collar = setup.insert(Collar.self)
      try setup.save()
      child.automaticallyMergesChanges = true
      if isPair {
        child.delete(try #require(try child.fetch(FetchRequest<Collar>()).first))
      } else {
        child.delete(try #require(try child.one(Person.self) { $0.name == "Ann" }))
      }
      try child.save()
      if hasNewDog { parent.dog("Spot") }
      let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
      #expect(fido.owner?.name == (isPair ? "Ann" : nil) && (fido.collar == nil) == isPair)
      try parent.save()
      fido.age = 5
      try child.save()
      try parent.save()
      let saved = try family.place.context().existingDog(fido.objectID)
      #expect(saved.age == 5 && saved.owner?.name == (isPair ? "Ann" : nil) && (saved.collar == nil) == isPair)
    }
  }

  @Test(arguments: TestStore.allCases, [false, true])
  func aMergingChildFollowsARevertedDeletionOfWhatItRefersTo(_ store: TestStore, _ isRollback: Bool) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    child.automaticallyMergesChanges = true
    let ann = try #require(try parent.one(Person.self) { $0.name == "Ann" })
    parent.delete(ann)
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    #expect(fido.owner == nil)
    if isRollback { parent.rollback() } else { try parent.discardChanges(of: [ann.objectID]) }
    try child.processPendingChanges()
    #expect(fido.owner?.name == "Ann")
  }

  @Test(arguments: TestStore.allCases) func aChildIsToldOfEachNewObjectOnce(_ store: TestStore) throws {
    let family = try Family(store), sibling = ManagedObjectContext(parent: family.parent)
    var told: [[ManagedObjectID]] = [[], []]
    let observations = [family.child, sibling].enumerated().map { place, context in
      context.automaticallyMergesChanges = true
      return context.onChange { _, changes in told[place] += changes.inserted }
    }
    let own = family.child.dog("Own")
    try family.child.save()
    let other = family.parent.dog("Of the parent")
    try family.parent.save()
    for context in [family.child, sibling] { try context.processPendingChanges() }
    #expect(told[0].count == 2 && told[0].last == other.objectID && told[1] == [own.objectID, other.objectID])
    withExtendedLifetime(observations) {}
  }

  /// The parent made its change before the child saved.
  @Test(arguments: TestStore.allCases) func whatTheParentChangedBeforeAndSavesIsAConflict(_ store: TestStore) throws {
    let family = try Family(store)
    let mine = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    let parents = try #require(try family.parent.one(Dog.self) { $0.name == "Fido" })
    #expect(mine.age == 3)
    parents.weight = 7
    mine.age = 10
    try family.child.save()
    mine.age = 11
    try family.child.save()
    try family.parent.save()
    try family.expectOutdated(mine)
    #expect(parents.weight == 8 && parents.age == 11)
  }

  /// An owner that only got objects from the child, and then changes by it, isn't in conflict.
  @Test(arguments: TestStore.allCases) func whatOnlyTheChildChangedIsNoConflict(_ store: TestStore) throws {
    let family = try Family(store)
    let fido = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    let bob = try #require(try family.child.one(Person.self) { $0.name == "Bob" })
    let rex = try #require(try family.child.one(Dog.self) { $0.name == "Rex" })
    fido.owner = bob
    fido.friends.insert(rex)
    try family.child.save()
    bob.city = "Rome"
    rex.age = 8
    try family.child.save()
    try family.parent.save()
    bob.city = "Oslo"
    rex.age = 9
    fido.age = 4
    try family.child.save()
    try family.parent.save()
    #expect(try family.parent.one(Person.self) { $0.name == "Bob" }?.city == "Oslo")
  }

  @Test(arguments: TestStore.allCases) func aNewOrderOfTheParentIsAConflict(_ store: TestStore) throws {
    let lists = try Lists(store, ["a", "b", "c"]), parent = try lists.place.context(), child = ManagedObjectContext(parent: parent)
    let mine = try lists.items(child), parents = try lists.items(parent)
    mine.move(from: 0, to: 2)
    try child.save()
    #expect(parents.map(\.objectID) == mine.map(\.objectID))
    parents.move(from: 0, to: 1)
    try parent.save()
    mine.move(from: 2, to: 1)
    #expect(throws: PersistenceError.self) { try child.save() }
  }

  @Test(arguments: TestStore.allCases) func whatTheParentSavesOfItsOwnIsAConflict(_ store: TestStore) throws {
    let family = try Family(store)
    let mine = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    let parents = try #require(try family.parent.one(Dog.self) { $0.name == "Fido" })
    mine.age = 10
    try family.child.save()
    // The save contains a change by the child and another one.
    parents.weight = 7
    try family.parent.save()
    try family.expectOutdated(mine)
    #expect(parents.weight == 8)
    // A new object, changed by the child, saved, and then changed by the parent.
    let new = family.child.dog("New")
    try family.child.save()
    new.age = 2
    try family.child.save()
    try family.parent.save()
    new.age = 3
    try family.child.save()
    try family.parent.save()
    try #require(try family.parent.object(with: new.objectID) as? Dog).age = 50
    try family.parent.save()
    new.age += 1
    #expect(throws: PersistenceError.self) { try family.child.save() }
    family.child.rollback()
    // Values that the parent has discarded by a reset.
    try family.child.refreshAllObjects()
    mine.age = 20
    try family.child.save()
    family.parent.reset()
    mine.notes = "based on discarded values"
    #expect(throws: PersistenceError.self) { try family.child.save() }
  }

  /// The parent changed the new object of the child before it was saved for the first time.
  @Test(arguments: TestStore.allCases) func whatTheParentChangedOfANewObjectAndSavesIsAConflict(_ store: TestStore) throws {
    let family = try Family(store), new = family.child.dog("New")
    try family.child.save()
    try #require(try family.parent.object(with: new.objectID) as? Dog).age = 50
    try family.parent.save()
    new.age += 1
    let error = #expect(throws: PersistenceError.self) { try family.child.save() }
    #expect(error?.code == .conflict)
  }

  @Test(arguments: TestStore.allCases, [false, true])
  func aMergingChildFollowsWhatItsParentChangedOfANewObject(_ store: TestStore, _ isOfChild: Bool) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    child.automaticallyMergesChanges = true
    let id = try family.newDog(isOfChild: isOfChild)
    let mine = try #require(try child.one(Dog.self) { $0.name == "New" })
    #expect(mine.age == 1 && mine.objectID == id)
    try parent.existingDog(id).age = 50
    try parent.save()
    try child.processPendingChanges()
    #expect(mine.age == 50)
    mine.age += 1
    try child.save()
    try parent.save()
    #expect(try family.place.context().one(Dog.self) { $0.name == "New" }?.age == 51)
  }

  /// The parent changed the new object between two saves of the child, before it saved.
  @Test(arguments: TestStore.allCases, [false, true])
  func whatTheParentChangedOfANewObjectBeforeAndSavesIsAConflict(_ store: TestStore, _ isOfChild: Bool) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let id = try family.newDog(isOfChild: isOfChild), mine = try child.existingDog(id)
    #expect(mine.age == 1)
    try parent.existingDog(id).age = 50
    for notes in ["first", "second"] {
      mine.notes = notes
      try child.save()
    }
    try parent.save()
    mine.age += 1
    let error = #expect(throws: PersistenceError.self) { try child.save() }
    #expect(error?.code == .conflict)
    try child.refresh(mine, mergeChanges: false)
    #expect(mine.age == 50 && mine.notes == "second")
  }

  /// The child knows all values of the new object.
  @Test(arguments: TestStore.allCases, [false, true])
  func whatTheParentSavesUnchangedOfANewObjectIsNoConflict(_ store: TestStore, _ isOfChild: Bool) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let id = try family.newDog(isOfChild: isOfChild), mine = try child.existingDog(id)
    #expect(mine.age == 1)
    for age in 2...4 {
      if age > 2 { try parent.save() }
      mine.age = age
      try child.save()
    }
    try parent.save()
    #expect(try family.place.context().one(Dog.self) { $0.name == "New" }?.age == 4)
  }

  /// A new object of the parent, which one child reads before the parent changes it, and another one afterwards.
  @Test(arguments: TestStore.allCases) func aNewObjectOfTheParentThatChangesAfterAChildHasReadItIsAConflict(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child), sibling = ManagedObjectContext(parent: parent)
    let id = try family.newDog(isOfChild: false), parents = try parent.existingDog(id)
    let mine = try child.existingDog(id)
    #expect(mine.age == 1)
    parents.age = 50
    #expect(try sibling.existingDog(id).age == 50)
    try parent.save()
    mine.age += 1
    #expect(throws: PersistenceError.self) { try child.save() }
    #expect(try parent.existingDog(id).age == 50)
  }

  /// The save of the parent writes nothing of what the child has pushed.
  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy.storeTrump, .rollback])
  func aMergingChildFollowsWhatThePolicyOfItsParentDiscards(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let family = try Family(store)
    family.child.automaticallyMergesChanges = true
    let fido = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    fido.age = 10
    try family.child.save()
    let other = try family.place.context()
    try other.existingDog(fido.objectID).age = 99
    try other.save()
    family.parent.mergePolicy = policy.policy
    try family.parent.save()
    try family.child.processPendingChanges()
    #expect(fido.age == 99)
  }

  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy.storeTrump, .rollback])
  func aMergingChildFollowsADeletionThatThePolicyOfItsParentAccepts(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let family = try Family(store), child = family.child
    child.automaticallyMergesChanges = true
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    fido.age = 10
    try child.save()
    let other = try family.place.context()
    other.delete(try other.existingDog(fido.objectID))
    try other.save()
    family.parent.mergePolicy = policy.policy
    try family.parent.save()
    try child.processPendingChanges()
    #expect(try fido.isInaccessible && namesOfDogs(child) == ["Rex"])
  }

  /// Another context has deleted Ann, which clears the references to her. The parent inserts her again.
  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy.objectTrump, .overwrite])
  func aMergingChildFollowsAnObjectThatThePolicyOfItsParentInsertsAgain(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    child.automaticallyMergesChanges = true
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" }), ann = try #require(fido.owner)
    #expect(ann.name == "Ann" && ann.dogs.count == 2)
    try #require(try parent.one(Person.self) { $0.name == "Ann" }).city = "Rome"
    let other = try family.place.context()
    other.delete(try other.existingObject(with: ann.objectID))
    try other.save()
    parent.mergePolicy = policy.policy
    try parent.save()
    try child.processPendingChanges()
    #expect(ann.city == "Rome" && ann.dogs.isEmpty && fido.owner == nil)
    fido.age = 9
    ann.city = "Oslo"
    try child.save()
    try parent.save()
    let saved = try family.place.context()
    #expect(try saved.existingDog(fido.objectID).age == 9)
    #expect(try saved.one(Person.self) { $0.name == "Ann" }?.city == "Oslo")
  }

  @Test(arguments: TestStore.allCases) func aMergingChildFollowsADeletionThatThePolicyOfItsParentReverts(_ store: TestStore) throws {
    let family = try Family(store), child = family.child
    child.automaticallyMergesChanges = true
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" }), id = fido.objectID
    child.delete(fido)
    try child.save()
    let other = try family.place.context()
    try other.existingDog(id).age = 99
    try other.save()
    family.parent.mergePolicy = .rollback
    try family.parent.save()
    #expect(try namesOfDogs(child) == ["Fido", "Rex"])
    let again = try child.existingDog(id)
    #expect(again.age == 99)
    again.age = 100
    try child.save()
    try family.parent.save()
    #expect(try family.place.context().existingDog(id).age == 100)
  }

  /// The child has read only one of the dogs whose owner it deletes.
  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy.storeTrump, .rollback])
  func aDeletionThatThePolicyOfTheParentRevertsKeepsTheReferencesToTheObject(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    child.delete(try #require(try child.one(Person.self) { $0.name == "Ann" }))
    try child.save()
    #expect(fido.owner == nil)
    let other = try family.place.context()
    try #require(try other.one(Person.self) { $0.name == "Ann" }).city = "Rome"
    try other.save()
    parent.mergePolicy = policy.policy
    try parent.save()
    let ann = try #require(try family.place.context().one(Person.self) { $0.name == "Ann" })
    #expect(ann.city == "Rome" && ann.dogs.map(\.name).sorted() == ["Fido", "Rex"])
    #expect(try parent.one(Person.self) { $0.name == "Ann" }?.dogs.count == 2)
  }

  /// The child has removed a dog from the list of the owner that it then deletes.
  @Test(arguments: TestStore.allCases, [false, true])
  func aDeletionThatThePolicyOfTheParentRevertsDoesNotRestoreALinkThatTheChildHasRemoved(_ store: TestStore, _ isRead: Bool) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" }), mine = try #require(fido.owner)
    if isRead { #expect(mine.dogs.count == 2) }
    fido.owner = nil
    child.delete(mine)
    try child.save()
    let other = try family.place.context()
    try #require(try other.one(Person.self) { $0.name == "Ann" }).city = "Rome"
    try other.save()
    parent.mergePolicy = .mergeByPropertyStoreTrump
    try parent.save()
    let ann = try #require(try family.place.context().one(Person.self) { $0.name == "Ann" })
    #expect(ann.city == "Rome" && ann.dogs.map(\.name) == ["Rex"])
    #expect(try parent.one(Person.self) { $0.name == "Ann" }?.dogs.map(\.name) == ["Rex"])
    #expect(try parent.existingDog(fido.objectID).owner == nil)
  }

  /// Only one end of the link is in conflict. The parent finds out when it saves, or merges the changes of the other context before.
  @Test(arguments: TestStore.allCases, [false, true])
  func bothEndsOfALinkThatThePolicyOfTheParentDiscardsAreOutdated(_ store: TestStore, _ isMerged: Bool) throws {
    for isMergingChild in [false, true] {
      let family = try Family(store), (parent, child) = (family.parent, family.child), other = try family.place.context()
      other.insert(Collar.self).color = "blue"
      try other.save()
      let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
      let collar = try #require(try child.one(Collar.self) { $0.color == "blue" })
      fido.collar = collar
      try child.save()
      child.automaticallyMergesChanges = isMergingChild
      parent.automaticallyMergesChanges = isMerged
      parent.mergePolicy = .rollback
      try other.existingDog(fido.objectID).age = 99
      try other.save()
      if isMerged { try parent.processPendingChanges() } else { try parent.save() }
      if isMergingChild {
        try child.processPendingChanges()
        #expect(fido.collar == nil && collar.dog == nil && fido.age == 99)
        collar.color = "green"
        try child.save()
        try parent.save()
        let saved = try #require(try family.place.context().one(Collar.self) { $0.color == "green" })
        #expect(saved.dog == nil)
      } else {
        collar.color = "green"
        let error = #expect(throws: PersistenceError.self) { try child.save() }
        #expect(error?.code == .conflict && error?.objectIDs == [collar.objectID])
      }
    }
  }

  /// Another context has given Fido another collar. The parent is in conflict only with Fido, and reads the collars again.
  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy.storeTrump, .objectTrump])
  func aMergingChildFollowsLinksThatThePolicyOfItsParentTakesOver(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child), other = try family.place.context()
    func collar(_ color: String, _ context: ManagedObjectContext) throws -> Collar {
      try #require(try context.one(Collar.self) { $0.color == color })
    }
    let theirs = try #require(try other.one(Dog.self) { $0.name == "Fido" })
    for color in ["green", "blue"] {
      let new = other.insert(Collar.self)
      new.color = color
      theirs.collar = new
    }
    try other.save()
    child.automaticallyMergesChanges = true
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    let (green, blue) = (try collar("green", child), try collar("blue", child))
    #expect(fido.collar === blue && blue.dog === fido && green.dog == nil)
    try parent.existingDog(fido.objectID).age = 10
    theirs.collar = try collar("green", other)
    try other.save()
    parent.mergePolicy = policy.policy
    try parent.save()
    try child.processPendingChanges()
    #expect(fido.collar === green && green.dog === fido && blue.dog == nil)
  }

  /// The parent refreshes one end of a link that it has changed.
  @Test(arguments: TestStore.allCases, [false, true])
  func bothEndsOfALinkThatARefreshOfTheParentRevertsAreOutdated(_ store: TestStore, _ isMergingChild: Bool) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child), collar = parent.insert(Collar.self)
    collar.color = "blue"
    try parent.save()
    let fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" })
    fido.collar = collar
    let mine = try child.existingDog(fido.objectID), worn = try #require(mine.collar)
    #expect(worn.dog === mine && worn.objectID == collar.objectID)
    child.automaticallyMergesChanges = isMergingChild
    try parent.refresh(fido, mergeChanges: false)
    if isMergingChild { try child.processPendingChanges() }
    worn.color = "green"
    if isMergingChild {
      #expect(mine.collar == nil && worn.dog == nil)
      try child.save()
      try parent.save()
      let saved = try #require(try family.place.context().one(Collar.self) { $0.color == "green" })
      #expect(saved.dog == nil)
    } else {
      let error = #expect(throws: PersistenceError.self) { try child.save() }
      #expect(error?.code == .conflict && error?.objectIDs == [worn.objectID])
    }
  }

  @Test(arguments: TestStore.allCases) func aMergingChildFollowsObjectsThatARefreshOfTheirOwnerGivesBack(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" })
    let bob = try #require(try parent.one(Person.self) { $0.name == "Bob" })
    fido.owner = bob
    child.automaticallyMergesChanges = true
    let mine = try child.existingDog(fido.objectID), owner = try #require(mine.owner)
    #expect(owner.name == "Bob" && owner.dogs.count == 1)
    try parent.refresh(bob, mergeChanges: false)
    try child.processPendingChanges()
    #expect(mine.owner?.name == "Ann" && owner.dogs.isEmpty)
    #expect(mine.owner?.dogs.map(\.name).sorted() == ["Fido", "Rex"])
  }

  /// The parent reads again what another context has saved, and keeps its own change.
  @Test(arguments: TestStore.allCases, [false, true])
  func aMergingChildFollowsARefreshOfItsParentThatMerges(_ store: TestStore, _ refreshesAll: Bool) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child), other = try family.place.context()
    let fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" })
    fido.notes = "parent's"
    child.automaticallyMergesChanges = true
    let mine = try child.existingDog(fido.objectID)
    #expect(mine.age == 3 && mine.notes == "parent's")
    try other.existingDog(fido.objectID).age = 99
    try other.save()
    if refreshesAll { try parent.refreshAllObjects() } else { try parent.refresh(fido, mergeChanges: true) }
    try child.processPendingChanges()
    #expect(mine.age == 99 && mine.notes == "parent's")
    mine.weight = 5
    try child.save()
    try parent.save()
    let saved = try family.place.context().existingDog(fido.objectID)
    #expect(saved.age == 99 && saved.notes == "parent's" && saved.weight == 5)
  }

  @Test(arguments: TestStore.allCases) func aMergingChildFollowsConflictsThatTheProgramResolvesInItsParent(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    child.automaticallyMergesChanges = true
    let (fido, new) = try family.pushChanges()
    let other = try family.place.context()
    try other.existingDog(fido.objectID).age = 99
    try other.save()
    let error = try #require(throws: PersistenceError.self) { try parent.save() }
    try parent.resolveConflicts(of: error, using: .rollback)
    try child.processPendingChanges()
    #expect(fido.age == 99 && !new.isInaccessible)
    try parent.discardChanges(of: [new.objectID])
    try child.processPendingChanges()
    #expect(new.isInaccessible)
    try parent.save()
    #expect(try namesOfDogs(family.place.context()) == ["Fido", "Rex"])
  }

  /// The save of the parent writes nothing, because it sets the value back, and deletes the new object of the child.
  @Test(arguments: TestStore.allCases) func aChildFollowsWhatItsParentRevertsItself(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    child.automaticallyMergesChanges = true
    let (fido, new) = try family.pushChanges()
    try parent.existingDog(fido.objectID).age = 3
    parent.delete(try parent.existingDog(new.objectID))
    try parent.save()
    try child.processPendingChanges()
    #expect(fido.age == 3 && new.isInaccessible)
    // Without merging, the change of a child would be based on a value that it hasn't read.
    child.automaticallyMergesChanges = false
    fido.age = 10
    try child.save()
    try parent.existingDog(fido.objectID).age = 3
    try parent.save()
    fido.age += 1
    #expect(throws: PersistenceError.self) { try child.save() }
  }

  /// The new object of the child becomes Fido, whom the parent has or hasn't read.
  @Test(arguments: TestStore.allCases, [false, true])
  func aMergingChildFollowsAnUpsertOfItsParent(_ store: TestStore, _ isRead: Bool) throws {
    let family = try Family(store), child = family.child
    let fido = try isRead ? family.parent.one(Dog.self) { $0.name == "Fido" } : nil
    child.automaticallyMergesChanges = true
    let twin = child.dog("Twin"), shot = child.insert(Vaccination.self)
    (twin.chip, shot.kind, shot.dog) = (1, "rabies", twin)
    try child.save()
    family.parent.mergePolicy = .mergeByPropertyObjectTrump
    try family.parent.save()
    try child.processPendingChanges()
    let saved = try #require(try family.place.context().one(Dog.self) { $0.chip == 1 })
    #expect(saved.name == "Twin" && shot.dog?.objectID == saved.objectID && twin.isInaccessible)
    #expect(try child.fetch(FetchRequest<Dog>()).count == 2)
    #expect(fido?.name == (isRead ? "Twin" : nil))
    shot.kind = "distemper"
    try child.save()
    try family.parent.save()
    #expect(try family.place.context().fetch(FetchRequest<Vaccination>()).map(\.kind) == ["distemper"])
  }

  @Test(arguments: TestStore.allCases) func whatAnUpsertOfTheParentHasChangedIsAConflict(_ store: TestStore) throws {
    let family = try Family(store), child = family.child, twin = child.dog("Twin"), shot = child.insert(Vaccination.self)
    (twin.chip, shot.kind, shot.dog) = (1, "rabies", twin)
    try child.save()
    family.parent.mergePolicy = .mergeByPropertyObjectTrump
    try family.parent.save()
    (twin.age, shot.kind) = (9, "distemper")
    let error = try #require(throws: PersistenceError.self) { try child.save() }
    #expect(error.code == .conflict && Set(error.objectIDs) == [twin.objectID, shot.objectID])
    try child.discardChanges(of: error.objectIDs)
    let saved = try #require(try child.one(Dog.self) { $0.chip == 1 })
    #expect(shot.kind == "rabies" && shot.dog === saved)
    #expect(twin.name.isEmpty && twin.isInaccessible)
  }

  @Test(arguments: TestStore.allCases) func anOwnerThatTheParentHasDeletedIsNil(_ store: TestStore) throws {
    let family = try Family(store)
    family.parent.delete(try #require(try family.parent.one(Person.self) { $0.name == "Ann" }))
    let fido = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    #expect(fido.owner == nil && !fido.isInaccessible)
    let rex = try #require(
      try family.child.existingObject(with: family.child.fetchObjectIDs(FetchRequest<Dog> { $0.name == "Rex" })[0]) as? Dog)
    #expect(rex.owner == nil)
    #expect(try family.child.fetch(Dog.self) { $0.owner == nil }.count == 2)
  }

  /// The parent reads the dogs itself, because it has a changed dog.
  @Test(arguments: TestStore.allCases) func anOwnerThatTheParentHasDeletedIsNilInRowsThatTheParentReads(_ store: TestStore) throws {
    let family = try Family(store)
    family.parent.delete(try #require(try family.parent.one(Person.self) { $0.name == "Ann" }))
    family.parent.dog("Spot")
    let dogs = try family.child.fetch(FetchRequest<Dog>())
    #expect(dogs.count == 3 && dogs.allSatisfy { $0.owner == nil })
    let next = ManagedObjectContext(parent: family.parent)
    let rex = try #require(try next.existingObject(with: next.fetchObjectIDs(FetchRequest<Dog> { $0.name == "Rex" })[0]) as? Dog)
    #expect(rex.owner == nil)
  }

  /// No delete rule clears the reference, because the relationship has no inverse. The save of the parent does, because it doesn't save the
  /// new object.
  @Test(arguments: TestStore.allCases, [false, true])
  func aNewObjectThatTheParentHasDeletedIsNilInReferencesToIt(_ store: TestStore, _ isIdentified: Bool) throws {
    let place = try store.park(Park.plain), parent = try place.context(), dog = parent.make("Dog")
    try parent.save()
    let breed = parent.make("Breed")
    if isIdentified { try parent.obtainPermanentIDs(for: [breed]) }
    dog.lead("breed", to: breed)
    parent.delete(breed)
    let child = ManagedObjectContext(parent: parent), grandchild = ManagedObjectContext(parent: child)
    for context in [child, grandchild] { #expect(try context.existingObject(with: dog.objectID)["breed"] == .null) }
    let mine = try child.existingObject(with: dog.objectID)
    mine["name"] = .string("Rex")
    try child.save()
    try parent.save()
    let saved = try place.context().existingObject(with: dog.objectID)
    #expect(saved["name"] == .string("Rex") && saved["breed"] == .null)
  }

  @Test(arguments: TestStore.allCases, [false, true])
  func fetchesFindThatReferencesToANewObjectThatTheParentHasDeletedAreNil(_ store: TestStore, _ isIdentified: Bool) throws {
    let place = try store.park(Park.plain), parent = try place.context(), dog = parent.make("Dog"), other = parent.make("Dog")
    try parent.save()
    let breed = parent.make("Breed")
    if isIdentified { try parent.obtainPermanentIDs(for: [breed]) }
    for object in [dog, parent.make("Dog")] { object.lead("breed", to: breed) }
    parent.delete(breed)
    let child = ManagedObjectContext(parent: parent)
    let isNil = QueryExpression.comparison(.property("breed"), .equalTo, .constant(.null), [])
    for context in [child, parent] {
      let found = try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog", where: FetchPredicate(isNil)))
      #expect(found.count == 3 && Set(found.map(\.objectID)).isSuperset(of: [dog.objectID, other.objectID]))
      #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Dog", where: FetchPredicate(.not(isNil)))) == 0)
    }
    try parent.save()
    #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "Dog", where: FetchPredicate(isNil))) == 3)
  }

  /// The child has read the rows of many destinations at once before the parent deletes their owner.
  @Test(arguments: TestStore.allCases) func anOwnerThatTheParentHasDeletedIsNilInRowsThatTheChildHasReadAhead(_ store: TestStore) throws {
    let family = try Family(store), setup = try family.place.context()
    let fido = try #require(try setup.one(Dog.self) { $0.name == "Fido" }), ann = try #require(fido.owner)
    for number in 0..<40 { fido.friends.insert(setup.dog("Friend \(number)", owner: ann)) }
    try setup.save()
    let known = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
    var friends = known.friends.makeIterator()
    #expect(friends.next()?.owner?.name == "Ann")
    family.parent.delete(try #require(try family.parent.one(Person.self) { $0.name == "Ann" }))
    var count = 1
    while let friend = friends.next() {
      #expect(friend.owner == nil)
      count += 1
    }
    #expect(count == 40)
  }

  /// The parent may have an object with the ID of one whose deletion it has saved: a fault, or an object without a row.
  @Test(arguments: TestStore.allCases) func anObjectThatTheParentHasDeletedCanBeInsertedAgain(_ store: TestStore) throws {
    for (isSaved, isKept, isRead) in [(false, false, false), (true, false, false), (true, true, false), (true, true, true)] {
      let family = try Family(store)
      let mine = try #require(try family.child.one(Dog.self) { $0.name == "Fido" })
      let rex = try #require(try family.child.one(Dog.self) { $0.name == "Rex" })
      family.parent.delete(try #require(try family.parent.one(Dog.self) { $0.name == "Fido" }))
      if isSaved { try family.parent.save() }
      let kept = try isKept ? family.parent.object(with: mine.objectID) as? Dog : nil
      if isRead { #expect(kept?.name == "" && kept?.isInaccessible == true) }
      mine.age = 10
      mine.friends.insert(rex)
      family.child.mergePolicy = .mergeByPropertyObjectTrump
      try family.child.save()
      mine.age = 11
      family.child.mergePolicy = .error
      try family.child.save()
      try family.parent.save()
      let saved = try #require(try family.place.context().one(Dog.self) { $0.name == "Fido" })
      #expect(saved.age == 11 && saved.friends.map(\.name) == ["Rex"] && saved.objectID == mine.objectID)
      if isKept { #expect(kept?.age == 11 && kept?.friends.map(\.name) == ["Rex"] && kept?.hasChanges == false) }
    }
  }

  /// The parent has read the lists, and saved the deletion.
  ///
  /// The bug: the lists showed the object again, although its links were deleted, so adding one again had no effect.
  @Test(arguments: TestStore.allCases) func anObjectThatIsInsertedAgainIsInNoListOfTheParent(_ store: TestStore) throws {
    let place = try store.makePlace(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    let ann = parent.person("Ann"), bob = parent.person("Bob"), fido = parent.dog("Fido"), rex = parent.dog("Rex", owner: ann)
    fido.friends.insert(rex)
    try parent.save()
    child.mergePolicy = .mergeByPropertyObjectTrump
    let mine = try #require(try child.one(Dog.self) { $0.name == "Rex" })
    mine.owner = try child.one(Person.self) { $0.name == "Bob" }
    parent.delete(rex)
    try parent.save()
    try child.save()
    let again = try #require(try parent.one(Dog.self) { $0.name == "Rex" })
    #expect(fido.friends.isEmpty && again.friendOf.isEmpty && ann.dogs.isEmpty && bob.dogs.map(\.name) == ["Rex"])
    fido.friends.insert(again)
    try parent.save()
    let saved = try place.context(), dog = try #require(try saved.one(Dog.self) { $0.name == "Fido" })
    #expect(dog.friends.map(\.name) == ["Rex"] && dog.friends.first?.owner?.name == "Bob")
  }

  /// The new object had a new and a saved object in its list. Its deletion has cleared their references.
  @Test(arguments: TestStore.allCases) func aNewObjectThatIsInsertedAgainHasLostTheObjectsInItsList(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let eve = parent.person("Eve"), new = parent.dog("New", owner: eve), rex = try #require(try parent.one(Dog.self) { $0.name == "Rex" })
    rex.owner = eve
    child.mergePolicy = .mergeByPropertyObjectTrump
    let mine = try #require(try child.one(Person.self) { $0.name == "Eve" })
    parent.delete(eve)
    mine.city = "Rome"
    try child.save()
    #expect(eve.city == "Rome" && eve.dogs.isEmpty && new.owner == nil && rex.owner == nil)
    try parent.save()
    #expect(eve.dogs.isEmpty)
    #expect(try family.place.context().one(Person.self) { $0.name == "Eve" }?.dogs.isEmpty == true)
  }

  /// The child has changed the object between its insertion and the rollback of its parent.
  @Test(arguments: TestStore.allCases, [false, true])
  func aMergingChildFollowsAnObjectThatItsSiblingInsertsAgain(_ store: TestStore, _ isSaved: Bool) throws {
    let family = try Family(store), sibling = ManagedObjectContext(parent: family.parent)
    sibling.automaticallyMergesChanges = true
    let id = try family.newDog(isOfChild: true)
    if isSaved { try family.parent.save() }
    let dog = try sibling.existingDog(id), other = try family.child.existingDog(id)
    #expect(dog.name == "New" && other.name == "New")
    other.name = "Changed"
    family.parent.delete(try family.parent.existingDog(id))
    family.child.mergePolicy = .overwrite
    try family.child.save()
    try sibling.processPendingChanges()
    #expect(dog.name == "Changed" && !sibling.hasChanges)
    try family.parent.save()
    #expect(try family.place.context().existingDog(id).name == "Changed")
  }

  @Test(arguments: TestStore.allCases) func aNewObjectThatTheParentHasDiscardedCanBeInsertedAgain(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child), new = child.dog("New")
    for age in 1...2 {
      new.age = age
      try child.save()
    }
    parent.rollback()
    new.age = 3
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    new.age = 4
    child.mergePolicy = .error
    try child.save()
    try parent.save()
    #expect(try family.place.context().existingDog(new.objectID).age == 4)
  }

  /// The parent doesn't know that another context has deleted the object, which it hasn't read.
  @Test(arguments: TestStore.allCases) func anObjectThatOthersHaveDeletedCanBeInsertedAgainInAParentWithAFault(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let mine = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    let kept = try #require(try parent.object(with: mine.objectID) as? Dog)
    let other = try family.place.context()
    other.delete(try other.existingDog(mine.objectID))
    try other.save()
    mine.age = 10
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    #expect(kept.age == 10 && kept.isInserted)
    try parent.save()
    #expect(try family.place.context().existingDog(mine.objectID).age == 10)
  }

  /// The parent has linked the fault before, at either end of many-to-many links.
  @Test(arguments: TestStore.allCases) func anObjectThatIsInsertedAgainInAParentWithAFaultKeepsItsNewLinks(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let mine = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    let rex = try #require(try parent.one(Dog.self) { $0.name == "Rex" })
    let kept = try #require(try parent.object(with: mine.objectID) as? Dog)
    let other = try family.place.context()
    other.delete(try other.existingDog(mine.objectID))
    try other.save()
    rex.friends.insert(kept)
    kept.friends.insert(rex)
    #expect(kept.isFault)
    mine.age = 10
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    #expect(kept.age == 10 && kept.friends.map(\.name) == ["Rex"] && rex.friends.map(\.name) == ["Fido"])
    try parent.save()
    let saved = try family.place.context().existingDog(mine.objectID)
    #expect(saved.age == 10 && saved.friends.map(\.name) == ["Rex"] && saved.friendOf.map(\.name) == ["Rex"])
  }

  /// The parent has linked two faults, and the child has linked the same objects. Others have deleted both.
  @Test(arguments: TestStore.allCases) func aLinkThatTheParentHasTooIsAddedOnceToObjectsThatAreInsertedAgain(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" }), rex = try #require(try child.one(Dog.self) { $0.name == "Rex" })
    let kept = try [fido, rex].map { try #require(try parent.object(with: $0.objectID) as? Dog) }
    let other = try family.place.context()
    for dog in [fido, rex] { other.delete(try other.existingDog(dog.objectID)) }
    try other.save()
    kept[0].friends.insert(kept[1])
    fido.friends.insert(rex)
    for dog in [fido, rex] { dog.age = 10 }
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    #expect(kept.allSatisfy { $0.isInserted && $0.age == 10 })
    #expect(kept[0].friends.map(\.name) == ["Rex"] && kept[1].friendOf.map(\.name) == ["Fido"])
    try parent.save()
    let saved = try family.place.context().existingDog(fido.objectID)
    #expect(saved.friends.map(\.name) == ["Rex"] && saved.friends.count == 1)
  }

  @Test(arguments: TestStore.allCases) func aChildFindsAnObjectThatOthersHaveInsertedAgain(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child), other = try family.place.context()
    other.mergePolicy = .mergeByPropertyObjectTrump
    let theirs = try #require(try other.one(Dog.self) { $0.name == "Fido" })
    let ann = try #require(try parent.one(Person.self) { $0.name == "Ann" })
    #expect(theirs.age == 3 && ann.dogs.count == 2)
    parent.delete(try parent.existingObject(with: theirs.objectID))
    try parent.save()
    #expect(try namesOfDogs(child) == ["Rex"])
    theirs.age = 9
    try other.save()
    #expect(try namesOfDogs(child) == ["Fido", "Rex"])
    #expect(ann.dogs.map(\.name).sorted() == ["Fido", "Rex"])
    let mine = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    #expect(mine.age == 9 && mine.owner?.dogs.count == 2)
    mine.age = 10
    try child.save()
    try parent.save()
    #expect(try family.place.context().one(Dog.self) { $0.name == "Fido" }?.age == 10)
  }

  @Test(arguments: TestStore.allCases) func aChildFindsByItsIDAnObjectThatOthersHaveInsertedAgain(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child), other = try family.place.context()
    other.mergePolicy = .mergeByPropertyObjectTrump
    let theirs = try #require(try other.one(Dog.self) { $0.name == "Fido" })
    #expect(theirs.age == 3)
    parent.delete(try parent.existingObject(with: theirs.objectID))
    try parent.save()
    #expect(throws: PersistenceError.self) { try child.existingObject(with: theirs.objectID) }
    theirs.age = 9
    try other.save()
    let mine = try child.existingDog(theirs.objectID)
    #expect(mine.age == 9)
    mine.age = 10
    try child.save()
    try parent.save()
    #expect(try family.place.context().existingDog(theirs.objectID).age == 10)
  }

  /// The object that returns is in the list of its new owner once.
  @Test(arguments: TestStore.allCases) func anObjectThatIsInsertedAgainCanGetANewOwner(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    child.mergePolicy = .overwrite
    parent.delete(try parent.existingObject(with: fido.objectID))
    fido.owner = child.person("Eve")
    try child.save()
    let eve = try #require(try parent.one(Person.self) { $0.name == "Eve" })
    #expect(eve.dogs.map(\.name) == ["Fido"] && eve.dogs.first?.objectID == fido.objectID)
    try parent.save()
    #expect(try family.place.context().one(Person.self) { $0.name == "Eve" }?.dogs.map(\.name) == ["Fido"])
  }

  @Test(arguments: TestStore.allCases) func handlersOfTheParentRunAfterTheSaveOfTheChild(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let rex = try #require(try child.one(Dog.self) { $0.name == "Rex" }), fido = try #require(try child.one(Dog.self) { $0.name == "Fido" })
    let observation = parent.onChange { _, _ in
      rex.age = 100
      let grandchild = ManagedObjectContext(parent: child)
      grandchild.dog("Of a handler")
      #expect(throws: Never.self) { try grandchild.save() }
    }
    fido.age = 10
    try child.save()
    observation.cancel()
    #expect(rex.age == 100 && child.hasChanges)
    try child.save()
    try parent.save()
    #expect(try family.place.context().one(Dog.self) { $0.age == 100 }?.name == "Rex")
    #expect(try family.place.context().count(for: FetchRequest<Dog>()) == 3)
  }

  /// The save looks for the former owner of an object, by a relationship without an inverse. The bug: this fetch called the handlers, and
  /// the save then discarded what they had changed.
  @Test(arguments: TestStore.allCases, [false, true])
  func handlersOfAnAncestorDoNotRunWhileAChildSendsItsChanges(_ store: TestStore, _ isGrandparent: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Box", attributes: [], relationships: [.toMany("things", to: "Thing", inverse: nil)]),
      EntityDescription("Thing", attributes: [AttributeDescription("name", .string, isOptional: true)]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let box = try setup.insert(entityNamed: "Box"), things = try (0..<2).map { _ in try setup.insert(entityNamed: "Thing") }
    try setup.save()
    let ancestor = try place.context(), parent = isGrandparent ? ManagedObjectContext(parent: ancestor) : ancestor
    // The save looks for former owners because its context has a child.
    let child = ManagedObjectContext(parent: parent), grandchild = ManagedObjectContext(parent: child)
    let mine = try things.map { try child.existingObject(with: $0.objectID) }
    try child.existingObject(with: box.objectID).toMany(forKey: "things").insert(mine[0])
    let observation = ancestor.onChange { _, _ in
      do { try mine[1].setValue("of a handler", forKey: "name") } catch { Issue.record("\(error)") }
    }
    try ancestor.existingObject(with: things[0].objectID).setValue("changed", forKey: "name")
    try child.save()
    try ancestor.processPendingChanges()
    observation.cancel()
    #expect(mine[1]["name"] == .string("of a handler") && child.hasChanges)
    try child.save()
    if isGrandparent { try parent.save() }
    try ancestor.save()
    let saved = try place.context().existingObject(with: things[1].objectID)
    #expect(saved["name"] == .string("of a handler"))
    withExtendedLifetime(grandchild) {}
  }

  /// The bug: a new object that had lost a deleted one was also reported as changed, by its former, temporary ID.
  @Test(arguments: TestStore.allCases) func handlersOfTheParentReceiveTheIDsThatAReadOfTheChildGivesNewObjects(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" }), ann = try #require(fido.owner)
    let annOfChild = try #require(try child.one(Person.self) { $0.name == "Ann" })
    var messages: [ObjectChanges] = []
    let observation = parent.onChange { _, changes in messages.append(changes) }
    let new = parent.person("New")
    fido.owner = new
    parent.delete(fido)
    #expect(annOfChild.dogs.map(\.name) == ["Rex"] && !new.objectID.isTemporaryID)
    try parent.processPendingChanges()
    observation.cancel()
    #expect(messages.flatMap(\.inserted) == [new.objectID] && messages.flatMap(\.deleted) == [fido.objectID])
    #expect(messages.flatMap(\.updated) == [ann.objectID])
  }

  enum Handler: CaseIterable, Sendable { case willSave, change }

  /// The bug: if the parent had new objects, the child's requests threw `saveInProgress`.
  @Test(arguments: TestStore.allCases, Handler.allCases)
  func aHandlerOfTheParentsSaveMayUseAChild(_ store: TestStore, _ handler: Handler) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let all = ["Fido", "Of the child", "Of the parent", "Rex"]
    child.dog("Of the child")
    var seen: [[String]] = []
    func use() {
      do {
        seen.append(try namesOfDogs(child))
        if handler == .willSave { try child.save() }
      } catch { Issue.record("\(error)") }
    }
    let observation = handler == .willSave ? parent.onWillSave { _ in use() } : parent.onChange { _, _ in use() }
    let new = parent.dog("Of the parent")
    try parent.save()
    observation.cancel()
    #expect(!seen.isEmpty && seen.allSatisfy { $0 == all } && !new.objectID.isTemporaryID && !parent.hasChanges)
    if handler == .change { #expect(try namesOfDogs(family.place.context()) == all.filter { $0 != "Of the child" }) }
    try child.save()
    try parent.save()
    #expect(try namesOfDogs(family.place.context()) == all)
  }

  /// The handler is called because the child's fetch looks at the parent's changes.
  @Test(arguments: TestStore.allCases) func anObjectThatAHandlerOfTheParentInsertsHasAPermanentIDInTheChild(_ store: TestStore) throws {
    let family = try Family(store), (parent, child) = (family.parent, family.child)
    let fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" })
    let observation = parent.onChange { context, changes in if !changes.updated.isEmpty { context.dog("Of a handler") } }
    fido.age = 10
    let dogs = try child.fetch(FetchRequest<Dog>())
    observation.cancel()
    #expect(dogs.count == 3 && dogs.allSatisfy { !$0.objectID.isTemporaryID })
    try #require(dogs.first { $0.name == "Of a handler" }).age = 5
    try child.save()
    try parent.save()
    #expect(try family.place.context().one(Dog.self) { $0.name == "Of a handler" }?.age == 5)
  }

  @Test func faultsOfARemovedStoreAreReported() throws {
    let stack = try StorePack([.memory, .sqlite]), parent = try stack.context(), child = ManagedObjectContext(parent: parent)
    let dog = child.dog("Of B")
    try child.assign(dog, to: stack.stores[1])
    try child.save()
    try parent.save()
    try child.refresh(dog, mergeChanges: false)
    try stack.coordinator.remove(stack.stores[1])
    #expect(dog.name == "" && dog.isInaccessible)
    child.person("New").name = dog.name + "x"
    let error = #expect(throws: PersistenceError.self) { try child.save() }
    #expect(error?.code == .unreadValues)
  }

  /// The bug: the policy took the object for a deleted one and discarded the change. If the parent had the object in memory, it got the
  /// change, and couldn't be saved any more.
  @Test(arguments: [false, true]) func aChildDoesNotSaveChangesOfARemovedStore(_ isInParent: Bool) throws {
    let stack = try StorePack([.memory, .sqlite]), parent = try stack.context(), child = ManagedObjectContext(parent: parent)
    child.mergePolicy = .rollback
    let dog = child.dog("Of B")
    try child.assign(dog, to: stack.stores[1])
    try child.save()
    try parent.save()
    let known = try isInParent ? parent.existingDog(dog.objectID) : nil
    dog.age = 9
    try stack.coordinator.remove(stack.stores[1])
    let error = #expect(throws: PersistenceError.self) { try child.save() }
    #expect(error?.code == .missingStore && dog.age == 9 && !parent.hasChanges)
    child.rollback()
    child.dog("Of A")
    try child.save()
    try parent.save()
    #expect(try stack.context().count(for: FetchRequest<Dog>()) == 1)
    withExtendedLifetime(known) {}
  }

  @Test(arguments: TestStore.allCases, [false, true]) func aMergingChildFollowsWhatItsParentDiscards(_ store: TestStore, _ isReset: Bool)
    throws
  {
    let family = try Family(store)
    family.child.automaticallyMergesChanges = true
    let (fido, new) = try family.pushChanges()
    if isReset { family.parent.reset() } else { family.parent.rollback() }
    try family.child.processPendingChanges()
    #expect(fido.age == 3 && new.isInaccessible && !family.child.hasChanges)
  }

  /// The parent has deleted a new object that the child has read, and then discards all changes.
  @Test(arguments: TestStore.allCases, [false, true])
  func aMergingChildFollowsANewObjectThatItsParentDeletesAndDiscards(_ store: TestStore, _ isReset: Bool) throws {
    for isOfChild in [false, true] {
      let family = try Family(store), (parent, child) = (family.parent, family.child)
      child.automaticallyMergesChanges = true
      let id = try family.newDog(isOfChild: isOfChild), mine = try child.existingDog(id)
      #expect(mine.name == "New")
      parent.delete(try parent.existingDog(id))
      if isReset { parent.reset() } else { parent.rollback() }
      try child.processPendingChanges()
      #expect(mine.isInaccessible && !child.hasChanges)
    }
  }

  // MARK: Requests

  @Test(arguments: TestStore.allCases) func aChildCostsNoFurtherRequests(_ store: TestStore) throws {
    func requests(_ usesChild: Bool) throws -> RequestCounts {
      let family = try Family(store), coordinator = try family.place.coordinator(), before = coordinator.requestCounts
      coordinator.rowCache.removeAll()
      let context = usesChild ? family.child : family.parent
      let dogs = try context.fetch(FetchRequest<Dog>())
      #expect(dogs.map { $0.owner?.name } == ["Ann", "Ann"])
      let people = try context.fetch(FetchRequest<Person>())
      #expect(people.map(\.dogs.count).sorted() == [0, 2])
      return coordinator.requestCounts - before
    }
    let (child, parent) = (try requests(true), try requests(false))
    // A child has no cache of rows, so a released object is read again, from the parent's cache.
    #expect(child == parent, "child: \(child), parent: \(parent)")
  }

  // The weakest store leaves checks to the framework, which reads rows for them.
  @Test(arguments: TestStore.allCases.filter { $0 != .weakest }) func aSaveOfAChildSendsAtMostARequestForKeys(_ store: TestStore) throws {
    let family = try Family(store), coordinator = try family.place.coordinator()
    let dogs = try family.parent.fetch(FetchRequest<Dog>()), mine = try family.child.fetch(FetchRequest<Dog>())
    let before = coordinator.requestCounts
    for dog in mine { dog.age = 7 }
    try family.child.save()
    #expect(dogs.map(\.age) == [7, 7] && coordinator.requestCounts - before == RequestCounts())
    for number in 0..<100 { family.child.dog("Dog \(number)", owner: family.child.person("Owner \(number)")) }
    try family.child.save()
    var expected = RequestCounts()
    expected.keyReservations = 1
    #expect(coordinator.requestCounts - before == expected)
    try family.parent.save()
    expected.saves = 1
    #expect(coordinator.requestCounts - before == expected)
  }

  @Test(arguments: TestStore.allCases, [false, true])
  func linksThatTheParentSetsBetweenNewObjectsOfAChildAreShownToIt(_ store: TestStore, _ isLoop: Bool) throws {
    let node = EntityDescription("Node", relationships: [.toMany("peers", to: "Node", inverse: "peers")])
    let model = try ManagedObjectModel(entities: [node])
    let parent = try store.makePlace(model: model, classes: []).context(), child = ManagedObjectContext(parent: parent)
    for context in [parent, child] { context.automaticallyMergesChanges = true }
    let nodes = try (0..<2).map { _ in try child.insert(entityNamed: "Node") }
    try child.save()
    for node in nodes { #expect(try node.toMany(forKey: "peers").isEmpty) }
    let ours = try nodes.map { try parent.object(with: $0.objectID) }
    try ours[0].toMany(forKey: "peers").insert(ours[isLoop ? 0 : 1])
    try parent.save()
    try child.processPendingChanges()
    let peer = nodes[isLoop ? 0 : 1]
    #expect(try Array(nodes[0].toMany(forKey: "peers")) == [peer] && Array(peer.toMany(forKey: "peers")) == [nodes[0]])
    try child.insert(entityNamed: "Node").toMany(forKey: "peers").insert(nodes[0])
    try child.save()
    try parent.save()
    #expect(try ours[0].toMany(forKey: "peers").count == 2)
  }

  /// Only the rows of the animals and keepers determine their entities. The parent hasn't read them.
  @Test(arguments: TestStore.allCases) func objectsOfFamiliesThatAChildLinksAreReadTogether(_ store: TestStore) throws {
    let place = try store.makePlace(model: Menagerie.model, classes: Menagerie.classes), setup = try place.context(), count = 60
    for number in 0..<count {
      setup.animal(Cat.self, "Cat \(number)", keeper: setup.insert(HeadKeeper.self) { $0.name = "Keeper \(number)" })
    }
    try setup.save()
    let parent = try place.context(), child = ManagedObjectContext(parent: parent), coordinator = try place.coordinator()
    let cats = try child.fetch(FetchRequest<Cat>()), keepers = try child.fetch(FetchRequest<Keeper>())
    for (number, cat) in cats.enumerated() {
      cat.keeper = keepers[(number + 1) % count]
      cat.friends.insert(cats[(number + 1) % count])
      let visit = child.insert(Visit.self)
      (visit.day, visit.animal) = (1, cat)
    }
    let before = coordinator.requestCounts
    try child.save()
    // One for the cats, and one for the keepers.
    let requests = coordinator.requestCounts - before
    #expect(requests.rows <= 2 && requests.relationships == 0, "\(requests)")
    try parent.save()
    let saved = try place.context().fetch(FetchRequest<Cat>())
    #expect(saved.allSatisfy { $0.visits.count == 1 && $0.friends.count == 1 && $0.keeper is HeadKeeper })
  }

  /// The parent knows only the links of the owners that the child has changed. Stores with resident rows get single requests.
  @Test(arguments: [TestStore.sqlite, .weakest])
  func listsOfObjectsThatTheParentHasNotReadAreReadTogether(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context(), count = 100
    for number in 0..<count { setup.dog("Old", owner: setup.person("Owner \(number)")) }
    try setup.save()
    let parent = try place.context(), child = ManagedObjectContext(parent: parent), next = ManagedObjectContext(parent: parent)
    for person in try child.fetch(FetchRequest<Person>()) { child.dog("New", owner: person) }
    try child.save()
    let coordinator = try place.coordinator(), before = coordinator.requestCounts
    let dogs = try next.fetch(FetchRequest<Dog> { $0.name == "New" })
    #expect(dogs.count == count && dogs.allSatisfy { $0.owner?.dogs.count == 2 })
    let requests = coordinator.requestCounts - before
    // The rows of the owners for the child and for the parent, and the lists.
    #expect(requests.rows + requests.relationships <= 3, "\(requests)")
  }

  /// The rows of objects that the parent has changed aren't kept for later, so they are read one by one, from the parent's memory.
  ///
  /// Every other owner has changed.
  @Test(arguments: TestStore.allCases) func objectsThatTheParentHasChangedAreReadOnce(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context(), count = 100
    for number in 0..<count { setup.dog("Dog", owner: setup.person("Owner \(number)")) }
    try setup.save()
    let parent = try place.context(), child = ManagedObjectContext(parent: parent)
    for (number, person) in try parent.fetch(FetchRequest<Person>()).enumerated() where number % 2 == 0 { person.city = "Rome" }
    let rowCount = Mutex(0)
    let observation = child.core.persistentStoreCoordinator.observeRequests { trace in
      if trace.operation == .rows { rowCount.withLock { $0 += trace.requestedCount ?? 0 } }
    }
    let before = try place.coordinator().requestCounts
    let dogs = try child.fetch(FetchRequest<Dog>())
    #expect(dogs.count { $0.owner?.city == "Rome" } == count / 2)
    observation.cancel()
    let (rows, requests) = (rowCount.withLock { $0 }, try place.coordinator().requestCounts - before)
    #expect(rows <= 2 * count && requests.rows <= (store.hasResidentRows || store == .second ? count : 1), "\(rows), \(requests)")
  }

  /// The parent's lists of deletions change once for all objects.
  @Test(arguments: TestStore.allCases, [false, true]) func manyObjectsAreInsertedAgainAtOnce(_ store: TestStore, _ isSaved: Bool) throws {
    let place = try store.makePlace(), setup = try place.context(), count = 50
    for number in 0..<count { setup.dog("Dog \(number)") }
    try setup.save()
    let parent = try place.context(), child = ManagedObjectContext(parent: parent)
    child.mergePolicy = .mergeByPropertyObjectTrump
    for dog in try child.fetch(FetchRequest<Dog>()) { dog.age = 9 }
    for dog in try parent.fetch(FetchRequest<Dog>()) { parent.delete(dog) }
    if isSaved { try parent.save() }
    let before = parent.core.deletions.generation
    try child.save()
    #expect(parent.core.deletions.generation - before <= 2)
    #expect(try parent.count(for: FetchRequest<Dog>()) == count)
    try parent.save()
    #expect(try place.context().count(for: FetchRequest<Dog> { $0.age == 9 }) == count)
  }

  /// A new child doesn't search the parent's changes for new objects if another child has done it.
  @Test func newObjectsOfAParentAreIdentifiedOnceForAllChildren() throws {
    let family = try Family(.memory), parent = family.parent.core
    let new = family.parent.dog("New")
    #expect(try namesOfDogs(family.child).contains("New") && !new.objectID.isTemporaryID)
    let second = ManagedObjectContext(parent: family.parent)
    #expect(parent.children?.identifiedKey == parent.temporaryIDs.nextKey)
    let other = family.parent.dog("Other")
    #expect(parent.children?.identifiedKey != parent.temporaryIDs.nextKey)
    #expect(try namesOfDogs(second).contains("Other") && !other.objectID.isTemporaryID)
    #expect(parent.children?.identifiedKey == parent.temporaryIDs.nextKey)
  }

  /// One child saves again and again, or many children save once. Each save takes the same time, however many unsaved changes the parent has.
  @Test(arguments: [true, false]) func savesOfChildrenTakeTimeProportionalToTheirChanges(_ usesOneChild: Bool) throws {
    func time(_ count: Int) throws -> Duration {
      let parent = try TestStore.memory.makePlace().context(), first = ManagedObjectContext(parent: parent)
      let time = try processorTime {
        for number in 0..<count {
          let child = usesOneChild ? first : ManagedObjectContext(parent: parent)
          child.dog("Dog \(number)")
          try child.save()
        }
      }
      #expect(parent.insertedObjects.count == count)
      return time
    }
    // Four times the time is proportional, and sixteen times quadratic.
    try expectCost(below: 8, times: { try time(200) }, of: { try time(800) })
  }

  // MARK: Bad input

  @Test func aChildCannotBePinned() throws {
    let family = try Family(.memory)
    try family.parent.setQueryGeneration(from: .current)
    // The bug: the child accepted the token of its parent, read what the parent read, and added unsaved values to the generation's cache.
    let tokens: [QueryGenerationToken] = [.current, try #require(family.parent.queryGenerationToken)]
    for token in tokens {
      let error = #expect(throws: StoreError.self) { try family.child.setQueryGeneration(from: token) }
      #expect(error?.code == .unsupportedRequest && family.child.queryGenerationToken == nil)
    }
  }

  @Test(arguments: TestStore.allCases) func aSaveThatFailsInTheParentIsKeptByTheParent(_ store: TestStore) throws {
    let family = try Family(store)
    family.child.dog("Twin").chip = 1
    try family.child.save()
    let error = try #require(throws: PersistenceError.self) { try family.parent.save() }
    #expect(error.code == .constraintConflict)
    try #require(try family.parent.one(Dog.self) { $0.name == "Twin" }).chip = 7
    try family.parent.save()
    #expect(try namesOfDogs(family.place.context()) == ["Fido", "Rex", "Twin"])
    // A child that is refused changes nothing in its parent.
    family.child.insert(Vaccination.self).kind = "without a dog"
    #expect(throws: PersistenceError.self) { try family.child.save() }
    #expect(!family.parent.hasChanges)
  }

  // MARK: Several stores

  @Test(arguments: StorePair.allCases) func aChildSavesInSeveralStores(_ pair: StorePair) throws {
    let stack = try StorePack(pair), parent = try stack.context(), child = ManagedObjectContext(parent: parent)
    for (number, store) in stack.stores.enumerated() {
      let dog = child.dog("Dog \(number)", age: number)
      try child.assign(dog, to: store)
      dog.owner = child.person("Owner \(number)")
      try child.assign(try #require(dog.owner), to: store)
    }
    try child.save()
    try parent.save()
    let saved = try stack.context().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(saved.map { stack.coordinator.persistentStore(for: $0.objectID) } == stack.stores)
    #expect(saved.map { $0.owner?.name } == ["Owner 0", "Owner 1"])
    // IDs name the right stores, also among unsaved changes.
    for dog in try parent.fetch(FetchRequest<Dog>()) { dog.notes = "changed" }
    #expect(Set(try child.fetchObjectIDs(FetchRequest<Dog>())) == Set(saved.map(\.objectID)))
    for dog in try child.fetch(FetchRequest<Dog>()) { dog.age += 10 }
    try child.save()
    try parent.save()
    #expect(try stack.context().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map(\.age) == [10, 11])
  }

  /// The bug: only a report of the first store had an effect.
  @Test(arguments: StorePair.allCases) func aChildMergesReportsWithoutIDsOfEachStore(_ pair: StorePair) throws {
    let stack = try StorePack(pair), setup = try stack.context(), child = try ManagedObjectContext(parent: stack.context())
    let dogs = try stack.stores.map { store -> Dog in
      let dog = setup.dog("Dog")
      try setup.assign(dog, to: store)
      return dog
    }
    try setup.save()
    let own = try dogs.map { try child.existingDog($0.objectID) }
    for (place, store) in stack.stores.enumerated() {
      #expect(own[place].name == "Dog")
      dogs[place].name = "Changed"
      try setup.save()
      #expect(own[place].name == "Dog")
      try child.mergeChanges(from: SavedChanges(storeIdentifier: store.identifier, contextName: "", mayIncludeOthers: true))
      #expect(own[place].name == "Changed")
    }
  }

  // MARK: Random programs

  /// Random changes in one of several children, which push to their parents, compared with the same changes made in one context.
  @Test(arguments: TestStore.allCases) func RD9_changesThroughChildrenGiveWhatTheyGiveWithout(_ store: TestStore) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(4, full: 1000) {
      let comment = Comment(rawValue: "seed \(random.seed), round \(round) on \(store)")
      let places = [try store.makePlace(), try store.makePlace()]
      var filling = random
      try MergeRound.fill(places[0], &random)
      try MergeRound.fill(places[1], &filling)
      let direct = try places[0].context(), parent = try places[1].context()
      for step in 0..<10 {
        // The same changes, made of the same random numbers.
        var numbers = random
        let child = ManagedObjectContext(parent: parent)
        let depth = step % 3 == 0 ? ManagedObjectContext(parent: child) : child
        try MergeRound.change(direct, &random)
        try MergeRound.change(depth, &numbers)
        if step % 2 == 0 {
          for context in [direct, depth] {
            context.dog("New", age: step, owner: try context.one(Person.self) { $0.name == "Ann" }).chip = Int64(100 + step)
          }
        }
        if depth !== child { try depth.save() }
        try child.save()
        #expect(try KennelState(parent) == KennelState(direct), comment)
        #expect(try KennelState(ManagedObjectContext(parent: parent)) == KennelState(direct), comment)
        if step % 4 == 3 {
          try direct.save()
          try parent.save()
          #expect(try KennelState(places[1].context()) == KennelState(places[0].context()), comment)
        }
      }
    }
  }
}
