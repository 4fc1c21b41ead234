import FoundationEssentials
import HoldfastMemoryStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Transient attributes: only in memory, on every store.
@Suite struct TransientTests {
  private static let red = Colour(red: 255, green: 0, blue: 0)

  @Test(arguments: TestStore.allCases) func valuesOfAnyTypeLiveInMemoryOnly(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    let spot = context.spot("A")
    #expect(spot.score == 2.5 && spot.hits == 0 && spot.note == nil)
    spot.note = [Self.red]
    spot.hits = 3
    spot.score = nil
    #expect(spot.note == [Self.red] && spot.hits == 3 && spot.score == nil)
    try context.save()
    #expect(spot.note == [Self.red] && spot.hits == 3)
    try place.close()
    let again = try #require(try place.context().spot(named: "A"))
    #expect(again.note == nil && again.hits == 0 && again.score == nil)
  }

  @Test(arguments: TestStore.allCases) func aSaveOfTransientValuesAloneAsksNoStore(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    context.spot("A")
    try context.save()
    let (other, recorder) = try place.recording()
    let spot = try #require(try other.spot(named: "A"))
    _ = spot.name
    recorder.clear()
    spot.hits = 1
    #expect(spot.isUpdated && other.hasChanges && other.updatedObjects == [spot] && spot.changedValues().isEmpty)
    try other.save()
    #expect(!spot.isUpdated && !other.hasChanges && spot.hits == 1 && recorder.requests.isEmpty)
  }

  @Test func valuesGoWhenTheObjectBecomesAFaultAndStayWhenChangesAreMerged() throws {
    let context = try TestStore.memory.makeAtlas().context()
    let spot = context.spot("A")
    spot.nearby.insert(context.spot("B"))
    try context.save()
    spot.hits = 1
    try context.refresh(spot, mergeChanges: true)
    #expect(spot.hits == 1)
    try context.save()
    try context.refresh(spot, mergeChanges: true)
    #expect(spot.hits == 1 && !spot.isFault)
    try context.refresh(spot, mergeChanges: false)
    #expect(spot.isFault && spot.hits == 0 && !spot.isFault && spot.nearby.count == 1)
    spot.hits = 2
    spot.grade = .bad
    context.rollback()
    #expect(spot.hits == 2 && spot.grade == .fair && !spot.isUpdated)
    context.reset()
    #expect(spot.hits == 0)
  }

  @Test(arguments: TestStore.allCases) func valuesStayWhenChangesOfOthersAreMerged(_ store: TestStore) throws {
    let context = try store.makeAtlas().context(), spot = context.spot("A")
    try context.save()
    spot.hits = 1
    try context.save()
    context.automaticallyMergesChanges = true
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Spot.self])
    try #require(try other.spot(named: "A")).name = "B"
    try other.save()
    try context.processPendingChanges()
    #expect(spot.isFault && spot.name == "B" && spot.hits == 1)
  }

  /// In a conflict of the save, or in a merge at its start.
  ///
  /// The bug: the policy discarded transient values with the changes, although a rollback keeps them.
  @Test(arguments: TestStore.allCases, [false, true]) func valuesStayWhenAPolicyDiscardsTheChangesOfAnObject(
    _ store: TestStore, _ isMerged: Bool
  ) throws {
    let context = try store.makeAtlas().context(), spot = context.spot("A")
    try context.save()
    context.mergePolicy = .rollback
    context.automaticallyMergesChanges = isMerged
    spot.hits = 1
    spot.name = "ours"
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Spot.self])
    try #require(try other.spot(named: "A")).name = "theirs"
    try other.save()
    try context.save()
    #expect(spot.name == "theirs" && spot.hits == 1 && !spot.isUpdated && !context.hasChanges)
  }

  @Test func settingOneGivesAFaultItsRow() throws {
    let place = try TestStore.sqlite.makeAtlas(), context = try place.context()
    context.spot("A").near = context.spot("B")
    try context.save()
    let other = try place.context()
    let fault = try #require(try other.spot(named: "A")?.near)
    #expect(fault.isFault)
    fault.hits = 4
    #expect(!fault.isFault && fault.hits == 4)
  }

  @Test func nothingIsKeptAliveByValuesThatWent() throws {
    final class Token {}
    let context = try TestStore.memory.makeAtlas().context()
    weak var token: Token?
    do {
      let held = Token()
      token = held
      let spot = context.spot("A")
      spot[transient: Spot.Slot.note] = held
      #expect(token != nil)
      try context.save()
      let same: Token? = spot[transient: Spot.Slot.note]
      #expect(same === held)
    }
    // The object was released, and its values with it.
    #expect(token == nil)
    do {
      let held = Token()
      token = held
      let spot = context.spot("B")
      spot[transient: Spot.Slot.note] = held
      context.delete(spot)
      try context.save()
      #expect(spot.managedObjectContext === context)
    }
    #expect(token == nil)
  }

  @Test func valuesThatStoreValuesCanSayHaveNames() throws {
    let context = try TestStore.memory.makeAtlas().context(), spot = context.spot("A")
    #expect(try spot.value(forKey: "score") == .double(2.5) && spot.value(forKey: "hits") == .null)
    spot.hits = 7
    #expect(try spot.value(forKey: "hits") == .int32(7))
    try spot.setValue(.int64(9), forKey: "hits")
    #expect(spot.hits == 9)
    try spot.setValue(.null, forKey: "hits")
    #expect(spot.hits == 0)
    try spot.setValue(.int16(1), forKey: "score")
    #expect(spot.score == 1)
    try spot.setValue(.string("anything"), forKey: "note")
    #expect(try spot.value(forKey: "note") == .string("anything"))
    spot.note = [Self.red]
    func code(_ body: () throws -> Void) throws -> PersistenceError.Code {
      try #require(throws: PersistenceError.self, performing: body).code
    }
    #expect(try code { _ = try spot.value(forKey: "note") } == .wrongType)
    #expect(try code { try spot.setValue(.string("7"), forKey: "hits") } == .wrongType)
    spot.hits = .max
    #expect(try code { _ = try spot.value(forKey: "hits") } == .wrongType)
  }

  /// The bug: setting, reading and validating it by name threw `wrongType`.
  @Test func aTransientAttributeHasTheTemporaryIDOfAnObject() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Note", attributes: [AttributeDescription("source", .objectID, isOptional: true, isTransient: true)])
    ])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()))
    let note = try context.insert(entityNamed: "Note"), other = try context.insert(entityNamed: "Note")
    let id = StoreValue.objectID(other.objectID)
    try note.validateValue(id, forKey: "source")
    try note.setValue(id, forKey: "source")
    #expect(try note.value(forKey: "source") == .single(id) && other.objectID.isTemporaryID)
    try context.save()
  }

  /// The bug: it stayed the temporary one, with which the saved object isn't found.
  @Test(arguments: TestStore.withChild) func aTemporaryIDBecomesThePermanentOneWhenItsObjectIsSaved(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note",
        attributes: [
          AttributeDescription("source", .objectID, isOptional: true, isTransient: true),
          AttributeDescription("text", .string, isOptional: true),
        ])
    ])
    let context = try store.makePlace(model: model, classes: []).context()
    let typed = try context.insert(entityNamed: "Note"), named = try context.insert(entityNamed: "Note")
    let other = try context.insert(entityNamed: "Note")
    typed[transient: 0] = other.objectID
    try named.setValue(.objectID(other.objectID), forKey: "source")
    try context.save()
    let id: ManagedObjectID? = typed[transient: 0]
    #expect(id == other.objectID && id?.isTemporaryID == false)
    #expect(try named.value(forKey: "source") == .objectID(other.objectID) && typed.value(forKey: "source") == .objectID(other.objectID))
  }

  /// The bug: it became a `ManagedObjectID`, so that a property of the type `StoreValue` was nil.
  @Test func aTemporaryIDInAStoreValueStaysInOneWhenItsObjectIsSaved() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Note", attributes: [AttributeDescription("source", .objectID, isOptional: true, isTransient: true)])
    ])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()))
    let note = try context.insert(entityNamed: "Note"), other = try context.insert(entityNamed: "Note")
    note[transient: 0] = StoreValue.objectID(other.objectID)
    try context.save()
    let value: StoreValue? = note[transient: 0]
    #expect(value == .objectID(other.objectID) && !other.objectID.isTemporaryID)
  }

  /// The bug: reading it by name threw `wrongType`, and saves didn't call the validation method of the class for it.
  @Test func aTransientURICanBeSetAsText() throws {
    final class Note: ManagedObject {
      var asked: [PropertyValue] = []
      override class var entityName: String { "Note" }
      override func validate(_ value: PropertyValue, forKey key: String) throws { asked.append(value) }
    }
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Note", attributes: [AttributeDescription("source", .uri, isOptional: true, isTransient: true)])
    ])
    let context = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .memory()), classes: [Note.self])
    let note = context.insert(Note.self)
    note[transient: 0] = "mailto:a@b.c"
    #expect(try note.value(forKey: "source") == .uri("mailto:a@b.c"))
    try context.save()
    #expect(note.asked == [.single(.uri("mailto:a@b.c"))])
    let text: String? = note[transient: 0]
    #expect(text == "mailto:a@b.c")
  }

  @Test func aNewObjectNeedsItsMandatoryOnes() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note",
        attributes: [AttributeDescription("text", .string, isOptional: true), AttributeDescription("draft", .string, isTransient: true)])
    ])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()))
    let note = try context.insert(entityNamed: "Note")
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .missingMandatoryValue && error.property == "draft")
    try note.setValue(.string("x"), forKey: "draft")
    try context.save()
  }

  /// Their values stay in the child, and a fetched object has none.
  ///
  /// The bug: neither the parent of the child nor a merge policy could save the objects.
  @Test(arguments: TestStore.allCases) func objectsOfAChildAndThoseInsertedAgainNeedNoMandatoryOnes(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note",
        attributes: [AttributeDescription("text", .string, isOptional: true), AttributeDescription("draft", .string, isTransient: true)],
        relationships: [.toOne("last", to: "Note", inverse: nil, isOptional: false, isTransient: true)])
    ])
    let place = try store.makePlace(model: model, classes: []), context = try place.context(), child = ManagedObjectContext(parent: context)
    let note = try child.insert(entityNamed: "Note")
    try note.setValue(.string("x"), forKey: "draft")
    try note.setValue(.objectID(note.objectID), forKey: "last")
    try child.save()
    try context.save()
    let other = try place.context()
    let fetched = try #require(try other.fetch(FetchRequest<ManagedObject>(entityName: "Note")).first)
    try fetched.setValue(.string("kept"), forKey: "text")
    context.delete(try context.existingObject(with: note.objectID))
    try context.save()
    other.mergePolicy = .mergeByPropertyObjectTrump
    try other.save()
    #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "Note")) == 1)
  }

  @Test(arguments: TestStore.allCases) func aNumberBeyondTheTypeOfTheModelCannotBeSaved(_ store: TestStore) throws {
    let context = try store.makeAtlas().context(), spot = context.spot("A")
    for (hits, code) in [(3_000_000_000, PersistenceError.Code.numberTooLarge), (-3_000_000_000, .numberTooSmall)] {
      spot.hits = hits
      let error = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(error.code == code && error.property == "hits" && error.validation?.value == .int64(Int64(hits)))
    }
    spot.hits = Int(Int32.max)
    try context.save()
  }

  /// The number has no exact value of the type.
  @Test func theRangeOfTheModelHoldsForNumbersOfAWiderType() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note",
        attributes: [
          AttributeDescription("rating", .float, isOptional: true, isTransient: true, validation: .range(.float(0), .float(5)))
        ])
    ])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()))
    let note = try context.insert(entityNamed: "Note")
    note[transient: 0] = 9.1
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .numberTooLarge && error.property == "rating")
    note[transient: 0] = 4.1
    try context.save()
  }

  @Test(arguments: TestStore.allCases) func theRulesOfTheModelHoldForThem(_ store: TestStore) throws {
    final class Judge: ManagedObject {
      override class var entityName: String { "Note" }
      var asked: [String] = []
      override func validate(_ value: PropertyValue, forKey key: String) throws {
        asked.append(key)
        if value == .string("bad") { throw PersistenceError.invalid("That word is bad.", property: key) }
      }
    }
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note",
        attributes: [
          AttributeDescription("text", .string, isOptional: true),
          AttributeDescription("draft", .string, isOptional: true, isTransient: true, validation: .length(2, 5)),
          AttributeDescription("hits", .integer16, isOptional: true, isTransient: true, validation: .range(.int16(0), .int16(9))),
          AttributeDescription("thing", .undefined, isOptional: true, isTransient: true),
        ])
    ])
    let place = try store.makePlace(model: model, classes: [Judge.self]), context = try place.context()
    let note = try context.insert(entityNamed: "Note") as! Judge
    func refusal(_ key: String, _ value: StoreValue) throws -> PersistenceError? {
      try note.setValue(value, forKey: key)
      do { try context.save() } catch let error as PersistenceError { return error }
      return nil
    }
    #expect(try refusal("draft", .string("fine")) == nil && note.asked == ["text", "draft"])
    // Nothing else changes from here on, so stores don't receive requests.
    let long = try #require(try refusal("draft", .string("too long")))
    #expect(
      long.code == .stringTooLong && long.coreDataCode == 1660 && long.property == "draft" && long.validation?.value == .string("too long"))
    #expect(try refusal("draft", .string("x"))?.code == .stringTooShort)
    #expect(try refusal("draft", .string("bad"))?.userMessage() == "That word is bad.")
    #expect(try refusal("draft", .null) == nil)
    let large = try #require(try refusal("hits", .int16(10)))
    #expect(large.code == .numberTooLarge && large.validation?.bound == .int64(9))
    #expect(try refusal("hits", .int16(9)) == nil)
    // A value that only the class understands is checked by the class.
    note[transient: 2] = [1, 2, 3]
    note.asked = []
    #expect(try refusal("text", .string("saved")) == nil && !note.asked.contains("thing"))
    // Validated before it is set.
    let early = #expect(throws: PersistenceError.self) { try note.validateValue(.int16(-1), forKey: "hits") }
    #expect(early?.code == .numberTooSmall)
    #expect(throws: PersistenceError.self) { try note.validateValue(.string("x"), forKey: "hits") }
    try note.validateValue(.int16(4), forKey: "hits")
    #expect(try note.value(forKey: "hits") == .int16(9))
  }

  @Test func whatIsSetWhileAnObjectAwakesIsNoChange() throws {
    final class Waking: Spot {
      override func awakeFromFetch() { hits = name.count }
    }
    let place = try TestStore.sqlite.makeAtlas(), context = try place.context()
    context.spot("ABC")
    try context.save()
    let other = try ManagedObjectContext(coordinator: place.coordinator(), classes: [Waking.self])
    let spot = try #require(try other.fetch(FetchRequest<Waking>(entityName: "Spot")).first)
    #expect(spot.hits == 3 && !other.hasChanges)
    try other.refresh(spot, mergeChanges: false)
    #expect(spot.isFault && spot.hits == 3 && !other.hasChanges)
  }

  @Test func queriesSayThatNoStoreHasThem() throws {
    let context = try TestStore.memory.makeAtlas().context()
    let error = try #require(throws: QueryError.self) { try context.fetch(FetchRequest<Spot> { $0.score > 1 }) }
    #expect(error.reason.contains("transient"))
  }

  @Test func objectsWithoutThemAreNoLarger() throws {
    // An object uses the 72-byte malloc size class. Another stored property would need 88 bytes.
    #expect(class_getInstanceSize(of: ManagedObject.self) <= 72)
  }
}

/// The instance size from a class's metadata.
private func class_getInstanceSize(of type: AnyClass) -> Int {
  Int(unsafeBitCast(type, to: UnsafeRawPointer.self).load(fromByteOffset: 24, as: UInt32.self))
}
