import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Saves that copy what has not changed: they write what a save of everything would have written, but for where sections end.
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
    var options = BinaryStore.Options()
    options.wholeFile.file.fileSystem = disk
    options.wholeFile.file.durability = .fast
    return try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .binary(at: "/harbour", options: options)))
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

  @Test func aRandomSequenceOfSavesLeavesTheFileThatTheObjectsSay() throws {
    var random = Seeded("Small saves")
    let disk = SimulatedFileSystem()
    var context = try Self.context(disk)
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
      let found = SimulatedFileSystem()
      found.setContents(of: "harbour", disk.contents(of: "harbour") ?? [])
      let again = try Self.context(found)
      // What unique values lead to comes from the file's index.
      for ship in ships.prefix(20) {
        guard case .int64(let number)? = try ship.value(forKey: "number").storeValue else { continue }
        let isNumber = QueryExpression.comparison(.property("number"), .equalTo, .constant(.int64(number)), [])
        let same = try again.fetch(FetchRequest<ManagedObject>(entityName: "Ship", where: FetchPredicate(isNumber)))
        #expect(same.map(\.objectID.key) == [ship.objectID.key])
      }
      // Links need all of the file, whose index is compared with its rows then.
      #expect(try Self.contents(again) == Self.contents(context), "after save \(save)")
      try again.persistentStoreCoordinator.close()
      if save % 10 == 9 {
        try context.persistentStoreCoordinator.close()
        context = try Self.context(disk)
      }
    }
    try context.persistentStoreCoordinator.close()
  }

  @Test func aSmallSaveWritesAnewOnlyTheSectionsInWhichSomethingHasChanged() throws {
    let disk = SimulatedFileSystem()
    var context = try Self.context(disk)
    try Self.fill(20_000, context)
    for isReopened in [false, true] {
      if isReopened {
        try context.persistentStoreCoordinator.close()
        context = try Self.context(disk)
      }
      let ship = try #require(try Self.all("Ship", context).first)
      // The first save reads whatever of the file is not read yet.
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
      // Rows with neighbouring keys are written anew, too, but no links and no indexes.
      #expect(new.subtracting(old).count <= 6 && new.count > 20, "\(new.subtracting(old).count) of \(new.count)")
      #expect(copied >= new.count - 10 && copied < new.count, "\(copied) of \(new.count)")
    }
    try context.persistentStoreCoordinator.close()
  }

  @Test func whatCannotBeCopiedBecauseTheDiskHasForgottenItIsWrittenFromMemory() throws {
    let disk = SimulatedFileSystem()
    let context = try Self.context(disk)
    try Self.fill(3_000, context)
    let ship = try #require(try Self.all("Ship", context).first)
    disk.inject(FileFault(.read, .error(EIO), isPersistent: true))
    try ship.setValue(.string("Changed"), forKey: "name")
    try context.save()
    disk.clearFaults()
    let expected = try Self.contents(context)
    try context.persistentStoreCoordinator.close()
    let again = try Self.context(disk)
    #expect(try Self.contents(again) == expected)
    try again.persistentStoreCoordinator.close()
  }
}
