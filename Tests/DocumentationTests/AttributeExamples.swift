// swift-format-ignore-file
// The examples of *Attributes*, word for word; `SnippetTests` compares them, `AttributeTests` runs them.
import FoundationEssentials
import Holdfast
import HoldfastMemoryStore

struct Position: CompositeAttributeValue {
  var latitude = 0.0
  var longitude = 0.0
  var name: String?
  static let elements: CompositeElements<Position> = [
    .attribute("latitude", \.latitude), .attribute("longitude", \.longitude), .attribute("name", \.name),
  ]
}

struct Palette: Codable, Sendable {
  var colours: [String]
}

enum Terrain: Int16, CaseIterable, AttributeValue { case unknown, wood, heath, shore }

final class Trail: ManagedObject {
  enum Slot {
    static let palette: SlotIndex = 0, photo: SlotIndex = 1, site: SlotIndex = 2, start: SlotIndex = 3, terrain: SlotIndex = 6
    static let title: SlotIndex = 7, toll: SlotIndex = 8
    static let walkedToday = 0
  }
  override class var entityName: String { "Trail" }
  var palette: Palette? { get { self[transformable: Slot.palette] } set { self[transformable: Slot.palette] = newValue } }
  var photo: ManagedObjectID? { get { self[Slot.photo] } set { self[Slot.photo] = newValue } }
  var site: URL? { get { self[Slot.site] } set { self[Slot.site] = newValue } }
  var start: Position? { get { self[composite: Slot.start] } set { self[composite: Slot.start] = newValue } }
  var terrain: Terrain { get { self[Slot.terrain] } set { self[Slot.terrain] = newValue } }
  var title: String { get { self[Slot.title] } set { self[Slot.title] = newValue } }
  var toll: Decimal? { get { self[Slot.toll] } set { self[Slot.toll] = newValue } }
  var walkedToday: Bool { get { self[transient: Slot.walkedToday] ?? false } set { self[transient: Slot.walkedToday] = newValue } }
  override class var properties: [PropertyBinding] {
    [
      .transformable("palette", \Trail.palette, slot: Slot.palette), .attribute("photo", \Trail.photo, slot: Slot.photo),
      .attribute("site", \Trail.site, slot: Slot.site), .composite("start", \Trail.start, slot: Slot.start),
      .attribute("terrain", \Trail.terrain, slot: Slot.terrain), .attribute("title", \Trail.title, slot: Slot.title),
      .attribute("toll", \Trail.toll, slot: Slot.toll), .transient("walkedToday", \Trail.walkedToday, index: Slot.walkedToday),
    ]
  }
}

func trailModel() throws -> ManagedObjectModel {
  try ManagedObjectModel(
    entities: [
      EntityDescription(
        "Trail",
        attributes: [
          .transformable("palette", by: "Palette", isOptional: true), AttributeDescription("photo", .objectID, isOptional: true),
          AttributeDescription("site", .uri, isOptional: true), .composite("start", "Position", isOptional: true),
          AttributeDescription("terrain", .integer16, default: .int16(0)), AttributeDescription("title", .string),
          AttributeDescription("toll", .decimal, isOptional: true),
          AttributeDescription("walkedToday", .boolean, isTransient: true, default: .bool(false)),
        ])
    ],
    composites: [
      CompositeDescription(
        "Position",
        [
          AttributeDescription("latitude", .double), AttributeDescription("longitude", .double),
          AttributeDescription("name", .string, isOptional: true),
        ])
    ])
}

@MainActor func northernTrails() throws -> [String] {
  let container = try PersistentContainer(
    model: trailModel(), classes: [Trail.self], transformers: ["Palette": CodableTransformer<Palette>()], store: .memory())
  let context = container.viewContext
  for (title, latitude) in [("Besseggen", 61.5), ("Hadrian's Wall", 55.0)] {
    let trail = context.insert(Trail.self)
    trail.title = title
    trail.start = Position(latitude: latitude, longitude: 0)
    trail.palette = Palette(colours: ["grey", "green"])
    trail.toll = Decimal(string: "7.50")
  }
  try context.save()

  let north = FetchRequest<Trail>(sortedBy: [.ascending(\.start.latitude)]) { $0.start.latitude > 60 }
  return try context.fetch(north).map { "\($0.title) \(try $0.value(forKeyPath: "start.latitude").storeValue ?? .null)" }
}

// The examples in comments of what attributes are made of.
enum SmallAtlas {
  struct Colour: Hashable, Sendable { var red: UInt8, green: UInt8, blue: UInt8 }
  struct ColourError: Error {}

  struct ColourTransformer: AttributeTransformer {
    func data(from colour: Colour) throws -> Data { Data([colour.red, colour.green, colour.blue]) }
    func value(from data: Data) throws -> Colour {
      guard data.count == 3 else { throw ColourError() }
      return Colour(red: data[data.startIndex], green: data[data.startIndex + 1], blue: data[data.startIndex + 2])
    }
  }

  static func registry() -> AttributeTransformerRegistry {
    let transformers: AttributeTransformerRegistry = ["ColourTransformer": ColourTransformer(), "Tags": CodableTransformer<[String]>()]
    return transformers
  }

  static func tags() -> AttributeTransformerRegistry {
    let transformers: AttributeTransformerRegistry = ["Tags": CodableTransformer<[String]>()]
    return transformers
  }

  struct Place: CompositeAttributeValue {
    var city: String?
    var latitude = 0.0
    var longitude = 0.0
    static let elements: CompositeElements<Place> = [
      .attribute("city", \.city), .attribute("latitude", \.latitude), .attribute("longitude", \.longitude),
    ]
  }

  enum Mood: Int16, CaseIterable, AttributeValue { case calm, wild }

  final class Spot: ManagedObject {
    enum Slot { static let colour: SlotIndex = 0, home: SlotIndex = 1, mood: SlotIndex = 4, score = 0 }
    override class var entityName: String { "Spot" }
    var colour: Colour? {
      get { self[transformable: Slot.colour] }
      set { self[transformable: Slot.colour] = newValue }
    }
    var home: Place? {
      get { self[composite: Slot.home] }
      set { self[composite: Slot.home] = newValue }
    }
    var mood: Mood { get { self[Slot.mood] } set { self[Slot.mood] = newValue } }
    var score: Double {
      get { self[transient: Slot.score] ?? 0 }
      set { self[transient: Slot.score] = newValue }
    }
    override class var properties: [PropertyBinding] {
      [
        .transformable("colour", \Spot.colour, slot: Slot.colour), .composite("home", \Spot.home, slot: Slot.home),
        .attribute("mood", \Spot.mood, slot: Slot.mood), .transient("score", \Spot.score, index: Slot.score),
      ]
    }
  }

  static func context() throws -> ManagedObjectContext {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Spot",
          attributes: [
            .transformable("colour", by: "ColourTransformer", isOptional: true), .composite("home", "Place", isOptional: true),
            AttributeDescription("mood", .integer16, default: .int16(1)),
            AttributeDescription("score", .double, isOptional: true, isTransient: true),
          ])
      ],
      composites: [
        CompositeDescription(
          "Place",
          [
            AttributeDescription("city", .string, isOptional: true), AttributeDescription("latitude", .double),
            AttributeDescription("longitude", .double),
          ])
      ])
    let coordinator = try PersistentStoreCoordinator(model: model, transformers: registry(), store: .memory())
    return try ManagedObjectContext(coordinator: coordinator, classes: [Spot.self])
  }
}
