import Foundation
import TestSupport
import Testing

/// Lines in the form of the writer are read without yajl, with the same result.
@Suite struct JSONLineTests {
  @Test func allButTheFirstAndLastLinesAreReadWithoutYajl() throws {
    var random = SeededGenerator("Lines")
    let bytes = try LineComparison.file(2000, &random)
    let start = try #require(bytes.firstRange(of: Array("\"entities\"".utf8))).lowerBound, (result, skipped) = LineComparison.read(bytes)
    #expect(skipped * 100 > (bytes.count - start) * 95, "\(skipped) of \(bytes.count) bytes")
    let (expected, none) = LineComparison.read(bytes, lines: false)
    #expect(none == 0 && result == expected && result.contains("\"Atlas\":["))
  }

  @Test func randomObjectsAreReadAsYajlReadsThem() throws {
    var random = SeededGenerator("Random lines")
    for _ in 0..<TestTier.count(20, full: 1000) { LineComparison.expectSame(try LineComparison.file(40, &random)) }
  }

  /// Random changes of lines. Most make the file invalid. Errors have the same text and position.
  @Test func changedLinesAreReadOrRefusedAsByYajl() throws {
    var random = SeededGenerator("Changed lines")
    let bytes = try LineComparison.file(30, &random), start = try #require(bytes.firstRange(of: Array("\"entities\"".utf8))).lowerBound
    let marks = Array("{}[],:\"\\0123456789.-+eEtrufalsn$ \n\t\u{1}\u{E9}".utf8)
    var accepted = 0, skipped = 0
    for _ in 0..<TestTier.count(1500, full: 200_000) {
      let changed = TestBytes.changed(bytes, from: start, with: marks, &random)
      let (one, other) = (LineComparison.read(changed), LineComparison.read(changed, lines: false))
      if one.result != other.result {
        Issue.record("\(one.result)\nyajl: \(other.result)\n\(String(decoding: changed, as: UTF8.self))")
        return
      }
      skipped += one.skipped > 0 ? 1 : 0
      accepted += one.result.hasPrefix("{") ? 1 : 0
    }
    #expect(accepted > 100 && skipped > 100, "\(accepted) accepted, \(skipped) with lines")
  }

  @Test(
    arguments: [
      ("},\n{\"$key\":2", "}\n{\"$key\":2"), ("},\n{\"$key\":2", "},,\n{\"$key\":2"), ("{\"$key\":2", "{\"$key\":02"),
      ("{\"$key\":2", "{\"$key\":0"), ("{\"$key\":2", "{\"$key\":-2"), ("{\"$key\":2", "{\"$key\":1"), ("{\"$key\":2", "{\"$key\":2e0"),
      ("{\"$key\":2", "{\"$key\":2,\"$key\":2"), ("\n]", ",\n]"), ("\"weight\":1.1", "\"weight\":01.1"),
      ("\"weight\":1.1", "\"weight\":1."),
      ("\"weight\":1.1", "\"weight\":.1"), ("\"weight\":1.1", "\"weight\":-"), ("\"weight\":1.1", "\"weight\":1e400"),
      ("\"weight\":1.1", "\"weight\":1e-400"),
      ("\"weight\":1.1", "\"weight\":0.00012345678901234567"), ("\"weight\":1.1", "\"weight\":9007199254740993"),
      ("\"pages\":7", "\"pages\":32768"), ("\"pages\":7", "\"pages\":7.0"), ("\"isLent\":false", "\"isLent\":falsE"),
      ("\"isLent\":false", "\"isLent\":null"), ("\"isLent\":false", "\"isLent\":0"),
      ("\"title\":\"Volume 1\"", "\"title\":\"\\/\\u00e9\\ud83d\\ude00\""),
      ("\"title\":\"Volume 1\"", "\"title\":\"\\u0041\""), ("\"title\":\"Volume 1\"", "\"title\":\"\\x\""),
      ("\"title\":\"Volume 1\"", "\"title\":\"\\u00\""),
      ("\"price\":\"12345678901234567.1\"", "\"price\":NaN"), ("\"price\":\"12345678901234567.1\"", "\"price\":-"),
      ("\"price\":\"12345678901234567.1\"", "\"price\":\"NaN\""), ("\"price\":\"12345678901234567.1\"", "\"price\":1.5"),
      ("\"title\":\"Volume 1\"", "\"title\":1"), ("\"title\"", "\"titlf\""), ("\"similar\":[1]", "\"similar\":[]"),
      ("\"similar\":[1]", "\"similar\":[1,]"), ("\"similar\":[1]", "\"similar\":[1,1]"), ("\"similar\":[1]", "\"similar\":[99]"),
    ] as [(String, String)])
  func oneChangeIsReadOrRefusedAsByYajl(_ change: (from: String, to: String)) throws {
    let text = try LineComparison.text(), entities = try #require(text.range(of: "\"entities\""))
    let places = text[entities.upperBound...].ranges(of: change.from)
    #expect(!places.isEmpty)
    for place in places {
      LineComparison.expectSame(Array(text.replacingCharacters(in: place, with: change.to).utf8), "\(change)")
    }
  }

  /// The invalid byte is the first one of a piece of 64 KiB, and a text that began in an earlier piece contains it.
  @Test(arguments: [true, false]) func aWrongByteAtTheBeginningOfAPieceHasItsPosition(isLineFeedBefore: Bool) throws {
    var random = SeededGenerator("Wrong byte")
    var bytes = try LineComparison.file(10, &random)
    let place = try #require(bytes.firstRange(of: Array("\"title\":\"".utf8))).upperBound
    bytes.insert(contentsOf: [UInt8](repeating: UInt8(ascii: "a"), count: 300_000), at: place)
    bytes[196_608] = 0xFF
    if isLineFeedBefore { bytes[150_000] = 0x0A }
    for lines in [true, false] {
      let error = LineComparison.read(bytes, lines: lines).result
      #expect(error.contains(isLineFeedBefore ? "isn't valid JSON" : "before byte 196609"), "\(error)")
    }
  }
}
