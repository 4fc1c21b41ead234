import FoundationEssentials
import Holdfast

/// A model with attributes of every kind, and classes for it.
enum Atlas {
  static let point = CompositeDescription(
    "Point", [AttributeDescription("longitude", .double), AttributeDescription("latitude", .double, default: .double(1))])
  static let place = CompositeDescription(
    "Place",
    [
      AttributeDescription("zip", .string, isOptional: true), .composite("at", "Point", isOptional: true),
      AttributeDescription("city", .string, isOptional: true), AttributeDescription("since", .date, isOptional: true),
    ])

  static let spot: EntityDescription = {
    var spot = EntityDescription(
      "Spot",
      attributes: [
        AttributeDescription("name", .string), .composite("home", "Place", isOptional: true), .composite("origin", "Point"),
        .transformable("colour", by: "ColourTransformer", isOptional: true), .transformable("tags", by: "Tags", isOptional: true),
        .transformable("unknown", by: "Nobody", isOptional: true), AttributeDescription("link", .uri, isOptional: true),
        AttributeDescription("text", .uri, isOptional: true), AttributeDescription("friend", .objectID, isOptional: true),
        AttributeDescription("mood", .string, isOptional: true), AttributeDescription("grade", .integer16, isOptional: true),
        AttributeDescription("marks", .integer64, isOptional: true), AttributeDescription("price", .decimal, isOptional: true),
        AttributeDescription("score", .double, isOptional: true, isTransient: true, default: .double(2.5)),
        AttributeDescription("note", .undefined, isOptional: true, isTransient: true),
        AttributeDescription("hits", .integer32, isOptional: true, isTransient: true),
      ],
      relationships: [.toOne("near", to: "Spot", inverse: "nearby"), .toMany("nearby", to: "Spot", inverse: "near")])
    spot.uniquenessConstraints = [["home.zip"]]
    spot.indexes = [FetchIndexDescription("byCity", ["home.city", "home.at.latitude"])]
    return spot
  }()

  static let model: ManagedObjectModel = {
    do { return try ManagedObjectModel(entities: [spot], composites: [point, place]) } catch { fatalError("\(error)") }
  }()

  static let transformers: AttributeTransformerRegistry = [
    "ColourTransformer": ColourTransformer(), "Tags": CodableTransformer<[String: Double]>(),
  ]
}

struct Point: CompositeAttributeValue, Hashable {
  var longitude = 0.0
  var latitude = 0.0
  static let elements: CompositeElements<Point> = [.attribute("longitude", \.longitude), .attribute("latitude", \.latitude)]
}

struct Place: CompositeAttributeValue, Hashable {
  var zip: String?
  var city: String?
  var at: Point?
  var since: Date?
  static let elements: CompositeElements<Place> = [
    .attribute("zip", \.zip), .attribute("city", \.city), .composite("at", \.at), .attribute("since", \.since),
  ]
}

struct Colour: Hashable, Sendable {
  var red: UInt8
  var green: UInt8
  var blue: UInt8
}

struct ColourTransformer: AttributeTransformer {
  struct Wrong: Error {}
  func data(from colour: Colour) throws -> Data {
    // Black is refused, so that tests have an unsupported value.
    if colour == Colour(red: 0, green: 0, blue: 0) { throw Wrong() }
    return Data([colour.red, colour.green, colour.blue])
  }
  func value(from data: Data) throws -> Colour {
    let bytes = Array(data)
    guard bytes.count == 3 else { throw Wrong() }
    return Colour(red: bytes[0], green: bytes[1], blue: bytes[2])
  }
}

enum Mood: String, CaseIterable, AttributeValue { case calm, wild }
enum Grade: Int16, CaseIterable, AttributeValue { case good = 1, fair = 0, bad = 5 }
struct Flags: OptionSet, AttributeValue {
  let rawValue: Int64
  static let wet = Flags(rawValue: 1)
  static let cold = Flags(rawValue: 4)
}

class Spot: ManagedObject {
  enum Slot {
    static let colour: SlotIndex = 0, friend: SlotIndex = 1, grade: SlotIndex = 2, home: SlotIndex = 3, link: SlotIndex = 8
    static let marks: SlotIndex = 9, mood: SlotIndex = 10, name: SlotIndex = 11, near: SlotIndex = 12, origin: SlotIndex = 13
    static let price: SlotIndex = 15, tags: SlotIndex = 16, text: SlotIndex = 17, unknown: SlotIndex = 18
    static let nearby = 0
    static let hits = 0, note = 1, score = 2
  }
  override class var entityName: String { "Spot" }
  var colour: Colour? {
    get { self[transformable: Slot.colour] }
    set { self[transformable: Slot.colour] = newValue }
  }
  var marks: Flags {
    get { self[Slot.marks] }
    set { self[Slot.marks] = newValue }
  }
  var friend: ManagedObjectID? {
    get { self[Slot.friend] }
    set { self[Slot.friend] = newValue }
  }
  var grade: Grade {
    get { self[Slot.grade] }
    set { self[Slot.grade] = newValue }
  }
  var home: Place? {
    get { self[composite: Slot.home] }
    set { self[composite: Slot.home] = newValue }
  }
  var link: URL? {
    get { self[Slot.link] }
    set { self[Slot.link] = newValue }
  }
  var mood: Mood? {
    get { self[Slot.mood] }
    set { self[Slot.mood] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var near: Spot? {
    get { toOne(Slot.near) }
    set { setToOne(Slot.near, newValue) }
  }
  var origin: Point {
    get { self[composite: Slot.origin] ?? Point() }
    set { self[composite: Slot.origin] = newValue }
  }
  var price: Decimal? {
    get { self[Slot.price] }
    set { self[Slot.price] = newValue }
  }
  var tags: [String: Double] {
    get { self[transformable: Slot.tags] ?? [:] }
    set { self[transformable: Slot.tags] = newValue }
  }
  var text: String {
    get { self[Slot.text] }
    set { self[Slot.text] = newValue }
  }
  var unknown: Data? {
    get { self[Slot.unknown] }
    set { self[Slot.unknown] = newValue }
  }
  var hits: Int {
    get { self[transient: Slot.hits] ?? 0 }
    set { self[transient: Slot.hits] = newValue }
  }
  /// Any value, including types that attributes don't support.
  var note: [Colour]? {
    get { self[transient: Slot.note] }
    set { self[transient: Slot.note] = newValue }
  }
  var score: Double? {
    get { self[transient: Slot.score] }
    set { self[transient: Slot.score] = newValue }
  }
  var nearby: ToMany<Spot> { toMany(Slot.nearby) }

  override class var properties: [PropertyBinding] {
    [
      .transformable("colour", \Spot.colour, slot: Slot.colour), .attribute("marks", \Spot.marks, slot: Slot.marks),
      .attribute("friend", \Spot.friend, slot: Slot.friend), .attribute("grade", \Spot.grade, slot: Slot.grade),
      .composite("home", \Spot.home, slot: Slot.home), .attribute("link", \Spot.link, slot: Slot.link),
      .attribute("mood", \Spot.mood, slot: Slot.mood), .attribute("name", \Spot.name, slot: Slot.name),
      .toOne("near", \Spot.near, slot: Slot.near), .composite("origin", \Spot.origin, slot: Slot.origin),
      .attribute("price", \Spot.price, slot: Slot.price), .transformable("tags", \Spot.tags, slot: Slot.tags),
      .attribute("text", \Spot.text, slot: Slot.text), .attribute("unknown", \Spot.unknown, slot: Slot.unknown),
      .transient("hits", \Spot.hits, index: Slot.hits), .transient("note", \Spot.note, index: Slot.note),
      .transient("score", \Spot.score, index: Slot.score), .toMany("nearby", \Spot.nearby, index: Slot.nearby),
    ]
  }
}

extension TestStore {
  /// A place with the atlas's model and classes.
  func makeAtlas() throws -> Place { Place(self, Atlas.model, [Spot.self], Atlas.transformers) }
}

extension ManagedObjectContext {
  @discardableResult func spot(_ name: String) -> Spot {
    let spot = insert(Spot.self)
    spot.name = name
    spot.origin.longitude = 7
    return spot
  }

  func spot(named name: String) throws -> Spot? { try one(Spot.self) { $0.name == name } }
}
