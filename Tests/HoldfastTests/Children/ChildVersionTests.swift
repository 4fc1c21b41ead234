import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// What children know of their parent's objects: when a change of others is a conflict, and when a merging child is notified.
@Suite struct ChildVersionTests {
  /// Changes something in a child of a context, saves the child, and releases it.
  private func changeInChild<Result>(of parent: ManagedObjectContext, _ body: (ManagedObjectContext) throws -> Result) throws -> Result {
    let child = ManagedObjectContext(parent: parent), result = try body(child)
    try child.save()
    return result
  }

  private func dog(_ name: String, _ context: ManagedObjectContext) throws -> Dog {
    try #require(try context.one(Dog.self) { $0.name == name })
  }

  /// After changes of others that an object of a child doesn't show: a merging child has merged them and can save, and others can't.
  private func expectOutdated(_ mine: Dog, _ child: ManagedObjectContext) throws {
    mine.notes = "changed"
    if child.automaticallyMergesChanges {
      try child.save()
    } else {
      let error = #expect(throws: PersistenceError.self) { try child.save() }
      #expect(error?.code == .conflict && error?.objectIDs == [mine.objectID])
    }
  }

  // MARK: Released children

  @Test(arguments: TestStore.allCases) func whatAReleasedSiblingHasChangedIsNoConflict(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context()
    try changeInChild(of: parent) { child in try dog("Fido", child).age = 10 }
    let child = ManagedObjectContext(parent: parent), mine = try dog("Fido", child)
    mine.notes = "mine"
    try child.save()
    try parent.save()
    mine.weight = 5
    try child.save()
    try parent.save()
    let saved = try dog("Fido", place.context())
    #expect(saved.age == 10 && saved.notes == "mine" && saved.weight == 5)
  }

  /// A released child has read the object before the parent changed it, and the next child afterwards.
  @Test(arguments: TestStore.allCases) func whatAReleasedSiblingHasReadOfANewObjectIsNoConflict(_ store: TestStore) throws {
    let parent = try store.makePlace().context(), new = parent.dog("New")
    #expect(try changeInChild(of: parent) { child in try dog("New", child).age } == 1)
    new.age = 2
    let child = ManagedObjectContext(parent: parent), mine = try dog("New", child)
    mine.notes = "mine"
    try child.save()
    try parent.save()
    mine.weight = 5
    try child.save()
    #expect(new.age == 2 && new.notes == "mine" && new.weight == 5)
  }

  /// A released child has changed the object since it had inserted it, so the parent's change isn't its first one.
  @Test(arguments: TestStore.allCases, [false, true])
  func aChildNoticesWhatItsParentChangesOfANewObjectOfAReleasedSibling(_ store: TestStore, _ merges: Bool) throws {
    let parent = try store.makePlace().context()
    let id = try changeInChild(of: parent) { child in
      let new = child.dog("New")
      try child.save()
      new.age = 2
      return new.objectID
    }
    let child = ManagedObjectContext(parent: parent), mine = try child.existingDog(id)
    child.automaticallyMergesChanges = merges
    #expect(mine.age == 2)
    try parent.existingDog(id).age = 50
    try parent.save()
    try child.processPendingChanges()
    #expect(mine.age == (merges ? 50 : 2))
    try expectOutdated(mine, child)
  }

  @Test(arguments: [false, true]) func aParentForgetsWhatReleasedChildrenKnewWhenItDiscardsAllChanges(_ isReset: Bool) throws {
    let parent = try TestStore.memory.makeKennelsOfTwo().context()
    try changeInChild(of: parent) { child in
      try dog("Fido", child).age = 10
      child.dog("New")
    }
    if isReset { parent.reset() } else { parent.rollback() }
    #expect(parent.core.children?.isUnused == true && parent.core.children?.seesStoredVersions == true)
    let child = ManagedObjectContext(parent: parent), mine = try dog("Fido", child)
    mine.age += 1
    try child.save()
    try parent.save()
    #expect(try dog("Fido", parent).age == 4)
  }

  // MARK: Changes that the parent reverts

  /// One child has saved the value that the object has when it is saved, 10, or the one that it had before, 3. The other child has read the
  /// value that the parent had set in between.
  @Test(arguments: TestStore.allCases, [false, true])
  func aChildNoticesThatItsParentHasSetBackAValueOfASibling(_ store: TestStore, _ merges: Bool) throws {
    for ages in [[10], [10, 3]] {
      let place = try store.makeKennelsOfTwo(), parent = try place.context()
      let writer = ManagedObjectContext(parent: parent), reader = ManagedObjectContext(parent: parent)
      reader.automaticallyMergesChanges = merges
      let theirs = try dog("Fido", writer), fido = try parent.existingDog(theirs.objectID)
      for age in ages {
        theirs.age = age
        try writer.save()
      }
      let age = fido.age
      fido.age = 50
      let mine = try reader.existingDog(fido.objectID)
      #expect(mine.age == 50)
      fido.age = age
      try parent.save()
      try reader.processPendingChanges()
      #expect(mine.age == (merges ? age : 50))
      try expectOutdated(mine, reader)
    }
  }

  @Test(arguments: TestStore.allCases, [false, true])
  func aChildNoticesThatItsParentHasRemovedANewLinkAgain(_ store: TestStore, _ merges: Bool) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    child.automaticallyMergesChanges = merges
    let fido = try dog("Fido", parent), rex = try dog("Rex", parent), mine = try child.existingDog(fido.objectID)
    #expect(mine.age == 3)
    fido.friends.insert(rex)
    #expect(mine.friends.map(\.name) == ["Rex"])
    fido.friends.remove(rex)
    try parent.save()
    try child.processPendingChanges()
    #expect(mine.friends.isEmpty == merges)
    try expectOutdated(mine, child)
  }

  /// The child has read the list of the owner that the dog had in between, but not the row of the dog.
  @Test(arguments: TestStore.allCases) func aMergingChildNoticesThatItsParentHasSetAnOwnerBack(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    child.automaticallyMergesChanges = true
    let fido = try dog("Fido", parent), ann = try #require(fido.owner)
    let mine = try #require(try child.one(Person.self) { $0.name == "Bob" })
    #expect(mine.dogs.isEmpty)
    fido.owner = try parent.one(Person.self) { $0.name == "Bob" }
    try child.refresh(mine, mergeChanges: false)
    #expect(mine.dogs.count == 1)
    fido.owner = ann
    try parent.save()
    try child.processPendingChanges()
    #expect(mine.dogs.isEmpty)
  }

  /// The same if that owner is new, and a sibling has inserted it. The save of the parent changes nothing of the owner.
  @Test(arguments: TestStore.allCases) func aMergingChildNoticesThatItsParentHasSetAnOwnerBackFromANewOne(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    child.automaticallyMergesChanges = true
    let writer = ManagedObjectContext(parent: parent), eve = writer.person("Eve")
    try writer.save()
    let fido = try dog("Fido", parent), ann = try #require(fido.owner)
    fido.owner = try parent.one(Person.self) { $0.name == "Eve" }
    let mine = try #require(try child.one(Person.self) { $0.name == "Eve" })
    #expect(mine.objectID == eve.objectID && mine.dogs.count == 1)
    fido.owner = ann
    try parent.save()
    try child.processPendingChanges()
    #expect(mine.dogs.isEmpty)
  }

  @Test(arguments: TestStore.allCases) func aMergingChildNoticesThatItsParentHasDeletedANewObjectOfAList(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    child.automaticallyMergesChanges = true
    let new = parent.dog("New", owner: try parent.one(Person.self) { $0.name == "Bob" })
    let mine = try #require(try child.one(Person.self) { $0.name == "Bob" })
    #expect(mine.dogs.count == 1)
    parent.delete(new)
    try parent.save()
    try child.processPendingChanges()
    #expect(mine.dogs.isEmpty)
  }

  /// A child that has read the row of an owner, or its list, isn't in conflict if only the rows of other objects have changed.
  @Test(arguments: TestStore.allCases) func anOwnerWhoseListTheParentChangesIsNoConflict(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    let fido = try dog("Fido", parent)
    fido.owner = try parent.one(Person.self) { $0.name == "Bob" }
    let mine = try #require(try child.one(Person.self) { $0.name == "Bob" })
    #expect(mine.dogs.count == 1)
    try parent.save()
    mine.city = "Rome"
    try child.save()
    try parent.save()
    #expect(try place.context().one(Person.self) { $0.name == "Bob" }?.city == "Rome")
  }

  /// The same if the parent discards the change.
  @Test(arguments: TestStore.allCases, [false, true])
  func anOwnerWhoseListTheParentSetsBackIsNoConflict(_ store: TestStore, _ isRollback: Bool) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    let fido = try dog("Fido", parent), bob = try #require(try parent.one(Person.self) { $0.name == "Bob" })
    let mine = try #require(try child.one(Person.self) { $0.name == "Bob" }), read = try child.existingDog(fido.objectID)
    #expect(mine.dogs.isEmpty)
    fido.owner = bob
    try child.refresh(mine, mergeChanges: false)
    #expect(mine.dogs.count == 1)
    if isRollback { parent.rollback() } else { try parent.refresh(bob, mergeChanges: false) }
    mine.city = "Rome"
    try child.save()
    try parent.save()
    #expect(try place.context().one(Person.self) { $0.name == "Bob" }?.city == "Rome")
    // The dog itself was changed.
    if isRollback { try expectOutdated(read, child) }
  }

  /// The parent shows a new derived value of the owner, whose row it doesn't write.
  @Test(arguments: TestStore.allCases) func anOwnerWhoseDerivedValueASiblingHasChangedIsNoConflict(_ store: TestStore) throws {
    let place = try store.makePlace(model: Park.model, classes: []), setup = try place.context()
    let ann = try setup.insert(entityNamed: "Person")
    try setup.save()
    let parent = try place.context(), writer = ManagedObjectContext(parent: parent), reader = ManagedObjectContext(parent: parent)
    writer.make("Dog").lead("owner", to: try writer.existingObject(with: ann.objectID))
    try writer.save()
    let mine = try reader.existingObject(with: ann.objectID)
    #expect(mine["dogCount"] == .int16(1))
    try parent.save()
    try mine.setValue("Ann", forKey: "name")
    try reader.save()
    try parent.save()
    let saved = try place.context().existingObject(with: ann.objectID)
    #expect(saved["name"] == .string("Ann") && saved["dogCount"] == .int16(1))
  }

  @Test(arguments: TestStore.allCases) func aLinkOfNewObjectsThatTheParentAddsAndRemovesIsNoConflict(_ store: TestStore) throws {
    let parent = try store.makePlace().context()
    let writer = ManagedObjectContext(parent: parent), reader = ManagedObjectContext(parent: parent)
    let dogs = ["Fido", "Rex"].map { writer.dog($0) }
    try writer.save()
    let read = try dogs.map { try reader.existingDog($0.objectID) }, theirs = try dogs.map { try parent.existingDog($0.objectID) }
    theirs[0].friends.insert(theirs[1])
    theirs[0].friends.remove(theirs[1])
    try parent.save()
    for dog in read { dog.age = 9 }
    try reader.save()
    #expect(theirs.map(\.age) == [9, 9])
  }

  // MARK: What a sibling's save changes in other objects

  /// The parent had given Fido another collar than the child knew. A third child has read that one.
  @Test(arguments: TestStore.allCases) func aMergingChildNoticesThatItsSiblingHasTakenAnObjectFromItsPartner(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), setup = try place.context()
    for color in ["blue", "green"] { setup.insert(Collar.self).color = color }
    try setup.save()
    func collar(_ color: String, _ context: ManagedObjectContext) throws -> Collar {
      try #require(try context.one(Collar.self) { $0.color == color })
    }
    let parent = try place.context(), fido = try dog("Fido", parent)
    let writer = ManagedObjectContext(parent: parent), written = try dog("Fido", writer)
    #expect(written.collar == nil)
    fido.collar = try collar("blue", parent)
    let reader = ManagedObjectContext(parent: parent), blue = try collar("blue", reader)
    reader.automaticallyMergesChanges = true
    #expect(blue.dog?.name == "Fido")
    written.collar = try collar("green", writer)
    try writer.save()
    try reader.processPendingChanges()
    #expect(blue.dog == nil)
    #expect(try collar("green", reader).dog?.name == "Fido")
    try parent.save()
    let saved = try place.context()
    #expect(try collar("blue", saved).dog == nil)
    #expect(try collar("green", saved).dog?.name == "Fido")
  }

  /// The same if the partner is a new object of the parent.
  @Test(arguments: TestStore.allCases) func aMergingChildNoticesThatItsSiblingHasTakenAnObjectFromANewPartner(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), setup = try place.context()
    setup.insert(Collar.self).color = "blue"
    try setup.save()
    let parent = try place.context(), writer = ManagedObjectContext(parent: parent)
    let written = try #require(try writer.one(Collar.self) { $0.color == "blue" })
    #expect(written.dog == nil)
    let new = parent.dog("New")
    new.collar = try parent.one(Collar.self) { $0.color == "blue" }
    let reader = ManagedObjectContext(parent: parent), read = try dog("New", reader)
    reader.automaticallyMergesChanges = true
    #expect(read.collar?.color == "blue")
    try dog("Fido", writer).collar = written
    try writer.save()
    try reader.processPendingChanges()
    #expect(new.collar == nil && read.collar == nil)
    #expect(try dog("Fido", reader).collar?.color == "blue")
    try parent.save()
    let saved = try place.context()
    #expect(try dog("Fido", saved).collar?.color == "blue")
    #expect(try dog("New", saved).collar == nil)
  }

  @Test(arguments: TestStore.allCases) func aMergingChildFollowsDerivedValuesThatASiblingHasChanged(_ store: TestStore) throws {
    let place = try store.makePlace(model: Park.model, classes: []), setup = try place.context()
    let ann = try setup.insert(entityNamed: "Person")
    try setup.save()
    let parent = try place.context(), writer = ManagedObjectContext(parent: parent), reader = ManagedObjectContext(parent: parent)
    reader.automaticallyMergesChanges = true
    let mine = try reader.existingObject(with: ann.objectID)
    #expect(mine["dogCount"] == .int16(0))
    writer.make("Dog").lead("owner", to: try writer.existingObject(with: ann.objectID))
    try writer.save()
    try reader.processPendingChanges()
    #expect(mine["dogCount"] == .int16(1))
    try parent.save()
    try reader.processPendingChanges()
    #expect(mine["dogCount"] == .int16(1))
  }

  // MARK: Derived values of the parent's save

  /// The child has inserted or changed the objects, so their rows have the versions that it knows, but other values.
  @Test(arguments: TestStore.allCases, [false, true])
  func aMergingChildFollowsDerivedValuesThatTheSaveOfItsParentComputes(_ store: TestStore, _ isNew: Bool) throws {
    let place = try store.makePlace(model: Park.model, classes: []), setup = try place.context()
    let old = [setup.make("Person"), setup.make("Dog")]
    try setup.save()
    let parent = try place.context(), child = ManagedObjectContext(parent: parent)
    child.automaticallyMergesChanges = true
    let mine = try isNew ? [child.make("Person"), child.make("Dog")] : old.map { try child.existingObject(with: $0.objectID) }
    for object in mine { object["name"] = .string("Mine") }
    try child.save()
    parent.make("Dog").lead("owner", to: try parent.existingObject(with: mine[0].objectID))
    try parent.save()
    try child.processPendingChanges()
    #expect(mine[0]["dogCount"] == .int16(1))
    #expect(try mine[1]["changed"] == parent.existingObject(with: mine[1].objectID)["changed"])
    // They aren't in conflict.
    for object in mine { object["name"] = .string("Again") }
    child.automaticallyMergesChanges = false
    try child.save()
    try parent.save()
    #expect(try place.context().existingObject(with: mine[0].objectID)["name"] == .string("Again"))
  }

  // MARK: Saves with an unknown outcome

  /// Only the child changes the object: before the parent's save, whose outcome is unknown, and before the parent learns the outcome.
  @Test(arguments: TestStore.allCases, OutcomeStore.Loss.allCases)
  func whatAChildChangesWhileAnOutcomeIsUnknownIsNoConflict(_ store: TestStore, _ loss: OutcomeStore.Loss) throws {
    for isNew in [false, true] {
      let stack = try LossyStack(store), parent = stack.context, child = ManagedObjectContext(parent: parent)
      let friend = parent.dog("Friend")
      if !isNew { parent.dog("Rex") }
      try parent.save()
      let mine = try isNew ? child.dog("Rex") : dog("Rex", child)
      mine.age = 2
      mine.friends.insert(try child.existingDog(friend.objectID))
      try child.save()
      stack.saveInVain(loss)
      for age in 3...4 {
        mine.age = age
        try child.save()
      }
      try parent.save()
      for age in 5...6 {
        mine.age = age
        try child.save()
        try parent.save()
      }
      let saved = try dog("Rex", stack.another())
      #expect(saved.age == 6 && saved.friends.map(\.name) == ["Friend"])
    }
  }

  // MARK: Incomplete saves

  /// The store of the discarded object commits, and the other one doesn't. The child isn't in conflict with what it has changed there.
  @Test(arguments: StorePair.allCases) func aMergingChildFollowsWhatAnIncompleteSaveOfItsParentDiscards(_ pair: StorePair) throws {
    let pack = try StorePack(pair), parent = try pack.context(), child = ManagedObjectContext(parent: parent)
    child.automaticallyMergesChanges = true
    let saved = parent.dog("Saved"), new = parent.dog("New")
    let mine = try dog("New", child), unsaved = child.dog("Unsaved")
    try child.assign(unsaved, to: pack.stores[1])
    try child.save()
    unsaved.age = 2
    try child.save()
    parent.delete(new)
    pack.faults[1].fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
    let error = #expect(throws: PersistenceError.self) { try parent.save() }
    #expect(error?.code == .incompleteSave && !saved.isInserted)
    try child.processPendingChanges()
    #expect(mine.isInaccessible && !unsaved.isInaccessible)
    try parent.save()
    unsaved.age = 3
    try child.save()
    try parent.save()
    #expect(try dog("Unsaved", pack.context()).age == 3)
  }

  /// The store of the object that a released child has changed doesn't commit. The next child isn't in conflict with itself.
  @Test(arguments: StorePair.allCases) func whatAReleasedSiblingHasChangedIsNoConflictAfterAnIncompleteSave(_ pair: StorePair) throws {
    let pack = try StorePack(pair), parent = try pack.context(), other = parent.dog("Other")
    try parent.assign(other, to: pack.stores[1])
    try parent.save()
    try changeInChild(of: parent) { child in try dog("Other", child).age = 10 }
    parent.dog("New")
    pack.faults[1].fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
    let error = #expect(throws: PersistenceError.self) { try parent.save() }
    #expect(error?.code == .incompleteSave && other.isUpdated)
    let child = ManagedObjectContext(parent: parent), mine = try dog("Other", child)
    for age in 11...12 {
      mine.age = age
      try child.save()
      try parent.save()
    }
    #expect(try dog("Other", pack.context()).age == 12)
  }

  // MARK: Lists without an inverse

  /// Only the new owner's row gets another version. The parent has read the list of the former one.
  @Test(arguments: TestStore.allCases, [false, true])
  func aMergingChildNoticesThatItsSiblingHasTakenAnObjectFromAnotherOwner(_ store: TestStore, _ isOrdered: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Box", relationships: [.toMany("things", to: "Thing", inverse: nil, isOrdered: isOrdered)]),
      EntityDescription("Thing", attributes: [AttributeDescription("name", .string, isOptional: true)]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let saved = try ["Box", "Box", "Thing"].map { try setup.insert(entityNamed: $0) }
    try saved[0].toMany(forKey: "things").insert(saved[2])
    try setup.save()
    func objects(_ context: ManagedObjectContext) throws -> [ManagedObject] {
      try saved.map { try context.existingObject(with: $0.objectID) }
    }
    func counts(_ objects: [ManagedObject]) throws -> [Int] { try objects.prefix(2).map { try $0.toMany(forKey: "things").count } }
    let parent = try place.context(), theirs = try objects(parent)
    let writer = ManagedObjectContext(parent: parent), written = try objects(writer)
    let reader = ManagedObjectContext(parent: parent), read = try objects(reader)
    reader.automaticallyMergesChanges = true
    for all in [theirs, read] { #expect(try counts(all) == [1, 0]) }
    try written[1].toMany(forKey: "things").insert(written[2])
    try writer.save()
    for _ in 0..<2 {
      try reader.processPendingChanges()
      for all in [theirs, read] { #expect(try counts(all) == [0, 1]) }
      try parent.save()
    }
  }

  /// The bug: the parent's save gave the former owner a new version for the child, as if the parent itself had changed its list.
  @Test(arguments: TestStore.allCases, [false, true])
  func anOwnerFromWhichAChildHasTakenAnObjectIsNoConflict(_ store: TestStore, _ isOrdered: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Box", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toMany("things", to: "Thing", inverse: nil, isOrdered: isOrdered)]),
      EntityDescription("Thing", attributes: [AttributeDescription("name", .string, isOptional: true)]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let saved = try ["Box", "Box", "Thing"].map { try setup.insert(entityNamed: $0) }
    try saved[0].toMany(forKey: "things").insert(saved[2])
    try setup.save()
    func objects(_ context: ManagedObjectContext) throws -> [ManagedObject] {
      try saved.map { try context.existingObject(with: $0.objectID) }
    }
    let parent = try place.context(), theirs = try objects(parent)
    let child = ManagedObjectContext(parent: parent), mine = try objects(child)
    for all in [theirs, mine] { #expect(try all.prefix(2).map { try $0.toMany(forKey: "things").count } == [1, 0]) }
    try mine[1].toMany(forKey: "things").insert(mine[2])
    try child.save()
    try parent.save()
    for name in ["first", "second"] {
      try mine[0].setValue(.string(name), forKey: "name")
      try child.save()
      try parent.save()
    }
    let box = try place.context().existingObject(with: saved[0].objectID)
    #expect(try box.value(forKey: "name").storeValue == .string("second") && box.toMany(forKey: "things").isEmpty)
    #expect(try theirs.prefix(2).map { try $0.toMany(forKey: "things").count } == [0, 1])
  }

  // MARK: Reading in the parent

  /// Neither has read the list when the child removes an item from it.
  @Test(arguments: TestStore.allCases) func readingAListThatAChildHasChangedIsNoChangeOfTheParent(_ store: TestStore) throws {
    let lists = try Lists(store, ["a", "b", "c"]), parent = try lists.place.context(), child = ManagedObjectContext(parent: parent)
    let list = try child.existingObject(with: lists.id)
    try lists.item("b", child).setValue(StoreValue.null, forKey: "list")
    try child.save()
    #expect(try Lists.names(of: lists.items(parent)) == ["a", "c"])
    try parent.save()
    try list.setValue("renamed", forKey: "name")
    try child.save()
    try parent.save()
    #expect(try lists.list("renamed", lists.place.context()).ordered(forKey: "items").count == 2)
  }

  /// A child adds a link and removes it again, while the parent has read neither list. So the parent has recorded a removal without an
  /// effect, until a sibling or the parent itself reads the lists.
  @Test(arguments: TestStore.allCases, [false, true])
  func readingAListToWhichAChildHasAddedALinkForAWhileIsNoChangeOfTheParent(_ store: TestStore, _ isReadBySibling: Bool) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    let mine = try ["Fido", "Rex"].map { try dog($0, child) }
    mine[0].friends.insert(mine[1])
    try child.save()
    mine[0].friends.remove(mine[1])
    try child.save()
    let reader = isReadBySibling ? ManagedObjectContext(parent: parent) : parent
    #expect(try dog("Fido", reader).friends.isEmpty)
    #expect(try dog("Rex", reader).friendOf.isEmpty)
    try parent.save()
    for dog in mine { dog.age = 9 }
    try child.save()
    try parent.save()
    #expect(try dog("Fido", place.context()).age == 9)
  }

  // MARK: Objects that are inserted again

  /// The parent deletes a new object, and saves. Or it saves a change of its own together with one of the child, and then another context
  /// deletes the object.
  @Test(arguments: TestStore.allCases, [false, true])
  func aChildCanChangeAnObjectThatItHasInsertedAgain(_ store: TestStore, _ isNew: Bool) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    parent.automaticallyMergesChanges = true
    let mine = try isNew ? child.dog("New") : dog("Fido", child)
    if isNew { try child.save() }
    mine.age = 8
    try child.save()
    let theirs = try parent.existingDog(mine.objectID)
    if isNew {
      parent.delete(theirs)
      try parent.save()
    } else {
      theirs.weight = 7
      try parent.save()
      try child.refresh(mine, mergeChanges: false)
      #expect(mine.weight == 7)
      let other = try place.context()
      other.delete(try other.existingDog(mine.objectID))
      try other.save()
      try parent.processPendingChanges()
    }
    mine.age = 9
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    mine.age = 10
    child.mergePolicy = .error
    try child.save()
    try parent.save()
    #expect(try place.context().existingDog(mine.objectID).age == 10)
  }
}
