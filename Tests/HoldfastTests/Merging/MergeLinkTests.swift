import Foundation
import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Links that two contexts change, whose ends are read before and after a save of the other context.
@Suite struct MergeLinkTests {
  typealias Policy = MergePolicyTests.Policy

  /// A place with two contexts.
  private struct Pair {
    let place: TestStore.Place
    let ours: ManagedObjectContext
    let theirs: ManagedObjectContext

    init(_ store: TestStore, _ policy: MergePolicy = .error, _ setUp: (ManagedObjectContext) throws -> Void) throws {
      place = try store.makePlace()
      let setup = try place.context()
      try setUp(setup)
      try setup.save()
      (ours, theirs) = try place.twoContexts(policy)
    }

    /// The objects of a name in both contexts.
    func dogs(_ name: String) throws -> (ours: Dog, theirs: Dog) {
      (try #require(try ours.one(Dog.self) { $0.name == name }), try #require(try theirs.one(Dog.self) { $0.name == name }))
    }

    func people(_ name: String) throws -> (ours: Person, theirs: Person) {
      (try #require(try ours.one(Person.self) { $0.name == name }), try #require(try theirs.one(Person.self) { $0.name == name }))
    }

    func saved() throws -> ManagedObjectContext {
      try place.close()
      return try place.context()
    }
  }

  /// Our context has read Fido, who belongs to Y. Then the other one gives him to Z.
  private struct Moved {
    let pair: Pair
    let fido: Dog
    let x: Person, y: Person, z: Person

    init(_ store: TestStore) throws {
      pair = try Pair(store) { setup in
        for name in ["X", "Z"] { setup.person(name) }
        setup.dog("Fido", age: 3, owner: setup.person("Y"))
      }
      let both = try pair.dogs("Fido"), target = try pair.people("Z")
      (x, y) = (try pair.people("X").ours, try pair.people("Y").ours)
      (fido, z) = (both.ours, target.ours)
      #expect(fido.owner === y)
      both.theirs.owner = target.theirs
      try pair.theirs.save()
    }
  }

  // MARK: Objects that are inserted again

  @Test(arguments: TestStore.allCases, [false, true])
  func aPartnerThatWasDeletedTooStaysDeleted(_ store: TestStore, _ isRead: Bool) throws {
    for policy in [MergePolicy.mergeByPropertyObjectTrump, .overwrite] { try savesWithoutPartner(store, policy, isRead) }
  }

  private func savesWithoutPartner(_ store: TestStore, _ policy: MergePolicy, _ isRead: Bool) throws {
    let pair = try Pair(store, policy) { setup in
      let collar = setup.insert(Collar.self)
      setup.dog("Fido", age: 3).collar = collar
    }
    let fido = try pair.dogs("Fido")
    fido.ours.age = 9
    var collar: Collar?
    if isRead {
      collar = fido.ours.collar
      #expect(collar?.color == "red")
    }
    pair.theirs.delete(fido.theirs)
    try pair.theirs.save()
    try pair.ours.save()
    #expect(fido.ours.collar == nil && fido.ours.age == 9 && !pair.ours.hasChanges)
    let saved = try pair.saved()
    #expect(try saved.fetch(FetchRequest<Collar>()).isEmpty)
    #expect(try saved.one(Dog.self) { $0.name == "Fido" }?.age == 9)
    withExtendedLifetime(collar) {}
  }

  @Test(arguments: TestStore.allCases, [false, true])
  func anOrderedOwnerThatWasDeletedTooStaysDeleted(_ store: TestStore, _ isRead: Bool) throws {
    let lists = try Lists(store, ["a", "b"])
    let (ours, theirs) = try lists.place.twoContexts(.mergeByPropertyObjectTrump)
    let item = try lists.item("a", ours)
    var list: ManagedObject?
    if isRead {
      list = try lists.list("list", ours)
      #expect(try #require(list).ordered(forKey: "items").count == 2)
    }
    try item.setValue("changed", forKey: "name")
    let (theirItem, theirList) = (try theirs.existingObject(with: item.objectID), try lists.list("list", theirs))
    theirs.delete(theirItem)
    theirs.delete(theirList)
    try theirs.save()
    try ours.save()
    let saved = try lists.reopened()
    #expect(try saved.fetch(FetchRequest<ManagedObject>(entityName: "List")).isEmpty)
    #expect(try Lists.names(of: saved.fetch(FetchRequest<ManagedObject>(entityName: "Item"))).sorted() == ["b", "changed"])
    withExtendedLifetime(list) {}
  }

  @Test(arguments: TestStore.allCases, [false, true])
  func aReferenceToAnObjectThatIsKnownToBeDeletedIsCleared(_ store: TestStore, _ merges: Bool) throws {
    let pair = try Pair(store, .mergeByPropertyObjectTrump) { $0.dog("Fido", age: 3, owner: $0.person("Ann")) }
    let fido = try pair.dogs("Fido"), ann = try pair.people("Ann")
    #expect(fido.ours.owner === ann.ours)
    pair.ours.automaticallyMergesChanges = merges
    fido.ours.age = 9
    pair.theirs.delete(fido.theirs)
    pair.theirs.delete(ann.theirs)
    try pair.theirs.save()
    try pair.ours.processPendingChanges()
    try pair.ours.save()
    #expect(fido.ours.owner == nil && fido.ours.toOneID(Dog.Slot.owner) == nil)
    let saved = try #require(try pair.saved().one(Dog.self) { $0.name == "Fido" })
    #expect(saved.toOneID(Dog.Slot.owner) == nil && saved.age == 9)
  }

  /// The stored row of the collar shows that the dog exists again, with another owner than before it was deleted.
  @Test(arguments: TestStore.allCases) func listsAreReadAgainWhenAConflictShowsThatAnObjectExistsAgain(_ store: TestStore) throws {
    let pair = try Pair(store, .mergeByPropertyObjectTrump) { setup in
      setup.dog("Fido", age: 3, owner: setup.person("Ann"))
      setup.person("Bob")
      _ = setup.insert(Collar.self)
    }
    let (ours, theirs) = (pair.ours, pair.theirs), fido = try pair.dogs("Fido")
    let ann = try pair.people("Ann").theirs, bob = try pair.people("Bob")
    let collar = try #require(try ours.fetch(FetchRequest<Collar>()).first)
    let theirCollar = try #require(try theirs.fetch(FetchRequest<Collar>()).first)
    #expect(ann.dogs.count == 1 && bob.theirs.dogs.isEmpty && theirCollar.dog == nil)
    theirs.delete(fido.theirs)
    try theirs.save()
    #expect(ann.dogs.isEmpty)
    fido.ours.owner = bob.ours
    try ours.save()
    collar.dog = fido.ours
    try ours.save()
    theirs.mergePolicy = .mergeByPropertyObjectTrump
    theirCollar.color = "blue"
    try theirs.save()
    #expect(theirCollar.dog?.objectID == fido.ours.objectID && theirCollar.color == "blue")
    #expect(ann.dogs.isEmpty && bob.theirs.dogs.map(\.objectID) == [fido.ours.objectID])
  }

  @Test(arguments: TestStore.allCases, [false, true])
  func anObjectThatOthersHaveInsertedAgainIsFoundByItsID(_ store: TestStore, _ isFault: Bool) throws {
    let pair = try Pair(store, .mergeByPropertyObjectTrump) { setup in
      setup.dog("Fido", age: 3, owner: setup.person("Ann"))
      setup.dog("Rex")
    }
    let fido = try pair.dogs("Fido"), ann = try pair.people("Ann"), rex = try pair.dogs("Rex").theirs
    #expect(ann.theirs.dogs.count == 1 && fido.ours.age == 3)
    pair.theirs.delete(fido.theirs)
    try pair.theirs.save()
    #expect(ann.theirs.dogs.isEmpty)
    fido.ours.age = 9
    try pair.ours.save()
    let id = fido.ours.objectID
    let found = try #require(try (isFault ? pair.theirs.object(with: id) : pair.theirs.existingObject(with: id)) as? Dog)
    #expect(found.age == 9)
    #expect(Array(ann.theirs.dogs) == [found])
    rex.friends.insert(found)
    try pair.theirs.save()
    #expect(try pair.saved().one(Dog.self) { $0.name == "Rex" }?.friends.map(\.name) == ["Fido"])
  }

  /// How a context finds an object that it has deleted, and that another one has inserted again.
  enum Finding: CaseIterable, Sendable {
    case fetch
    /// A fetch to which the context's changes are applied.
    case overlaidFetch
    case childFetch
  }

  /// The list with a new order can't be read when the object is found. The error is that of the fetch, or of the next one in the parent.
  @Test(arguments: TestStore.allCases, Finding.allCases)
  func anErrorOfAListThatIsReadAgainIsThrown(_ store: TestStore, _ finding: Finding) throws {
    let lists = try Lists(store, ["a", "b", "c"]), (ours, failing) = try lists.place.faulty()
    let theirs = try ManagedObjectContext(coordinator: ours.persistentStoreCoordinator, classes: [])
    theirs.mergePolicy = .mergeByPropertyObjectTrump
    let theirItem = try lists.item("a", theirs), items = try lists.items(ours)
    ours.delete(try lists.item("a", ours))
    try ours.save()
    #expect(try Lists.names(of: items) == ["b", "c"])
    try theirItem.setValue("A", forKey: "name")
    try theirs.save()
    items.move(from: 0, to: 1)
    if finding == .overlaidFetch { try items[0].setValue("C", forKey: "name") }
    failing.fail(.relationships, with: StoreError(.inputOutput, operation: "read", reason: "The test says so."))
    if finding == .childFetch {
      let child = ManagedObjectContext(parent: ours)
      #expect(try child.fetch(FetchRequest<ManagedObject>(entityName: "Item")).count == 3)
    }
    let error = try #require(throws: StoreError.self) { try ours.fetch(FetchRequest<ManagedObject>(entityName: "Item")) }
    #expect(error.code == .inputOutput && ours.faultError == nil)
    try ours.core.refuseUnreadValues()
    // The next fetch reads the list.
    #expect(try ours.fetch(FetchRequest<ManagedObject>(entityName: "Item")).count == 3)
    let names = try Lists.names(of: items), moved = finding == .overlaidFetch ? "C" : "c"
    #expect(names.filter { $0 != "A" } == [moved, "b"])
    #expect(names.contains("A"))
  }

  @Test(arguments: TestStore.allCases) func aConflictCanBeResolvedTwice(_ store: TestStore) throws {
    let pair = try Pair(store) { $0.dog("Fido", age: 3, owner: $0.person("Ann")) }
    let fido = try pair.dogs("Fido"), ann = try pair.people("Ann")
    fido.ours.age = 9
    pair.theirs.delete(fido.theirs)
    try pair.theirs.save()
    let error = try #require(throws: PersistenceError.self) { try pair.ours.save() }
    for _ in 0..<2 { try pair.ours.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump) }
    #expect(fido.ours.isInserted && fido.ours.age == 9)
    try pair.ours.save()
    #expect(fido.ours.age == 9 && fido.ours.owner === ann.ours && Array(ann.ours.dogs) == [fido.ours])
    // The other decision, too.
    pair.theirs.delete(try pair.theirs.existingDog(fido.ours.objectID))
    try pair.theirs.save()
    fido.ours.age = 10
    let second = try #require(throws: PersistenceError.self) { try pair.ours.save() }
    try pair.ours.resolveConflicts(of: second, using: .mergeByPropertyObjectTrump)
    try pair.ours.resolveConflicts(of: second, using: .mergeByPropertyStoreTrump)
    #expect(!pair.ours.hasChanges || ann.ours.hasChanges)
    #expect(ann.ours.dogs.isEmpty)
    try pair.ours.save()
    #expect(try pair.saved().fetch(FetchRequest<Dog>()).isEmpty)
  }

  /// One context deletes the object. Ours inserts it again with other links, but a third one has done so before.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func linksOfAnObjectThatTwoContextsInsertAgainAreMergedAsThePolicySays(_ store: TestStore, _ policy: Policy) throws {
    let pair = try Pair(store) { setup in
      setup.dog("Fido", age: 3, owner: setup.person("Ann"))
      setup.dog("Rex")
      setup.person("Bob")
      _ = setup.insert(Collar.self)
    }
    let both = try pair.dogs("Fido"), fido = both.ours, rex = try pair.dogs("Rex").ours
    let ann = try pair.people("Ann").ours, bob = try pair.people("Bob").ours
    let collar = try #require(try pair.ours.fetch(FetchRequest<Collar>()).first)
    let third = try pair.place.context(), thirdFido = try third.existingDog(fido.objectID)
    #expect(thirdFido.age == 3 && Array(ann.dogs) == [fido] && bob.dogs.isEmpty && rex.friendOf.isEmpty && collar.dog == nil)
    pair.theirs.delete(both.theirs)
    try pair.theirs.save()
    (fido.owner, fido.collar) = (bob, collar)
    fido.friends.insert(rex)
    let error = try #require(throws: PersistenceError.self) { try pair.ours.save() }
    try pair.ours.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)
    #expect(fido.isInserted && fido.owner === bob)
    third.mergePolicy = .overwrite
    thirdFido.age = 9
    try third.save()
    pair.ours.mergePolicy = policy.policy
    try pair.ours.save()
    let owner = policy.prefersOurs ? bob : ann, isFriend = policy != .rollback
    #expect(fido.age == (policy.prefersOurs ? 3 : 9) && fido.owner === owner && !pair.ours.hasChanges)
    for person in [ann, bob] { #expect(Array(person.dogs) == (person === owner ? [fido] : []), "\(person.name)") }
    #expect(Array(fido.friends) == (isFriend ? [rex] : []) && Array(rex.friendOf) == (isFriend ? [fido] : []))
    #expect((fido.collar === collar) == policy.prefersOurs && (collar.dog === fido) == policy.prefersOurs)
    let saved = try pair.saved(), dog = try #require(try saved.one(Dog.self) { $0.name == "Fido" })
    #expect(dog.age == (policy.prefersOurs ? 3 : 9) && dog.owner?.name == owner.name)
    #expect(dog.friends.map(\.name) == (isFriend ? ["Rex"] : []) && (dog.collar != nil) == policy.prefersOurs)
    #expect(try saved.fetch(FetchRequest<Collar>()).map { $0.dog != nil } == [policy.prefersOurs])
  }

  /// One context deletes the collar of Fido. A third one inserts it again and gives it to Rex. Ours has read both dogs before, and inserts
  /// it again for Fido.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func bothPartnersOfAnObjectThatTwoContextsInsertAgainAreReadAgain(_ store: TestStore, _ policy: Policy) throws {
    let pair = try Pair(store) { setup in
      setup.dog("Fido").collar = setup.insert(Collar.self)
      setup.dog("Rex")
    }
    let both = try pair.dogs("Fido"), fido = both.ours, rex = try pair.dogs("Rex").ours, collar = try #require(fido.collar)
    let third = try pair.place.context(), thirdCollar = try #require(try third.existingDog(fido.objectID).collar)
    #expect(collar.dog === fido && rex.collar == nil && thirdCollar.dog?.name == "Fido")
    pair.theirs.delete(try #require(both.theirs.collar))
    try pair.theirs.save()
    collar.color = "ours"
    let error = try #require(throws: PersistenceError.self) { try pair.ours.save() }
    try pair.ours.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)
    #expect(collar.isInserted && collar.dog === fido)
    third.mergePolicy = .overwrite
    thirdCollar.color = "third"
    try third.save()
    try third.existingDog(rex.objectID).collar = thirdCollar
    try third.save()
    pair.ours.mergePolicy = policy.policy
    try pair.ours.save()
    let owner = policy.prefersOurs ? fido : rex, color = policy.prefersOurs ? "ours" : "third"
    #expect(collar.dog === owner && collar.color == color && !pair.ours.hasChanges)
    for dog in [fido, rex] { #expect(dog.collar === (dog === owner ? collar : nil), "\(dog.name)") }
    let saved = try pair.saved(), dogs = try saved.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(dogs.map { $0.collar?.color } == (policy.prefersOurs ? [color, nil] : [nil, color]))
    #expect(try saved.fetch(FetchRequest<Collar>()).map { $0.dog?.name } == [policy.prefersOurs ? "Fido" : "Rex"])
  }

  /// Fido has lost his collar to Rex, whose row isn't in conflict. The other context deletes the collar.
  @Test(arguments: TestStore.allCases, [Policy.objectTrump, .overwrite])
  func anObjectThatIsInsertedAgainKeepsItsNewPartner(_ store: TestStore, _ policy: Policy) throws {
    let pair = try Pair(store, policy.policy) { setup in
      setup.dog("Fido").collar = setup.insert(Collar.self)
      setup.dog("Rex")
    }
    let both = try pair.dogs("Fido"), rex = try pair.dogs("Rex").ours, collar = try #require(both.ours.collar)
    #expect(collar.color == "red")
    pair.theirs.delete(try #require(both.theirs.collar))
    try pair.theirs.save()
    rex.collar = collar
    try pair.ours.save()
    #expect(rex.collar === collar && collar.dog === rex && both.ours.collar == nil && !pair.ours.hasChanges)
    let saved = try pair.saved(), dogs = try saved.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(dogs.map { $0.collar != nil } == [false, true])
    #expect(try saved.fetch(FetchRequest<Collar>()).map { $0.dog?.name } == ["Rex"])
  }

  /// Our context has read the links to the objects, but not their own lists.
  ///
  /// The bug: the links stayed in our context although they were deleted with the objects, so setting one again had no effect.
  @Test(arguments: TestStore.allCases, [Policy.objectTrump, .overwrite])
  func objectsThatAreInsertedAgainLoseTheLinksThatOnlyTheOtherEndsHaveRead(_ store: TestStore, _ policy: Policy) throws {
    let pair = try Pair(store, policy.policy) { setup in
      setup.dog("Fido", owner: setup.person("Ann")).friends.insert(setup.dog("Rex"))
    }
    let fido = try pair.dogs("Fido").ours, rex = try pair.dogs("Rex"), ann = try pair.people("Ann")
    #expect(fido.friends.contains(rex.ours) && fido.owner === ann.ours)
    pair.theirs.delete(rex.theirs)
    pair.theirs.delete(ann.theirs)
    try pair.theirs.save()
    rex.ours.age = 9
    ann.ours.city = "Oslo"
    try pair.ours.save()
    #expect(fido.friends.isEmpty && rex.ours.friendOf.isEmpty && fido.owner == nil && ann.ours.dogs.isEmpty)
    fido.friends.insert(rex.ours)
    fido.owner = ann.ours
    try pair.ours.save()
    let saved = try pair.saved(), dog = try #require(try saved.one(Dog.self) { $0.name == "Fido" })
    #expect(dog.friends.map(\.name) == ["Rex"] && dog.owner?.city == "Oslo")
  }

  // MARK: Links of objects that aren't in conflict

  /// Only Fido is in conflict. He has lost his collar to Max and got that of Rex, who got a new one.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .objectTrump, .overwrite])
  func partnersOfOthersOutlastAConflict(_ store: TestStore, _ policy: Policy) throws {
    let pair = try Pair(store, policy.policy) { setup in
      for (name, color) in [("Fido", "red"), ("Rex", "green")] {
        setup.dog(name, age: 3).collar = setup.insert(Collar.self) { $0.color = color }
      }
      setup.dog("Max", age: 3)
    }
    let both = try pair.dogs("Fido"), fido = both.ours, rex = try pair.dogs("Rex").ours, max = try pair.dogs("Max").ours
    let red = try #require(fido.collar), green = try #require(rex.collar), blue = pair.ours.insert(Collar.self) { $0.color = "blue" }
    #expect(red.dog === fido && green.dog === rex && max.collar == nil)
    both.theirs.age = 9
    try pair.theirs.save()
    max.collar = red
    fido.collar = green
    rex.collar = blue
    try pair.ours.save()
    for (dog, collar) in [(fido, green), (max, red), (rex, blue)] {
      #expect(dog.collar === collar && collar.dog === dog, "\(dog.name)")
    }
    #expect(fido.age == (policy == .overwrite ? 3 : 9) && !pair.ours.hasChanges)
    let saved = try pair.saved(), dogs = try saved.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(dogs.map(\.name) == ["Fido", "Max", "Rex"] && dogs.map { $0.collar?.color } == ["green", "red", "blue"])
    #expect(dogs.allSatisfy { $0.collar?.dog === $0 })
  }

  // MARK: Destinations that were deleted

  @Test(arguments: TestStore.allCases, [Policy.objectTrump, .overwrite])
  func aKeptReferenceToADeletedObjectIsNil(_ store: TestStore, _ policy: Policy) throws {
    let pair = try Pair(store, policy.policy) { setup in
      let fido = setup.dog("Fido", age: 3, owner: setup.person("Ann"))
      fido.collar = setup.insert(Collar.self)
    }
    let fido = try pair.dogs("Fido"), ann = try pair.people("Ann")
    #expect(fido.ours.owner?.name == "Ann" && fido.ours.collar?.color == "red")
    fido.ours.age = 9
    pair.theirs.delete(ann.theirs)
    pair.theirs.delete(try #require(fido.theirs.collar))
    try pair.theirs.save()
    try pair.ours.save()
    #expect(fido.ours.owner == nil && fido.ours.collar == nil && fido.ours.age == 9)
    let saved = try pair.saved(), dog = try #require(try saved.one(Dog.self) { $0.name == "Fido" })
    #expect(dog.toOneID(Dog.Slot.owner) == nil && dog.toOneID(Dog.Slot.collar) == nil && dog.age == 9)
    #expect(try saved.fetch(FetchRequest<Person>()).isEmpty && saved.fetch(FetchRequest<Collar>()).isEmpty)
  }

  @Test(arguments: TestStore.allCases, [Policy.objectTrump, .overwrite])
  func anOrderedOwnerThatWasDeletedIsNotInsertedAgain(_ store: TestStore, _ policy: Policy) throws {
    let lists = try Lists(store, ["a"]), (ours, theirs) = try lists.place.twoContexts(policy.policy)
    let list = try lists.list("list", ours), items = try list.ordered(forKey: "items"), item = items[0]
    try item.setValue("changed", forKey: "name")
    theirs.delete(try lists.list("list", theirs))
    try theirs.save()
    try ours.save()
    #expect(try item.value(forKey: "list") == StoreValue.null)
    let saved = try lists.reopened()
    #expect(try saved.fetch(FetchRequest<ManagedObject>(entityName: "List")).isEmpty)
    #expect(try Lists.names(of: saved.fetch(FetchRequest<ManagedObject>(entityName: "Item"))) == ["changed"])
  }

  /// The owner's row isn't written, so only merging shows that it was deleted.
  @Test(arguments: TestStore.allCases) func aNewLinkToAnObjectWhoseDeletionWasMergedIsAConflict(_ store: TestStore) throws {
    let pair = try Pair(store) { setup in
      setup.dog("Fido", age: 3)
      setup.person("Bob")
    }
    let fido = try pair.dogs("Fido"), bob = try pair.people("Bob")
    pair.ours.automaticallyMergesChanges = true
    #expect(bob.ours.name == "Bob" && fido.ours.age == 3)
    fido.ours.owner = bob.ours
    pair.theirs.delete(bob.theirs)
    try pair.theirs.save()
    try pair.ours.processPendingChanges()
    let error = try #require(throws: PersistenceError.self) { try pair.ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [bob.ours.objectID])
    try pair.ours.resolveConflicts(of: error, using: .mergeByPropertyStoreTrump)
    #expect(fido.ours.owner == nil)
    try pair.ours.save()
    #expect(try pair.saved().one(Dog.self) { $0.name == "Fido" }?.toOneID(Dog.Slot.owner) == nil)
  }

  /// The partner isn't in the context, which keeps that there is none.
  @Test(arguments: TestStore.allCases, [Policy.overwrite, .objectTrump])
  func overwritingALinkClearsItAtAPartnerThatWasNotRead(_ store: TestStore, _ policy: Policy) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Place", isAbstract: true, attributes: [AttributeDescription("name", .string)],
        relationships: [.toOne("next", to: "Town", inverse: "previous")]),
      EntityDescription(
        "Town", superentity: "Place",
        relationships: [
          .toOne("previous", to: "Place", inverse: "next"), .toOne("twin", to: "Place", inverse: nil),
        ]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    for name in ["a", "b"] { try setup.insert(entityNamed: "Town").setValue(name, forKey: "name") }
    try setup.save()
    func town(_ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
      try #require(
        try context.fetch(FetchRequest<ManagedObject>(entityName: "Town")).first { try $0.value(forKey: "name") == StoreValue.string(name) }
      )
    }
    let (ours, theirs) = try place.twoContexts(policy.policy), a = try town("a", ours)
    try a.setValue(.objectID(town("b", ours).objectID), forKey: "twin")
    try town("a", theirs).setValue(.objectID(town("b", theirs).objectID), forKey: "next")
    try theirs.save()
    try ours.save()
    try place.close()
    let saved = try place.context(), next = try town("a", saved).value(forKey: "next"),
      previous = try town("b", saved).value(forKey: "previous")
    let isKept = policy == .objectTrump
    #expect((next == StoreValue.null) != isKept && (previous == StoreValue.null) != isKept)
  }

  // MARK: Discarded changes of links

  /// Both contexts add the same link. Discarding one addition doesn't remove the other.
  @Test(arguments: TestStore.allCases, [false, true])
  func aDiscardedLinkDoesNotChangeThatOfTheOtherContext(_ store: TestStore, _ refreshes: Bool) throws {
    let pair = try Pair(store) { setup in
      let (a, b, c) = (setup.dog("A"), setup.dog("B"), setup.dog("C"))
      a.friends.insert(c)
      b.age = 2
    }
    let (a, b, c) = (try pair.dogs("A"), try pair.dogs("B"), try pair.dogs("C"))
    #expect(a.ours.age == 1)
    a.theirs.friends.insert(b.theirs)
    a.theirs.friends.remove(c.theirs)
    try pair.theirs.save()
    a.ours.friends.insert(b.ours)
    a.ours.friends.remove(c.ours)
    #expect(Array(b.ours.friendOf) == [a.ours] && c.ours.friendOf.isEmpty)
    if refreshes {
      try pair.ours.refresh(a.ours, mergeChanges: false)
    } else {
      try pair.ours.discardChanges(of: [a.ours.objectID])
    }
    #expect(Array(a.ours.friends) == [b.ours] && Array(b.ours.friendOf) == [a.ours] && c.ours.friendOf.isEmpty)
    try pair.ours.save()
    let saved = try pair.saved(), dog = try #require(try saved.one(Dog.self) { $0.name == "A" })
    #expect(dog.friends.map(\.name) == ["B"])
  }

  /// The former owner's list is read after the other context gave the object to another owner.
  @Test(arguments: TestStore.allCases, [nil, Policy.storeTrump, .objectTrump, .rollback])
  func listsReadAfterTheOtherSaveAreRightWhenTheirChangeIsTakenBack(_ store: TestStore, _ policy: Policy?) throws {
    let moved = try Moved(store), pair = moved.pair, (fido, x, y, z) = (moved.fido, moved.x, moved.y, moved.z)
    fido.owner = x
    #expect(y.dogs.isEmpty && Array(x.dogs) == [fido])
    if let policy {
      let error = try #require(throws: PersistenceError.self) { try pair.ours.save() }
      try pair.ours.resolveConflicts(of: error, using: policy.policy)
    } else {
      try pair.ours.refresh(fido, mergeChanges: false)
    }
    let owner = policy?.prefersOurs == true ? x : z
    #expect(fido.owner === owner)
    for person in [x, y, z] { #expect(Array(person.dogs) == (person === owner ? [fido] : []), "\(person.name)") }
    try pair.ours.save()
    for person in [x, y, z] { #expect(Array(person.dogs) == (person === owner ? [fido] : []), "\(person.name)") }
    let saved = try pair.saved()
    #expect(try saved.one(Dog.self) { $0.name == "Fido" }?.owner?.name == owner.name)
  }

  @Test(arguments: TestStore.allCases, [Policy?.none, .storeTrump, .objectTrump, .overwrite, .rollback])
  func theSameNewOwnerInBothContextsHasTheObjectOnce(_ store: TestStore, _ policy: Policy?) throws {
    let lists = try Lists(store, ["a", "b"], also: "other"), (ours, theirs) = try lists.place.twoContexts()
    let item = try lists.item("a", ours), other = try lists.list("other", ours), first = try lists.list("list", ours)
    let theirItem = try lists.item("a", theirs)
    try lists.list("other", theirs).ordered(forKey: "items").append(theirItem)
    try theirs.save()
    try item.setValue(.objectID(other.objectID), forKey: "list")
    #expect(try Lists.names(of: other.ordered(forKey: "items")) == ["a"] && Lists.names(of: first.ordered(forKey: "items")) == ["b"])
    let error = try #require(throws: PersistenceError.self) { try ours.save() }
    if let policy { try ours.resolveConflicts(of: error, using: policy.policy) } else { try ours.refreshAllObjects() }
    try ours.save()
    #expect(try Lists.names(of: other.ordered(forKey: "items")) == ["a"] && Lists.names(of: first.ordered(forKey: "items")) == ["b"])
    let saved = try lists.reopened()
    #expect(try Lists.names(of: lists.list("other", saved).ordered(forKey: "items")) == ["a"])
    #expect(try Lists.names(of: lists.list("list", saved).ordered(forKey: "items")) == ["b"])
  }

  @Test(arguments: TestStore.allCases) func aDeletedOwnerGetsItsObjectsBackWhenItsDeletionIsDiscarded(_ store: TestStore) throws {
    let pair = try Pair(store) { setup in
      setup.dog("Fido", age: 3, owner: setup.person("X"))
      setup.person("Y")
    }
    let fido = try pair.dogs("Fido"), x = try pair.people("X"), y = try pair.people("Y")
    #expect(fido.ours.owner === x.ours)
    pair.ours.delete(x.ours)
    try pair.ours.processPendingChanges()
    fido.ours.owner = y.ours
    try pair.ours.discardChanges(of: [x.ours.objectID])
    #expect(fido.ours.owner === x.ours && Array(x.ours.dogs) == [fido.ours] && y.ours.dogs.isEmpty)
    try pair.ours.save()
    #expect(fido.ours.owner === x.ours && Array(x.ours.dogs) == [fido.ours] && y.ours.dogs.isEmpty)
  }

  @Test(arguments: TestStore.allCases) func aDiscardedChangeCountsForADenyRule(_ store: TestStore) throws {
    let pair = try Pair(store) { setup in
      let licence = setup.insert(Licence.self)
      licence.number = 7
      licence.holder = setup.person("Ann")
    }
    let ann = try pair.people("Ann").ours, licence = try #require(try pair.ours.fetch(FetchRequest<Licence>()).first)
    licence.holder = nil
    pair.ours.delete(ann)
    try pair.ours.discardChanges(of: [licence.objectID])
    let error = try #require(throws: PersistenceError.self) { try pair.ours.save() }
    #expect(error.code != .conflict)
    pair.ours.rollback()
    #expect(licence.holder === ann && Array(ann.licences) == [licence])
  }

  // MARK: Refreshing

  @Test(arguments: TestStore.allCases) func aRefreshThatKeepsAnOwnerTakesTheObjectFromTheStoredOne(_ store: TestStore) async throws {
    let moved = try Moved(store), pair = moved.pair, (fido, x, y, z) = (moved.fido, moved.x, moved.y, moved.z)
    #expect(Array(z.dogs) == [fido])
    fido.owner = x
    #expect(throws: PersistenceError.self) { try pair.ours.save() }
    try pair.ours.refresh(fido, mergeChanges: true)
    #expect(fido.owner === x && Array(x.dogs) == [fido] && z.dogs.isEmpty && y.dogs.isEmpty)
    var changes = pair.ours.persistentStoreCoordinator.savedChanges().makeAsyncIterator()
    try pair.ours.save()
    let saved = try #require(await changes.next(isolation: #isolation))
    #expect(Set(saved.updated).isSuperset(of: [fido.objectID, x.objectID, z.objectID]))
    #expect(Array(x.dogs) == [fido] && z.dogs.isEmpty && y.dogs.isEmpty)
  }

  // MARK: Lists that are older than the row

  /// The list in memory still has the object, which another context took away, and which this one returns.
  @Test(arguments: TestStore.allCases) func anObjectThatReturnsToAListReadBeforeIsReported(_ store: TestStore) async throws {
    let lists = try Lists(store, ["a", "b", "c"], also: "other"), (ours, theirs) = try lists.place.twoContexts()
    let list = try lists.list("list", ours), id = try lists.item("a", ours).objectID
    #expect(try list.ordered(forKey: "items").count == 3)
    try lists.list("other", theirs).ordered(forKey: "items").append(theirs.existingObject(with: id))
    try theirs.save()
    try ours.refresh(ours.existingObject(with: id), mergeChanges: false)
    let item = try ours.existingObject(with: id)
    #expect(try item.value(forKey: "list") == StoreValue.objectID(lists.list("other", ours).objectID))
    try item.setValue(.objectID(list.objectID), forKey: "list")
    // The list's row has changed as well.
    try ours.refresh(list, mergeChanges: true)
    var changes = ours.persistentStoreCoordinator.savedChanges().makeAsyncIterator()
    try ours.save()
    let saved = try #require(await changes.next(isolation: #isolation))
    #expect(saved.updated.contains(list.objectID))
    let expected = try Lists.names(of: list.ordered(forKey: "items"))
    #expect(expected.sorted() == ["a", "b", "c"])
    #expect(try Lists.names(of: lists.list("list", lists.reopened()).ordered(forKey: "items")) == expected)
  }

  @Test(arguments: TestStore.allCases) func anOwnerThatGetsAnObjectBackIsReported(_ store: TestStore) async throws {
    let pair = try Pair(store) { setup in
      setup.dog("Fido", age: 3, owner: setup.person("X"))
      setup.person("Y")
    }
    let x = try pair.people("X"), y = try pair.people("Y"), third = try pair.place.context()
    #expect(x.ours.dogs.count == 1)
    let thirdX = try #require(try third.one(Person.self) { $0.name == "X" })
    #expect(thirdX.dogs.count == 1)
    let fido = try pair.dogs("Fido")
    fido.theirs.owner = y.theirs
    try pair.theirs.save()
    try pair.ours.refresh(fido.ours, mergeChanges: false)
    #expect(fido.ours.owner === y.ours)
    fido.ours.owner = x.ours
    var changes = pair.ours.persistentStoreCoordinator.savedChanges().makeAsyncIterator()
    try pair.ours.save()
    let saved = try #require(await changes.next(isolation: #isolation))
    #expect(Set(saved.updated) == [fido.ours.objectID, x.ours.objectID, y.ours.objectID])
    #expect(Array(x.ours.dogs) == [fido.ours] && y.ours.dogs.isEmpty)
  }

  /// Both contexts move two objects to the same ordered list. The list that is read then has both already.
  @Test(arguments: TestStore.allCases, [Policy?.none, .storeTrump, .objectTrump])
  func severalObjectsInTheSameNewListEndTheSave(_ store: TestStore, _ policy: Policy?) throws {
    let lists = try Lists(store, ["a", "b", "c"], also: "other"), (ours, theirs) = try lists.place.twoContexts(policy?.policy ?? .error)
    let items = try ["a", "b"].map { try lists.item($0, ours) }, other = try lists.list("other", ours)
    for name in ["a", "b"] { try lists.list("other", theirs).ordered(forKey: "items").append(lists.item(name, theirs)) }
    try theirs.save()
    for item in items { try item.setValue(.objectID(other.objectID), forKey: "list") }
    if policy == nil {
      let error = try #require(throws: PersistenceError.self) { try ours.save() }
      #expect(error.code == .conflict)
      try ours.discardChanges(of: error.objectIDs)
    }
    try ours.save()
    #expect(try Lists.names(of: other.ordered(forKey: "items")).sorted() == ["a", "b"])
    let saved = try lists.reopened()
    #expect(try Lists.names(of: lists.list("other", saved).ordered(forKey: "items")).sorted() == ["a", "b"])
    #expect(try Lists.names(of: lists.list("list", saved).ordered(forKey: "items")) == ["c"])
  }

  /// A reverted deletion restores references, also those of objects that are in conflict as well.
  @Test(arguments: TestStore.allCases) func aRevertedDeletionRestoresReferencesOfObjectsInConflict(_ store: TestStore) throws {
    let pair = try Pair(store, .mergeByPropertyStoreTrump) { $0.dog("Fido", age: 3, owner: $0.person("Ann")) }
    let fido = try pair.dogs("Fido"), ann = try pair.people("Ann")
    #expect(fido.ours.owner === ann.ours)
    pair.ours.delete(ann.ours)
    ann.theirs.city = "Rome"
    fido.theirs.age = 5
    try pair.theirs.save()
    try pair.ours.save()
    #expect(fido.ours.owner === ann.ours && fido.ours.age == 5 && ann.ours.city == "Rome")
    #expect(try pair.saved().one(Dog.self) { $0.name == "Fido" }?.owner?.name == "Ann")
  }

  /// The destination isn't in memory any more, and no sibling has it.
  @Test(arguments: TestStore.allCases) func theDestinationOfAnUnsavedRelationshipIsRead(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note", attributes: [AttributeDescription("name", .string)], relationships: [.toOne("editor", to: "Editor", inverse: nil)]),
      EntityDescription("Editor", attributes: [AttributeDescription("name", .string)]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    var ids: [ManagedObjectID] = []
    let editors = try (0..<4).map { number in
      let editor = try setup.insert(entityNamed: "Editor"), note = try setup.insert(entityNamed: "Note")
      try editor.setValue("\(number)", forKey: "name")
      try note.setValue("\(number)", forKey: "name")
      if number < 3 { try note.setValue(.objectID(editor.objectID), forKey: "editor") }
      return editor
    }
    try setup.save()
    ids = editors.map(\.objectID)
    let context = try place.context(), notes = try context.fetch(FetchRequest<ManagedObject>(entityName: "Note"))
    try notes[0].setValue(.objectID(ids[3]), forKey: "editor")
    guard let relationship = notes[0].entity.relationship(named: "editor") else { return }
    let editor = try #require(notes[0].toOne(relationship))
    #expect(try editor.value(forKey: "name") == StoreValue.string("3") && !editor.isInaccessible)
  }

  // MARK: Links of a tree

  /// Two saved folders, "a" and "b", each with at most one parent, and the contexts that have read them.
  private struct Folders {
    let place: TestStore.Place
    let contexts: [ManagedObjectContext]
    /// The folders of each context.
    let a: [ManagedObject], b: [ManagedObject]

    init(_ store: TestStore, _ policies: [MergePolicy]) throws {
      let model = try ManagedObjectModel(entities: [
        EntityDescription(
          "Folder", attributes: [AttributeDescription("name", .string)],
          relationships: [.toMany("folders", to: "Folder", inverse: "parent"), .toOne("parent", to: "Folder", inverse: "folders")])
      ])
      place = try store.makePlace(model: model, classes: [])
      let setup = try place.context()
      for name in ["a", "b"] { try setup.insert(entityNamed: "Folder").setValue(name, forKey: "name") }
      try setup.save()
      contexts = try policies.map { [place] in
        let context = try place.context()
        context.mergePolicy = $0
        return context
      }
      (a, b) = (try contexts.map { try Folders.folder("a", $0) }, try contexts.map { try Folders.folder("b", $0) })
    }

    static func folder(_ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
      let folders = try context.fetch(FetchRequest<ManagedObject>(entityName: "Folder"))
      return try #require(folders.first { try $0.value(forKey: "name").storeValue == .string(name) })
    }

    /// Expects one folder in another one, in a context and in the store.
    func expect(_ child: ManagedObject, in parent: ManagedObject) throws {
      #expect(try parent.toMany(forKey: "folders").map(\.objectID) == [child.objectID])
      #expect(try child.value(forKey: "parent").storeValue == .objectID(parent.objectID))
      let saved = try place.context(), savedParent = try saved.existingObject(with: parent.objectID)
      #expect(try savedParent.toMany(forKey: "folders").map(\.objectID) == [child.objectID])
    }
  }

  /// Our context sets and unsets a link without a save in between. Then the other one saves it.
  @Test(arguments: TestStore.allCases, [false, true])
  func aLinkThatWasSetAndUnsetHereFollowsTheOtherContext(_ store: TestStore, _ isLinkedToItself: Bool) throws {
    let folders = try Folders(store, [.error, .error]), parents = isLinkedToItself ? folders.a : folders.b
    folders.contexts[0].automaticallyMergesChanges = true
    try folders.a[0].setValue(parents[0], forKey: "parent")
    try folders.a[0].setValue(StoreValue.null, forKey: "parent")
    try folders.a[1].setValue(parents[1], forKey: "parent")
    try folders.contexts[1].save()
    try folders.contexts[0].processPendingChanges()
    try folders.expect(folders.a[0], in: parents[0])
    try folders.contexts[0].save()
    try folders.expect(folders.a[0], in: parents[0])
  }

  @Test(arguments: TestStore.allCases, [false, true])
  func aRevertedDeletionRestoresUnsavedLinks(_ store: TestStore, _ isMovedOn: Bool) throws {
    let folders = try Folders(store, [.mergeByPropertyStoreTrump, .error])
    try folders.a[0].setValue(folders.b[0], forKey: "parent")
    folders.contexts[0].delete(folders.b[0])
    try folders.contexts[0].processPendingChanges()
    #expect(try folders.a[0].value(forKey: "parent").storeValue == .null)
    if isMovedOn { try folders.a[0].setValue(folders.a[0], forKey: "parent") }
    try folders.b[1].setValue("b2", forKey: "name")
    try folders.contexts[1].save()
    try folders.contexts[0].save()
    #expect(!folders.b[0].isDeleted)
    if isMovedOn { #expect(try folders.b[0].toMany(forKey: "folders").isEmpty) }
    try folders.expect(folders.a[0], in: isMovedOn ? folders.a[0] : folders.b[0])
  }

  /// A third context links an object that another one has deleted, and ours inserts again.
  @Test(arguments: TestStore.allCases, [Policy.objectTrump, .overwrite])
  func anObjectThatIsInsertedAgainHasTheLinksThatWereSetMeanwhile(_ store: TestStore, _ policy: Policy) throws {
    let folders = try Folders(store, [policy.policy, .error, .error])
    try folders.b[0].setValue("mine", forKey: "name")
    folders.contexts[1].delete(folders.b[1])
    try folders.contexts[1].save()
    try folders.a[2].setValue(folders.b[2], forKey: "parent")
    try folders.contexts[2].save()
    try folders.contexts[0].save()
    try folders.contexts[0].refresh(folders.a[0], mergeChanges: false)
    try folders.expect(folders.a[0], in: folders.b[0])
  }

  /// Our context has given an object another partner. Then it reads its former one, which another context has linked to it.
  @Test(arguments: TestStore.allCases) func thePartnerOfAnObjectWithAnUnsavedPartnerCanBeTaken(_ store: TestStore) throws {
    let pair = try Pair(store, .mergeByPropertyObjectTrump) { setup in
      for name in ["Fido", "Rex"] { setup.dog(name) }
      for color in ["red", "blue"] { setup.insert(Collar.self).color = color }
    }
    func collar(_ color: String, _ context: ManagedObjectContext) throws -> Collar {
      try #require(try context.one(Collar.self) { $0.color == color })
    }
    let fido = try pair.dogs("Fido"), rex = try pair.dogs("Rex"), blue = try collar("blue", pair.ours)
    #expect(fido.ours.collar == nil && blue.dog == nil)
    fido.ours.collar = blue
    fido.theirs.collar = try collar("red", pair.theirs)
    try pair.theirs.save()
    let red = try collar("red", pair.ours)
    #expect(red.dog === fido.ours)
    rex.ours.collar = red
    #expect(fido.ours.collar === blue && blue.dog === fido.ours && rex.ours.collar === red && red.dog === rex.ours)
    try pair.ours.save()
    #expect(fido.ours.collar === blue && blue.dog === fido.ours && rex.ours.collar === red && red.dog === rex.ours)
    let saved = try pair.saved()
    #expect(try collar("blue", saved).dog?.name == "Fido" && collar("red", saved).dog?.name == "Rex")
  }

  // MARK: Uniqueness

  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .objectTrump, .overwrite, .rollback])
  func aReferenceInAListThatWasNotReadGoesToTheMergedObject(_ store: TestStore, _ policy: Policy) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note", attributes: [AttributeDescription("text", .string)], relationships: [.toMany("tags", to: "Tag", inverse: nil)]),
      EntityDescription("Tag", attributes: [AttributeDescription("name", .string)], uniquenessConstraints: [["name"]]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    func tag(_ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
      let tag = try context.insert(entityNamed: "Tag")
      try tag.setValue(name, forKey: "name")
      return tag
    }
    _ = try tag("a", setup)
    let first = try setup.insert(entityNamed: "Note")
    try first.setValue("note", forKey: "text")
    try first.toMany(forKey: "tags").insert(tag("z", setup))
    try setup.save()
    let ours = try place.context()
    ours.mergePolicy = policy.policy
    let note = try #require(try ours.fetch(FetchRequest<ManagedObject>(entityName: "Note")).first)
    try note.toMany(forKey: "tags").insert(tag("a", ours))
    try ours.save()
    func names(_ note: ManagedObject) throws -> [String] { try Lists.names(of: note.toMany(forKey: "tags")).sorted() }
    #expect(try names(note) == ["a", "z"])
    try place.close()
    let saved = try place.context()
    #expect(try names(#require(saved.fetch(FetchRequest<ManagedObject>(entityName: "Note")).first)) == ["a", "z"])
    #expect(try saved.fetch(FetchRequest<ManagedObject>(entityName: "Tag")).count == 2)
  }

  /// The other context has freed the value and given it to a new object.
  @Test(arguments: TestStore.allCases, [Policy?.none, .objectTrump, .storeTrump])
  func anUnchangedUniqueValueThatMovedIsAConflictOfVersions(_ store: TestStore, _ policy: Policy?) throws {
    let pair = try Pair(store, policy?.policy ?? .error) { $0.dog("Fido", age: 3).chip = 5 }
    let fido = try pair.dogs("Fido")
    #expect(fido.ours.chip == 5)
    fido.theirs.chip = 6
    pair.theirs.dog("New").chip = 5
    try pair.theirs.save()
    fido.ours.age = 9
    if policy == nil {
      let error = try #require(throws: PersistenceError.self) { try pair.ours.save() }
      #expect(error.code == .conflict)
    } else {
      try pair.ours.save()
      #expect(fido.ours.age == 9 && fido.ours.chip == 6)
    }
  }

  /// The bug: the delete rules were applied again to the links in the store, which still contained the objects. So these were deleted, too.
  @Test(arguments: TestStore.withChild, [Policy.objectTrump, .overwrite])
  func objectsThatWereMovedFromADeletedOneStayIfTheDeletionIsInConflict(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makeKennelsOfTwo(), setup = try place.context()
    let dog = try #require(try setup.one(Dog.self) { $0.name == "Fido" })
    dog.collar = setup.insert(Collar.self)
    for kind in ["moved", "left"] {
      let vaccination = setup.insert(Vaccination.self)
      (vaccination.kind, vaccination.dog) = (kind, dog)
    }
    try setup.save()
    let (ours, theirs) = try place.twoContexts(policy.policy)
    let fido = try #require(try ours.one(Dog.self) { $0.name == "Fido" }), rex = try #require(try ours.one(Dog.self) { $0.name == "Rex" })
    let moved = try #require(try ours.one(Vaccination.self) { $0.kind == "moved" })
    moved.dog = rex
    rex.collar = fido.collar
    ours.delete(fido)
    let other = try #require(try theirs.one(Dog.self) { $0.name == "Fido" })
    other.age = 9
    let added = theirs.insert(Vaccination.self)
    (added.kind, added.dog) = ("added", other)
    try theirs.save()
    try ours.save()
    for context in try [ours, place.context()] {
      #expect(try namesOfDogs(context) == ["Rex"])
      let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
      #expect(rex.vaccinations.map(\.kind) == ["moved"] && rex.collar != nil)
      #expect(try context.count(for: FetchRequest<Vaccination>()) == 1 && context.count(for: FetchRequest<Collar>()) == 1)
    }
  }

  /// A list without an inverse, and one of links: only the lists of the deleted object show that an object was removed.
  @Test(arguments: TestStore.withChild, [Policy.objectTrump, .overwrite])
  func objectsThatWereRemovedFromADeletedListStayIfTheDeletionIsInConflict(_ store: TestStore, _ policy: Policy) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Box", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [
          .toMany("parts", to: "Item", inverse: nil, deleteRule: .cascade, isOrdered: true),
          .toMany("shared", to: "Item", inverse: "sharers", deleteRule: .cascade),
          .toMany("debts", to: "Item", inverse: nil, deleteRule: .deny),
          .toOne("shown", to: "Item", inverse: nil, deleteRule: .cascade),
        ]),
      EntityDescription(
        "Item", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toMany("sharers", to: "Box", inverse: "shared")]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context(), lists = ["parts", "shared", "debts"]
    let box = try setup.insert(entityNamed: "Box"), items = try (0..<4).map { _ in try setup.insert(entityNamed: "Item") }
    for (list, item) in zip(lists, items) { try box.toMany(forKey: list).insert(item) }
    try box.setValue(.objectID(items[3].objectID), forKey: "shown")
    try setup.save()
    let (ours, theirs) = try place.twoContexts(policy.policy), mine = try ours.existingObject(with: box.objectID)
    for (list, item) in zip(lists, items) { try mine.toMany(forKey: list).remove(ours.existingObject(with: item.objectID)) }
    try mine.setValue(.null, forKey: "shown")
    ours.delete(mine)
    try theirs.existingObject(with: box.objectID).setValue(.string("changed"), forKey: "name")
    try theirs.save()
    try ours.save()
    for context in try [ours, place.context()] {
      #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Box")) == 0)
      #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Item")) == 4)
    }
  }
}
