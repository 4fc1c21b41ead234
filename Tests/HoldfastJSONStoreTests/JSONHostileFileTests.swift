import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// RX11: malicious files. Each is refused, or read exactly.
@Suite(.bothReaders) struct JSONHostileFileTests {
  private let file: JSONFile
  private let text: String

  init() throws {
    file = try JSONFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    text = try file.text()
  }

  private func refusal(replacing old: String, by new: [UInt8], options: JSONStoreOptions = JSONFile.unverified) throws -> StoreError? {
    let bytes = Array(text.utf8)
    let place = try #require(TestBytes.places(of: Array(old.utf8), in: bytes).first, "\(old)")
    try file.write(bytes[..<place] + new + bytes[(place + old.utf8.count)...])
    return file.refusal(options: options)
  }

  private func refusal(replacing old: String, by new: String, options: JSONStoreOptions = JSONFile.unverified) throws -> StoreError? {
    try refusal(replacing: old, by: Array(new.utf8), options: options)
  }

  @Test func RX11_tenMillionOpenBracketsAreRefusedAtTheSixtyFifth() throws {
    try file.write([UInt8](repeating: UInt8(ascii: "["), count: 10_000_000))
    #expect(file.refusal()?.code == .notAStore)
    for bracket in ["[", "{\"a\":"] {
      let deep = try refusal(replacing: "\"model\":{", by: "\"model\":{\"a\":" + String(repeating: bracket, count: 1_000_000))
      #expect(deep?.code == .damaged && deep?.reason.contains("more than 64") == true, "\(deep.map { "\($0)" } ?? "opened")")
    }
    let allowed = String(repeating: "[", count: 62) + String(repeating: "]", count: 62)
    #expect(try refusal(replacing: "\"model\":{", by: "\"model\":{\"a\":\(allowed),") == nil)
    #expect(try refusal(replacing: "\"model\":{", by: "\"model\":{\"a\":[\(allowed)],")?.code == .damaged)
    var deeper = JSONFile.unverified
    deeper.maximumNesting = 65
    #expect(try refusal(replacing: "\"model\":{", by: "\"model\":{\"a\":[\(allowed)],", options: deeper) == nil)
  }

  /// 50 MB with `HOLDFAST_TESTS=full`.
  @Test func RX11_aNumberOfManyMegabytesIsRefused() throws {
    let digits = [UInt8](repeating: UInt8(ascii: "7"), count: TestTier.count(5_000_000, full: 50_000_000))
    #expect(try refusal(replacing: "\"row\":3", by: Array("\"row\":".utf8) + digits)?.code == .damaged)
    #expect(try refusal(replacing: "\"weight\":0.1", by: Array("\"weight\":".utf8) + digits)?.code == .damaged)
    #expect(try refusal(replacing: "\"price\":\"", by: Array("\"price\":\"".utf8) + digits)?.code == .damaged)
  }

  @Test func aLongTextCostsAsMuchAsItsLengthAndIsRead() throws {
    let count = TestTier.count(400_000, full: 4_000_000)
    let long = String(repeating: "long\u{E9}\\n", count: count)
    #expect(try refusal(replacing: "\"name\":\"Ada\"", by: "\"name\":\"\(long)\"") == nil)
    let context = try file.context(options: JSONFile.unverified)
    let author = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Author")).first)
    #expect(try author.value(forKey: "name") == .string(String(repeating: "long\u{E9}\n", count: count)))
    try context.persistentStoreCoordinator.close()
  }

  @Test func RX11_aMillionEqualNamesAreRefusedAtTheSecond() throws {
    let many = String(repeating: "\"a\":[\"integer64\",1],", count: 1_000_000)
    #expect(try refusal(replacing: "\"metadata\":{", by: "\"metadata\":{\(many)\"b\":[\"null\",null]")?.code == .damaged)
    let rows = String(repeating: "\"row\":3,", count: 1_000_000)
    #expect(try refusal(replacing: "\"row\":3", by: rows + "\"row\":3")?.code == .damaged)
  }

  @Test func RX11_manyNamesAndLongNamesHaveTheirLimits() throws {
    func members(_ count: Int) -> String { (0..<count).map { "\"k\($0)\":[\"null\",null]" }.joined(separator: ",") }
    #expect(try refusal(replacing: "\"metadata\":{", by: "\"metadata\":{" + members(65_536)) == nil)
    #expect(try refusal(replacing: "\"metadata\":{", by: "\"metadata\":{" + members(65_537))?.reason.contains("65536 members") == true)
    func named(_ count: Int) -> String { "\"metadata\":{\"" + String(repeating: "n", count: count) + "\":[\"null\",null]" }
    #expect(try refusal(replacing: "\"metadata\":{", by: named(65_536)) == nil)
    #expect(try refusal(replacing: "\"metadata\":{", by: named(65_537))?.reason.contains("65536 bytes") == true)
  }

  @Test func RX11_aFileOverTheLimitIsRefusedBeforeItIsRead() throws {
    var options = JSONStoreOptions()
    options.wholeFile.file.maximumByteCount = Int64(text.utf8.count)
    #expect(file.refusal(options: options) == nil)
    options.wholeFile.file.maximumByteCount -= 1
    let refusal = try #require(file.refusal(options: options))
    #expect(refusal.code == .tooLarge && refusal.path == file.path && refusal.operation == "open the store", "\(refusal)")
    // A sparse file of one terabyte.
    try file.write("")
    let handle = try #require(FileHandle(forWritingAtPath: file.path))
    try handle.truncate(atOffset: 1 << 40)
    try handle.close()
    let disk = ReadCountingFileSystem()
    options = JSONStoreOptions()
    options.wholeFile.file.fileSystem = disk
    #expect(file.refusal(options: options)?.code == .tooLarge && disk.byteCount == 0)
  }

  @Test(
    arguments: [
      "NaN", "Infinity", "-Infinity", "nan", "0x10", "01", "+1", ".5", "1.", "1e", "--1", "1e400", "-1e400", "1e-400", "1 2", "'1'",
      "undefined",
    ])
  func RX11_whatIsNoNumberIsRefused(_ number: String) throws {
    #expect(try refusal(replacing: "\"weight\":0.1", by: "\"weight\":\(number)")?.code == .damaged)
  }

  @Test(arguments: [
    ("-0", 0.0), ("-0.0", 0), ("0e400", 0), ("1e22", 1e22), ("5e-324", .leastNonzeroMagnitude),
    ("1.7976931348623157e308", 1.7976931348623157e308),
  ])
  func RX11_aNumberAtTheEdgeIsReadExactly(_ number: String, value: Double) throws {
    #expect(try refusal(replacing: "\"weight\":0.1", by: "\"weight\":\(number)") == nil)
    let context = try file.context(options: JSONFile.unverified)
    let books = try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")).map { try $0.value(forKey: "weight").storeValue }
    #expect(books.contains(.double(value)))
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: [Int64.min, .max, 1 << 53, 1 << 53 + 1, -(1 << 53) - 1])
  func RX11_wholeNumbersReachToBothEnds(_ number: Int64) throws {
    for text in ["\(number)", "\"\(number)\""] {
      #expect(try refusal(replacing: "\"number\":\"1152921504606846976\"", by: "\"number\":\(text)") == nil)
      let context = try file.context(options: JSONFile.unverified)
      #expect(
        try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")).map { try $0.value(forKey: "number").storeValue }.contains(
          .int64(number)))
      try context.persistentStoreCoordinator.close()
    }
  }

  @Test(
    arguments: [
      [0xC0, 0xAF], [0xC1, 0xBF], [0xE0, 0x80, 0xAF], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80],
      [0xF5, 0x80, 0x80, 0x80],
      [0xF0, 0x80, 0x80, 0xAF], [0x80], [0xFF], [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98], Array("\\ud800".utf8), Array("\\udc00".utf8),
      Array("\\ud800\\u0041".utf8), Array("\\ud800x".utf8), Array("\\udbff\\udbff".utf8), Array("\\ud8".utf8), Array("\\uD83D\\n".utf8),
      Array("\\x41".utf8), Array("\\".utf8), [0x00], [0x0A], [0x1F],
    ] as [[UInt8]])
  func RX11_whatIsNoTextIsRefused(_ bytes: [UInt8]) throws {
    #expect(try refusal(replacing: "\"name\":\"Ada\"", by: Array("\"name\":\"".utf8) + bytes + Array("\"".utf8))?.code == .damaged)
    // The same in a range that only the check of all bytes reads.
    let inModel = Array("\"model\":{\"a\":\"".utf8) + bytes + Array("\",".utf8)
    #expect(try refusal(replacing: "\"model\":{", by: inModel)?.code == .damaged)
  }

  @Test(
    arguments: [
      ("\\u0000", "\0"), ("\\u0041\\/\\b\\f\\n\\r\\t\\\"\\\\", "A/\u{8}\u{C}\n\r\t\"\\"), ("\\ud83d\\ude00", "\u{1F600}"),
      ("\\uFFFE", "\u{FFFE}"),
      ("\u{FEFF}\u{10FFFF}e\u{301}", "\u{FEFF}\u{10FFFF}e\u{301}"), ("\u{7F}\u{2028}", "\u{7F}\u{2028}"),
      ("\\ue000\\ud7ff", "\u{E000}\u{D7FF}"),
    ])
  func RX11_everyTextIsReadExactly(_ escaped: String, text: String) throws {
    #expect(try refusal(replacing: "\"name\":\"Ada\"", by: "\"name\":\"\(escaped)\"") == nil)
    let context = try file.context(options: JSONFile.unverified)
    let author = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Author")).first)
    var found: [UInt8] = []
    if case .string(let name)? = try author.value(forKey: "name").storeValue { found = Array(name.utf8) }
    #expect(found == Array(text.utf8))
    try context.persistentStoreCoordinator.close()
  }

  @Test func RX11_aPairOfSurrogatesMayCrossChunks() throws {
    // The file is checked in chunks of 65,536 bytes.
    for shift in 0..<14 {
      let start = try #require(text.range(of: "\"name\":\"Ada\"")).lowerBound.utf16Offset(in: text) + 8
      let fill = String(repeating: "x", count: 65_536 - start - 12 + shift)
      #expect(try refusal(replacing: "\"name\":\"Ada\"", by: "\"name\":\"\(fill)\\ud83d\\ude00\u{1F600}\"") == nil, "\(shift)")
    }
  }

  @Test(
    arguments: [
      "\u{FEFF}{\"format\":\"holdfast-json\"", "// \n{\"format\":\"holdfast-json\"", "/* */{\"format\":\"holdfast-json\"",
      "{\"Format\":\"holdfast-json\"", "{\"format\":\"holdfast-xml\"", "{\"format\":1", "[{\"format\":\"holdfast-json\"",
      "{\"\":\"holdfast-json\"",
      "{\"format\\u0000\":\"holdfast-json\"", "{\"format\":{\"a\":1}", "{\"format\":[\"holdfast-json\"]", "{\"uuid\":\"holdfast-json\"",
    ])
  func RX11_whatDoesNotBeginAsAStoreIsNone(_ beginning: String) throws {
    #expect(try refusal(replacing: "{\"format\":\"holdfast-json\"", by: beginning)?.code == .notAStore)
  }

  @Test(arguments: [" // comment\n", " /* comment */ ", "\u{FEFF}", "#\n"])
  func RX11_commentsAndMarksWithinAreRefused(_ insertion: String) throws {
    #expect(try refusal(replacing: "\"metadata\"", by: insertion + "\"metadata\"")?.code == .damaged)
  }

  @Test(arguments: ["{}", "x", "[]", "\0", ",", "null"]) func RX11_whatFollowsTheDocumentIsRefused(_ trailer: String) throws {
    try file.write(text + trailer)
    #expect(file.refusal(options: JSONFile.unverified)?.code == .damaged)
  }

  @Test func RX11_namesMadeToCollideInAHashTableCostNoMoreThanOthers() throws {
    func time(_ name: (Int) -> String) throws -> Duration {
      let members = (0..<60_000).map { "\"\(name($0))\":[\"null\",null]" }
      return try processorTime {
        let refusal = try refusal(replacing: "\"metadata\":{", by: "\"metadata\":{" + members.joined(separator: ","))
        #expect(refusal == nil)
      }
    }
    // Permutations of the same words, which collide if a hash only uses addition or exclusive-or.
    let halves = (0..<256).map { number in (0..<8).map { number >> $0 & 1 == 0 ? "Aa" : "BB" }.joined() }
    func colliding(_ number: Int) -> String { halves[number & 255] + halves[number >> 8] }
    // The same length, with one difference.
    func other(_ number: Int) -> String { "\(number)" + String(repeating: "x", count: 32 - "\(number)".utf8.count) }
    try expectCost(below: 8, times: { try time(other) }) { try time(colliding) }
  }

  @Test(arguments: 0..<8) func anyBytesAreRefusedWithATypedError(_ round: Int) throws {
    var random = SeededGenerator("Changed JSON \(round)"), refused = 0
    let tokens = ["{", "}", "[", "]", ":", ",", "\"", "null", "true", "1e5", "\"$key\"", "\"a\"", "\\u00", "\u{1F600}"]
    for _ in 0..<200 {
      var bytes = Array(text.utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        let end = min(bytes.count, place + Int.random(in: 0...12, using: &random))
        bytes.replaceSubrange(place..<end, with: tokens.randomElement(using: &random).map { Array($0.utf8) } ?? [])
      }
      try file.write(bytes)
      if let refusal = file.refusal(options: JSONFile.unverified) {
        refused += 1
        #expect([.damaged, .notAStore, .newerFormat, .incompatibleModel].contains(refusal.code), "\(refusal)")
        #expect(refusal.path == file.path && !refusal.reason.isEmpty)
      }
    }
    #expect((100...200).contains(refused), "\(refused) of 200 refused")
  }
}
