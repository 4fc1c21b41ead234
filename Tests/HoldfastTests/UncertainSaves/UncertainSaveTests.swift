import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Commits that end without a known outcome, with one store.
@Suite struct UncertainSaveTests {
  typealias Loss = OutcomeStore.Loss

  // MARK: What is saved

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func newObjectsAreInsertedOnce(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let ada = context.person("Ada"), dogs = ["rex", "max"].map { context.dog($0, owner: ada) }
    dogs[0].friends.insert(dogs[1])
    stack.saveInVain(loss)
    #expect(dogs.allSatisfy { $0.isInserted && !$0.objectID.isTemporaryID })
    let ids = dogs.map(\.objectID)
    try context.save()
    // A store that doesn't have the changes receives them once more, with the same keys.
    #expect(stack.recorder.savingRequests == (loss.isCommitted ? [1, 0, 0] : [1, 0, 1]))
    #expect(!context.hasChanges && !context.hasUncertainSave && dogs.map(\.objectID) == ids)
    stack.recorder.withStoreBlocked { #expect(dogs.map(\.name) == ["rex", "max"] && Set(ada.dogs) == Set(dogs)) }
    let other = try stack.another()
    #expect(try Set(other.fetch(FetchRequest<Dog>()).map(\.objectID)) == Set(ids))
    #expect(try other.one(Dog.self) { $0.name == "rex" }?.owner?.name == "Ada")
    #expect(try other.one(Dog.self) { $0.name == "rex" }?.friends.map(\.name) == ["max"])
    #expect(try other.count(for: FetchRequest<Person>()) == 1)
    // The objects have the stored versions.
    dogs[0].age = 7
    ada.name = "Ada L."
    try context.save()
    #expect(try stack.another().one(Dog.self) { $0.name == "rex" }?.age == 7)
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func updatesAndDeletionsAreSavedOnce(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let rex = context.dog("rex"), max = context.dog("max")
    try context.save()
    rex.age = 5
    context.delete(max)
    stack.saveInVain(loss)
    #expect(context.updatedObjects == [rex] && context.deletedObjects == [max])
    try context.save()
    #expect(stack.recorder.savingRequests == (loss.isCommitted ? [1, 0, 0] : [1, 0, 1]))
    #expect(!context.hasChanges && max.isInaccessible)
    #expect(try stack.another().fetch(FetchRequest<Dog>()).map(\.age) == [5])
    rex.age = 6
    try context.save()
    #expect(try stack.another().fetch(FetchRequest<Dog>()).map(\.age) == [6])
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func changesSinceTheLostSaveAreSavedToo(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let old = context.dog("old", age: 3)
    try context.save()
    let new = context.dog("new", age: 1)
    old.age = 4
    stack.saveInVain(loss)
    old.name = "older"
    new.age = 2
    let newest = context.dog("newest", owner: context.person("Ada"))
    newest.friends.insert(new)
    try context.save()
    #expect(!context.hasChanges)
    let saved = try #require(stack.recorder.saves.first?.entities[old.entity.index])
    #expect(stack.recorder.saves.count == 1)
    if loss.isCommitted {
      // Only what the store doesn't have.
      #expect(saved.inserted == [newest.objectID.key])
      #expect(saved.updated == [old.objectID.key: [Dog.Slot.name], new.objectID.key: [Dog.Slot.age]])
    } else {
      #expect(saved.inserted == [new.objectID.key, newest.objectID.key].sorted())
      #expect(saved.updated == [old.objectID.key: [Dog.Slot.age, Dog.Slot.name]])
    }
    let dogs = try stack.another().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(dogs.map(\.name) == ["new", "newest", "older"] && dogs.map(\.age) == [2, 1, 4])
    #expect(dogs[1].friends.map(\.name) == ["new"] && dogs[1].owner?.name == "Ada")
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func aValueThatIsSetBackAfterTheLostSaveIsSavedAsItIsNow(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let dog = context.dog("rex", age: 3)
    dog.notes = "old"
    try context.save()
    (dog.age, dog.notes) = (4, nil)
    stack.saveInVain(loss)
    (dog.age, dog.notes) = (3, "old")
    try context.save()
    let found = try #require(try stack.another().one(Dog.self) { $0.name == "rex" })
    #expect(found.age == 3 && found.notes == "old")
    #expect(dog.age == 3 && dog.notes == "old" && !dog.hasChanges)
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func aNewObjectThatIsDeletedAfterTheLostSaveIsGone(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let ada = context.person("Ada")
    try context.save()
    let rex = context.dog("rex", owner: ada), max = context.dog("max", owner: ada)
    rex.friends.insert(max)
    rex.collar = context.insert(Collar.self)
    stack.saveInVain(loss)
    context.delete(rex)
    #expect(try context.fetch(FetchRequest<Dog>()) == [max])
    try context.save()
    // Nothing needs to be deleted if the store never had it.
    #expect(stack.recorder.saves.first?.entities[rex.entity.index]?.deleted == (loss.isCommitted ? [rex.objectID.key] : []))
    #expect(!context.hasChanges && rex.isInaccessible && Array(ada.dogs) == [max] && max.friendOf.isEmpty)
    let other = try stack.another()
    #expect(try other.fetch(FetchRequest<Dog>()).map(\.name) == ["max"])
    #expect(try other.count(for: FetchRequest<Collar>()) == 0)
    #expect(try other.one(Person.self) { $0.name == "Ada" }?.dogs.count == 1)
    try context.save()
    context.delete(max)
    try context.save()
    #expect(try stack.another().count(for: FetchRequest<Dog>()) == 0)
  }

  @Test(arguments: Loss.allCases) func anObjectThatIsUpdatedAndThenDeletedIsDeleted(_ loss: Loss) throws {
    for store in [TestStore.memory, .sqlite, .weakest] {
      let stack = try LossyStack(store), context = stack.context
      let dog = context.dog("rex"), other = context.dog("max")
      try context.save()
      dog.age = 9
      stack.saveInVain(loss)
      context.delete(dog)
      other.age = 8
      try context.save()
      #expect(try stack.another().fetch(FetchRequest<Dog>()).map(\.age) == [8])
      #expect(dog.isInaccessible && !context.hasChanges)
    }
  }

  @Test(arguments: Loss.allCases) func anObjectDiscardedBeforeTheLostSaveStaysDiscarded(_ loss: Loss) throws {
    let stack = try LossyStack(.memory), context = stack.context
    let ada = context.person("Ada"), rex = context.dog("rex", owner: ada), gone = context.dog("gone", owner: ada)
    rex.friends.insert(gone)
    context.delete(gone)
    stack.saveInVain(loss)
    #expect(Array(ada.dogs) == [rex] && rex.friends.isEmpty)
    try context.save()
    #expect(Array(ada.dogs) == [rex] && rex.friends.isEmpty && !context.hasChanges && context.registeredObjects.count == 2)
    #expect(try stack.another().fetch(FetchRequest<Dog>()).map(\.name) == ["rex"])
  }

  /// A context whose save was lost. The lists of its two saved objects have had an object that was never saved, and nothing else was inserted.
  private func discarding(_ store: TestStore, _ loss: Loss) throws -> (stack: LossyStack, ada: Person, rex: Dog) {
    let stack = try LossyStack(store), context = stack.context
    let ada = context.person("Ada"), rex = context.dog("rex", owner: ada)
    try context.save()
    #expect(ada.dogs.count == 1 && rex.friends.isEmpty)
    let gone = context.dog("gone", owner: ada)
    rex.friends.insert(gone)
    context.delete(gone)
    rex.age = 8
    stack.saveInVain(loss)
    return (stack, ada, rex)
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func aLostSaveForgetsDiscardedObjectsInListsOfSavedOnes(_ store: TestStore, _ loss: Loss) throws {
    let (stack, ada, rex) = try discarding(store, loss), context = stack.context
    let new = context.dog("new")
    ada.dogs.insert(new)
    try context.save()
    #expect(Set(ada.dogs) == [rex, new] && rex.friends.isEmpty && !context.hasChanges && context.registeredObjects.count == 3)
    #expect(try stack.another().fetch(FetchRequest<Dog>()).map(\.name).sorted() == ["new", "rex"])
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func aLostSaveOfNothingNewForgetsDiscardedObjects(_ store: TestStore, _ loss: Loss) throws {
    let (stack, ada, rex) = try discarding(store, loss), context = stack.context
    #expect(Array(ada.dogs) == [rex] && rex.friends.isEmpty)
    try context.save()
    #expect(Array(ada.dogs) == [rex] && rex.friends.isEmpty && !context.hasChanges && context.registeredObjects.count == 2)
  }

  /// Without an inverse, the object keeps the key of one that was never saved.
  @Test(arguments: TestStore.allCases, Loss.allCases)
  func aLostSaveForgetsDiscardedDestinations(_ store: TestStore, _ loss: Loss) throws {
    let entity = EntityDescription(
      "Node", attributes: [AttributeDescription("name", .string, isOptional: true)],
      relationships: [.toOne("next", to: "Node", inverse: nil)])
    let stack = try LossyStack(store, model: try ManagedObjectModel(entities: [entity]), classes: []), context = stack.context
    let old = context.make("Node")
    try context.save()
    let new = context.make("Node"), gone = context.make("Node"), identified = context.make("Node")
    try context.obtainPermanentIDs(for: [identified])
    old.lead("next", to: gone)
    new.lead("next", to: identified)
    context.delete(gone)
    context.delete(identified)
    stack.saveInVain(loss)
    var saved: [ObjectChanges] = []
    let observation = context.onSave { _, changes in saved.append(changes) }
    try context.save()
    observation.cancel()
    #expect(stack.recorder.savingRequests == (loss.isCommitted ? [1, 0, 0] : [1, 0, 1]))
    #expect(saved.count == 1 && saved.first?.inserted == [new.objectID])
    // Its reference is cleared before the save, so it has no change.
    #expect(saved.first?.updated == [])
    #expect(!context.hasChanges && old["next"] == .null && new["next"] == .null)
    #expect(try stack.another().all("Node").allSatisfy { $0["next"] == .null })
  }

  // MARK: Relationships

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func linksAddedAndRemovedAfterTheLostSaveAreSaved(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let a = context.dog("a"), b = context.dog("b"), c = context.dog("c"), d = context.dog("d")
    a.friends.insert(b)
    try context.save()
    a.friends.insert(c)
    a.friends.remove(b)
    stack.saveInVain(loss)
    // Both are reverted at the other end, and one is new.
    c.friendOf.remove(a)
    b.friendOf.insert(a)
    a.friends.insert(d)
    try context.save()
    #expect(Set(a.friends) == [b, d] && c.friendOf.isEmpty && !context.hasChanges)
    let other = try stack.another()
    #expect(try other.one(Dog.self) { $0.name == "a" }?.friends.map(\.name).sorted() == ["b", "d"])
    #expect(try other.one(Dog.self) { $0.name == "c" }?.friendOf.isEmpty == true)
    a.friends.remove(d)
    try context.save()
    #expect(try stack.another().one(Dog.self) { $0.name == "a" }?.friends.map(\.name) == ["b"])
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func destinationsReadAfterTheLostSaveAreRight(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store)
    let (a, b, c) = (stack.context.dog("a"), stack.context.dog("b"), stack.context.dog("c"))
    a.friends.insert(b)
    try stack.context.save()
    let ids = [a, b, c].map(\.objectID)
    stack.context.reset()
    let dogs = try ids.map { try #require(try stack.context.existingObject(with: $0) as? Dog) }
    // The destinations aren't in memory when they are changed.
    dogs[0].friends.insert(dogs[2])
    dogs[0].friends.remove(dogs[1])
    stack.saveInVain(loss)
    #expect(Array(dogs[0].friends) == [dogs[2]] && dogs[1].friendOf.isEmpty && Array(dogs[2].friendOf) == [dogs[0]])
    dogs[0].friends.remove(dogs[2])
    #expect(dogs[0].friends.isEmpty)
    try stack.context.save()
    #expect(dogs.allSatisfy { $0.friends.isEmpty && $0.friendOf.isEmpty })
    #expect(try stack.another().one(Dog.self) { $0.name == "a" }?.friends.isEmpty == true)
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func anObjectMovedToAnotherOwnerAfterTheLostSaveHasThatOwner(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let people = ["a", "b", "c"].map { context.person($0) }, dog = context.dog("rex", owner: people[0])
    try context.save()
    dog.owner = people[1]
    stack.saveInVain(loss)
    people[2].dogs.insert(dog)
    try context.save()
    #expect(people.map(\.dogs.count) == [0, 0, 1] && dog.owner == people[2])
    #expect(try stack.another().one(Dog.self) { $0.name == "rex" }?.owner?.name == "c")
    dog.owner = nil
    try context.save()
    #expect(try stack.another().one(Dog.self) { $0.name == "rex" }?.owner == nil)
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func bothEndsOfAPairAgreeAfterARetry(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let (a, b) = (context.dog("a"), context.dog("b"))
    let (red, blue) = (context.insert(Collar.self), context.insert(Collar.self))
    (red.color, blue.color) = ("red", "blue")
    a.collar = red
    try context.save()
    b.collar = red
    a.collar = blue
    stack.saveInVain(loss)
    a.collar = red
    try context.save()
    #expect(a.collar == red && red.dog == a && b.collar == nil && blue.dog == nil)
    let other = try stack.another()
    #expect(try other.one(Dog.self) { $0.name == "a" }?.collar?.color == "red" && other.one(Dog.self) { $0.name == "b" }?.collar == nil)
    #expect(try other.one(Collar.self) { $0.color == "blue" }?.dog == nil)
  }

  private static let lists: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "List", attributes: [AttributeDescription("name", .string, isOptional: true)],
          relationships: [
            .toMany("songs", to: "Song", inverse: "lists", isOrdered: true),
            .toMany("owned", to: "Song", inverse: "owner", isOrdered: true), .toMany("loose", to: "Song", inverse: nil),
          ]),
        EntityDescription(
          "Song", attributes: [AttributeDescription("name", .string, isOptional: true)],
          relationships: [.toMany("lists", to: "List", inverse: "songs"), .toOne("owner", to: "List", inverse: "owned")]),
      ])
    } catch { fatalError("\(error)") }
  }()

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func theOrderIsTheLastOne(_ store: TestStore, _ loss: Loss) throws {
    for name in ["songs", "owned"] {
      let stack = try LossyStack(store, model: UncertainSaveTests.lists, classes: []), context = stack.context
      let list = context.make("List"), songs = (0..<6).map { context.make("Song", ["name": .string("\($0)")]) }
      let ordered = try list.ordered(forKey: name)
      ordered.append(contentsOf: songs[0..<4])
      try context.save()
      ordered.move(from: 3, to: 0)
      ordered.insert(songs[4], at: 1)
      stack.saveInVain(loss)
      #expect(ordered.map { $0["name"] } == ["3", "4", "0", "1", "2"].map { .string($0) })
      ordered.move(from: 4, to: 0)
      ordered.remove(songs[4])
      ordered.append(songs[5])
      try context.save()
      let expected = ["2", "3", "0", "1", "5"].map { StoreValue.string($0) }
      #expect(ordered.map { $0["name"] } == expected && !context.hasChanges)
      let found = try #require(try stack.another().all("List").first)
      #expect(try found.ordered(forKey: name).map { $0["name"] } == expected)
      ordered.move(from: 0, to: 2)
      try context.save()
      #expect(try #require(try stack.another().all("List").first).ordered(forKey: name).map { $0["name"] } == ordered.map { $0["name"] })
    }
  }

  /// The list is sent empty, without an order. It counted as moved when the save was completed, so it was saved again.
  @Test(arguments: TestStore.allCases, Loss.allCases)
  func aNewListWhoseObjectsWereMovedAndRemovedIsSavedOnce(_ store: TestStore, _ loss: Loss) throws {
    for name in ["songs", "owned"] {
      let stack = try LossyStack(store, model: UncertainSaveTests.lists, classes: []), context = stack.context
      let songs = (0..<3).map { _ in context.make("Song") }
      try context.save()
      let ordered = try context.make("List").ordered(forKey: name)
      ordered.append(contentsOf: songs)
      ordered.move(from: 2, to: 0)
      for song in songs { ordered.remove(song) }
      stack.saveInVain(loss)
      try context.save()
      #expect(stack.recorder.savingRequests == (loss.isCommitted ? [1, 0, 0] : [1, 0, 1]), "\(name)")
      #expect(!context.hasChanges)
      #expect(try #require(try stack.another().all("List").first).ordered(forKey: name).isEmpty)
    }
  }

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func anObjectAddedToAnotherListWithoutInverseLeavesTheFirst(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store, model: UncertainSaveTests.lists, classes: []), context = stack.context
    let lists = (0..<3).map { _ in context.make("List") }, song = context.make("Song")
    lists[0].many("loose").insert(song)
    try context.save()
    lists[1].many("loose").insert(song)
    stack.saveInVain(loss)
    lists[2].many("loose").insert(song)
    lists[1].many("loose").remove(song)
    try context.save()
    #expect(lists.map { $0.many("loose").count } == [0, 0, 1])
    let other = try stack.another()
    #expect(try lists.map { try other.existingObject(with: $0.objectID).many("loose").count } == [0, 0, 1])
  }

  // MARK: Derived values

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func derivedValuesAreRightAfterARetry(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store, model: Park.model, classes: []), context = stack.context
    let ada = context.make("Person", ["name": .string("Ada")]), dog = context.make("Dog", ["name": .string("rex")])
    try context.save()
    dog.lead("owner", to: ada)
    context.make("Walk", ["minutes": .int32(10), "distance": .double(1)], dog: dog)
    let puppy = context.make("Dog", ["name": .string("puppy")])
    puppy.lead("owner", to: ada)
    let walk = context.make("Walk", ["minutes": .int32(5)], dog: puppy)
    puppy.many("friends").insert(dog)
    stack.saveInVain(loss)
    ada["name"] = .string("Ada L.")
    walk["minutes"] = .int32(6)
    context.make("Walk", ["minutes": .int32(7)], dog: dog)
    context.make("Trick", ["level": .int32(3)]).many("dogs").insert(puppy)
    try context.save()
    #expect(dog["minutes"] == .int32(17) && puppy["minutes"] == .int32(6) && ada["dogCount"] == .int16(2))
    #expect(puppy["ownerName"] == .string("Ada L.") && puppy["difficulty"] == .int64(3) && puppy["friendCount"] == .int64(1))
    for context in [context, try stack.another()] {
      let differences = try Scratch(context).differences()
      #expect(differences.isEmpty)
    }
  }

  // MARK: Object IDs and receipts

  @Test(arguments: Loss.allCases) func temporaryIDsInAttributesBecomeThePermanentOnes(_ loss: Loss) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note",
        attributes: [AttributeDescription("about", .objectID, isOptional: true), AttributeDescription("text", .string, isOptional: true)])
    ])
    for store in [TestStore.memory, .sqlite, .second] {
      let stack = try LossyStack(store, model: model, classes: []), context = stack.context
      let (a, b) = (context.make("Note"), context.make("Note"))
      a["about"] = .objectID(b.objectID)
      stack.saveInVain(loss)
      #expect(a["about"] == .objectID(b.objectID))
      let c = context.make("Note", ["about": .objectID(a.objectID)])
      a["text"] = .string("later")
      try context.save()
      let other = try stack.another()
      #expect(try other.existingObject(with: a.objectID)["about"] == .objectID(b.objectID))
      #expect(try other.existingObject(with: c.objectID)["about"] == .objectID(a.objectID))
    }
  }

  /// Saves names in upper case.
  private final class UppercasingStore: ForwardingStore {
    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      var request = request, receipt = SaveReceipt()
      for index in request.entities.indices where request.entities[index].inserted.first?.idPrefix?.entityName == "Dog" {
        request.entities[index].inserted = try request.entities[index].inserted.map { batch in
          let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
          for row in 0..<batch.count {
            var values = batch[row].values
            if case .string(let name) = values[Dog.Slot.name] { values[Dog.Slot.name] = .string(name.uppercased()) }
            try builder.append(key: batch[row].key, version: 7, values: values)
          }
          return builder.seal()
        }
        receipt.rows = request.entities[index].inserted
      }
      return Save(try base.prepare(request, options: options), receipt)
    }

    private final class Save: PreparedSave {
      let base: any PreparedSave
      let receipt: SaveReceipt
      init(_ base: any PreparedSave, _ receipt: SaveReceipt) { (self.base, self.receipt) = (base, receipt) }
      func commit() throws -> SaveReceipt {
        try base.commit()
        return receipt
      }
      func abort() { base.abort() }
    }
  }

  @Test(arguments: [TestStore.memory, .sqlite, .second]) func objectsAdoptTheRowsOfTheReceipt(_ store: TestStore) throws {
    final class Made: @unchecked Sendable { var store: OutcomeStore? }  // because only this test uses it, in one thread
    let made = Made()
    let (context, _) = try store.makePlace().recording { base in
      let store = OutcomeStore(UppercasingStore(base))
      made.store = store
      return store
    }
    let (rex, max) = (context.dog("rex"), context.dog("max"))
    made.store?.loseCommit(.afterCommitting)
    #expect(throws: StoreError.self) { try context.save() }
    rex.age = 5
    max.name = "maxi"
    try context.save()
    #expect(rex.name == "REX" && rex.age == 5 && max.name == "maxi")
    rex.age = 6
    try context.save()
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    #expect(try other.fetch(FetchRequest<Dog>()).map(\.name).sorted() == ["REX", "maxi"])
  }

  // MARK: Reading while the outcome is unknown

  @Test(arguments: TestStore.allCases, Loss.allCases)
  func aFetchReturnsTheObjectsOfTheLostSaveOnce(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let ada = context.person("Ada"), rex = context.dog("rex", owner: ada)
    stack.saveInVain(loss)
    #expect(try context.fetch(FetchRequest<Dog>()) == [rex])
    #expect(try context.count(for: FetchRequest<Dog> { $0.name == "rex" }) == 1)
    #expect(try context.existingObject(with: rex.objectID) === rex)
    var request = FetchRequest<Dog>()
    request.includesPendingChanges = false
    #expect(try context.fetch(request) == (loss == .afterCommitting ? [rex] : []))
    // Another context links a dog to a person that this context still counts as new.
    if loss == .afterCommitting {
      let other = try stack.another()
      other.dog("max", owner: try other.one(Person.self) { $0.name == "Ada" })
      try other.save()
      #expect(try context.one(Dog.self) { $0.name == "max" }?.owner === ada)
    }
    try context.save()
    #expect(try context.count(for: FetchRequest<Person>()) == 1 && !context.hasChanges)
  }
}
