import Foundation
import TestSupport
import Testing

/// Lines in almost the form of the writer, and files that another program has changed: the scanner of lines reads what yajl reads, or leaves
/// it to yajl.
@Suite struct JSONLineFormTests {
  /// A member of the test file, and other values for it, valid or not.
  private struct Forms {
    var member: String
    var value: String
    var others: [String]
  }

  private static let numbers: [Forms] = [
    Forms(
      member: "weight", value: "1.1",
      others: [
        "-0", "-0.0", "0", "00", "-", "--1", "+1", "1.10", "1.1.1", "1.1e", "1E5", "1e+5", "1e-5", "1.1e1.1", "0x10", "1_0", "1 1", "1.1 ",
        "123456789012345678", "1234567890123456789", "9223372036854775808", "18446744073709551616", "0.1234567890123456789",
        "9007199254740992.5", "1.7976931348623159e308", "4.9e-324", "2e-324", #""NaN""#, #""-Infinity""#, #""nan""#, #""1.1""#, "NaN",
        "true", "[]", "{}", "[1.1]", "",
      ]),
    Forms(
      member: "pages", value: "7",
      others: ["-0", "-32768", "-32769", "007", "7e0", #""7""#, " 7", "7\t", "7\n", "null", "7,7", "7}", "7,\"pages\":7"]),
    Forms(
      member: "number", value: #""1152921504606846977""#,
      others: [
        "1152921504606846977", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "-0",
        #""-0""#, #""007""#, #""9223372036854775808""#, "\"\"", #""-""#, #"" 7""#, "123456789012345678901234", "7.0",
      ]),
    Forms(member: "height", value: "0.1", others: ["1e-46", "3.5e38", "0.10000000149011612", "-0", #""Infinity""#, #""0.1""#, "0.1f"]),
    Forms(member: "printed", value: "-1000000000.25", others: ["-0", "1e400", #""NaN""#, "-1000000000.250", "-1e9"]),
    Forms(
      member: "price", value: #""12345678901234567.1""#,
      others: ["-0", "1e5", #""1e5""#, "00.5", #""00.5""#, "1.", "\"\"", #""NaN""#, #""\u0031""#, "null"]),
    Forms(member: "similar", value: "[1]", others: ["[-0]", "[01]", "[1.0]", #"["1"]"#, "[ 1]", "[1 ]", "[1, 1]", "[[1]]", "[null]", "1"]),
    Forms(member: "similar", value: "[1]", others: ["[4611686018427387904]", "[4611686018427387905]", "[99999999999999999999]"]),
  ]

  private static let texts: [Forms] = [
    Forms(member: "isLent", value: "false", others: ["true", "fals", "falsey", #""false""#, "FALSE", "false ", "1", "tru"]),
    Forms(
      member: "cover", value: #""AAE=""#,
      others: [
        "\"\"", #""AAE""#, #""AAF=""#, #""A===""#, #""====""#, #""AAE=AAE=""#, #""AA\u0045=""#, #""AA E=""#, #""AAE=\n""#, #""_-8=""#, "1",
      ]),
    Forms(
      member: "uid", value: #""01020304-0506-0708-090A-0B0C0D0E0F01""#,
      others: [
        #""01020304-0506-0708-090a-0b0c0d0e0f01""#, #""01020304-0506-0708-090G-0B0C0D0E0F01""#, #""01020304-0506-0708-090A-0B0C0D0E0F0""#,
        #""0102030405060708090A0B0C0D0E0F01""#, #""{01020304-0506-0708-090A-0B0C0D0E0F}""#, "\"\"",
      ]),
    Forms(
      member: "title", value: #""Volume 1""#,
      others: [
        "\"\"", #""\u0000""#, #""\u007f\u0080""#, #""\b\f\/""#, #""\ud83d\ude00""#, #""\uD83D\uDE00""#, #""\ud83d""#, #""\ude00""#,
        #""\ud83d\u0041""#, #""\ud83dx""#, #""\u00\u0041""#, #""\u+041""#, #""\U0041""#, #""\""#, #""\\""#, #""a\"b""#, "\"a\tb\"",
        "\"a\nb\"", "\"a\\\nb\"", "\"\u{0}\"", "\"\u{7F}\u{85}\u{FEFF}\u{FFFF}\"", "'a'", #""a"#, "null",
      ]),
  ]

  @Test func valuesInOtherFormsAreReadOrRefusedAsByYajl() throws {
    let text = try LineComparison.text()
    for forms in Self.numbers + Self.texts {
      let places = text.ranges(of: "\"\(forms.member)\":\(forms.value)")
      #expect(!places.isEmpty, "\(forms.member)")
      for place in places {
        for other in forms.others {
          let changed = text.replacingCharacters(in: place, with: "\"\(forms.member)\":\(other)")
          LineComparison.expectSame(Array(changed.utf8), "\(forms.member): \(other)")
        }
      }
    }
  }

  /// What is between two objects, and the beginning of an object.
  private static let beginnings: [String] = [
    "\r\n{\"$key\":2", " \n{\"$key\":2", "\n\n{\"$key\":2", "\n\t{\"$key\":2", "\n\u{FEFF}{\"$key\":2", "\n\u{0}{\"$key\":2",
    "\n/**/{\"$key\":2", "\n{\"$key\" :2", "\n{\"$key\": 2", "\n{ \"$key\":2", "\n{\"$key\":\"2\"", "\n{\"$key\":2.0", "\n{\"$key\":-0",
    "\n{\"$\\u006bey\":2", "\n{\"$key\":4611686018427387904", "\n{\"$key\":4611686018427387905", "\n{\"$key\":18446744073709551618",
    "\n{\"$version\":2,\"$key\":2", "\n{\"$key\":2,\"$version\":7", "\n{\"$key\":2,\"$version\":\"7\"", "\n{\"$key\":2,\"$version\":0",
    "\n{\"$key\":2,\"$version\":01", "\n{\"$key\":2,\"title\":\"a\",\"pages\":1", "\n{\"$key\":2,\"isLent\":true,\"isLent\":true",
    "\n{},\n{\"$key\":2", "\nnull,\n{\"$key\":2", "\n[],\n{\"$key\":2", "\n1,\n{\"$key\":2", "\n{\"$key\":{\"$key\":2",
    "\n{\"$key\":2}",
  ]

  @Test func whatIsBetweenObjectsIsReadOrRefusedAsByYajl() throws {
    let text = try LineComparison.text(), places = text.ranges(of: "\n{\"$key\":2")
    #expect(!places.isEmpty)
    for place in places {
      for other in Self.beginnings { LineComparison.expectSame(Array(text.replacingCharacters(in: place, with: other).utf8), other) }
    }
  }

  /// Overlong forms, surrogates, characters beyond the last one, parts of characters, and control characters.
  @Test(
    arguments: [
      [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x9F, 0xBF], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF],
      [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0x80], [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98], [0xFE], [0xFF],
      [0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80], [0xEF, 0xBF, 0xBF], [0xF4, 0x8F, 0xBF, 0xBF], [0x00], [0x1F], [0x7F], [0x0D],
    ] as [[UInt8]])
  func bytesOfATextAreReadOrRefusedAsByYajl(_ other: [UInt8]) throws {
    let bytes = Array(try LineComparison.text().utf8)
    let place = try #require(bytes.firstRange(of: Array("\"title\":\"Volume 1".utf8))).upperBound
    for offset in [place - 1, place] {
      var changed = bytes
      changed.insert(contentsOf: other, at: offset)
      LineComparison.expectSame(changed, "\(other)")
    }
  }

  /// As another program may save it.
  @Test func aFileWithOtherLineEndsOrAMarkOfItsEncodingIsReadOrRefusedAsByYajl() throws {
    let bytes = Array(try LineComparison.text().utf8)
    for end in [[0x0D, 0x0A], [0x0D], [], [0x0A, 0x0A]] as [[UInt8]] {
      LineComparison.expectSame(bytes.flatMap { $0 == 0x0A ? end : [$0] }, "\(end)")
    }
    LineComparison.expectSame([0xEF, 0xBB, 0xBF] + bytes)
  }

  @Test func aTruncatedFileIsRefusedAsByYajl() throws {
    let bytes = Array(try LineComparison.text().utf8)
    let start = try #require(bytes.firstRange(of: Array("\"entities\"".utf8))).lowerBound
    for count in stride(from: start, to: bytes.count, by: 3) { LineComparison.expectSame(Array(bytes.prefix(count)), "\(count) bytes") }
  }

  /// Changes where a piece of 64 KiB ends, in a line that yajl receives in two parts.
  @Test func changesAtTheEndOfAPieceAreReadOrRefusedAsByYajl() throws {
    var random = SeededGenerator("Ends of pieces")
    var bytes = try LineComparison.file(60, &random)
    let place = try #require(bytes.ranges(of: Array("\"title\":\"".utf8)).dropFirst(10).first).upperBound
    bytes.insert(contentsOf: [UInt8](repeating: UInt8(ascii: "a"), count: 65_536 - place - 400), at: place)
    let marks = Array("{}[],:\"\\01.-eu \n\u{1}\u{E9}".utf8)
    for _ in 0..<TestTier.count(200, full: 20_000) {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...2, using: &random) {
        let place = 65_536 + Int.random(in: -1_000..<1_000, using: &random), byte = marks.randomElement(using: &random) ?? 0
        if Bool.random(using: &random) { changed[place] = byte } else { changed.insert(byte, at: place) }
      }
      LineComparison.expectSame(changed, "HOLDFAST_SEED=\(random.seed)")
    }
  }
}
