import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Which sections a small save rewrites. The tests shared by all whole-file stores compare the contents.
@Suite struct SmallSaveTests {
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

  private static func context(_ disk: SimulatedFileSystem) throws -> ManagedObjectContext {
    var options = BinaryStoreOptions()
    options.wholeFile.file.fileSystem = disk
    options.wholeFile.file.durability = .normal
    return try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .binary(at: "/harbour", options: options)))
  }

  private static func all(_ name: String, _ context: ManagedObjectContext) throws -> [ManagedObject] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: name))
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

  @Test func aSmallSaveRewritesOnlyTheSectionsWithChanges() throws {
    let disk = SimulatedFileSystem()
    var context = try Self.context(disk)
    try Self.fill(20_000, context)
    for isReopened in [false, true] {
      if isReopened {
        try context.persistentStoreCoordinator.close()
        context = try Self.context(disk)
      }
      let ship = try #require(try Self.all("Ship", context).first)
      // The first save reads everything that hasn't been read yet.
      try ship.setValue(.string("Changed before"), forKey: "name")
      try context.save()
      let before = disk.contents(of: "harbour") ?? [], readings = disk.count(of: .read)
      try ship.setValue(.string("Changed \(isReopened)"), forKey: "name")
      try context.save()
      let copied = disk.count(of: .read) - readings
      let after = disk.contents(of: "harbour") ?? []
      func sections(_ bytes: [UInt8]) -> Set<[UInt8]> {
        Set(BinaryParts(bytes).entries.map { Array(bytes[$0.offset..<$0.offset + $0.byteCount]) })
      }
      let (old, new) = (sections(before), sections(after))
      // Rows with adjacent keys are rewritten as well, but no links and no indexes.
      #expect(new.subtracting(old).count <= 6 && new.count > 20, "\(new.subtracting(old).count) of \(new.count)")
      #expect(copied >= new.count - 10 && copied < new.count, "\(copied) of \(new.count)")
    }
    try context.persistentStoreCoordinator.close()
  }
}
