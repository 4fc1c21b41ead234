import Holdfast
import Testing

@Suite struct RelationshipTests {
  @Test(arguments: TestStore.withChild) func bothSidesOfARelationshipAgreeAtOnceAndAfterTheSave(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let ann = context.person("Ann"), bob = context.person("Bob")
    let fido = context.dog("Fido", owner: ann), rex = context.dog("Rex")
    bob.dogs.insert(rex)
    #expect(rex.owner === bob)
    bob.dogs.insert(fido)
    #expect(fido.owner === bob && ann.dogs.isEmpty && bob.dogs.count == 2)
    fido.friends.insert(rex)
    rex.friends.insert(fido)
    fido.friends.insert(rex)
    #expect(fido.friends.count == 1 && fido.friendOf.count == 1)
    try context.save()
    let other = try place.context()
    let same = try #require(try other.one(Person.self) { $0.name == "Bob" })
    #expect(Set(same.dogs.map(\.name)) == ["Fido", "Rex"])
    let dog = try #require(try other.one(Dog.self) { $0.name == "Fido" })
    #expect(dog.friends.map(\.name) == ["Rex"] && dog.friendOf.map(\.name) == ["Rex"])
    dog.owner = nil
    #expect(same.dogs.count == 1)
    same.dogs.removeAll()
    #expect(try other.one(Dog.self) { $0.name == "Rex" }?.owner == nil)
    try other.save()
    #expect(try place.context().one(Person.self) { $0.name == "Bob" }?.dogs.count == 0)
  }

  @Test(arguments: TestStore.withChild) func aOneToOneRelationshipIsTakenFromItsFormerPartner(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let fido = context.dog("Fido"), rex = context.dog("Rex")
    let red = context.insert(Collar.self), blue = context.insert(Collar.self)
    blue.color = "blue"
    fido.collar = red
    rex.collar = blue
    #expect(red.dog === fido && blue.dog === rex)
    try context.save()
    fido.collar = blue
    #expect(blue.dog === fido && red.dog == nil && rex.collar == nil)
    red.dog = rex
    #expect(rex.collar === red)
    try context.save()
    let other = try place.context()
    #expect(try other.one(Dog.self) { $0.name == "Fido" }?.collar?.color == "blue")
    #expect(try other.one(Dog.self) { $0.name == "Rex" }?.collar?.color == "red")
    #expect(try other.one(Collar.self) { $0.color == "blue" }?.dog?.name == "Fido")
  }

  @Test(arguments: TestStore.withChild) func changesToARelationshipThatWasNotReadWaitForIt(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let ann = context.person("Ann")
    let dogs = (0..<5).map { context.dog("dog \($0)", owner: ann) }
    dogs[0].friends.insert(dogs[1])
    try context.save()
    let other = try place.context()
    let same = try #require(try other.one(Person.self) { $0.name == "Ann" })
    let first = try #require(try other.one(Dog.self) { $0.name == "dog 0" }),
      last = try #require(try other.one(Dog.self) { $0.name == "dog 4" })
    other.dog("new", owner: same)
    last.owner = nil
    first.friends.insert(last)
    first.friends.insert(try #require(try other.one(Dog.self) { $0.name == "dog 1" }))
    #expect(Set(same.dogs.map(\.name)) == ["dog 0", "dog 1", "dog 2", "dog 3", "new"])
    #expect(Set(first.friends.map(\.name)) == ["dog 1", "dog 4"])
    #expect(last.friendOf.map(\.name) == ["dog 0"])
    try other.save()
    let third = try place.context()
    #expect(
      Set(try #require(try third.one(Person.self) { $0.name == "Ann" }).dogs.map(\.name)) == ["dog 0", "dog 1", "dog 2", "dog 3", "new"])
    #expect(Set(try #require(try third.one(Dog.self) { $0.name == "dog 0" }).friends.map(\.name)) == ["dog 1", "dog 4"])
  }

  @Test(arguments: TestStore.withChild) func removingALinkThatIsNotThereHindersNoOther(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let dogs = (0..<6).map { context.dog("dog \($0)") }
    for dog in dogs.dropFirst(3) { dog.friends.insert(dogs[0]) }
    try context.save()
    let other = try place.context()
    let again = try other.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    again[1].friends.remove(again[2])
    again[2].friends.remove(again[1])
    again[4].friends.remove(again[0])
    try other.save()
    let third = try place.context()
    let found = try third.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(found.map { $0.friends.count } == [0, 0, 0, 1, 0, 1])
    #expect(Set(found[0].friendOf.map(\.name)) == ["dog 3", "dog 5"])
  }

  @Test(arguments: TestStore.withChild) func nullifyClearsTheOtherEndWhetherItWasReadOrNot(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let ann = context.person("Ann")
    for number in 0..<4 { context.dog("dog \(number)", owner: ann) }
    try context.save()
    let other = try place.context()
    let held = try #require(try other.one(Dog.self) { $0.name == "dog 2" })
    other.delete(try #require(try other.one(Person.self) { $0.name == "Ann" }))
    try other.processPendingChanges()
    #expect(held.owner == nil && held.isUpdated)
    try other.save()
    #expect(held.owner == nil)
    held.age = 9
    try other.save()
    let third = try place.context()
    #expect(try third.fetch(FetchRequest<Dog>()).allSatisfy { $0.owner == nil })
    #expect(try third.count(for: FetchRequest<Dog> { $0.owner == nil }) == 4)
  }

  @Test(arguments: TestStore.withChild) func aQueryBeforeTheSaveSeesRelationshipsToDeletedObjectsCleared(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let ann = context.person("Ann"), bob = context.person("Bob")
    for number in 0..<3 { context.dog("dog \(number)", owner: number == 0 ? bob : ann) }
    try context.save()
    let other = try place.context()
    other.delete(try #require(try other.one(Person.self) { $0.name == "Ann" }))
    #expect(try other.count(for: FetchRequest<Dog> { $0.owner == nil }) == 2)
    #expect(try other.fetch(FetchRequest<Dog> { $0.owner.name != "Bob" }).count == 2)
    try other.save()
    #expect(try place.context().count(for: FetchRequest<Dog> { $0.owner == nil }) == 2)
  }

  @Test(arguments: TestStore.withChild) func deletedObjectsDisappearFromListsThatWereReadBefore(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let fido = context.dog("Fido")
    for number in 0..<4 { fido.friends.insert(context.dog("friend \(number)")) }
    try context.save()
    let other = try place.context()
    let same = try #require(try other.one(Dog.self) { $0.name == "Fido" })
    #expect(same.friends.count == 4)
    other.delete(try #require(try other.one(Dog.self) { $0.name == "friend 1" }))
    #expect(same.friends.count == 3)
    try other.save()
    #expect(same.friends.count == 3)
    #expect(Set(same.friends.map(\.name)) == ["friend 0", "friend 2", "friend 3"])
    #expect(try place.context().one(Dog.self) { $0.name == "Fido" }?.friends.count == 3)
  }

  @Test(arguments: TestStore.withChild) func cascadeDeletesTheOtherEnd(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let fido = context.dog("Fido"), rex = context.dog("Rex")
    fido.collar = context.insert(Collar.self)
    for dog in [fido, rex] {
      for kind in ["rabies", "parvo"] {
        let shot = context.insert(Vaccination.self)
        shot.kind = kind
        shot.dog = dog
      }
    }
    try context.save()
    let other = try place.context()
    other.delete(try #require(try other.one(Dog.self) { $0.name == "Fido" }))
    try other.save()
    let third = try place.context()
    #expect(try third.count(for: FetchRequest<Vaccination>()) == 2)
    #expect(try third.count(for: FetchRequest<Collar>()) == 0)
    #expect(try third.count(for: FetchRequest<Dog>()) == 1)
  }

  @Test(arguments: TestStore.withChild) func denyRefusesTheDeletionWhileThereAreObjects(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let ann = context.person("Ann")
    let licence = context.insert(Licence.self)
    licence.number = 1
    licence.holder = ann
    try context.save()
    context.delete(ann)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == 1600 && error.property == "licences")
    #expect(ann.isDeleted)
    context.delete(licence)
    try context.save()
    #expect(try place.context().count(for: FetchRequest<Person>()) == 0)
  }

  @Test(arguments: TestStore.withChild) func anObjectThatMustPointSomewhereIsNotLeftPointingNowhere(_ store: TestStore) throws {
    let entities = [
      EntityDescription(
        "House", attributes: [AttributeDescription("street", .string)], relationships: [.toMany("rooms", to: "Room", inverse: "house")]),
      EntityDescription("Room", relationships: [.toOne("house", to: "House", inverse: "rooms", isOptional: false)]),
    ]
    let model = try ManagedObjectModel(entities: entities)
    let place = try store.makePlace()
    let coordinator = try PersistentStoreCoordinator(model: model, store: place.description)
    let context = try ManagedObjectContext(coordinator: coordinator)
    let house = try context.insert(entityNamed: "House"), room = try context.insert(entityNamed: "Room")
    try house.setValue(.string("High Street"), forKey: "street")
    try room.setValue(.objectID(house.objectID), forKey: "house")
    try context.save()
    let other = try ManagedObjectContext(coordinator: coordinator)
    other.delete(try other.existingObject(with: house.objectID))
    let error = try #require(throws: PersistenceError.self) { try other.save() }
    #expect(error.coreDataCode == 1570 && error.property == "house")
  }

  /// The bug: the discarded object was a fault, so the save cleared its relationship without validating it.
  @Test(arguments: TestStore.withChild, [DeleteRule.nullify, .cascade])
  func anObjectWhoseChangesAreDiscardedIsNotLeftPointingNowhere(_ store: TestStore, _ rule: DeleteRule) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("House", relationships: [.toMany("rooms", to: "Room", inverse: "house", deleteRule: rule)]),
      EntityDescription("Room", relationships: [.toOne("house", to: "House", inverse: "rooms", isOptional: false)]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let houseThere = try setup.insert(entityNamed: "House"), roomThere = try setup.insert(entityNamed: "Room")
    try roomThere.setValue(houseThere, forKey: "house")
    try setup.save()
    let context = try place.context()
    let house = try context.existingObject(with: houseThere.objectID), room = try context.object(with: roomThere.objectID)
    context.delete(house)
    try context.processPendingChanges()
    #expect(room.isDeleted == (rule == .cascade) && room.hasChanges)
    if rule == .cascade { try context.discardChanges(of: [room.objectID]) } else { try context.refresh(room, mergeChanges: false) }
    #expect(!room.isDeleted)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == 1570 && error.property == "house" && error.objectID == room.objectID)
    context.delete(room)
    try context.save()
    #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "Room")) == 0)
  }

  /// A deletion changes other objects only when its delete rules are applied.
  @Test(arguments: TestStore.withChild) func refreshingAnObjectWhoseOwnerIsAboutToBeDeletedIsNoChange(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("House", relationships: [.toMany("rooms", to: "Room", inverse: "house")]),
      EntityDescription("Room", relationships: [.toOne("house", to: "House", inverse: "rooms", isOptional: false)]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let houseThere = try setup.insert(entityNamed: "House"), roomThere = try setup.insert(entityNamed: "Room")
    try roomThere.setValue(houseThere, forKey: "house")
    try setup.save()
    let context = try place.context()
    let house = try context.existingObject(with: houseThere.objectID), room = try context.existingObject(with: roomThere.objectID)
    context.delete(house)
    try context.refresh(room, mergeChanges: false)
    #expect(room.isFault && !room.hasChanges)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == 1570 && error.property == "house" && error.objectID == room.objectID)
  }

  @Test(arguments: TestStore.withChild) func theOwnerWhoseDeletionIsDiscardedKeepsAnObjectThatRequiresIt(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("House", relationships: [.toMany("rooms", to: "Room", inverse: "house")]),
      EntityDescription("Room", relationships: [.toOne("house", to: "House", inverse: "rooms", isOptional: false)]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let houseThere = try setup.insert(entityNamed: "House"), roomThere = try setup.insert(entityNamed: "Room")
    try roomThere.setValue(houseThere, forKey: "house")
    try setup.save()
    let context = try place.context()
    let house = try context.existingObject(with: houseThere.objectID), room = try context.object(with: roomThere.objectID)
    context.delete(house)
    try context.processPendingChanges()
    try context.refresh(room, mergeChanges: false)
    try context.discardChanges(of: [house.objectID])
    #expect(try room.value(forKey: "house") == .single(.objectID(house.objectID)) && house.toMany(forKey: "rooms").contains(room))
    try context.save()
    #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "House")) == 1)
  }

  @Test(arguments: TestStore.withChild) func noActionLeavesTheOtherEndPointingAtNothingAndNeverTraps(_ store: TestStore) throws {
    let entities = [
      EntityDescription("House", relationships: [.toMany("rooms", to: "Room", inverse: "house", deleteRule: .noAction)]),
      EntityDescription(
        "Room", attributes: [AttributeDescription("name", .string)], relationships: [.toOne("house", to: "House", inverse: "rooms")]),
    ]
    let model = try ManagedObjectModel(entities: entities)
    let place = try store.makePlace()
    let coordinator = try PersistentStoreCoordinator(model: model, store: place.description)
    let context = try ManagedObjectContext(coordinator: coordinator)
    let house = try context.insert(entityNamed: "House"), room = try context.insert(entityNamed: "Room")
    try room.setValue(.string("kitchen"), forKey: "name")
    try room.setValue(.objectID(house.objectID), forKey: "house")
    try context.save()
    let other = try ManagedObjectContext(coordinator: coordinator)
    other.delete(try other.existingObject(with: house.objectID))
    try other.save()
    let third = try ManagedObjectContext(coordinator: coordinator)
    let dangling = try third.existingObject(with: room.objectID)
    guard case .objectID(let id) = try dangling.value(forKey: "house").storeValue else {
      Issue.record("The room points nowhere.")
      return
    }
    #expect(id == house.objectID)
    let ghost = try third.object(with: id)
    #expect(ghost.isFault)
    #expect(try ghost.toMany(forKey: "rooms").count == 0)
    #expect(ghost.isInaccessible && third.faultError != nil)
    let error = try #require(throws: PersistenceError.self) { try third.existingObject(with: id) }
    #expect(error.coreDataCode == 133000)
  }

  /// A model of teams with two or three players.
  private static func teams() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Team", attributes: [AttributeDescription("name", .string)],
        relationships: [.toMany("players", to: "Player", inverse: "team", minCount: 2, maxCount: 3)]),
      EntityDescription("Player", relationships: [.toOne("team", to: "Team", inverse: "players")]),
    ])
  }

  @Test(arguments: TestStore.withChild) func aRelationshipWithBoundsIsCountedWhenItIsTouched(_ store: TestStore) throws {
    let place = try store.makePlace()
    let coordinator = try PersistentStoreCoordinator(model: Self.teams(), store: place.description)
    let context = try ManagedObjectContext(coordinator: coordinator)
    let team = try context.insert(entityNamed: "Team")
    try team.setValue(.string("Blue"), forKey: "name")
    var players: [ManagedObject] = []
    func add() throws {
      players.append(try context.insert(entityNamed: "Player"))
      try players[players.count - 1].setValue(.objectID(team.objectID), forKey: "team")
    }
    func refusal() throws -> Int? { try #require(throws: PersistenceError.self) { try context.save() }.coreDataCode }

    try context.save()  // None at all is allowed where the relationship is optional.
    try add()
    #expect(try refusal() == 1580)
    try add()
    try context.save()
    try add()
    try context.save()
    try add()
    #expect(try refusal() == 1590)
    context.delete(players[0])
    try context.save()
    let other = try ManagedObjectContext(coordinator: coordinator)
    let read = try other.existingObject(with: team.objectID)
    try read.setValue(.string("Red"), forKey: "name")
    try other.save()
    for player in Array(try read.toMany(forKey: "players")).prefix(2) { other.delete(player) }
    let error = try #require(throws: PersistenceError.self) { try other.save() }
    #expect(error.coreDataCode == 1580 && error.property == "players" && error.objectID == team.objectID)
  }

  private final class Squad: ManagedObject {
    override class var entityName: String { "Team" }
    override func validate(_ value: PropertyValue, forKey key: String) throws {
      if key == "players" { throw PersistenceError.invalid("The players are validated.") }
    }
  }

  @Test(arguments: TestStore.allCases) func aRelationshipOfAChangedObjectIsValidatedIfItWasRead(_ store: TestStore) throws {
    let coordinator = try PersistentStoreCoordinator(model: Self.teams(), store: try store.makePlace().description)
    let setup = try ManagedObjectContext(coordinator: coordinator)
    let teams = try (0..<2).map { _ in try setup.insert(entityNamed: "Team") }
    for team in teams {
      try team.setValue(.string("Blue"), forKey: "name")
      for _ in 0..<2 { try team.toMany(forKey: "players").insert(setup.insert(entityNamed: "Player")) }
    }
    try setup.save()

    // Two contexts add a player each, and exceed the maximum together.
    let full = teams[0].objectID
    let contexts = try (0..<2).map { _ in try ManagedObjectContext(coordinator: coordinator) }
    let both = try contexts.map { try $0.existingObject(with: full) }
    for team in both { #expect(try team.toMany(forKey: "players").count == 2) }
    for (context, team) in zip(contexts, both) {
      try team.toMany(forKey: "players").insert(context.insert(entityNamed: "Player"))
      try context.save()
    }
    for (readsPlayers, hasSiblings) in [(true, false), (true, true), (false, true)] {
      let context = try ManagedObjectContext(coordinator: coordinator)
      let all = try hasSiblings ? context.fetch(FetchRequest<ManagedObject>(entityName: "Team")) : []
      let team = try context.existingObject(with: full)
      if readsPlayers { #expect(try team.toMany(forKey: "players").count == 4) }
      try team.setValue(.string("Red"), forKey: "name")
      if readsPlayers {
        let error = try #require(throws: PersistenceError.self) { try context.save() }
        #expect(error.coreDataCode == 1590 && error.property == "players" && error.objectID == full)
      } else {
        try context.save()
      }
      withExtendedLifetime(all) {}
    }

    // The rules of classes, too.
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [Squad.self])
    let squad = try context.existingObject(with: teams[1].objectID)
    try squad.setValue(.string("Green"), forKey: "name")
    try context.save()
    #expect(try squad.toMany(forKey: "players").count == 2)
    try squad.setValue(.string("White"), forKey: "name")
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == 1550 && error.property == "players")
  }
}
