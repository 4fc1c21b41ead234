import Holdfast
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastAtomicStore
@testable import HoldfastXMLStore

/// The scanner of objects reads what libxml2 reads, wherever reads and the pieces of a file end, and whatever the names of the model are.
@Suite struct XMLObjectModelTests {
  /// Compares a file with a text that is `count` bytes longer, and the same file with data behind its end.
  private func expectSame(_ bytes: [UInt8], longerBy count: Int, at place: Int) {
    var moved = bytes
    moved.insert(contentsOf: [UInt8](repeating: UInt8(ascii: "a"), count: count), at: place)
    ObjectComparison.expectSame(moved, "\(count) bytes longer")
    ObjectComparison.expectSame(moved + Array("<".utf8), "\(count) bytes longer, and data follow the end")
  }

  /// libxml2 receives 4,000 bytes at a time.
  @Test func objectsAreReadOrRefusedAsByLibxml2WhereverAReadEnds() throws {
    let bytes = Array(try ObjectComparison.text().utf8), step = TestTier.step(41)
    let place = try #require(bytes.firstRange(of: Array("Volume 0".utf8))).upperBound
    for count in stride(from: Int.random(in: 0..<step), to: 4_000, by: step) { expectSame(bytes, longerBy: count, at: place) }
  }

  /// A file is read in pieces of 1 MiB.
  @Test func objectsAreReadOrRefusedAsByLibxml2WhereverAPieceEnds() throws {
    let bytes = Array(try ObjectComparison.text().utf8), step = TestTier.isFull ? 23 : 401
    let place = try #require(bytes.firstRange(of: Array("Volume 0".utf8))).upperBound
    for offset in stride(from: place + Int.random(in: 0..<step), to: bytes.count, by: step) {
      expectSame(bytes, longerBy: FileReader.maximumChunkByteCount - offset, at: place)
    }
  }

  // MARK: Names

  /// Names that begin with others, of up to nine letters, and more of them than a word has bits.
  private static let names = ["a", "ab", "abc", "abcd", "abcde", "abcdefg", "abcdefgh", "abcdefghi"] + (0..<70).map { "n\($0)" }

  private static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "E", attributes: names.map { AttributeDescription($0, .integer16, isOptional: true) },
        relationships: [.toMany("x", to: "E", inverse: "y"), .toMany("y", to: "E", inverse: "x"), .toMany("xy", to: "Ee", inverse: nil)]),
      EntityDescription("Ee", attributes: [AttributeDescription("a", .string, isOptional: true)]),
    ])
  }

  private func file(_ model: ManagedObjectModel, _ random: inout SeededGenerator) throws -> [UInt8] {
    let file = try XMLFile(), context = try file.context(model)
    var objects: [ManagedObject] = []
    for number in 0..<40 {
      let object = try context.insert(entityNamed: "E"), other = try context.insert(entityNamed: "Ee")
      try other.setValue(.string("\(number)"), forKey: "a")
      for name in Self.names where Bool.random(using: &random) {
        try object.setValue(.int16(Int16.random(in: -9...99, using: &random)), forKey: name)
      }
      for former in objects.suffix(2) where Bool.random(using: &random) { try object.toMany(forKey: "x").insert(former) }
      if Bool.random(using: &random) { try object.toMany(forKey: "xy").insert(other) }
      objects.append(object)
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    return try file.bytes()
  }

  @Test func namesThatBeginWithOthersAreReadOrRefusedAsByLibxml2() throws {
    var random = SeededGenerator("Names")
    let model = try Self.model(), bytes = try file(model, &random)
    let start = try #require(bytes.firstRange(of: Array("<object".utf8))).lowerBound
    let (result, skipped) = ObjectComparison.read(bytes, model: model)
    #expect(result == ObjectComparison.read(bytes, lines: false, model: model).result && result.contains("name=\"abcdefghi\""))
    #expect(skipped > 0)
    let marks = Array("<>/\"=-0189abcdefghinxyzE\n".utf8)
    for _ in 0..<TestTier.count(300, full: 20_000) {
      let changed = TestBytes.changed(bytes, from: start, with: marks, &random)
      ObjectComparison.expectSame(changed, "HOLDFAST_SEED=\(random.seed)", model: model)
    }
  }
  // MARK: Wide models

  /// The bug: each object reset the link counts of all relationships of the model.
  @Test func anObjectResetsOnlyTheRelationshipsInWhichTheLastOneHasLinks() throws {
    let names = (0..<100).map { "E\($0)" }
    let model = try ManagedObjectModel(
      entities: names.map { name in
        EntityDescription(
          name,
          relationships: [.toMany("next", to: name, inverse: "former", isOrdered: true), .toMany("former", to: name, inverse: "next")])
      })
    let loader = TableLoader(model: model, path: nil)
    let rows = XMLRowReader(loader, XMLModel(model), XMLStoreOptions(), XMLErrors(path: "/store"), XMLFormat.mostListed)
    var metadata = XMLMetadata()
    metadata.setUUID("XML-OBJECT-MODEL-TESTS")
    try rows.begin(metadata)
    func with(_ texts: [String], _ body: ([UnsafeRawBufferPointer]) throws -> Void) throws {
      try Array(texts.joined().utf8).withUnsafeBytes { bytes in
        var end = 0
        try body(
          texts.map { text in
            defer { end += text.utf8.count }
            return UnsafeRawBufferPointer(rebasing: bytes[end..<end + text.utf8.count])
          })
      }
    }
    var resets = 0
    for (number, name) in names.enumerated() {
      let ids = ["z\(2 * number + 1)", "z\(2 * number + 2)"]
      for id in ids {
        resets += rows.linked.count
        try with([name, id]) { try rows.beginObject(type: $0[0], id: $0[1]) }
        #expect(rows.linked.isEmpty)
        try with(["next", name, ids.joined(separator: " ")]) { try rows.relationship(name: $0[0], destination: $0[1], idrefs: $0[2]) }
        try rows.endObject()
      }
    }
    #expect(resets == 2 * names.count - 1)
    rows.forgetLinks()
    #expect(rows.linked.isEmpty)
  }
}
