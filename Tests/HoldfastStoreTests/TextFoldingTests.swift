import TestSupport
import Testing

@testable import HoldfastStore

private let insensitive: TextFolding = [.caseInsensitive, .diacriticInsensitive]
private let everySet: [TextFolding] = [[], .caseInsensitive, .diacriticInsensitive, insensitive]

/// The folded form of single texts.
@Suite struct TextFoldingTests {
  @Test(
    arguments: [
      ("Hello, World_09 [Z]{z}@`", TextFolding.caseInsensitive, "hello, world_09 [z]{z}@`"),
      ("Hello, World_09 [Z]{z}@`", .diacriticInsensitive, "Hello, World_09 [Z]{z}@`"),
      ("Straße", .caseInsensitive, "strasse"),
      ("STRASSE", .caseInsensitive, "strasse"),
      ("Straße", .diacriticInsensitive, "Straße"),
      ("STRAẞE", insensitive, "strasse"),
      ("É", .caseInsensitive, "é"),
      ("É", .diacriticInsensitive, "E"),
      ("É", insensitive, "e"),
      ("\u{212B}ngström", .caseInsensitive, "ångström"),
      ("\u{212B}ngström", .diacriticInsensitive, "Angstrom"),
      ("İ", .caseInsensitive, "i\u{307}"),
      ("İ", insensitive, "i"),
      ("ı", insensitive, "ı"),
      ("ſ", .caseInsensitive, "s"),
      ("ſ", .diacriticInsensitive, "ſ"),
      ("\u{212A}", .caseInsensitive, "k"),
      ("\u{212A}", .diacriticInsensitive, "K"),
      ("ΣΑΣ σας", .caseInsensitive, "σασ σασ"),
      ("ﬃ", .caseInsensitive, "ffi"),
      ("ǅ", .caseInsensitive, "ǆ"),
      ("e\u{301}\u{328}x", .diacriticInsensitive, "ex"),
      ("e\u{301}", .caseInsensitive, "e\u{301}"),
      ("\u{301}\u{345}", .diacriticInsensitive, ""),
      ("Ệ", insensitive, "e"),
      ("ø đ ł", .diacriticInsensitive, "ø đ ł"),
      ("한국어", insensitive, "한국어"),
      ("がぎ", .diacriticInsensitive, "かき"),
      ("\u{10400}", .caseInsensitive, "\u{10428}"),
      ("👩‍👩‍👧‍👦 🇦🇶 ❤️ 👍🏽", insensitive, "👩‍👩‍👧‍👦 🇦🇶 ❤️ 👍🏽"),
      ("Straße É", [], "Straße É"),
      ("", insensitive, ""),
    ] as [(String, TextFolding, String)])
  func knownTextsFoldAsUnicodeSays(text: String, folding: TextFolding, folded: String) {
    #expect(folding.fold(text) == Array(folded.utf8))
  }

  @Test func foldingAppendsToWhatIsThere() {
    var output: [UInt8] = [1, 2]
    insensitive.append("É", to: &output)
    insensitive.append("", to: &output)
    insensitive.append("b", to: &output)
    #expect(output == [1, 2, 0x65, 0x62])
  }

  @Test func aLongTextFoldsLikeItsParts() {
    let part = "Größe \u{212A} e\u{301} "
    let whole = String(repeating: part, count: 5_000)
    #expect(insensitive.fold(whole) == Array(String(repeating: "grosse k e ", count: 5_000).utf8))
  }

  @Test(arguments: everySet)
  func bytesThatAreNotUTF8StayAsTheyAre(folding: TextFolding) {
    let damaged: [[UInt8]] = [
      [0x80], [0xBF, 0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xE0, 0x80, 0x80], [0xE2, 0x84], [0xED, 0xA0, 0x80],
      [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x90, 0x90], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFE], [0xFF],
    ]
    for bytes in damaged {
      #expect(folding.folded(bytes) == bytes)
      #expect(folding.folded(bytes + Array("x".utf8)) == bytes + Array("x".utf8))
    }
  }

  @Test func textAfterDamageIsFolded() {
    #expect(insensitive.folded([0xC3] + Array("É".utf8) + [0xE2, 0x84] + Array("K".utf8)) == [0xC3, 0x65, 0xE2, 0x84, 0x6B])
  }

  @Test func theVersionIsThatOfTheTables() {
    #expect(TextFolding.unicodeVersion.split(separator: ".").count == 3)
  }

  @Test func bitsWithoutANameChangeNothing() {
    #expect(TextFolding(rawValue: 4).fold("É") == Array("É".utf8))
    #expect(TextFolding(rawValue: 7).fold("É") == Array("e".utf8))
  }
}

/// Comparisons of a text with a needle.
@Suite struct TextFoldingComparisonTests {
  @Test(
    arguments: [
      ("Straße", "STRASSE", TextFolding.caseInsensitive, true),
      ("café", "CAFÉ", .caseInsensitive, true),
      ("café", "CAFE", .caseInsensitive, false),
      ("café", "CAFE", insensitive, true),
      ("cafe\u{301}", "cafe", .diacriticInsensitive, true),
      ("cafe", "cafe\u{301}", .diacriticInsensitive, true),
      ("cafe\u{301}s", "cafe", .diacriticInsensitive, false),
      ("cafe\u{301}", "café", .caseInsensitive, false),
      ("\u{212A}elvin", "KELVIN", .caseInsensitive, true),
      ("strass", "Straß", .caseInsensitive, true),
      ("stras", "Straß", .caseInsensitive, false),
      ("Straß", "stras", .caseInsensitive, false),
      ("a", "A", [], false),
      ("é", "é", [], true),
      ("\u{301}", "", .diacriticInsensitive, true),
      ("", "", insensitive, true),
      ("", "a", insensitive, false),
    ] as [(String, String, TextFolding, Bool)])
  func equalityIsThatOfTheFoldedTexts(text: String, other: String, folding: TextFolding, areEqual: Bool) {
    let question = Question(folding, Array(text.utf8), needle: folding.fold(other))
    #expect(question.equals == areEqual)
    #expect((folding.order(Array(text.utf8), Array(other.utf8)) == 0) == areEqual)
  }

  @Test func partsOfAnExpansionAreFound() {
    let question = Question(.caseInsensitive, Array("Straße".utf8), needle: Array("ras".utf8))
    #expect(question.contains)
    #expect(Question(.caseInsensitive, Array("aß".utf8), needle: Array("as".utf8)).hasPrefix)
    #expect(Question(.caseInsensitive, Array("ßa".utf8), needle: Array("sa".utf8)).hasSuffix)
  }

  @Test func aMarkBehindTheNeedleDoesNotSpoilASuffix() {
    #expect(Question(.diacriticInsensitive, Array("cafe\u{301}".utf8), needle: Array("fe".utf8)).hasSuffix)
    #expect(Question(.diacriticInsensitive, Array("e\u{301}cafe".utf8), needle: Array("cafe".utf8)).hasSuffix)
  }

  @Test(arguments: everySet)
  func anEmptyNeedleIsInEveryText(folding: TextFolding) {
    for text in ["", "a", "é", "\u{301}"] {
      let question = Question(folding, Array(text.utf8), needle: [])
      #expect(question.hasPrefix && question.hasSuffix && question.contains)
    }
  }

  @Test(arguments: [("a", "B", -1), ("B", "a", 1), ("ab", "A", 1), ("É", "f", -1), ("z", "é", 1), ("ß", "SS", 0), ("Z", "😀", -1)])
  func orderIsThatOfTheFoldedBytes(left: String, right: String, order: Int) {
    #expect(insensitive.order(Array(left.utf8), Array(right.utf8)) == order)
  }

  @Test func theEmptySetOrdersBytes() {
    #expect(TextFolding().order(Array("B".utf8), Array("a".utf8)) == -1)
    #expect(TextFolding().order(Array("é".utf8), Array("é\0".utf8)) == -1)
    #expect(TextFolding().order([0xFF], [0x80]) == 1)
  }

  @Test func memoryWithoutAnAddressIsAnEmptyText() {
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    for folding in everySet {
      #expect(folding.equals(nothing, folded: nothing) && folding.hasPrefix(nothing, folded: nothing))
      #expect(folding.hasSuffix(nothing, folded: nothing) && folding.contains(nothing, folded: nothing))
      #expect(folding.compare(nothing, nothing) == 0)
    }
  }
}

/// Rules that hold for every scalar.
@Suite struct TextFoldingTableTests {
  /// Two of the sets, or all in the full tier.
  @Test(arguments: Array(everySet.shuffled().prefix(TestTier.isFull ? 4 : 2)))
  func foldingTwiceIsFoldingOnceForEveryScalar(folding: TextFolding) {
    let once = folding.folded(everyLine)
    let twice = folding.folded(once)
    #expect(once.count { $0 == 0x0A } == everyScalar.count + 1)
    #expect(once == twice, "first difference at byte \(zip(once, twice).enumerated().first { $1.0 != $1.1 }?.offset ?? -1)")
  }

  @Test(arguments: everySet)
  func noScalarGrowsBeyondTheDeclaredFactor(folding: TextFolding) {
    guard let trie = folding.trie else { return }
    let failures = everyScalar.filter { scalar in
      (trie.folded(scalar.value)?.count ?? 0) > FoldingTables.maximumGrowth * UTF8.width(scalar)
    }
    #expect(failures == [])
  }

  @Test func aScalarFoldsLikeItsLowerCase() {
    let failures = knownScalars.filter { scalar in
      scalar.properties.changesWhenLowercased
        && TextFolding.caseInsensitive.fold(String(scalar)) != TextFolding.caseInsensitive.fold(scalar.properties.lowercaseMapping)
    }
    #expect(failures == [])
  }

  @Test func exactlyTheNonspacingMarksWithACombiningClassFoldToNothing() {
    // Three Tibetan vowels have class 0 themselves, and decompose into two such marks.
    let pairsOfMarks: Set<Unicode.Scalar> = ["\u{0F73}", "\u{0F75}", "\u{0F81}"]
    let failures = knownScalars.filter { scalar in
      let isMark = scalar.properties.generalCategory == .nonspacingMark && scalar.properties.canonicalCombiningClass != .notReordered
      return TextFolding.diacriticInsensitive.fold(String(scalar)).isEmpty != (isMark || pairsOfMarks.contains(scalar))
    }
    #expect(failures == [])
  }
}

/// The production folding against a slow and simple one, on random text.
@Suite struct TextFoldingModelTests {
  @Test(arguments: [UInt64.random(in: 0...UInt64.max)])
  func everyOperationAgreesWithTheModel(seed: UInt64) {
    print("TextFolding seed: \(seed)")
    var text = RandomText(seed: seed)
    for _ in 0..<TestTier.count(500, full: 2_000) {
      let folding = everySet.randomElement(using: &text.generator)!
      let bytes = text.next()
      let other = Bool.random(using: &text.generator) ? text.part(of: bytes) : text.next()
      check(folding, bytes, other, seed: seed)
    }
  }

  private func check(_ folding: TextFolding, _ text: [UInt8], _ other: [UInt8], seed: UInt64) {
    let comment: Comment = "seed \(seed), set \(folding.rawValue), text \(text), other \(other)"
    let folded = FoldingModel.fold(text, folding)
    let needle = FoldingModel.fold(other, folding)
    let question = Question(folding, text, needle: needle)
    #expect(folding.folded(text) == folded, comment)
    #expect(question.equals == (folded == needle), comment)
    #expect(question.hasPrefix == folded.starts(with: needle), comment)
    #expect(question.hasSuffix == folded.reversed().starts(with: needle.reversed()), comment)
    #expect(question.contains == folded.indices.contains { folded[$0...].starts(with: needle) } || needle.isEmpty, comment)
    #expect(folding.order(text, other) == FoldingModel.order(folded, needle), comment)
  }
}

/// Folding with dictionaries and the standard library's UTF-8 parser.
private enum FoldingModel {
  private static let caseResults = dictionary(.caseInsensitive)
  private static let diacriticResults = dictionary(.diacriticInsensitive)

  private static func dictionary(_ mappings: FoldingMappings) -> [UInt32: [UInt8]] {
    Dictionary(uniqueKeysWithValues: mappings.entries.map { ($0.scalar, Array(mappings.result(of: $0))) })
  }

  static func fold(_ text: [UInt8], _ folding: TextFolding) -> [UInt8] {
    var folded = text
    if folding.contains(.caseInsensitive) { folded = replace(folded, from: caseResults) }
    if folding.contains(.diacriticInsensitive) { folded = replace(folded, from: diacriticResults) }
    return folded
  }

  private static func replace(_ text: [UInt8], from results: [UInt32: [UInt8]]) -> [UInt8] {
    var output: [UInt8] = []
    var position = 0
    var bytes = text.makeIterator()
    var parser = UTF8.ForwardParser()
    while true {
      switch parser.parseScalar(from: &bytes) {
      case .valid(let encoded):
        output += results[UTF8.decode(encoded).value] ?? Array(encoded)
        position += encoded.count
      case .error(let length):
        output += text[position..<position + length]
        position += length
      case .emptyInput:
        return output
      }
    }
  }

  static func order(_ a: [UInt8], _ b: [UInt8]) -> Int {
    a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
  }
}

/// Random bytes, mostly text for which folding is not trivial.
private struct RandomText {
  var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func next() -> [UInt8] {
    let wantsOnlyASCII = Int.random(in: 0..<3, using: &generator) == 0
    let count = [0, 1, 2, 3, 8, 21, 200].randomElement(using: &generator)!
    return (0..<count).flatMap { _ in wantsOnlyASCII ? ascii() : piece() }
  }

  mutating func part(of bytes: [UInt8]) -> [UInt8] {
    let start = Int.random(in: 0...bytes.count, using: &generator)
    let end = Int.random(in: start...bytes.count, using: &generator)
    return Array(bytes[(Bool.random(using: &generator) ? 0 : start)..<(Bool.random(using: &generator) ? bytes.count : end)])
  }

  private mutating func piece() -> [UInt8] {
    switch Int.random(in: 0..<10, using: &generator) {
    case 0..<5: ascii()
    case 5..<8:
      Array("ÉéåÅßẞİıſ\u{212A}\u{301}\u{345}\u{307}ǅﬃᾳがΣς한👩🏽\u{200D}क़\u{2F800}".unicodeScalars.randomElement(using: &generator)!.utf8Bytes)
    case 8: everyScalar.randomElement(using: &generator)!.utf8Bytes
    default: [UInt8.random(in: 0x80...0xFF, using: &generator)]
    }
  }

  private mutating func ascii() -> [UInt8] {
    [Array("aAbBeEsSkKiI[`@{ ".utf8).randomElement(using: &generator)!]
  }
}

/// The four comparisons of one text with one needle.
private struct Question {
  let equals, hasPrefix, hasSuffix, contains: Bool

  init(_ folding: TextFolding, _ text: [UInt8], needle: [UInt8]) {
    (equals, hasPrefix, hasSuffix, contains) = text.withUnsafeBytes { text in
      needle.withUnsafeBytes { needle in
        (
          folding.equals(text, folded: needle), folding.hasPrefix(text, folded: needle),
          folding.hasSuffix(text, folded: needle), folding.contains(text, folded: needle)
        )
      }
    }
  }
}

extension TextFolding {
  fileprivate func append(_ text: String, to output: inout [UInt8]) {
    Array(text.utf8).withUnsafeBytes { fold($0, into: &output) }
  }

  fileprivate func folded(_ text: [UInt8]) -> [UInt8] {
    var output: [UInt8] = []
    text.withUnsafeBytes { fold($0, into: &output) }
    return output
  }

  fileprivate func order(_ a: [UInt8], _ b: [UInt8]) -> Int {
    a.withUnsafeBytes { a in b.withUnsafeBytes { b in compare(a, b) } }
  }
}

extension Unicode.Scalar {
  fileprivate var utf8Bytes: [UInt8] { Array(UTF8.encode(self)!) }
}

/// One line per scalar. Line breaks fold to themselves, so the lines of a text and of its folded form match.
private let everyLine: [UInt8] = everyScalar.flatMap { Array(UTF8.encode($0)!) + [0x0A] }

private let everyScalar: [Unicode.Scalar] = (0...0x10FFFF).compactMap(Unicode.Scalar.init as (UInt32) -> Unicode.Scalar?)

/// The scalars in the tables' Unicode version, by the standard library's age property.
private let knownScalars: [Unicode.Scalar] = {
  let version = TextFolding.unicodeVersion.split(separator: ".").compactMap { Int($0) }
  return everyScalar.filter { scalar in
    guard let age = scalar.properties.age else { return false }
    return (age.major, age.minor) <= (version[0], version[1])
  }
}()
