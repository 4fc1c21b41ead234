import Holdfast
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastAtomicStore
@testable import HoldfastJSONStore

/// The scanner of lines reads what yajl reads, wherever the pieces of a file end, and whatever the limits and the names of the model are.
@Suite struct JSONLineModelTests {
  /// yajl receives 64 KiB at a time. A longer text moves the end of the first piece through all lines behind it.
  @Test func linesAreReadOrRefusedAsByYajlWhereverAPieceEnds() throws {
    let bytes = Array(try LineComparison.text().utf8), step = TestTier.step(41)
    let place = try #require(bytes.firstRange(of: Array("\"title\":\"Volume 0".utf8))).upperBound
    for offset in stride(from: place + Int.random(in: 0..<step), to: bytes.count, by: step) {
      var moved = bytes
      moved.insert(contentsOf: [UInt8](repeating: UInt8(ascii: "a"), count: 65_536 - offset), at: place)
      LineComparison.expectSame(moved, "The first piece ends at \(offset).")
      LineComparison.expectSame(moved + Array("}".utf8), "The first piece ends at \(offset), and data follow the end.")
    }
  }

  /// A line has five levels of nesting, or six with order keys.
  @Test(arguments: [
    JSONStoreOptions(maximumNesting: 3), JSONStoreOptions(maximumNesting: 4), JSONStoreOptions(maximumNesting: 5),
    JSONStoreOptions(maximumNesting: 6), JSONStoreOptions(maximumNameByteCount: 5), JSONStoreOptions(maximumNameByteCount: 9),
    JSONStoreOptions(maximumNameByteCount: 10), JSONStoreOptions(maximumMemberCount: 4), JSONStoreOptions(maximumMemberCount: 5),
  ])
  func limitsAreThoseOfYajl(_ limits: JSONStoreOptions) throws {
    // The same file without its model, which is nested more deeply than a line.
    let bytes = Array(LineComparison.read(Array(try LineComparison.text().utf8)).result.utf8)
    let (result, other) = (LineComparison.read(bytes, limits).result, LineComparison.read(bytes, lines: false, limits).result)
    #expect(result == other)
    #expect(result.hasPrefix("{") == (limits.maximumNesting >= 6 && limits.maximumNameByteCount >= 10 && limits.maximumMemberCount >= 5))
  }

  // MARK: Names

  /// Names that begin with others, of up to nine letters, and more of them than a word has bits.
  private static let names = ["a", "ab", "abc", "abcd", "abcde", "abcdefg", "abcdefgh", "abcdefghi"] + (0..<70).map { "n\($0)" }

  private static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "E", attributes: names.map { AttributeDescription($0, .integer16, isOptional: true) },
        relationships: [.toMany("x", to: "E", inverse: "y"), .toMany("y", to: "E", inverse: "x")]),
      EntityDescription("Ee", attributes: [AttributeDescription("a", .string, isOptional: true)]),
    ])
  }

  private func file(_ model: ManagedObjectModel, _ random: inout SeededGenerator) throws -> [UInt8] {
    let file = try JSONFile(), context = try file.context(model)
    var objects: [ManagedObject] = []
    for number in 0..<40 {
      let object = try context.insert(entityNamed: "E"), other = try context.insert(entityNamed: "Ee")
      try other.setValue(.string("\(number)"), forKey: "a")
      for name in Self.names where Bool.random(using: &random) {
        try object.setValue(.int16(Int16.random(in: -9...99, using: &random)), forKey: name)
      }
      for former in objects.suffix(2) where Bool.random(using: &random) { try object.toMany(forKey: "x").insert(former) }
      objects.append(object)
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    return try file.bytes()
  }

  @Test func namesThatBeginWithOthersAreReadOrRefusedAsByYajl() throws {
    var random = SeededGenerator("Names")
    let model = try Self.model(), bytes = try file(model, &random)
    let start = try #require(bytes.firstRange(of: Array("\"entities\"".utf8))).lowerBound
    let (result, skipped) = LineComparison.read(bytes, model: model)
    #expect(result == LineComparison.read(bytes, lines: false, model: model).result && result.contains("\"abcdefghi\":"))
    #expect(skipped * 2 > bytes.count - start, "\(skipped) of \(bytes.count) bytes")
    let marks = Array("{}[],:\"-0189abcdefghinxy\n".utf8)
    for _ in 0..<TestTier.count(300, full: 20_000) {
      let changed = TestBytes.changed(bytes, from: start, with: marks, &random)
      LineComparison.expectSame(changed, "HOLDFAST_SEED=\(random.seed)", model: model)
    }
  }
  // MARK: Wide models

  /// The bug: each object reset the link counts of all relationships of the model.
  @Test func anObjectResetsOnlyTheRelationshipsInWhichTheLastOneHasLinks() throws {
    let names = (0..<100).map { "E\($0)" }
    let model = try ManagedObjectModel(
      entities: names.map { EntityDescription($0, relationships: [.toMany("next", to: $0, inverse: nil)]) })
    let loader = TableLoader(model: model, path: nil)
    let header = StoreFileHeader(
      storeUUID: "JSON-LINE-MODEL-TESTS", generation: 1, versionHashes: model.entityVersionHashesByName,
      layoutHashes: model.entityLayoutHashesByName)
    let rows = JSONRowReader(loader, JSONErrors(path: "/store"))
    rows.begin(identity: try loader.begin(header))
    func with(_ text: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws { try Array(text.utf8).withUnsafeBytes(body) }
    func begin(_ key: String, next targets: [String]) throws {
      rows.beginRow()
      #expect(rows.linked.isEmpty)
      try with("$key") { try rows.name($0) }
      try with(key) { try rows.number($0) }
      if targets.isEmpty { return }
      try with("next") { try rows.name($0) }
      #expect(rows.beginTargets())
      for target in targets { try with(target) { try rows.number($0) } }
      rows.endTargets()
    }
    var resets = 0
    for name in names {
      try rows.beginEntity(name)
      for (key, targets) in [("1", ["1", "2"]), ("2", ["3"])] {
        resets += rows.linked.count
        try begin(key, next: targets)
        try rows.endRow()
      }
      resets += rows.linked.count
      // An object that is read again.
      try begin("3", next: ["1", "2", "3"])
      rows.forgetLinks()
      resets += rows.linked.count
      try begin("3", next: [])
      try rows.endRow()
      try rows.endEntity()
    }
    try rows.finish()
    #expect(resets == 2 * names.count)
    let loaded = try loader.finish()
    for entity in model.entities {
      let next = try #require(entity.relationship(named: "next"))
      let request = RelationshipRequest(entity: entity.index, relationship: next.index, sources: [1, 2, 3])
      #expect(loaded.generation.relationships(request).targets == [1, 2, 3])
    }
  }
}
