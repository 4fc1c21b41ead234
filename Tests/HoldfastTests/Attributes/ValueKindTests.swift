import FoundationEssentials
import Testing

@testable import Holdfast

/// URIs, object IDs, enumerations, exact decimals and defaults of every type, on every store.
@Suite struct ValueKindTests {
  private func reopened(_ place: TestStore.Place, _ name: String = "A") throws -> Spot {
    try place.close()
    return try #require(try place.context().spot(named: name))
  }

  // MARK: URIs

  @Test(arguments: TestStore.allCases) func urisAreURLsOrTexts(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    let spot = context.spot("A"), url = try #require(URL(string: "https://example.org/a?b=%20c#d"))
    spot.link = url
    spot.text = "mailto:a@b.c"
    try context.save()
    let again = try reopened(place)
    #expect(again.link == url && again.text == "mailto:a@b.c")
    #expect(try again.value(forKey: "link") == .uri("https://example.org/a?b=%20c#d"))
    let found = try again.managedObjectContext.fetch(FetchRequest<Spot> { $0.link == url && $0.text.beginsWith("mail") })
    #expect(found == [again])
    // An invalid URI is kept, and reads as nil.
    try again.setValue(.uri(""), forKey: "link")
    #expect(try again.link == nil && again.value(forKey: "link") == .uri(""))
    let relative = try #require(URL(string: "c/d", relativeTo: url))
    again.link = relative
    #expect(again.link?.absoluteString == "https://example.org/c/d")
  }

  // MARK: Object IDs

  @Test(arguments: TestStore.allCases) func anAttributeHoldsTheIDOfAnObject(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    let a = context.spot("A"), b = context.spot("B")
    try context.save()
    a.friend = b.objectID
    try context.save()
    #expect(a.friend == b.objectID)
    let again = try reopened(place), reading = again.managedObjectContext
    let friend = try #require(again.friend)
    #expect(try (reading.existingObject(with: friend) as? Spot)?.name == "B")
    #expect(try again.value(forKey: "friend") == .objectID(friend))
    #expect(try reading.fetch(FetchRequest<Spot> { $0.friend == friend }) == [again])
    #expect(try reading.fetch(FetchRequest<Spot> { $0.friend == nil }).map(\.name) == ["B"])
    // Deleting the object doesn't clear it.
    reading.delete(try reading.object(with: friend))
    try reading.save()
    #expect(again.friend == friend)
  }

  @Test(arguments: TestStore.allCases) func aTemporaryIDBecomesThePermanentOneOfTheSameSave(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    let c = context.spot("C")
    try context.save()
    let a = context.spot("A"), b = context.spot("B")
    a.friend = b.objectID
    b.friend = b.objectID
    c.friend = a.objectID
    #expect(a.friend == b.objectID && a.friend?.isTemporaryID == true)
    #expect(try a.value(forKey: "friend") == .objectID(b.objectID))
    try context.save()
    #expect(a.friend == b.objectID && b.friend == b.objectID && c.friend == a.objectID && !b.objectID.isTemporaryID)
    try place.close()
    let other = try place.context()
    let again = try #require(try other.spot(named: "A")), friend = try #require(again.friend)
    #expect(try (other.existingObject(with: friend) as? Spot)?.name == "B")
    #expect(try other.spot(named: "C")?.friend == again.objectID)
  }

  /// The bug: validating it threw `wrongType`, although it can be set and saved, and the member of a snapshot was nil.
  @Test(arguments: TestStore.withChild) func aTemporaryIDIsValidAndAMemberOfSnapshots(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context(), a = context.spot("A"), b = context.spot("B")
    a.friend = b.objectID
    #expect(b.objectID.isTemporaryID)
    try a.validateValue(.objectID(b.objectID), forKey: "friend")
    let snapshot = try ManagedObjectSnapshot(a)
    #expect(snapshot.friend == b.objectID)
    try context.save()
    let c = context.spot("C")
    try snapshot.apply(to: c)
    #expect(c.friend == b.objectID && !b.objectID.isTemporaryID)
    try context.save()
  }

  private struct Stop: CompositeAttributeValue {
    var note: String?
    var spot: ManagedObjectID?
    static let elements: CompositeElements<Stop> = [.attribute("note", \.note), .attribute("spot", \.spot)]
  }

  private final class Tour: ManagedObject {
    var stop: Stop? {
      get { self[composite: 0] }
      set { self[composite: 0] = newValue }
    }
    override class var properties: [PropertyBinding] { [.composite("stop", \Tour.stop, slot: 0)] }
  }

  /// The bug: the element of the snapshot was nil, and changing another element discarded it.
  @Test(arguments: [TestStore.memory, .child]) func aTemporaryIDIsAnElementOfACompositeAttributeInASnapshot(_ store: TestStore) throws {
    let model = try ManagedObjectModel(
      entities: [EntityDescription("Tour", attributes: [.composite("stop", "Stop", isOptional: true)])],
      composites: [
        CompositeDescription(
          "Stop",
          [AttributeDescription("note", .string, isOptional: true), AttributeDescription("spot", .objectID, isOptional: true)])
      ])
    let context = try store.makePlace(model: model, classes: [Tour.self]).context()
    let tour = context.insert(Tour.self), other = context.insert(Tour.self)
    tour.stop = Stop(note: "a", spot: other.objectID)
    #expect(tour.stop?.spot == other.objectID && other.objectID.isTemporaryID)
    var snapshot = try ManagedObjectSnapshot(tour)
    #expect(snapshot.stop?.spot == other.objectID)
    snapshot.stop?.note = "b"
    try snapshot.apply(to: tour)
    #expect(tour.stop?.note == "b" && tour.stop?.spot == other.objectID)
    try context.save()
    #expect(tour.stop?.spot == other.objectID && !other.objectID.isTemporaryID)
  }

  @Test(arguments: TestStore.allCases) func aTemporaryIDThatStaysOneIsRefused(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context(), other = try place.context()
    let a = context.spot("A"), gone = context.spot("B")
    a.friend = gone.objectID
    context.delete(gone)
    let deleted = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(deleted.code == .unsavedObjectID && deleted.property == "friend" && deleted.objectID == a.objectID)
    // Nothing has changed.
    #expect(a.friend == gone.objectID && a.isInserted)
    try a.setValue(.objectID(other.spot("X").objectID), forKey: "friend")
    a.name = "Z"
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .unsavedObjectID)
    a.friend = nil
    try context.save()
    #expect(!a.hasChanges)
  }

  @Test func aSaveThatFailsLeavesTemporaryIDs() throws {
    let place = try TestStore.sqlite.makeAtlas(), context = try place.context()
    let x = context.spot("X")
    x.home = Place(zip: "1")
    try context.save()
    let a = context.spot("A"), b = context.spot("B")
    a.friend = b.objectID
    b.home = Place(zip: "1")
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .constraintConflict)
    #expect(a.friend == b.objectID && b.objectID.isTemporaryID)
    b.home = nil
    try context.save()
    #expect(a.friend == b.objectID && !b.objectID.isTemporaryID)
    #expect(try reopened(place).friend == b.objectID)
  }

  @Test func noFileCanSayATemporaryID() {
    #expect(ManagedObjectID(uriRepresentation: "x-coredata:///Spot/t5") == nil)
    for bytes: [UInt8] in [
      [], [0xFF], Array(repeating: 0xFF, count: 16), Array(repeating: 0, count: 17), [0xFF] + Array(repeating: 0, count: 16),
    ] {
      bytes.withUnsafeBytes { #expect(ManagedObjectID(rowBytes: $0) == nil) }
    }
  }

  // MARK: Enumerations

  @Test(arguments: TestStore.allCases) func enumerationsAreTheirRawValues(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    let a = context.spot("A"), b = context.spot("B")
    #expect(a.mood == nil && a.grade == .fair && a.marks == [])
    a.mood = .wild
    a.grade = .bad
    a.marks = [.wet, .cold]
    try b.setValue(.string("sleepy"), forKey: "mood")
    try b.setValue(.int16(77), forKey: "grade")
    try context.save()
    let again = try reopened(place), other = again.managedObjectContext
    #expect(again.mood == .wild && again.grade == .bad && again.marks == [.wet, .cold])
    #expect(try again.value(forKey: "mood") == .string("wild") && again.value(forKey: "marks") == .int64(5))
    // Raw values without a case are kept.
    let sleepy = try #require(try other.spot(named: "B"))
    #expect(try sleepy.mood == nil && sleepy.grade == .fair && sleepy.value(forKey: "mood") == .string("sleepy"))
    sleepy.marks = .wet
    try other.save()
    #expect(try other.fetch(FetchRequest<Spot> { $0.mood == .wild }) == [again])
    #expect(try other.fetch(FetchRequest<Spot> { $0.grade.isIn([.bad, .good]) }) == [again])
    #expect(try other.fetch(FetchRequest<Spot> { $0.marks == .wet }) == [sleepy])
    #expect(try reopened(place, "B").value(forKey: "mood") == .string("sleepy"))
  }

  // MARK: Decimals

  @Test(arguments: TestStore.allCases) func decimalsAreExact(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    let texts = ["0.1", "-79228162514264337593543950335.5", "12345678901234567890123456789012345678", "1E-20", "0"]
    for (number, text) in texts.enumerated() { context.spot("\(number)").price = Decimal(string: text) }
    try context.save()
    try place.close()
    let again = try place.context()
    for (number, text) in texts.enumerated() {
      #expect(try again.spot(named: "\(number)")?.price == Decimal(string: text), "\(text)")
    }
  }

  // MARK: Defaults

  @Test(arguments: TestStore.allCases) func newObjectsHaveDefaultsOfEveryKind(_ store: TestStore) throws {
    let friend = try #require(ManagedObjectID(uriRepresentation: "x-coredata://6DD0E5C5-2C5B-4E8E-9C9F-0A4B4B7C2F11/Spot/p7"))
    let uuid = try #require(UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
    let values: [(AttributeType, StoreValue)] = [
      (.integer16, .int16(-3)), (.integer32, .int32(70_000)), (.integer64, .int64(.min)),
      (.decimal, .decimal(Decimal(string: "0.10") ?? 0)),
      (.double, .double(-1.5)), (.float, .float(0.25)), (.string, .string("ü")), (.boolean, .bool(true)), (.date, .date(-978_307_200)),
      (.binaryData, .data(Data([0, 255]))), (.uuid, .uuid(uuid)), (.uri, .uri("a:b")), (.transformable, .data(Data([1]))),
      (.objectID, .objectID(friend)),
    ]
    #expect(Set(values.map(\.0)) == Set(AttributeType.storedCases))
    let place = try store.makePlace(
      model: ManagedObjectModel(
        entities: [
          EntityDescription(
            "Thing",
            attributes: values.map { AttributeDescription("a\($0.0.rawValue)", $0.0, default: $0.1) } + [.composite("group", "Group")])
        ], composites: [CompositeDescription("Group", [AttributeDescription("when", .date, default: .date(7))])]), classes: [])
    let context = try place.context()
    let thing = try context.insert(entityNamed: "Thing")
    for (type, value) in values { #expect(try thing.value(forKey: "a\(type.rawValue)") == .single(value)) }
    #expect(try thing.value(forKey: "group.when") == .date(7))
    try context.save()
    try place.close()
    let again = try #require(try place.context().fetch(FetchRequest<ManagedObject>(entityName: "Thing")).first)
    for (type, value) in values { #expect(try again.value(forKey: "a\(type.rawValue)") == .single(value)) }
    #expect(try again.value(forKey: "group") == .composite(["when": .single(.date(7))]))
  }
}
