import Foundation
import Holdfast
import HoldfastSQLiteStore

/// The model that the reliability tests share: ships have a berth and routes, and a journal counts the saves.
enum Harbour {
  static let entities: [EntityDescription] = [
    EntityDescription(
      "Ship",
      attributes: [
        AttributeDescription("name", .string), AttributeDescription("number", .integer64, isOptional: true),
        AttributeDescription("tons", .integer16, default: .int16(0)), AttributeDescription("crew", .integer32, isOptional: true),
        AttributeDescription("isAfloat", .boolean, default: .bool(true)), AttributeDescription("length", .double, isOptional: true),
        AttributeDescription("draught", .float, isOptional: true), AttributeDescription("price", .decimal, isOptional: true),
        AttributeDescription("launched", .date, isOptional: true), AttributeDescription("plan", .binaryData, isOptional: true),
        AttributeDescription("uid", .uuid, isOptional: true), AttributeDescription("page", .uri, isOptional: true),
        AttributeDescription("log", .string, isOptional: true),
      ],
      relationships: [.toOne("berth", to: "Berth", inverse: "ships"), .toMany("routes", to: "Route", inverse: "ships")],
      uniquenessConstraints: [["number"]]),
    EntityDescription(
      "Berth", attributes: [AttributeDescription("number", .integer64), AttributeDescription("count", .integer64)],
      relationships: [.toMany("ships", to: "Ship", inverse: "berth")]),
    EntityDescription(
      "Route", attributes: [AttributeDescription("number", .integer64), AttributeDescription("count", .integer64)],
      relationships: [.toMany("ships", to: "Ship", inverse: "routes")]),
    EntityDescription("Journal", attributes: [AttributeDescription("saves", .integer64)]),
  ]

  static let model = made(entities)
  static let classes: [ManagedObject.Type] = [Ship.self, Berth.self, Route.self, Journal.self]

  static func made(_ entities: [EntityDescription]) -> ManagedObjectModel {
    do { return try ManagedObjectModel(entities: entities) } catch { fatalError("\(error)") }
  }

  /// A context on a store, with its own coordinator.
  static func context(_ store: StoreDescription) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: classes)
  }

  /// Makes and closes a SQLite store with three berths, three routes and ten ships.
  static func makeFile(_ path: String, options: SQLiteStoreOptions = SQLiteStoreOptions(), saves: Int = 12) throws {
    try makeFile(.sqlite(at: path, options: options), saves: saves)
  }

  /// Makes and closes any store with the same contents.
  static func makeFile(_ store: StoreDescription, saves: Int = 12) throws {
    let context = try context(store)
    for _ in 0..<saves { try Voyage.saveNext(context) }
    try context.persistentStoreCoordinator.close()
  }
}

final class Ship: ManagedObject {
  enum Slot {
    static let berth: SlotIndex = 0, crew: SlotIndex = 1, draught: SlotIndex = 2, isAfloat: SlotIndex = 3, launched: SlotIndex = 4
    static let length: SlotIndex = 5, log: SlotIndex = 6, name: SlotIndex = 7, number: SlotIndex = 8, page: SlotIndex = 9
    static let plan: SlotIndex = 10, price: SlotIndex = 11, tons: SlotIndex = 12, uid: SlotIndex = 13
    static let routes = 0
  }
  override class var entityName: String { "Ship" }
  var berth: Berth? {
    get { toOne(Slot.berth) }
    set { setToOne(Slot.berth, newValue) }
  }
  var crew: Int? {
    get { self[Slot.crew] }
    set { self[Slot.crew] = newValue }
  }
  var draught: Float? {
    get { self[Slot.draught] }
    set { self[Slot.draught] = newValue }
  }
  var isAfloat: Bool {
    get { self[Slot.isAfloat] }
    set { self[Slot.isAfloat] = newValue }
  }
  var launched: Date? {
    get { self[Slot.launched] }
    set { self[Slot.launched] = newValue }
  }
  var length: Double? {
    get { self[Slot.length] }
    set { self[Slot.length] = newValue }
  }
  var log: String? {
    get { self[Slot.log] }
    set { self[Slot.log] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var number: Int64? {
    get { self[Slot.number] }
    set { self[Slot.number] = newValue }
  }
  var page: String? {
    get { self[Slot.page] }
    set { self[Slot.page] = newValue }
  }
  var plan: Data? {
    get { self[Slot.plan] }
    set { self[Slot.plan] = newValue }
  }
  var price: Decimal? {
    get { self[Slot.price] }
    set { self[Slot.price] = newValue }
  }
  var tons: Int {
    get { self[Slot.tons] }
    set { self[Slot.tons] = newValue }
  }
  var uid: UUID? {
    get { self[Slot.uid] }
    set { self[Slot.uid] = newValue }
  }
  var routes: ToMany<Route> { toMany(Slot.routes) }

  /// A computed property that the table below leaves out.
  var unlisted: Int { tons }

  override class var properties: [PropertyBinding] {
    [
      .toOne("berth", \Ship.berth, slot: Slot.berth), .attribute("crew", \Ship.crew, slot: Slot.crew),
      .attribute("draught", \Ship.draught, slot: Slot.draught), .attribute("isAfloat", \Ship.isAfloat, slot: Slot.isAfloat),
      .attribute("launched", \Ship.launched, slot: Slot.launched), .attribute("length", \Ship.length, slot: Slot.length),
      .attribute("log", \Ship.log, slot: Slot.log), .attribute("name", \Ship.name, slot: Slot.name),
      .attribute("number", \Ship.number, slot: Slot.number), .attribute("page", \Ship.page, slot: Slot.page),
      .attribute("plan", \Ship.plan, slot: Slot.plan), .attribute("price", \Ship.price, slot: Slot.price),
      .attribute("tons", \Ship.tons, slot: Slot.tons), .attribute("uid", \Ship.uid, slot: Slot.uid),
      .toMany("routes", \Ship.routes, index: Slot.routes),
    ]
  }
}

final class Berth: ManagedObject {
  enum Slot { static let count: SlotIndex = 0, number: SlotIndex = 1, ships = 0 }
  override class var entityName: String { "Berth" }
  var count: Int {
    get { self[Slot.count] }
    set { self[Slot.count] = newValue }
  }
  var number: Int {
    get { self[Slot.number] }
    set { self[Slot.number] = newValue }
  }
  var ships: ToMany<Ship> { toMany(Slot.ships) }
  override class var properties: [PropertyBinding] {
    [
      .attribute("count", \Berth.count, slot: Slot.count), .attribute("number", \Berth.number, slot: Slot.number),
      .toMany("ships", \Berth.ships, index: Slot.ships),
    ]
  }
}

final class Route: ManagedObject {
  enum Slot { static let count: SlotIndex = 0, number: SlotIndex = 1, ships = 0 }
  override class var entityName: String { "Route" }
  var count: Int {
    get { self[Slot.count] }
    set { self[Slot.count] = newValue }
  }
  var number: Int {
    get { self[Slot.number] }
    set { self[Slot.number] = newValue }
  }
  var ships: ToMany<Ship> { toMany(Slot.ships) }
  override class var properties: [PropertyBinding] {
    [
      .attribute("count", \Route.count, slot: Slot.count), .attribute("number", \Route.number, slot: Slot.number),
      .toMany("ships", \Route.ships, index: Slot.ships),
    ]
  }
}

final class Journal: ManagedObject {
  override class var entityName: String { "Journal" }
  var saves: Int {
    get { self[0] }
    set { self[0] = newValue }
  }
  override class var properties: [PropertyBinding] { [.attribute("saves", \Journal.saves, slot: 0)] }
}
