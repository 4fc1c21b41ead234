import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// Files in which an object lacks a value that its model requires. Only saves check required values, so such a file opens and can be read
/// and repaired.
@Suite(.bothReaders) struct JSONMissingValueTests {
  private let file: JSONFile
  private let whole: String

  init() throws {
    file = try JSONFile()
    let context = try Card.context(file)
    let card = context.insert(Card.self)
    card.fill()
    try context.save()
    try context.persistentStoreCoordinator.close()
    whole = try file.text()
  }

  /// The object's line without its values, or with null for each.
  private func write(hasNulls: Bool) throws {
    let begin = try #require(whole.range(of: "{\"$key\":1,\"a\":")),
      end = try #require(whole.range(of: "}\n]", range: begin.upperBound..<whole.endIndex))
    let nulls = Card.names.map { ",\"\($0)\":null" }.joined()
    try file.write(
      JSONFile.sealed(whole.replacingCharacters(in: begin.lowerBound..<end.lowerBound, with: "{\"$key\":1" + (hasNulls ? nulls : ""))))
  }

  @Test(arguments: [false, true]) func mandatoryValuesThatAreMissingReadAsZerosOfTheirTypesAndAsNull(hasNulls: Bool) throws {
    try write(hasNulls: hasNulls)
    let context = try Card.context(file)
    let card = try #require(try context.fetch(FetchRequest<Card>()).first)
    #expect(card.values == Card.zeros)
    for name in Card.names { #expect(try card.value(forKey: name) == .null, "\(name)") }
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: [false, true]) func whatLacksAValueIsRefusedWhenItIsSavedAndLeftAloneUntilThen(hasNulls: Bool) throws {
    try write(hasNulls: hasNulls)
    var context = try Card.context(file)
    // A save of other objects doesn't check it.
    context.insert(Card.self).fill()
    try context.save()
    let card = try #require(try context.fetch(FetchRequest<Card>()).first { $0.j.isEmpty })
    card.j = "here again"
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .multipleValidationFailures && error.failures.count == Card.names.count - 1, "\(error)")
    #expect(Set(error.failures.compactMap(\.property)) == Set(Card.names).subtracting(["j"]))
    card.fill()
    try context.save()
    try context.persistentStoreCoordinator.close()
    context = try Card.context(file)
    let cards = try context.fetch(FetchRequest<Card>())
    #expect(cards.count == 2 && cards[0].values == cards[1].values && cards[0].values != Card.zeros)
    try context.persistentStoreCoordinator.close()
  }
}

/// An object with a required attribute of each type.
private final class Card: ManagedObject {
  override class var entityName: String { "Card" }
  static let types: [AttributeType] = [
    .boolean, .binaryData, .date, .decimal, .double, .float, .integer16, .integer32, .integer64, .string, .uri, .uuid,
  ]
  static let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]
  static let zeros: [StoreValue] = [
    .bool(false), .data(Data()), .date(0), .decimal(0), .double(0), .float(0), .int16(0), .int32(0), .int64(0), .string(""), .string(""),
    .uuid(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))),
  ]

  static func context(_ file: JSONFile) throws -> ManagedObjectContext {
    let attributes = zip(names, types).map { AttributeDescription($0, $1) }
    let model = try ManagedObjectModel(entities: [EntityDescription("Card", attributes: attributes)])
    return try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .json(at: file.path)), classes: [Card.self])
  }

  var a: Bool {
    get { self[0] }
    set { self[0] = newValue }
  }
  var b: Data {
    get { self[1] }
    set { self[1] = newValue }
  }
  var c: Date {
    get { self[2] }
    set { self[2] = newValue }
  }
  var d: Decimal {
    get { self[3] }
    set { self[3] = newValue }
  }
  var e: Double {
    get { self[4] }
    set { self[4] = newValue }
  }
  var f: Float {
    get { self[5] }
    set { self[5] = newValue }
  }
  var g: Int16 {
    get { self[6] }
    set { self[6] = newValue }
  }
  var h: Int32 {
    get { self[7] }
    set { self[7] = newValue }
  }
  var i: Int64 {
    get { self[8] }
    set { self[8] = newValue }
  }
  var j: String {
    get { self[9] }
    set { self[9] = newValue }
  }
  var k: String {
    get { self[10] }
    set { self[10] = newValue }
  }
  var l: UUID {
    get { self[11] }
    set { self[11] = newValue }
  }

  var values: [StoreValue] {
    [
      a.storeValue, b.storeValue, c.storeValue, d.storeValue, e.storeValue, f.storeValue, g.storeValue, h.storeValue, i.storeValue,
      j.storeValue, k.storeValue, l.storeValue,
    ]
  }

  func fill() {
    (a, b, c, d, e, f) = (true, Data([1]), Date(timeIntervalSinceReferenceDate: 1), 1, 1, 1)
    (g, h, i, j, k, l) = (1, 1, 1, "1", "x:1", UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
  }

  override class var properties: [PropertyBinding] {
    [
      .attribute("a", \Card.a, slot: 0), .attribute("b", \Card.b, slot: 1), .attribute("c", \Card.c, slot: 2),
      .attribute("d", \Card.d, slot: 3), .attribute("e", \Card.e, slot: 4), .attribute("f", \Card.f, slot: 5),
      .attribute("g", \Card.g, slot: 6), .attribute("h", \Card.h, slot: 7), .attribute("i", \Card.i, slot: 8),
      .attribute("j", \Card.j, slot: 9), .attribute("k", \Card.k, slot: 10), .attribute("l", \Card.l, slot: 11),
    ]
  }
}
