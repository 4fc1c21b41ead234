import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

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
}
