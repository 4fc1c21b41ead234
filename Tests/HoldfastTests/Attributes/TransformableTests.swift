import FoundationEssentials
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// Transformable attributes: values of any type with registered transformers, on every store.
@Suite struct TransformableTests {
  private static let red = Colour(red: 255, green: 0, blue: 0), black = Colour(red: 0, green: 0, blue: 0)

  private func reopened(_ place: TestStore.Place) throws -> Spot {
    try place.close()
    return try #require(try place.context().spot(named: "A"))
  }

  @Test(arguments: TestStore.allCases) func valuesAreKeptAsTheBytesOfTheirTransformers(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    let spot = context.spot("A")
    #expect(spot.colour == nil && spot.tags == [:])
    spot.colour = Self.red
    spot.tags = ["b": 2, "a": 0.5]
    #expect(spot.colour == Self.red && spot.tags == ["a": 0.5, "b": 2])
    try context.save()
    #expect(spot.colour == Self.red)

    let again = try reopened(place)
    #expect(again.colour == Self.red && again.tags == ["a": 0.5, "b": 2])
    #expect(try again.value(forKey: "colour") == .data(Data([255, 0, 0])))
    #expect(try again.value(forKey: "tags") == .data(Data(#"{"a":0.5,"b":2}"#.utf8)))
    again.colour = nil
    try again.managedObjectContext.save()
    let last = try reopened(place)
    #expect(last.colour == nil)
    #expect(try last.value(forKey: "colour") == .null)
  }

  @Test(arguments: [TestStore.memory, .sqlite]) func settingTheSameValueSavesNothing(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    context.spot("A").tags = ["x": 1, "y": 2, "z": 3]
    try context.save()
    let (other, recorder) = try place.recording()
    let spot = try #require(try other.spot(named: "A"))
    recorder.clear()
    spot.tags = ["z": 3, "y": 2, "x": 1]
    try other.save()
    #expect(recorder.saves.isEmpty)
  }

  @Test func anUnusedTransformerNeedNotBeRegistered() throws {
    let place = try TestStore.memory.makeAtlas(), context = try place.context()
    let spot = context.spot("A")
    spot.unknown = Data([1, 2])
    try spot.setValue(.data(Data([3])), forKey: "colour")
    try context.save()
    let again = try reopened(place)
    #expect(again.unknown == Data([1, 2]))
    let error = try #require(throws: PersistenceError.self) { try again.transformableValue(Spot.Slot.unknown, as: Data.self) }
    #expect(error.code == .transformationFailed && error.property == "unknown" && error.coreDataCode == 1550)
  }

  @Test(arguments: TestStore.allCases) func bytesThatAreNoValueReadAsNilAndTheErrorIsKept(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    let spot = context.spot("A")
    try spot.setValue(.data(Data([1, 2, 3, 4])), forKey: "colour")
    try spot.setValue(.data(Data("{\"a\":".utf8)), forKey: "tags")
    try context.save()
    let again = try reopened(place)
    #expect(again.managedObjectContext.faultError == nil)
    #expect(again.colour == nil && again.tags == [:])
    let kept = try #require(again.managedObjectContext.faultError as? PersistenceError)
    #expect(kept.code == .transformationFailed && kept.property == "tags" && kept.cause is DecodingError)
    let error = try #require(throws: PersistenceError.self) { try again.transformableValue(Spot.Slot.colour, as: Colour.self) }
    #expect(error.code == .transformationFailed && error.cause is ColourTransformer.Wrong && error.objectID == again.objectID)
    // An undecodable value doesn't prevent a save, and is kept.
    again.managedObjectContext.acknowledgeFaultErrors()
    again.grade = .bad
    try again.managedObjectContext.save()
    #expect(try reopened(place).value(forKey: "colour") == .data(Data([1, 2, 3, 4])))
  }

  @Test(arguments: TestStore.allCases) func theValueOfAnUnreadableObjectThrowsTheErrorOfTheStore(_ store: TestStore) throws {
    let place = try store.makeAtlas(), first = try place.context()
    let saved = first.spot("A")
    saved.colour = Self.red
    try first.save()
    let id = saved.objectID
    let (context, failing) = try place.faulty()
    let spot = try #require(context.object(with: id) as? Spot)
    for call in [FaultInjectingStore.Call.rows, .beginRead] {
      failing.fail(call, with: StoreError(.locked, operation: "read", reason: "The test says so.", isRetryable: true))
    }
    #expect(throws: StoreError.self) { try spot.transformableValue(Spot.Slot.colour, as: Colour.self) }
    failing.clear()
    #expect(try context.faultError == nil && spot.transformableValue(Spot.Slot.colour, as: Colour.self) == Self.red)
  }

  /// The bug: the error of an earlier read remained the last one.
  @Test func theGetterOfADeletedObjectKeepsTheError() throws {
    let first = try TestStore.memory.makeAtlas().context(), coordinator = first.persistentStoreCoordinator
    let spots = ["A", "B"].map { first.spot($0) }
    try spots[0].setValue(.data(Data([1, 2, 3, 4])), forKey: "colour")
    try first.save()
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [Spot.self])
    let others = try spots.map { try #require(context.object(with: $0.objectID) as? Spot) }
    #expect(others[0].colour == nil && (context.faultError as? PersistenceError)?.code == .transformationFailed)
    first.delete(spots[1])
    try first.save()
    #expect(others[1].colour == nil && (context.faultError as? PersistenceError)?.code == .missingObject)
  }

  /// Reads another object when it gets its row.
  private final class WakingSpot: Spot {
    @TaskLocal static var read: @Sendable (ManagedObjectContext) -> Void = { _ in }
    override func awakeFromFetch() { Self.read(managedObjectContext) }
  }

  /// The bug: the getter returned nil because of the error of another object.
  @Test func theGetterOfAnObjectWhoseAwakeningMeetsAnErrorReturnsItsValue() throws {
    let place = try TestStore.memory.makeAtlas(), setup = try place.context()
    let spots = ["A", "B"].map { setup.spot($0) }
    for spot in spots { spot.colour = Self.red }
    try setup.save()
    let (other, failing) = try place.faulty(), ids = spots.map(\.objectID)
    let context = try ManagedObjectContext(coordinator: other.persistentStoreCoordinator, classes: [WakingSpot.self])
    let spot = try #require(context.object(with: ids[0]) as? Spot)
    WakingSpot.$read.withValue({ context in
      for call in [FaultInjectingStore.Call.rows, .beginRead] {
        failing.fail(call, with: StoreError(.locked, operation: "read", reason: "The test says so."))
      }
      _ = (try? context.object(with: ids[1]) as? Spot)?.name
      failing.clear()
    }) { #expect(spot.colour == Self.red) }
    #expect((context.faultError as? StoreError)?.code == .locked)
  }

  @Test func aTransformerIsAskedForItsOwnTypeOnly() throws {
    let context = try TestStore.memory.makeAtlas().context()
    let spot = context.spot("A")
    spot.colour = Self.red
    let wrong = try #require(throws: PersistenceError.self) { try spot.transformableValue(Spot.Slot.colour, as: String.self) }
    #expect(wrong.code == .transformationFailed && wrong.cause == nil)
    #expect(throws: PersistenceError.self) { try spot.setTransformableValue("red", Spot.Slot.colour) }
    #expect(spot.colour == Self.red)
  }

  @Test(arguments: TestStore.allCases) func aValueThatCannotBeEncodedRefusesTheSaveUntilItIsSetAgain(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context()
    let spot = context.spot("A")
    spot.colour = Self.red
    try context.save()
    spot.colour = Self.black
    #expect(spot.colour == Self.red && spot.isUpdated)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .transformationFailed && error.property == "colour" && error.objectID == spot.objectID)
    // Together with the violations of the model's rules.
    let other = context.insert(Spot.self)
    let both = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(both.code == .multipleValidationFailures && both.failures.count == 3)
    #expect(both.failures.filter { $0.code == .missingMandatoryValue && $0.objectID == other.objectID }.count == 2)
    context.delete(other)
    spot.colour = Colour(red: 1, green: 2, blue: 3)
    try context.save()
    #expect(try reopened(place).colour == Colour(red: 1, green: 2, blue: 3))
  }

  /// The bug: the save succeeded, without the value that the property had refused.
  @Test(arguments: TestStore.withChild) func anotherValueThatCannotBeEncodedDoesNotMakeTheSaveSucceed(_ store: TestStore) throws {
    let context = try store.makeAtlas().context(), spot = context.spot("A")
    spot.colour = Self.red
    try context.save()
    spot.colour = Self.black
    #expect(throws: PersistenceError.self) { try spot.setTransformableValue(Self.black, Spot.Slot.colour) }
    spot.colour = Self.black
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .transformationFailed)
    #expect(context.core.changes.refusedValues.count == 1)
    #expect(throws: PersistenceError.self) { try spot.setTransformableValue("red", Spot.Slot.colour) }
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .transformationFailed)
    try spot.setTransformableValue(Self.red, Spot.Slot.colour)
    try context.save()
    #expect(context.core.changes.refusedValues.isEmpty)
  }

  /// The bug: each value was looked for among all values that couldn't be encoded.
  @Test func manyValuesThatCannotBeEncodedDoNotTakeQuadraticTime() throws {
    func time(_ count: Int) throws -> Duration {
      let context = try TestStore.memory.makeAtlas().context(), spots = (0..<count).map { context.spot("\($0)") }
      let time = processorTime {
        for spot in spots { spot.colour = Self.black }
        for spot in spots { spot.colour = nil }
      }
      #expect(context.core.changes.refusedValues.isEmpty && spots.count == count)
      return time
    }
    // 32 times as many values; quadratic time would be 1,024 times as long.
    try expectCost(below: 100, times: { try time(1_000) }) { try time(32_000) }
  }

  @Test func valuesThatCannotBeEncodedAreReportedInTheOrderInWhichTheyWereSet() throws {
    let context = try TestStore.memory.makeAtlas().context(), spots = (0..<20).map { context.spot("\($0)") }
    for spot in spots { spot.colour = Self.black }
    spots[3].colour = Self.black
    spots[5].colour = Self.red
    let expected = spots.indices.filter { $0 != 3 && $0 != 5 } + [3]
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.failures.compactMap(\.objectID) == expected.map { spots[$0].objectID })
  }

  /// The bug: the save of the parent reported the value that the child had replaced.
  @Test(arguments: TestStore.allCases) func aChildReplacesAValueOfItsParentThatCannotBeEncoded(_ store: TestStore) throws {
    let place = try store.makeAtlas(), parent = try place.context(), spot = parent.spot("A")
    try parent.save()
    let child = ManagedObjectContext(parent: parent), own = try #require(try child.spot(named: "A"))
    spot.colour = Self.black
    own.colour = Self.red
    try child.save()
    #expect(spot.colour == Self.red)
    try parent.save()
    #expect(try reopened(place).colour == Self.red)
  }

  @Test(arguments: TestStore.allCases) func aChildThatInsertsAnObjectAgainReplacesAValueOfItsParentThatCannotBeEncoded(
    _ store: TestStore
  ) throws {
    let place = try store.makeAtlas(), parent = try place.context(), spot = parent.spot("A")
    try parent.save()
    let child = ManagedObjectContext(parent: parent), own = try #require(try child.spot(named: "A"))
    spot.colour = Self.black
    parent.delete(spot)
    own.colour = Self.red
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    #expect(spot.colour == Self.red)
    try parent.save()
    #expect(try reopened(place).colour == Self.red)
  }

  /// Otherwise the error could be that of another object, which takes the place of the removed one in memory.
  @Test(arguments: [false, true]) func anObjectThatIsRemovedToResolveAConflictLeavesNoRefusedValue(isDuplicate: Bool) throws {
    let place = try TestStore.memory.makeAtlas(), ours = try place.context(), theirs = try place.context(), spot = ours.spot("A")
    if isDuplicate {
      spot.home = Place(zip: "1")
      theirs.spot("B").home = Place(zip: "1")
    } else {
      try ours.save()
      theirs.delete(try #require(try theirs.spot(named: "A")))
      spot.name = "C"
    }
    try theirs.save()
    let other = try ours.spot(named: "B")
    let error = try #require(throws: PersistenceError.self) { try ours.save() }
    spot.colour = Self.black
    #expect(ours.core.changes.refusedValues.count == 1 && (other != nil) == isDuplicate)
    try ours.resolveConflicts(of: error, using: .mergeByPropertyStoreTrump)
    #expect(ours.core.changes.refusedValues.isEmpty && spot.isInaccessible)
    try ours.save()
  }

  @Test func whatCannotBeEncodedIsGivenUpWithTheChanges() throws {
    let context = try TestStore.memory.makeAtlas().context()
    let spot = context.spot("A")
    try context.save()
    spot.colour = Self.black
    context.rollback()
    try context.save()
    spot.colour = Self.black
    try context.refresh(spot, mergeChanges: false)
    try context.save()
    spot.colour = Self.black
    try spot.setValue(.data(Data([9, 9, 9])), forKey: "colour")
    try context.save()
    spot.colour = Self.black
    context.delete(spot)
    try context.save()
    #expect(throws: PersistenceError.self) { try context.spot("B").setTransformableValue(Self.black, Spot.Slot.colour) }
    try context.save()
    #expect(context.core.changes.refusedValues.isEmpty)
  }

  /// The refused value of an object that was deleted must not be reported for another one that takes its place in memory.
  @Test func aSaveThatDeletesAnObjectForgetsItsRefusedValues() throws {
    let context = try TestStore.memory.makeAtlas().context()
    for number in 0..<200 {
      let spot = context.spot("\(number)")
      try context.save()
      spot.colour = Self.black
      context.delete(spot)
      try context.save()
    }
    let deleted = context.spot("new")
    deleted.colour = Self.black
    context.delete(deleted)
    try context.save()
    #expect(context.core.changes.refusedValues.isEmpty)
  }

  @Test func bothFormatsOfCodableValuesComeBack() throws {
    struct Entry: Codable, Hashable { var name: String, when: Date, parts: [Int?] }
    let entries = [Entry(name: "ü\n\"", when: Date(timeIntervalSinceReferenceDate: 12.25), parts: [1, nil, .max])]
    for format in [CodableTransformer<[Entry]>.Format.json, .propertyList] {
      let transformer = CodableTransformer<[Entry]>(format)
      #expect(try transformer.value(from: transformer.data(from: entries)) == entries)
      #expect(throws: (any Error).self) { try transformer.value(from: Data([0, 1, 2])) }
    }
    #expect(throws: (any Error).self) { try CodableTransformer<[Double]>().data(from: [.nan]) }
    // The encoder itself writes a decimal NaN, which can't be decoded.
    #expect(throws: EncodingError.self) { try CodableTransformer<[Decimal]>().data(from: [1, .nan]) }
    let texts = ["NaN", "\"N", "\\", "N\\\"N", "\n"], transformer = CodableTransformer<[String]>()
    #expect(try transformer.value(from: transformer.data(from: texts)) == texts)
  }

  /// Programs log errors. The errors of Foundation's coders contain numbers and the keys of dictionaries.
  @Test func errorsOfCodableValuesDoNotContainThem() throws {
    let decoding = try #require(throws: DecodingError.self) {
      try CodableTransformer<[String: Int8]>().value(from: Data("{\"Ann\":73417341}".utf8))
    }
    let encoding = try #require(throws: EncodingError.self) { try CodableTransformer<[String: Double]>().data(from: ["Ann": .nan]) }
    for text in ["\(decoding)", "\(encoding)"] {
      #expect(!text.contains("Ann") && !text.contains("7341") && text.contains("json"), "\(text)")
    }
  }

  @Test(arguments: TestStore.allCases) func withoutAnotherTransformerValuesAreKeyedArchivesOfPropertyLists(_ store: TestStore) throws {
    final class Memo: ManagedObject {
      var body: PropertyList? {
        get { self[transformable: 0] }
        set { self[transformable: 0] = newValue }
      }
      override class var properties: [PropertyBinding] { [.transformable("body", \Memo.body, slot: 0)] }
    }
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Memo", attributes: [.transformable("body", by: nil, isOptional: true)])
    ])
    let place = try store.makePlace(model: model, classes: [Memo.self]), context = try place.context()
    let list = PropertyList.dictionary([
      "names": .array([.string("Ann"), .integer(-3), .real(0.5)]), "when": .date(7), "bytes": .data([0, 255]), "yes": .bool(true),
    ])
    context.insert(Memo.self).body = list
    try context.save()
    try place.close()
    let memo = try #require(try place.context().fetch(FetchRequest<Memo>()).first)
    #expect(memo.body == list)
    // Bytes of unknown meaning, and an archive of an object with a class.
    try memo.setValue(.data(Data([1, 2, 3])), forKey: "body")
    #expect(memo.body == nil)
    let archive = PropertyList.dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000), "$top": .dictionary(["root": .uid(1)]),
      "$objects": .array([
        .string("$null"), .dictionary(["$class": .uid(2)]),
        .dictionary(["$classname": .string("Trojan"), "$classes": .array([.string("Trojan"), .string("NSObject")])]),
      ]),
    ])
    try memo.setValue(.data(Data(archive.binary)), forKey: "body")
    let error = try #require(throws: PersistenceError.self) { try memo.transformableValue(0, as: PropertyList.self) }
    #expect(error.code == .transformationFailed && error.cause is PropertyListError)
  }

  /// The bug: it was saved, and couldn't be read again.
  @Test func aPropertyListBeyondTheLimitsOfReadingIsRefused() throws {
    let transformer = KeyedArchiveTransformer()
    func nested(_ count: Int) -> PropertyList { (0..<count).reduce(.integer(1)) { list, _ in .array([list]) } }
    #expect(try transformer.value(from: transformer.data(from: nested(128))) == nested(128))
    let error = try #require(throws: PropertyListError.self) { try transformer.data(from: nested(129)) }
    #expect(error.code == .tooDeep)
  }

  @Test func namesThatApplesModelsUseAreThoseOfTheDefault() {
    var registry: AttributeTransformerRegistry = ["ColourTransformer": ColourTransformer()]
    #expect(registry[nil] is KeyedArchiveTransformer && registry["NSKeyedUnarchiveFromData"] is KeyedArchiveTransformer)
    registry.defaultTransformer = CodableTransformer<[Int]>()
    #expect(registry[nil] is CodableTransformer<[Int]> && registry["NSSecureUnarchiveFromData"] is CodableTransformer<[Int]>)
    #expect(registry["NSSecureUnarchiveFromDataTransformer"] is CodableTransformer<[Int]> && registry["Nobody"] == nil)
    registry.register(ColourTransformer(), forName: "NSKeyedUnarchiveFromData")
    #expect(
      registry["NSKeyedUnarchiveFromData"] is ColourTransformer && registry.names == ["ColourTransformer", "NSKeyedUnarchiveFromData"])
  }
}
