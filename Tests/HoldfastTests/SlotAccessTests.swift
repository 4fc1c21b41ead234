import Foundation
import Holdfast
import HoldfastMemoryStore
import TestSupport
import Testing

/// Classes whose accessors use wrong slots. Binding the class finds them, or else the access traps.
@Suite struct SlotAccessTests {
  private static let entities = [
    EntityDescription(
      "Person",
      attributes: [
        AttributeDescription("age", .integer32, isOptional: true), AttributeDescription("first", .string, isOptional: true),
        AttributeDescription("last", .string, isOptional: true),
        AttributeDescription("score", .double, isOptional: true, isTransient: true),
      ],
      relationships: [
        .toOne("boss", to: "Person", inverse: "staff"), .toMany("staff", to: "Person", inverse: "boss"),
        .toMany("friends", to: "Person", inverse: nil), .toOne("home", to: "Place", inverse: nil),
      ]), EntityDescription("Place", attributes: [AttributeDescription("name", .string, isOptional: true)]),
  ]

  static func context(_ classes: [ManagedObject.Type]) throws -> ManagedObjectContext {
    let model = try ManagedObjectModel(entities: entities)
    return try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()), classes: classes)
  }

  private func expectMismatch(_ type: ManagedObject.Type, _ sentences: String...) throws {
    // The second attempt checks that a refused class isn't accepted later.
    for _ in 0..<2 {
      let error = try #require(throws: PersistenceError.self) { try Self.context([type]) }
      #expect(error.code == .classMismatch)
      for sentence in sentences { #expect(error.reason.contains(sentence), "\(error.reason)") }
      #expect(error.reason.split(separator: "\n").count == sentences.count + 1, "\(error.reason)")
    }
  }

  // MARK: Binding

  private final class PastedSetter: ManagedObject {
    override class var entityName: String { "Person" }
    var first: String? {
      get { self[2] }
      set { self[2] = newValue }
    }
    var last: String? {
      get { self[4] }
      set { self[2] = newValue }
    }
    override class var properties: [PropertyBinding] {
      [.attribute("first", \PastedSetter.first, slot: 2), .attribute("last", \PastedSetter.last, slot: 4)]
    }
  }

  @Test func aSetterWithTheSlotOfAnotherPropertyIsFoundWhenTheClassIsBound() throws {
    try expectMismatch(PastedSetter.self, "PastedSetter.last: Its setter uses slot 2, not 4.")
  }

  private final class SwappedGetters: ManagedObject {
    override class var entityName: String { "Person" }
    var first: String {
      get { self[4] }
      set { self[4] = newValue }
    }
    var last: String { self[2] }
    override class var properties: [PropertyBinding] {
      [.attribute("first", \SwappedGetters.first, slot: 2), .attribute("last", \SwappedGetters.last, slot: 4)]
    }
  }

  @Test func swappedAccessorsAreAllNamed() throws {
    try expectMismatch(
      SwappedGetters.self, "SwappedGetters.first: Its getter uses slot 4, not 2.", "SwappedGetters.first: Its setter uses slot 4, not 2.",
      "SwappedGetters.last: Its getter uses slot 2, not 4.")
  }

  private final class BeyondTheEnd: ManagedObject {
    override class var entityName: String { "Person" }
    var age: Int? {
      get { self[9] }
      set { self[1000] = newValue }
    }
    override class var properties: [PropertyBinding] { [.attribute("age", \BeyondTheEnd.age, slot: 0)] }
  }

  @Test func aSlotThatTheEntityDoesNotHaveIsFoundWhenTheClassIsBound() throws {
    try expectMismatch(
      BeyondTheEnd.self, "BeyondTheEnd.age: Its getter uses slot 9, not 0.", "BeyondTheEnd.age: Its setter uses slot 1000, not 0.")
  }

  private final class WrongRelationships: ManagedObject {
    override class var entityName: String { "Person" }
    var boss: WrongRelationships? {
      get { toOne(1) }
      set { setToOne(0, newValue) }
    }
    var staff: ToMany<WrongRelationships> { toMany(0) }
    var score: Double? {
      get { self[transient: 0] }
      set { self[transient: 1] = newValue }
    }
    override class var properties: [PropertyBinding] {
      [
        .toOne("boss", \WrongRelationships.boss, slot: 1), .toMany("staff", \WrongRelationships.staff, index: 1),
        .transient("score", \WrongRelationships.score, index: 0),
      ]
    }
  }

  @Test func relationshipsAndTransientAttributesAreComparedToo() throws {
    try expectMismatch(
      WrongRelationships.self, "WrongRelationships.boss: Its setter uses slot 0, not 1.",
      "WrongRelationships.staff: Its getter uses index 0, not 1.", "WrongRelationships.score: Its setter uses index 1, not 0.")
  }

  /// Unusual but correct: a getter that reads another property as well, one that is computed from a relationship, and a setter that changes
  /// several properties.
  private final class Unusual: ManagedObject {
    override class var entityName: String { "Person" }
    var age: Int32 {
      get { self[0] ?? Int32(truncatingIfNeeded: staff.count) }
      set {
        self[0] = newValue
        last = "set"
      }
    }
    var last: String? {
      get { self[4] ?? first }
      set { self[4] = newValue }
    }
    var first: String? {
      get { self[2] }
      set { self[2] = newValue }
    }
    var score: Double? {
      get { self[transient: 0] ?? Double(staff.count) }
      set { self[transient: 0] = newValue }
    }
    var staff: ToMany<Unusual> { toMany(1) }
    override class var properties: [PropertyBinding] {
      [
        .attribute("age", \Unusual.age, slot: 0), .attribute("first", \Unusual.first, slot: 2), .attribute("last", \Unusual.last, slot: 4),
        .toMany("staff", \Unusual.staff, index: 1), .transient("score", \Unusual.score, index: 0),
      ]
    }
  }

  @Test func accessorsThatDoMoreAreRight() throws {
    let context = try Self.context([Unusual.self])
    let person = context.insert(Unusual.self)
    person.age = 4
    #expect(person.age == 4 && person.last == "set" && person.score == 0)
    person.score = 3
    #expect(person.score == 3)
  }

  private final class Widest: ManagedObject {
    override class var entityName: String { "Widest" }
    var last: Int {
      get { self[4094] }
      set { self[4094] = newValue }
    }
    override class var properties: [PropertyBinding] { [.attribute("z", \Widest.last, slot: 4094)] }
  }

  @Test func theLastSlotOfTheWidestEntityIsRight() throws {
    let attributes = (0..<4094).map { AttributeDescription("a\(10_000 + $0)", .integer64, isOptional: true) }
    let model = try ManagedObjectModel(
      entities: [EntityDescription("Widest", attributes: attributes + [AttributeDescription("z", .integer64, default: .int64(0))])])
    let context = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .memory()), classes: [Widest.self])
    let object = context.insert(Widest.self)
    object.last = 7
    try context.save()
    #expect(object.last == 7)
  }

  private final class First: ManagedObject { override class var entityName: String { "Person" } }
  private final class Second: ManagedObject { override class var entityName: String { "Person" } }

  @Test func twoClassesForOneEntityAreRefusedAndBothNamed() throws {
    let error = try #require(throws: PersistenceError.self) { try Self.context([First.self, Second.self]) }
    #expect(error.code == .classMismatch && error.reason.contains("Second: First is already the class of entity Person"))
    // The same class twice is allowed.
    _ = try Self.context([First.self, First.self])
  }

  // MARK: Access

  /// Uses slots without a listed property, so that only the access itself can find them.
  final class Unlisted: ManagedObject {
    override class var entityName: String { "Person" }

    func use(_ deed: Deed) {
      switch deed {
      case .getBeyond: _ = self[9] as Int
      case .getFarBeyond: _ = self[100_000] as String
      case .getBefore: _ = self[-1] as Int
      case .setBeyond: self[9] = "x"
      case .storeBeyond: 4.store(in: self, 70)
      case .getNumberAsText: _ = self[0] as String
      case .getTextAsNumber: _ = self[2] as Int?
      case .setTextAsNumber: self[2] = 4
      case .storeNumberAsText: "x".store(in: self, 0)
      case .getTextAsBytes: _ = self[2] as Data
      case .getRelationshipAsNumber: _ = self[1] as Int64
      case .setRelationshipAsNumber: self[1] = Int64(77)
      case .bytesOfANumber: withUTF8(0) { _ in }
      case .toOneOfAnAttribute: _ = toOne(0) as Unlisted?
      case .toOneBeyond: setToOne(5, nil)
      case .toOneIDOfAnAttribute: _ = toOneID(2)
      case .toManyBeyond: _ = (toMany(2) as ToMany<Unlisted>).count
      case .orderedOfASet: _ = (ordered(1) as OrderedToMany<Unlisted>).count
      case .transientBeyond: self[transient: 1] = 4
      case .transformableOfAText: _ = self[transformable: 2] as Date?
      case .relationshipToAnotherClass:
        setToOne(3, managedObjectContext.insert(Somewhere.self))
        _ = toOne(3) as Unlisted?
      }
    }
  }

  final class Somewhere: ManagedObject { override class var entityName: String { "Place" } }

  enum Deed: String, CaseIterable, Sendable, Codable {
    case getBeyond, getFarBeyond, getBefore, setBeyond, storeBeyond, getNumberAsText, getTextAsNumber, setTextAsNumber, storeNumberAsText,
      getTextAsBytes, getRelationshipAsNumber, setRelationshipAsNumber, bytesOfANumber, toOneOfAnAttribute, toOneBeyond,
      toOneIDOfAnAttribute, toManyBeyond, orderedOfASet, transientBeyond, transformableOfAText, relationshipToAnotherClass
  }

  @Test(.ownThreads, arguments: Deed.allCases) func aWrongAccessTrapsWithASentence(_ deed: Deed) async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [deed = deed as Deed] in
      let context = try SlotAccessTests.context([Unlisted.self, Somewhere.self])
      context.insert(Unlisted.self).use(deed)
    }
    let output = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(output.contains("Unlisted used ") || output.contains("An accessor names Unlisted"), "\(output.prefix(400))")
  }
}
