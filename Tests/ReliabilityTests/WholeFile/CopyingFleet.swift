import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// A whole-file store with enough objects for many copied parts, and with links and lists of every shape.
enum CopyingFleet {
  static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Ship",
          attributes: [
            AttributeDescription("number", .integer64, isOptional: true), AttributeDescription("name", .string, isOptional: true),
            AttributeDescription("code", .string, isOptional: true),
          ],
          relationships: [
            .toOne("fleet", to: "Fleet", inverse: "ships"), .toMany("met", to: "Ship", inverse: "metBy"),
            .toMany("metBy", to: "Ship", inverse: "met"),
            // Deleting an object leaves references to it at the other end.
            .toMany("ports", to: "Port", inverse: "visitors", deleteRule: .noAction, isOrdered: true),
          ], uniquenessConstraints: [["number"], ["name", "code"]]),
        EntityDescription(
          "Tug", superentity: "Ship", attributes: [AttributeDescription("power", .double, isOptional: true)],
          uniquenessConstraints: [["power"]]),
        EntityDescription(
          "Fleet", attributes: [AttributeDescription("name", .string)],
          relationships: [
            .toMany("ships", to: "Ship", inverse: "fleet", isOrdered: true),
            .toOne("flagship", to: "Ship", inverse: nil, deleteRule: .noAction),
          ]),
        EntityDescription(
          "Port", attributes: [AttributeDescription("number", .integer64)],
          relationships: [.toMany("visitors", to: "Ship", inverse: "ports", deleteRule: .noAction)]),
      ])
    } catch { fatalError("\(error)") }
  }()

  static func description(_ store: FileStore, _ fileSystem: any StoreFileSystem) -> StoreDescription {
    store.description(at: "/harbour", file: DurableFileOptions(durability: .normal, fileSystem: fileSystem))
  }

  static func context(_ store: FileStore, _ fileSystem: any StoreFileSystem) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: description(store, fileSystem)))
  }

  static func all(_ name: String, _ context: ManagedObjectContext) throws -> [ManagedObject] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: name))
  }

  static func fill(_ count: Int, _ context: ManagedObjectContext) throws {
    let fleets = try (0..<max(count / 100, 2)).map { number in
      let fleet = try context.insert(entityNamed: "Fleet")
      try fleet.setValue(.string("Fleet \(number)"), forKey: "name")
      return fleet
    }
    let ports = try (0..<5).map { number in
      let port = try context.insert(entityNamed: "Port")
      try port.setValue(.int64(Int64(number)), forKey: "number")
      return port
    }
    for number in 0..<count {
      let ship = try context.insert(entityNamed: number % 7 == 3 ? "Tug" : "Ship")
      try ship.setValue(.int64(Int64(number)), forKey: "number")
      // Long enough that the file has several parts.
      try ship.setValue(.string("Ship \(number) \(String(repeating: ".", count: 120))"), forKey: "name")
      try ship.setValue(.string("Code \(number)"), forKey: "code")
      try fleets[number % fleets.count].ordered(forKey: "ships").append(ship)
      if number % 9 == 0 { try ship.ordered(forKey: "ports").append(ports[number % 5]) }
    }
    try context.save()
  }

  /// A disk with a copy of a file.
  static func copy(_ disk: SimulatedFileSystem) -> SimulatedFileSystem {
    let copy = SimulatedFileSystem()
    copy.setContents(of: "harbour", disk.contents(of: "harbour") ?? [])
    return copy
  }

  // MARK: Contents

  /// The values and links of an object.
  struct Contents: Hashable {
    var entity: String
    var values: [StoreValue?]
    var targets: [[ObjectKey]]
  }

  /// All objects of a store, by entity and key, without links to missing objects, which not every format keeps.
  static func contents(_ context: ManagedObjectContext) throws -> [String: Contents] {
    var contents: [String: Contents] = [:]
    let objects = try ["Ship", "Fleet", "Port"].map { try all($0, context) }
    let keys = objects.map { Set($0.map(\.objectID.key)) }
    for object in objects.joined() {
      contents["\(object.entity.name) \(object.objectID.key)"] = Contents(
        entity: object.entity.name, values: try object.entity.slots.map { try object.value(forKey: $0.name).storeValue },
        targets: try object.entity.relationships.filter(\.isToMany).map { relationship in
          let targets = try object.value(forKey: relationship.name).objects?.map(\.objectID.key) ?? []
          let found = targets.filter((model.entities[relationship.destinationIndex].name == "Port" ? keys[2] : keys[0]).contains)
          return relationship.isOrdered ? found : found.sorted()
        })
    }
    return contents
  }

  /// Descriptions of the first objects that differ; empty if the contents are equal.
  static func differences(_ one: [String: Contents], _ other: [String: Contents]) -> [String] {
    Set(one.keys).union(other.keys).filter { one[$0] != other[$0] }.sorted().prefix(5).map { name in
      "\(name): \(one[name]?.targets ?? []) and \(other[name]?.targets ?? [])"
    }
  }

  /// The objects in a text file, and the objects that a store writes without copying; nil for a binary file, whose sections may be divided
  /// differently.
  static func objects(_ store: FileStore, _ disk: SimulatedFileSystem) throws -> (Substring, Substring)? {
    if store == .binary { return nil }
    let other = copy(disk)
    let opened = description(store, other).makeStore()
    let metadata = try opened.open(model: model).userInfo
    // Failing reads prevent copying.
    other.inject(FileFault(.read, .error(EIO), isPersistent: true))
    try opened.setMetadata(metadata)
    try opened.close()
    func objects(_ disk: SimulatedFileSystem) -> Substring {
      let text = String(decoding: disk.contents(of: "harbour") ?? [], as: UTF8.self)
      let start = text.range(of: store == .json ? "\"entities\":" : "</databaseInfo>"), end = text.range(of: "xxh64:", options: .backwards)
      guard let start, let end else { return "" }
      return text[start.upperBound..<end.lowerBound]
    }
    return (objects(disk), objects(other))
  }
}
