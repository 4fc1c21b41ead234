import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// Every file with changed, missing or added bytes is refused with a typed error and left unchanged.
@Suite struct DamagedFileTests {
  private static let codes: [StoreError.Code] = [.damaged, .notAStore, .newerFormat, .incompatibleModel]

  /// A file with values of every type, links of every kind, and a few versions of the same rows.
  private static func fixture(_ store: FileStore) throws -> [UInt8] {
    let harbour = SimulatedHarbour(store)
    try Harbour.makeFile(harbour.description(), saves: 5)
    let context = try harbour.context()
    let ship = try #require(try context.fetch(FetchRequest<Ship> { $0.number == 5 }).first)
    (ship.tons, ship.crew, ship.isAfloat, ship.length, ship.draught) = (-3, 70_000, false, 0.1, 1.5)
    (ship.price, ship.launched) = (Decimal(string: "12345678901234567890.5"), Date(timeIntervalSinceReferenceDate: -1e9 - 0.25))
    (ship.plan, ship.uid, ship.page) = (Data([0, 1, 0xFF]), UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)), "x:y")
    ship.log = "<&>\\\"\u{E9}\u{1F6A2}\u{0}\r\n"
    try context.save()
    try context.persistentStoreCoordinator.close()
    let bytes = try #require(harbour.contents)
    #expect(bytes.count > 1000 && bytes.count <= 64 << 10)
    return bytes
  }

  /// Opens and verifies a store. Verifying reads the parts that opening doesn't read.
  private static func openAndVerify(_ harbour: SimulatedHarbour) throws {
    let store = try #require(harbour.description().makeStore() as? WholeFileStore)
    defer { try? store.close() }
    _ = try store.open(model: Harbour.model)
    try store.verify()
  }

  /// Records an issue if these bytes open, or fail with an error other than one for damaged files.
  private func expectRefusal(_ bytes: [UInt8], _ store: FileStore, _ what: @autoclosure () -> String) throws {
    let harbour = SimulatedHarbour(store, contents: bytes)
    do {
      try Self.openAndVerify(harbour)
      Issue.record("\(store): \(what()): opened")
    } catch let error as StoreError {
      let isTyped = Self.codes.contains(error.code) && error.path == SimulatedHarbour.path && !error.reason.isEmpty
      if !isTyped { Issue.record("\(store): \(what()): \(error)") }
    }
    let isLeftAlone = harbour.contents.map { TestBytes.areEqual($0, bytes) } == true && harbour.disk.openCount == 0
    if !isLeftAlone { Issue.record("\(store): \(what()): the file was changed or left open.") }
  }

  /// A share of the indexes of bytes or blocks, from a random start.
  private static func places(in whole: [some Any], step usual: Int, _ random: inout SeededGenerator) -> StrideTo<Int> {
    let step = TestTier.step(usual)
    return stride(from: Int.random(in: 0..<step, using: &random), to: whole.count, by: step)
  }

  private func expectOpen(_ bytes: [UInt8], _ store: FileStore) throws {
    let context = try SimulatedHarbour(store, contents: bytes).context()
    #expect(try context.count(for: FetchRequest<Ship>()) == 5)
    try context.persistentStoreCoordinator.close()
  }

  /// Every seventh byte, from a random start; all with `HOLDFAST_TESTS=full`.
  @Test(arguments: FileStore.wholeFile)
  func RE1_aChangedByteIsRefused(store: FileStore) throws {
    let whole = try Self.fixture(store)
    var random = SeededGenerator("RE1, \(store), bytes")
    for place in Self.places(in: whole, step: 7, &random) {
      var bytes = whole
      bytes[place] ^= UInt8.random(in: 1...255, using: &random)
      try expectRefusal(bytes, store, "byte \(place) became \(bytes[place])")
    }
    try expectOpen(whole, store)
    print("RE1, \(store): \(whole.count) bytes")
  }

  /// All bits of every 41st byte, from a random start; of every byte with `HOLDFAST_TESTS=full`.
  @Test(arguments: FileStore.wholeFile)
  func RE1_aChangedBitIsRefused(store: FileStore) throws {
    let whole = try Self.fixture(store)
    var random = SeededGenerator("RE1, \(store), bits")
    for place in Self.places(in: whole, step: 41, &random) {
      for bit in 0..<8 {
        var bytes = whole
        bytes[place] ^= 1 << UInt8(bit)
        try expectRefusal(bytes, store, "bit \(bit) of byte \(place)")
      }
    }
  }

  /// Every seventh length, from a random start; all with `HOLDFAST_TESTS=full`.
  @Test(arguments: FileStore.wholeFile)
  func RE2_aTruncatedFileIsRefused(store: FileStore) throws {
    let whole = try Self.fixture(store)
    var random = SeededGenerator("RE2, \(store), lengths")
    for length in Self.places(in: whole, step: 7, &random) { try expectRefusal(Array(whole[..<length]), store, "\(length) bytes") }
    print("RE2, \(store): \(whole.count) ends")
  }

  @Test(arguments: FileStore.wholeFile)
  func RE2_bytesAppendedOrPrependedAreRefused(store: FileStore) throws {
    let whole = try Self.fixture(store)
    let texts = ["\n", " ", "\t", "{}", "<!-- -->", "<!-- xxh64:0123456789abcdef -->\n", "\"}\n", "\u{FEFF}"].map { Array($0.utf8) }
    for junk in texts + [[0], [0xFF], Array(repeating: 0, count: 4096), Array(whole.suffix(8)), Array(whole.suffix(40)), whole] {
      try expectRefusal(whole + junk, store, "with \(junk.count) more bytes")
      try expectRefusal(junk + whole, store, "with \(junk.count) bytes before it")
    }
  }

  /// Blocks of 7 bytes, which aren't aligned to anything: every eighth, from a random start; all with `HOLDFAST_TESTS=full`.
  @Test(arguments: FileStore.wholeFile)
  func RE2_zeroedAndExchangedBlocksAreRefused(store: FileStore) throws {
    let whole = try Self.fixture(store)
    var random = SeededGenerator("RE2, \(store), blocks")
    for (size, share) in [(512, 1), (64, 1), (7, 8)] {
      let blocks = Array(stride(from: 0, to: whole.count, by: size))
      let chosen = Self.places(in: blocks, step: share, &random).map { blocks[$0] }
      for start in chosen {
        var bytes = whole
        for place in start..<min(start + size, bytes.count) { bytes[place] = 0 }
        if !TestBytes.areEqual(bytes, whole) { try expectRefusal(bytes, store, "\(size) zeros from \(start)") }
      }
      let starts = chosen.filter { $0 < whole.count - size }
      for (start, other) in Array(zip(starts, starts.dropFirst())) + Array(zip(starts, starts.reversed())) where start < other {
        var bytes = whole
        bytes.replaceSubrange(start..<start + size, with: whole[other..<other + size])
        bytes.replaceSubrange(other..<other + size, with: whole[start..<start + size])
        if !TestBytes.areEqual(bytes, whole) {
          try expectRefusal(bytes, store, "\(size) bytes at \(start) and \(other) exchanged")
        }
      }
    }
  }

  /// The beginning of one save joined to the end of the next, and the reverse.
  @Test(arguments: FileStore.wholeFile)
  func RE2_partsOfTwoSavesAreRefused(store: FileStore) throws {
    let whole = try Self.fixture(store)
    let harbour = SimulatedHarbour(store, contents: whole)
    let context = try harbour.context()
    let ship = try #require(try context.fetch(FetchRequest<Ship> { $0.number == 3 }).first)
    ship.name = "Boat 3"
    try context.save()
    try context.persistentStoreCoordinator.close()
    let next = try #require(harbour.contents)
    var random = SeededGenerator("RE2, \(store), parts")
    for (first, second) in [(whole, next), (next, whole)] {
      for place in Self.places(in: first.count < second.count ? first : second, step: 23, &random) where place > 0 {
        let spliced = Array(first[..<place] + second[place...])
        if !TestBytes.areEqual(spliced, first) && !TestBytes.areEqual(spliced, second) {
          try expectRefusal(spliced, store, "spliced at \(place)")
        }
      }
    }
  }

  /// Files saved by a later version of a program, whose model has more or other entities.
  @Test(arguments: FileStore.wholeFile)
  func RE4_anUnknownEntityOrAttributeIsRefusedAndTheFileUnchanged(store: FileStore) throws {
    var entities = Harbour.entities
    let ship = try #require(entities.firstIndex { $0.name == "Ship" })
    entities[ship].attributes.append(AttributeDescription("colour", .string, isOptional: true))
    var renamed = Harbour.entities
    renamed[ship].relationships[0].isOptional = false
    for (others, name) in [(entities, "Ship"), (Harbour.entities + [EntityDescription("Lamp")], "Lamp"), (renamed, "Ship")] {
      let folder = TemporaryFolder()
      let path = folder.file("harbour")
      let coordinator = try PersistentStoreCoordinator(model: Harbour.made(others), store: store.description(at: path))
      try coordinator.close()
      let error = try ReliabilityTests.expectRefusal([.incompatibleModel], by: store.description(at: path), of: path, in: folder)
      #expect(error?.reason.contains(name) == true && error?.coreDataCode == 134_100, "\(String(describing: error))")
      // Accepting unverified files doesn't accept another model.
      try ReliabilityTests.expectRefusal([.incompatibleModel], by: store.unverified(at: path), of: path, in: folder)
    }
  }

}
