import Foundation
import Holdfast
import Testing

@Suite struct SavingTests {
  @Test(arguments: TestStore.allCases) func everyValueComesBackAsItWasSaved(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let dog = context.dog("Zoë 🐕‍🦺", age: -32_768)
    dog.chip = .max
    dog.weight = .leastNonzeroMagnitude
    dog.born = Date(timeIntervalSinceReferenceDate: -1_234.5)
    dog.photo = Data([0, 255, 1])
    dog.uid = UUID(uuidString: "00112233-4455-6677-8899-AABBCCDDEEFF")
    dog.price = Decimal(string: "12345678901234567890.123456789")
    dog.notes = ""
    dog.isGood = false
    let bare = context.dog("bare")
    try context.save()
    try place.close()
    let again = try #require(try place.context().one(Dog.self) { $0.chip == .max })
    #expect(again.name == "Zoë 🐕‍🦺")
    #expect(again.age == -32_768)
    #expect(again.weight == .leastNonzeroMagnitude)
    #expect(again.born == Date(timeIntervalSinceReferenceDate: -1_234.5))
    #expect(again.photo == Data([0, 255, 1]))
    #expect(again.uid == UUID(uuidString: "00112233-4455-6677-8899-AABBCCDDEEFF"))
    #expect(again.price == Decimal(string: "12345678901234567890.123456789"))
    #expect(again.notes == "")
    #expect(!again.isGood)
    let other = try #require(try place.context().existingObject(with: bare.objectID) as? Dog)
    #expect(other.weight == nil && other.born == nil && other.photo == nil && other.uid == nil && other.price == nil && other.notes == nil)
    #expect(other.isGood && other.age == 1)
  }

  @Test(arguments: TestStore.allCases) func anIDIsTemporaryUntilTheSaveAndTheSameForEveryContextAfterwards(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let dog = context.dog("Fido")
    let temporary = dog.objectID
    #expect(temporary.isTemporaryID && dog.isInserted)
    try context.save()
    #expect(!dog.objectID.isTemporaryID && !dog.isInserted)
    #expect(dog.objectID != temporary)
    let other = try #require(try place.context().one(Dog.self) { $0.name == "Fido" })
    #expect(other.objectID == dog.objectID)
    let uri = dog.objectID.uriRepresentation
    #expect(uri.hasPrefix("x-coredata://") && uri.contains("/Dog/p"))
    #expect(ManagedObjectID(uriRepresentation: uri) == dog.objectID)
    let coded = try JSONDecoder().decode([ManagedObjectID].self, from: JSONEncoder().encode([dog.objectID]))
    #expect(coded == [dog.objectID])
  }

  @Test(arguments: TestStore.allCases) func allFailuresOfValidationAreReportedTogether(_ store: TestStore) throws {
    let context = try store.makePlace().context()
    let dog = context.insert(Dog.self)
    dog.age = 40_000
    dog.born = Date(timeIntervalSinceReferenceDate: .infinity)
    let shot = context.insert(Vaccination.self)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == 1560)
    #expect(Set(error.failures.map(\.coreDataCode)) == [1570, 1610, 1650])
    #expect(Set(error.failures.compactMap(\.property)) == ["name", "age", "born", "dog", "kind"])
    #expect(context.hasChanges)
    dog.name = "Fido"
    dog.age = 4
    dog.born = nil
    shot.kind = "rabies"
    shot.dog = dog
    try context.save()
    #expect(!context.hasChanges)
  }

  @Test(arguments: TestStore.allCases) func oneFailureOfValidationIsThrownAsItself(_ store: TestStore) throws {
    let context = try store.makePlace().context()
    let dog = context.dog("Fido")
    dog.age = -40_000
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == 1620 && error.property == "age" && error.objectID == dog.objectID)
    #expect(!"\(error)".contains("40000"))
  }

  @Test(arguments: TestStore.allCases) func anObjectThatIsInsertedAndDeletedNeverReachesTheStore(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let ann = context.person("Ann")
    let dog = context.dog("Fido", owner: ann)
    context.delete(dog)
    #expect(ann.dogs.count == 0)
    try context.save()
    #expect(try place.context().count(for: FetchRequest<Dog>()) == 0)
    #expect(try place.context().count(for: FetchRequest<Person>()) == 1)
    #expect(!context.hasChanges)
  }

  @Test(arguments: TestStore.allCases) func rollbackTakesEverythingBack(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let ann = context.person("Ann"), bob = context.person("Bob")
    let fido = context.dog("Fido", owner: ann), rex = context.dog("Rex", owner: ann)
    fido.friends.insert(rex)
    try context.save()
    fido.name = "Changed"
    fido.owner = bob
    fido.friends.remove(rex)
    context.delete(rex)
    context.dog("New", owner: ann)
    context.rollback()
    #expect(!context.hasChanges)
    #expect(fido.name == "Fido" && fido.owner === ann && !rex.isDeleted)
    #expect(Set(ann.dogs.map(\.name)) == ["Fido", "Rex"] && bob.dogs.isEmpty)
    #expect(fido.friends.contains(rex) && rex.friendOf.contains(fido))
    #expect(try context.count(for: FetchRequest<Dog>()) == 2)
    try context.save()
    #expect(try place.context().count(for: FetchRequest<Dog>()) == 2)
  }

  @Test(arguments: TestStore.allCases) func resetEmptiesTheContext(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let dog = context.dog("Fido")
    try context.save()
    dog.name = "Changed"
    context.reset()
    #expect(!context.hasChanges && context.registeredObjects.isEmpty)
    #expect(dog.name == "")
    let again = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    #expect(again !== dog)
  }

  @Test(arguments: TestStore.allCases) func aSecondContextThatSavesAnOldStateGetsAConflictAndCanContinue(_ store: TestStore) throws {
    let place = try store.makePlace()
    let first = try place.context()
    first.dog("Fido")
    try first.save()
    let mine = try #require(try first.one(Dog.self) { $0.name == "Fido" })
    let second = try place.context()
    let theirs = try #require(try second.one(Dog.self) { $0.name == "Fido" })
    theirs.age = 7
    try second.save()
    mine.age = 8
    let error = try #require(throws: PersistenceError.self) { try first.save() }
    #expect(error.code == .conflict && error.coreDataCode == 133020 && error.objectIDs == [mine.objectID])
    #expect(first.hasChanges && mine.age == 8)
    first.rollback()
    first.reset()
    let again = try #require(try first.one(Dog.self) { $0.name == "Fido" })
    #expect(again.age == 7)
    again.age = 9
    try first.save()
    #expect(try place.context().one(Dog.self) { $0.name == "Fido" }?.age == 9)
  }

  @Test(arguments: TestStore.allCases) func savingAnObjectThatAnotherContextDeletedIsAConflict(_ store: TestStore) throws {
    let place = try store.makePlace()
    let first = try place.context()
    let dog = first.dog("Fido")
    try first.save()
    let second = try place.context()
    second.delete(try second.existingObject(with: dog.objectID))
    try second.save()
    dog.age = 3
    #expect(throws: PersistenceError.self) { try first.save() }
    first.rollback()
    first.delete(dog)
    #expect(throws: PersistenceError.self) { try first.save() }
  }

  @Test(arguments: TestStore.allCases) func changingLinksOfAFaultThatAnotherContextDeletedIsAConflict(_ store: TestStore) throws {
    let place = try store.makePlace()
    let first = try place.context()
    let ids = [first.dog("Fido"), first.dog("Rex")]
    try first.save()
    let second = try place.context(), third = try place.context()
    let fault = try #require(try second.object(with: ids[0].objectID) as? Dog)
    let other = try #require(try second.object(with: ids[1].objectID) as? Dog)
    third.delete(try third.existingObject(with: ids[0].objectID))
    try third.save()
    other.friends.insert(fault)
    let error = try #require(throws: PersistenceError.self) { try second.save() }
    #expect(error.code == .conflict && error.objectIDs == [fault.objectID])
    second.rollback()
    other.age = 5
    try second.save()
  }

  @Test(arguments: TestStore.allCases) func valuesOfAUniquenessConstraintCannotBeShared(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    context.dog("Fido").chip = 7
    try context.save()
    let twin = context.dog("Twin")
    twin.chip = 7
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .constraintConflict && error.coreDataCode == 133021)
    #expect(error.objectIDs == [twin.objectID])
    twin.chip = 8
    context.dog("no chip")
    context.dog("no chip either")
    try context.save()
    #expect(try place.context().count(for: FetchRequest<Dog>()) == 4)
  }

  @Test(arguments: TestStore.allCases) func valuesOfAConstraintOfSeveralPropertiesFindTheirObject(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Seat",
        attributes: [
          AttributeDescription("row", .string), AttributeDescription("number", .integer16),
          AttributeDescription("taken", .boolean, default: .bool(false)),
        ], uniquenessConstraints: [["row", "number"]])
    ])
    let place = try store.makePlace()
    let coordinator = try PersistentStoreCoordinator(model: model, store: place.description)
    let context = try ManagedObjectContext(coordinator: coordinator)
    for row in ["A", "B", "C"] {
      for number in 1...20 {
        let seat = try context.insert(entityNamed: "Seat")
        try seat.setValue(.string(row), forKey: "row")
        try seat.setValue(.int64(Int64(number)), forKey: "number")
        try seat.setValue(.bool(number % 2 == 0), forKey: "taken")
      }
    }
    try context.save()
    func find(_ parts: (PropertyPath, StoreValue)...) throws -> Int {
      let all = parts.map { QueryExpression.comparison(.property($0.0), .equalTo, .constant($0.1), []) }
      return try context.count(for: FetchRequest<ManagedObject>(entityName: "Seat", where: FetchPredicate(.and(all))))
    }
    #expect(try find(("row", .string("B")), ("number", .int16(7))) == 1)
    #expect(try find(("number", .int16(7)), ("row", .string("B"))) == 1)
    #expect(try find(("number", .int16(7)), ("row", .string("B")), ("taken", .bool(true))) == 0)
    #expect(try find(("number", .int16(8)), ("taken", .bool(true)), ("row", .string("B"))) == 1)
    #expect(try find(("row", .string("B")), ("number", .int16(21))) == 0)
    #expect(try find(("row", .string("B")), ("number", .null)) == 0)
    #expect(try find(("row", .string("B"))) == 20)
    let twin = try context.insert(entityNamed: "Seat")
    try twin.setValue(.string("B"), forKey: "row")
    try twin.setValue(.int64(7), forKey: "number")
    #expect(throws: PersistenceError.self) { try context.save() }
  }

  /// NaN equals nothing, not even NaN. A store whose file can't represent it refuses it.
  @Test(arguments: TestStore.allCases) func notANumberFindsNoObjectByAConstraintOfSeveralProperties(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Reading", attributes: [AttributeDescription("gauge", .string), AttributeDescription("level", .double)],
        uniquenessConstraints: [["gauge", "level"]])
    ])
    let coordinator = try PersistentStoreCoordinator(model: model, store: try store.makePlace().description)
    let context = try ManagedObjectContext(coordinator: coordinator)
    func insert(_ level: Double) throws {
      let reading = try context.insert(entityNamed: "Reading")
      try reading.setValue(.string("A"), forKey: "gauge")
      try reading.setValue(.double(level), forKey: "level")
    }
    func count(_ level: Double) throws -> Int {
      let parts = [("gauge", StoreValue.string("A")), ("level", .double(level))] as [(PropertyPath, StoreValue)]
      let all = parts.map { QueryExpression.comparison(.property($0.0), .equalTo, .constant($0.1), []) }
      return try context.count(for: FetchRequest<ManagedObject>(entityName: "Reading", where: FetchPredicate(.and(all))))
    }
    for level in [0, 1.5] { try insert(level) }
    try context.save()
    try insert(.nan)
    do { try context.save() } catch let error as StoreError where error.code == .unstorableValue { context.rollback() }
    #expect(try count(.nan) == 0)
    #expect(try count(1.5) == 1)
    #expect(try count(-0.0) == 1)
  }

  @Test(arguments: TestStore.allCases) func aChangeThatComesToNothingIsNotSaved(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let dog = context.dog("Fido", age: 3)
    try context.save()
    let other = try place.context()
    let same = try #require(try other.existingObject(with: dog.objectID) as? Dog)
    same.age = 5
    same.age = 3
    #expect(other.hasChanges)
    try other.save()
    #expect(!other.hasChanges)
    dog.age = 4
    try context.save()
  }

  @Test(arguments: TestStore.allCases) func changesMadeInWillSaveAreSavedToo(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note", attributes: [AttributeDescription("saves", .integer32, default: .int32(0)), AttributeDescription("text", .string)])
    ])
    let place = try store.makePlace()
    let coordinator = try PersistentStoreCoordinator(model: model, store: place.description)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [Note.self])
    let note = context.insert(Note.self)
    note.text = "a"
    try context.save()
    note.text = "b"
    try context.save()
    #expect(note.saves == 2 && note.didSaves == 2)
    let other = try ManagedObjectContext(coordinator: coordinator, classes: [Note.self])
    #expect(try other.fetch(FetchRequest<Note>()).map(\.saves) == [2])
  }

  @Test(arguments: TestStore.allCases) func valuesAreReadAndSetByName(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try ManagedObjectContext(coordinator: place.coordinator())
    let dog = try context.insert(entityNamed: "Dog"), ann = try context.insert(entityNamed: "Person")
    try dog.setValue(.string("Fido"), forKey: "name")
    try dog.setValue(.int64(4), forKey: "age")
    try dog.setValue(.objectID(ann.objectID), forKey: "owner")
    try ann.setValue(.string("Ann"), forKey: "name")
    try context.save()
    #expect(try dog.value(forKey: "age") == .int16(4))
    #expect(try dog.value(forKey: "owner") == .objectID(ann.objectID))
    #expect(try ann.toMany(forKey: "dogs").map(\.objectID) == [dog.objectID])
    #expect(try dog.value(forKey: "weight") == .null)
    #expect(throws: PersistenceError.self) { try dog.value(forKey: "tail") }
    #expect(throws: PersistenceError.self) { try dog.setValue(.string("old"), forKey: "age") }
    #expect(throws: PersistenceError.self) { try dog.setValue(.int64(100_000), forKey: "age") }
    #expect(throws: PersistenceError.self) { try dog.setValue(.objectID(dog.objectID), forKey: "owner") }
    #expect(try dog.value(forKey: "age") == .int16(4))
    #expect(!context.hasChanges)
  }
}

private final class Note: ManagedObject {
  override class var entityName: String { "Note" }
  var saves: Int {
    get { self[0] }
    set { self[0] = newValue }
  }
  var text: String {
    get { self[1] }
    set { self[1] = newValue }
  }
  var didSaves = 0
  private var counted = false
  override class var properties: [PropertyBinding] {
    [.attribute("saves", \Note.saves, slot: 0), .attribute("text", \Note.text, slot: 1)]
  }
  override func willSave() { saves += 1 }
  override func didSave() { didSaves += 1 }
}

/// Records when it is saved, and whether it is being deleted then.
private final class Farewell: ManagedObject {
  override class var entityName: String { "Licence" }
  var told: [String] = []
  override func willSave() { told.append("will, deleted: \(isDeleted)") }
  override func didSave() { told.append("did") }
}

@Suite struct SaveCallbackTests {
  @Test(arguments: TestStore.allCases) func deletedObjectsAreNotifiedBeforeAndAfterTheirLastSave(_ store: TestStore) throws {
    let place = try store.makePlace(classes: [Farewell.self]), context = try place.context()
    let licence = try context.insert(entityNamed: "Licence")
    try licence.setValue(.int32(1), forKey: "number")
    let holder = try context.insert(entityNamed: "Person")
    try holder.setValue(.string("Ann"), forKey: "name")
    try licence.setValue(.objectID(holder.objectID), forKey: "holder")
    try context.save()
    context.delete(licence)
    try context.save()
    #expect((licence as? Farewell)?.told == ["will, deleted: false", "did", "will, deleted: true", "did"])
    // An object that was never saved isn't part of the save.
    let never = try context.insert(entityNamed: "Licence")
    context.delete(never)
    try context.save()
    #expect((never as? Farewell)?.told == [])
  }
}

/// When a deletion is denied, on every store.
@Suite struct DeniedDeletionTests {
  @Test(arguments: TestStore.allCases) func anObjectWithANewDestinationNoLongerDeniesTheDeletion(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let (ann, bob) = (context.person("Ann"), context.person("Bob"))
    let licences = (1...2).map { number in
      let licence = context.insert(Licence.self)
      licence.number = Int32(number)
      licence.holder = ann
      return licence
    }
    try context.save()
    context.delete(ann)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .deniedDelete && error.property == "licences" && error.objectID == ann.objectID)
    #expect(!error.objectIDs.isEmpty && error.coreDataUserInfo["NSValidationErrorValue"] as? [ManagedObjectID] == error.objectIDs)
    licences[0].holder = bob
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .deniedDelete)
    context.delete(licences[1])
    try context.save()
    let last = try place.context()
    #expect(try last.fetch(FetchRequest<Person>()).map(\.name) == ["Bob"])
    #expect(try last.fetch(FetchRequest<Licence>()).map { $0.holder?.name } == ["Bob"])
  }

  @Test(arguments: TestStore.allCases) func deletingANewObjectRemovesTheLinksToIt(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let ann = context.person("Ann"), licence = context.insert(Licence.self)
    licence.number = 7
    licence.holder = ann
    // The holder was never saved, so nothing is denied. But the licence now lacks its required holder.
    context.delete(ann)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .missingMandatoryValue && error.property == "holder" && error.objectID == licence.objectID)
    licence.holder = context.person("Bob")
    try context.save()
    #expect(try place.context().fetch(FetchRequest<Licence>()).map { $0.holder?.name } == ["Bob"])
  }

  @Test(arguments: TestStore.allCases) func anObjectThatIsGoneDeniesNothing(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Ship", relationships: [.toOne("port", to: "Port", inverse: nil, deleteRule: .deny)]), EntityDescription("Port"),
    ])
    let place = try store.makePlace(model: model, classes: []), context = try place.context()
    let ship = try context.insert(entityNamed: "Ship"), port = try context.insert(entityNamed: "Port")
    try ship.setValue(.objectID(port.objectID), forKey: "port")
    try context.save()
    context.delete(ship)
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .deniedDelete)
    context.rollback()
    let other = try place.context()
    for port in try other.fetch(FetchRequest<ManagedObject>(entityName: "Port")) { other.delete(port) }
    try other.save()
    let third = try place.context()
    for ship in try third.fetch(FetchRequest<ManagedObject>(entityName: "Ship")) { third.delete(ship) }
    try third.save()
    #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "Ship")) == 0)
  }
}
