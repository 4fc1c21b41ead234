import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// A save that copies unchanged parts of the old file writes the same file as a save without copying.
@Suite struct CopyingSaveTests {
  /// Compares the contents of the file with the contents of the context.
  private static func expectSame(_ context: ManagedObjectContext, _ store: FileStore, _ disk: SimulatedFileSystem, _ name: String) throws {
    let again = try CopyingFleet.context(store, CopyingFleet.copy(disk))
    // Reading links needs the entire file, and compares its indexes with its rows.
    let differences = try CopyingFleet.differences(CopyingFleet.contents(again), CopyingFleet.contents(context))
    #expect(differences.isEmpty, "\(name): \(differences)")
    try again.persistentStoreCoordinator.close()
  }

  // MARK: Random programs

  @Test(arguments: FileStore.copying) func aRandomSequenceOfSavesLeavesAFileEqualToTheObjects(store: FileStore) throws {
    var program = try Program(store, SeededGenerator("Copying saves, \(store)"))
    for save in 0..<TestTier.count(30, full: 300) {
      try program.change(count: Int.random(in: 1...[1, 3, 40][save % 3], using: &program.random))
      try program.save("after save \(save)", comparesObjects: save % 4 == 3)
      if save % 10 == 9 { try program.reopen() }
    }
    try program.context.persistentStoreCoordinator.close()
  }

  /// A very large key disables copying for its entity family only, and not for the rows of a binary store.
  @Test(arguments: FileStore.copying) func aVeryLargeKeyLeavesTheFileCorrect(store: FileStore) throws {
    var program = try Program(store, SeededGenerator("Copying saves with a key beyond all others, \(store)"))
    let before = try program.copiedParts { try $0.setValue(.string("Before"), forKey: "name") }
    try program.reserveKeys(upTo: ObjectKey(1 << 40))
    let far = try program.context.insert(entityNamed: "Ship")
    try far.setValue(.string("Far"), forKey: "name")
    try program.save("the far key", comparesObjects: true)
    #expect(far.objectID.key >= ObjectKey(1 << 40))
    let after = try program.copiedParts { try $0.setValue(.string("After"), forKey: "name") }
    #expect(before > 2 && (store == .binary ? after > 2 : after < before), "\(before) parts were copied before, \(after) afterwards")
    for save in 0..<10 {
      try program.change(count: 5)
      let ships = try CopyingFleet.all("Ship", program.context), ports = try CopyingFleet.all("Port", program.context)
      for far in ships where far.objectID.key >= ObjectKey(1 << 40) {
        for ship in ships.prefix(3) { try ship.toMany(forKey: "met").insert(far) }
        try far.ordered(forKey: "ports").append(contentsOf: ports.prefix(2))
        if save == 8 { program.context.delete(far) }
      }
      try program.save("with a far key, after save \(save)", comparesObjects: save % 3 == 2)
      if save % 5 == 4 { try program.reopen() }
    }
    try program.context.persistentStoreCoordinator.close()
  }

  // MARK: Costs

  @Test(arguments: FileStore.copying, [false, true])
  func aSmallSaveCopiesAllPartsWithoutChanges(store: FileStore, isReopened: Bool) throws {
    let disk = SimulatedFileSystem()
    var context = try CopyingFleet.context(store, disk)
    try CopyingFleet.fill(8_000, context)
    if isReopened {
      try context.persistentStoreCoordinator.close()
      context = try CopyingFleet.context(store, disk)
      // Reads all pages of a file that is loaded page by page.
      _ = try CopyingFleet.contents(context)
    }
    let ship = try #require(try CopyingFleet.all("Ship", context).first)
    let size = disk.contents(of: "harbour")?.count ?? 0, before = disk.count(of: .read)
    try ship.setValue(.string("Changed"), forKey: "name")
    try context.save()
    // Each copied part is read by one call.
    let copied = disk.count(of: .read) - before
    #expect(copied > size / (200 << 10) && copied < size / (16 << 10), "\(copied) parts of \(size) bytes")
    // A disk that can't be read doesn't make a save fail.
    disk.inject(FileFault(.read, .error(EIO), isPersistent: true))
    try ship.setValue(.string("Changed again"), forKey: "name")
    try context.save()
    disk.clearFaults()
    try Self.expectSame(context, store, disk, "unreadable")
    try context.persistentStoreCoordinator.close()
  }

  // MARK: A file whose bytes change

  /// Changed bytes in a file whose status is unchanged.
  @Test(arguments: FileStore.copying, [false, true])
  func partsWhoseBytesHaveChangedAreWrittenFromMemory(store: FileStore, isReopened: Bool) throws {
    let disk = SimulatedFileSystem(), rotting = DisturbedFileSystem(disk)
    var context = try CopyingFleet.context(store, rotting)
    try CopyingFleet.fill(2_000, context)
    if isReopened {
      try context.persistentStoreCoordinator.close()
      context = try CopyingFleet.context(store, rotting)
      // Reads all of the file before its bytes change.
      _ = try CopyingFleet.contents(context)
    }
    let ships = try CopyingFleet.all("Ship", context)
    let size = Int64(disk.contents(of: "harbour")?.count ?? 0)
    for (save, rot) in [0..<size / 2, 0..<Int64.max, size / 5..<size / 5 + 1].enumerated() {
      rotting.rot(rot)
      try ships[save * 100].setValue(.string("Changed \(save)"), forKey: "name")
      try ships[save * 100].setValue(.int64(Int64(100_000 + save)), forKey: "number")
      try context.save()
      rotting.rot(nil)
      try Self.expectSame(context, store, disk, "\(rot)")
    }
    try context.persistentStoreCoordinator.close()
  }

  /// Rows that aren't in memory can't be written from memory: the save is refused, and the file stays unchanged for a repair.
  @Test func aSaveThatReadsRowsWhoseBytesHaveChangedIsRefusedAndLeavesTheFile() throws {
    let disk = SimulatedFileSystem(), rotting = DisturbedFileSystem(disk)
    let first = try CopyingFleet.context(.binary, disk)
    try CopyingFleet.fill(3_000, first)
    try first.persistentStoreCoordinator.close()
    let file = disk.contents(of: "harbour"), size = Int64(file?.count ?? 0)

    let context = try CopyingFleet.context(.binary, rotting)
    let isFirst = QueryExpression.comparison(.property("number"), .equalTo, .constant(.int64(1)), [])
    let ship = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Ship", where: FetchPredicate(isFirst))).first)
    try ship.setValue(.string("Changed"), forKey: "name")
    // The middle of the file has rows that are still unread.
    rotting.rot(size / 2..<size / 2 + 1)
    for _ in 0..<2 {
      let error = try #require(throws: StoreError.self) { try context.save() }
      #expect(error.code == .damaged && error.path == "/harbour" && context.hasChanges, "\(error)")
      #expect(disk.contents(of: "harbour") == file && disk.names == [".harbour.lock", "harbour"], "\(disk.names)")
    }
    // With the right bytes, the same save succeeds.
    rotting.rot(nil)
    try context.save()
    try Self.expectSame(context, .binary, disk, "after the repair")
    try context.persistentStoreCoordinator.close()
  }
}

/// A sequence of saves by one process. Each is compared with the file.
private struct Program {
  let store: FileStore
  let disk = SimulatedFileSystem()
  var random: SeededGenerator
  private(set) var context: ManagedObjectContext
  /// A number that no object has.
  private var next: Int64 = 100_000

  init(_ store: FileStore, _ random: SeededGenerator) throws {
    (self.store, self.random) = (store, random)
    context = try CopyingFleet.context(store, disk)
    try CopyingFleet.fill(1_500, context)
  }

  mutating func reopen() throws {
    try context.persistentStoreCoordinator.close()
    context = try CopyingFleet.context(store, disk)
  }

  /// Changes the lock file as if another process had reserved all keys below one.
  func reserveKeys(upTo key: ObjectKey) throws {
    var record = try #require(disk.contents(of: ".harbour.lock"))
    let length = Int(record[0]) | Int(record[1]) << 8
    // The record's length, the store's UUID, and a number for each root entity.
    for start in stride(from: 2 + 36, to: 2 + length, by: 8) {
      for byte in 0..<8 { record[start + byte] = UInt8(truncatingIfNeeded: key.rawValue >> (8 * byte)) }
    }
    disk.setContents(of: ".harbour.lock", record)
  }

  /// The number of parts copied by a save that changes one ship.
  func copiedParts(_ change: (ManagedObject) throws -> Void) throws -> Int {
    let ship = try #require(try CopyingFleet.all("Ship", context).first)
    try change(ship)
    let before = disk.count(of: .read)
    try context.save()
    return disk.count(of: .read) - before
  }

  // MARK: Changes

  mutating func change(count: Int) throws {
    var ships = try CopyingFleet.all("Ship", context), ports = try CopyingFleet.all("Port", context)
    let fleets = try CopyingFleet.all("Fleet", context)
    for _ in 0..<count {
      guard let ship = ships.randomElement(using: &random), let other = ships.randomElement(using: &random),
        let fleet = fleets.randomElement(using: &random)
      else { continue }
      next += 1
      if Bool.random(using: &random) {
        try changeShip(ship, &ships)
      } else {
        try changeLinks(ship, other, fleet, &ports)
      }
    }
  }

  private mutating func changeShip(_ ship: ManagedObject, _ ships: inout [ManagedObject]) throws {
    switch Int.random(in: 0..<7, using: &random) {
    case 0: try ship.setValue(.string(String(repeating: "x", count: Int.random(in: 0...3_000, using: &random))), forKey: "name")
    case 1: try ship.setValue(Bool.random(using: &random) ? .null : .int64(next), forKey: "number")
    case 2:
      context.delete(ship)
      ships.removeAll { $0 === ship }
    case 3:
      let new = try context.insert(entityNamed: Bool.random(using: &random) ? "Ship" : "Tug")
      try new.setValue(.int64(next), forKey: "number")
    case 4: try ship.setValue(.string("Renamed"), forKey: "name")
    case 5: try ship.setValue(Bool.random(using: &random) ? .null : .string("Code \(next)"), forKey: "code")
    default: if ship.entity.name == "Tug" { try ship.setValue(.double(Double(next)), forKey: "power") }
    }
  }

  private mutating func changeLinks(_ ship: ManagedObject, _ other: ManagedObject, _ fleet: ManagedObject, _ ports: inout [ManagedObject])
    throws
  {
    let port = ports.randomElement(using: &random), visited = try ship.ordered(forKey: "ports")
    switch Int.random(in: 0..<9, using: &random) {
    case 0: try ship.toMany(forKey: "met").insert(other)
    case 1: try ship.toMany(forKey: "met").remove(other)
    case 2: try fleet.ordered(forKey: "ships").append(ship)
    case 3: try fleet.setValue(.objectID(ship.objectID), forKey: "flagship")
    case 4:
      let port = try context.insert(entityNamed: "Port")
      try port.setValue(.int64(next), forKey: "number")
      ports.append(port)
      visited.insert(port, at: 0)
    case 5: if let port { try port.toMany(forKey: "visitors").insert(other) }
    case 6: if let port { visited.append(port) }
    case 7: if visited.count > 1 { visited.move(fromOffsets: [visited.count - 1], toOffset: 0) }
    default:
      if let port, ports.count > 3 {
        context.delete(port)
        ports.removeAll { $0 === port }
      }
    }
  }

  // MARK: Comparing

  /// Saves, and compares the file with the objects and with a file written without copying.
  ///
  /// - Parameter comparesObjects: Whether to compare all objects, which takes longest. Text files are compared each time.
  mutating func save(_ name: String, comparesObjects: Bool) throws {
    try context.save()
    let again = try CopyingFleet.context(store, CopyingFleet.copy(disk))
    try lookUp(again, name)
    // A context hides objects that it deleted itself, even if links to them remain.
    let fresh = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator)
    if comparesObjects {
      let differences = try CopyingFleet.differences(CopyingFleet.contents(again), CopyingFleet.contents(fresh))
      #expect(differences.isEmpty, "\(name): \(differences)")
    }
    try again.persistentStoreCoordinator.close()
    if let (copied, written) = try CopyingFleet.objects(store, disk) { #expect(copied == written && !copied.isEmpty, "\(name)") }
  }

  /// Looks up ships by unique values, which uses the file's index if it has one.
  private func lookUp(_ again: ManagedObjectContext, _ name: String) throws {
    for ship in try CopyingFleet.all("Ship", context).suffix(20) {
      let values = try ["number", "name", "code", "power"].map { property in
        ship.entity.slot(named: property) == nil ? nil : try ship.value(forKey: property).storeValue
      }
      for (entity, places) in [("Ship", [0]), ("Ship", [1, 2]), ("Tug", [3])] {
        let terms = places.compactMap { place -> QueryExpression? in
          guard let value = values[place], value != .null else { return nil }
          return .comparison(.property(["number", "name", "code", "power"][place]), .equalTo, .constant(value), [])
        }
        if terms.count < places.count { continue }
        let request = FetchRequest<ManagedObject>(entityName: entity, where: FetchPredicate(terms.count == 1 ? terms[0] : .and(terms)))
        #expect(try again.fetch(request).map(\.objectID.key) == [ship.objectID.key], "\(name)")
      }
    }
  }
}
