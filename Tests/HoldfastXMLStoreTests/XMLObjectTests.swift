import Foundation
import HoldfastXMLStore
import TestSupport
import Testing

/// Objects in the form of the writer are read without libxml2, with the same result.
@Suite struct XMLObjectTests {
  @Test func allButTheFirstAndLastObjectsAreReadWithoutLibxml2() throws {
    var random = SeededGenerator("Lines")
    let bytes = try ObjectComparison.file(2000, &random)
    let start = try #require(bytes.firstRange(of: Array("<object".utf8))).lowerBound, (result, skipped) = ObjectComparison.read(bytes)
    #expect(skipped * 100 > (bytes.count - start) * 90, "\(skipped) of \(bytes.count) bytes")
    let (expected, none) = ObjectComparison.read(bytes, lines: false)
    #expect(none == 0 && result == expected && result.contains("\"ATLAS\""))
  }

  @Test func randomObjectsAreReadAsLibxml2ReadsThem() throws {
    var random = SeededGenerator("Random lines")
    for _ in 0..<TestTier.count(20, full: 1000) { ObjectComparison.expectSame(try ObjectComparison.file(40, &random)) }
  }

  /// Random changes of objects. Most make the file invalid. Errors have the same text and position.
  @Test func changedObjectsAreReadOrRefusedAsByLibxml2() throws {
    var random = SeededGenerator("Changed lines")
    let bytes = try ObjectComparison.file(30, &random), start = try #require(bytes.firstRange(of: Array("<object".utf8))).lowerBound
    let marks = Array("<>/!?-&;=\"'\\0123456789.+eEuz \n\t\r\u{1}\u{E9}\u{FFFE}".utf8)
    var accepted = 0, skipped = 0
    for _ in 0..<TestTier.count(1500, full: 200_000) {
      let changed = TestBytes.changed(bytes, from: start, with: marks, &random)
      let (one, other) = (ObjectComparison.read(changed), ObjectComparison.read(changed, lines: false))
      if one.result != other.result {
        Issue.record("\(one.result)\nlibxml2: \(other.result)\n\(String(decoding: changed, as: UTF8.self))")
        return
      }
      skipped += one.skipped > 0 ? 1 : 0
      accepted += one.result.hasPrefix("<") ? 1 : 0
    }
    #expect(accepted > 30 && skipped > 30, "\(accepted) accepted, \(skipped) with lines")
  }

  @Test(
    arguments: [
      ("</object>\n<object", "</object>\n <object"), ("</object>\n<object", "</object>\n<!-- \n<object"),
      ("</object>\n<object", "</object>\n-->\n<object"),
      ("</object>\n<object", "</object>\n<!---->\n<object"), ("</object>\n<object", "</object>\n<![CDATA[ ]]>\n<object"),
      ("</object>\n<object", "</object>\n<?a b?>\n<object"), ("</object>\n<object", "</object>\nx\n<object"),
      ("</object>\n<object", "\n</object>\n<object"),
      ("</object>\n<object", "</object></object>\n<object"), ("</object>\n<object", "<object></object>\n<object"),
      ("</attribute>", "</attribut>"),
      ("</attribute>", "</attribute >"), ("</attribute>", "&#65;</attribute>"), ("</attribute>", "&amp;</attribute>"),
      ("</attribute>", "]]></attribute>"),
      ("</attribute>", "<!-- --></attribute>"), ("id=\"z2\"", "id=\"z02\""), ("id=\"z2\"", "id=\"z0\""), ("id=\"z2\"", "id=\"z1\""),
      ("id=\"z2\"", "id=\"y2\""),
      ("id=\"z2\"", "id=\"z2\" a=\"\""), ("id=\"z2\"", "id='z2'"), ("type=\"BOOK\" id=\"z2\"", "id=\"z2\" type=\"BOOK\""),
      ("name=\"title\"", "name=\"titlf\""),
      ("name=\"title\"", "name=\"TITLE\""), ("type=\"int16\">7", "type=\"int16\">007"), ("type=\"int16\">7", "type=\"int16\"> 7 "),
      ("type=\"int16\">7", "type=\"int16\">32768"),
      ("type=\"int16\">7", "type=\"int32\">7"), ("type=\"int16\">7", "type=\"int16\">7.0"), ("type=\"int16\">7", "type=\"int16\">"),
      ("type=\"double\">1.1", "type=\"double\">01.1"),
      ("type=\"double\">1.1", "type=\"double\">1e5"), ("type=\"double\">1.1", "type=\"double\">1e999"),
      ("type=\"double\">1.1", "type=\"double\">nan"),
      ("type=\"double\">1.1", "type=\"double\">\n1.1\t"), ("Volume 1", "Volume \\u"), ("Volume 1", "Volume \\u00d8"),
      ("Volume 1", "Volume \\u14002"), ("Volume 1", "a\r\nb"),
      ("idrefs=\"z", "idrefs=\" z"), ("idrefs=\"z", "idrefs=\"z99 z"), ("idrefs=\"z", "idrefs=\"z1 z1 z"), ("idrefs=\"z", "idrefs=\""),
      ("/>", " />"),
      ("/>", "></relationship>"), ("/>", "/>\n"), ("type=\"0/1\"", "type=\"1/1\""), ("\"/>", "\" idrefs=\"z1\"/>"),
    ] as [(String, String)])
  func oneChangeIsReadOrRefusedAsByLibxml2(_ change: (from: String, to: String)) throws {
    let text = try ObjectComparison.text(), entities = try #require(text.range(of: "<object"))
    let places = text[entities.lowerBound...].ranges(of: change.from)
    #expect(!places.isEmpty)
    for place in places { ObjectComparison.expectSame(Array(text.replacingCharacters(in: place, with: change.to).utf8), "\(change)") }
  }

  /// The limits hold for objects in the form of the writer, too.
  @Test(arguments: [
    XMLStoreOptions(maximumTextByteCount: 3), XMLStoreOptions(maximumTextByteCount: 19), XMLStoreOptions(maximumTextByteCount: 24),
    XMLStoreOptions(maximumAttributeValueByteCount: 4), XMLStoreOptions(maximumMemberCount: 12), XMLStoreOptions(maximumNameByteCount: 5),
  ])
  func limitsAreThoseOfLibxml2(_ limits: XMLStoreOptions) throws {
    var random = SeededGenerator("Limits")
    for _ in 0..<5 {
      let bytes = try ObjectComparison.file(40, &random)
      #expect(ObjectComparison.read(bytes, limits).result == ObjectComparison.read(bytes, lines: false, limits).result)
    }
  }
}
