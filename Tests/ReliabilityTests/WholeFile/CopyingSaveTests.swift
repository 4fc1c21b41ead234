import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Saves that copy what has not changed write what a save of everything would have written.
@Suite struct CopyingSaveTests {
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Ship",
          attributes: [
            AttributeDescription("number", .integer64, isOptional: true), AttributeDescription("name", .string, isOptional: true),
          ],
          relationships: [
            .toOne("fleet", to: "Fleet", inverse: "ships"), .toMany("met", to: "Ship", inverse: "metBy"),
            .toMany("metBy", to: "Ship", inverse: "met"),
          ], uniquenessConstraints: [["number"]]),
        EntityDescription("Tug", superentity: "Ship", attributes: [AttributeDescription("power", .double, isOptional: true)]),
        EntityDescription(
          "Fleet", attributes: [AttributeDescription("name", .string)],
          relationships: [.toMany("ships", to: "Ship", inverse: "fleet", isOrdered: true)]),
      ])
    } catch { fatalError("\(error)") }
  }()

  private static func description(_ store: FileStore, _ disk: SimulatedFileSystem) -> StoreDescription {
    store.description(at: "/harbour", file: DurableFileOptions(durability: .fast, fileSystem: disk))
  }

  private static func context(_ store: FileStore, _ disk: SimulatedFileSystem) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: description(store, disk)))
  }

  /// A disk with a copy of a file.
  private static func copy(_ disk: SimulatedFileSystem) -> SimulatedFileSystem {
    let copy = SimulatedFileSystem()
    copy.setContents(of: "harbour", disk.contents(of: "harbour") ?? [])
    return copy
  }

  /// The objects in a text file, once as they are, and once as a store writes them that has copied nothing; nil for a file of sections,
  /// which may be divided otherwise.
  private static func objects(_ store: FileStore, _ disk: SimulatedFileSystem) throws -> (Substring, Substring)? {
    if store == .binary { return nil }
    let other = copy(disk)
    let opened = description(store, other).makeStore()
    let metadata = try opened.open(model: model).userInfo
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

  private static func all(_ name: String, _ context: ManagedObjectContext) throws -> [ManagedObject] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: name))
  }

  /// Everything that a store holds, as text.
  private static func contents(_ context: ManagedObjectContext) throws -> [String] {
    try ["Ship", "Fleet"].flatMap { try all($0, context) }.map { object in
      let slots = try object.entity.slots.map { "\($0.name) \(try object.value(forKey: $0.name))" }
      let links = try object.entity.relationships.filter(\.isToMany).map { relationship in
        let keys = try object.value(forKey: relationship.name).objects?.map(\.objectID.key) ?? []
        return "\(relationship.name) \(relationship.isOrdered ? keys : keys.sorted())"
      }
      return "\(object.entity.name) \(object.objectID.key) \(slots) \(links)"
    }.sorted()
  }

  private static func fill(_ count: Int, _ context: ManagedObjectContext) throws {
    let fleets = try (0..<max(count / 100, 2)).map { number in
      let fleet = try context.insert(entityNamed: "Fleet")
      try fleet.setValue(.string("Fleet \(number)"), forKey: "name")
      return fleet
    }
    for number in 0..<count {
      let ship = try context.insert(entityNamed: number % 7 == 3 ? "Tug" : "Ship")
      try ship.setValue(.int64(Int64(number)), forKey: "number")
      try ship.setValue(.string("Ship \(number)"), forKey: "name")
      try fleets[number % fleets.count].ordered(forKey: "ships").append(ship)
    }
    try context.save()
  }

  @Test(arguments: FileStore.wholeFile) func aRandomSequenceOfSavesLeavesTheFileThatTheObjectsSay(store: FileStore) throws {
    var random = Seeded("Copying saves, \(store)")
    let disk = SimulatedFileSystem()
    var context = try Self.context(store, disk)
    try Self.fill(3_000, context)
    var next: Int64 = 100_000
    for save in 0..<60 {
      var ships = try Self.all("Ship", context)
      let fleets = try Self.all("Fleet", context)
      for _ in 0..<Int.random(in: 1...[1, 3, 40][save % 3], using: &random) {
        guard let ship = ships.randomElement(using: &random), let other = ships.randomElement(using: &random) else { continue }
        switch Int.random(in: 0..<8, using: &random) {
        case 0: try ship.setValue(.string(String(repeating: "x", count: Int.random(in: 0...3_000, using: &random))), forKey: "name")
        case 1: try ship.setValue(Bool.random(using: &random) ? .null : .int64(Int64(next)), forKey: "number")
        case 2:
          context.delete(ship)
          ships.removeAll { $0 === ship }
        case 3:
          let new = try context.insert(entityNamed: Bool.random(using: &random) ? "Ship" : "Tug")
          try new.setValue(.int64(next), forKey: "number")
        case 4: try ship.toMany(forKey: "met").insert(other)
        case 5: try fleets.randomElement(using: &random)?.ordered(forKey: "ships").append(ship)
        case 6: try ship.setValue(.string("Renamed"), forKey: "name")
        default: try ship.toMany(forKey: "met").remove(other)
        }
        next += 1
      }
      try context.save()
      let again = try Self.context(store, Self.copy(disk))
      // What unique values lead to comes from the file's index, if it has one.
      for ship in ships.prefix(20) {
        guard case .int64(let number)? = try ship.value(forKey: "number").storeValue else { continue }
        let isNumber = QueryExpression.comparison(.property("number"), .equalTo, .constant(.int64(number)), [])
        let same = try again.fetch(FetchRequest<ManagedObject>(entityName: "Ship", where: FetchPredicate(isNumber)))
        #expect(same.map(\.objectID.key) == [ship.objectID.key])
      }
      // Links need all of the file, whose index is compared with its rows then.
      #expect(try Self.contents(again) == Self.contents(context), "after save \(save)")
      try again.persistentStoreCoordinator.close()
      if let (copied, written) = try Self.objects(store, disk) { #expect(copied == written && !copied.isEmpty, "after save \(save)") }
      if save % 10 == 9 {
        try context.persistentStoreCoordinator.close()
        context = try Self.context(store, disk)
      }
    }
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile) func aSmallSaveCopiesAllButWhatLiesBesideTheChange(store: FileStore) throws {
    let disk = SimulatedFileSystem()
    let context = try Self.context(store, disk)
    try Self.fill(20_000, context)
    let ship = try #require(try Self.all("Ship", context).first)
    let size = disk.contents(of: "harbour")?.count ?? 0, before = disk.count(of: .read)
    try ship.setValue(.string("Changed"), forKey: "name")
    try context.save()
    // Each copied part is read by one call.
    let copied = disk.count(of: .read) - before
    #expect(copied > size / (200 << 10) && copied < size / (16 << 10), "\(copied) parts of \(size) bytes")
    // A disk that cannot be read is no reason to lose a save.
    disk.inject(FileFault(.read, .error(EIO), isPersistent: true))
    try ship.setValue(.string("Changed again"), forKey: "name")
    try context.save()
    disk.clearFaults()
    let expected = try Self.contents(context)
    try context.persistentStoreCoordinator.close()
    let again = try Self.context(store, disk)
    #expect(try Self.contents(again) == expected)
    try again.persistentStoreCoordinator.close()
  }
}
