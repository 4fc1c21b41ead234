import Foundation
import TestSupport
import Testing

/// Objects in almost the form of the writer, and files that another program has changed: the scanner of objects reads what libxml2 reads, or
/// leaves it to libxml2.
@Suite struct XMLObjectFormTests {
  /// The type and the text of an attribute in the test file, and other texts for it, valid or not.
  private struct Forms {
    var type: String
    var text: String
    var others: [String]
  }

  private static let numbers: [Forms] = [
    Forms(
      type: "int16", text: "7",
      others: [
        "-0", "+7", "007", "-32768", "-32769", "7 ", "\t7", "\n7\n", "7\r\n", "&#55;", "7<!-- -->", "7&#32;", "\u{FF17}", "7e0", "-",
      ]),
    Forms(
      type: "int64", text: "1152921504606846977",
      others: [
        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "0009223372036854775807",
        "123456789012345678", "12345678901234567890123", "1.0", "",
      ]),
    Forms(type: "bool", text: "0", others: ["1", "2", "-0", "00", "01", "true", "YES", "", " 1", "1\n"]),
    Forms(
      type: "double", text: "1.1",
      others: [
        "-0", "-0.0", "00", ".5", "5.", "1.1e", "1E5", "1e+5", "-1e-5", "0x1p3", "INF", "inf", "-inf", "NaN", "nan", "-nan", "1 1", "1,1",
        "123456789012345678", "1234567890123456789", "18446744073709551616", "0.1234567890123456789", "9007199254740992.5",
        "1.7976931348623159e308", "4.9e-324", "2e-324", "1.1\u{A0}", "", "-",
      ]),
    Forms(type: "float", text: "0.1", others: ["1e-46", "3.5e38", "0.10000000149011612", "-0", "inf", "Infinity", "0.1f", " 0.1 "]),
    Forms(
      type: "date", text: "-1000000000.25000000000000000000",
      others: [
        "-1000000000.25", "0.00000000000000000000", "-0.00000000000000000000", "1e9", "8589934591.99999999999999999999",
        "8589934592.00000000000000000000", "9999999999.00000000000000000000", "1.00000000000000000001", "01.00000000000000000000",
        "1.0000000000000000000", "1.000000000000000000000", "--1.00000000000000000000", "nan", "-inf", "",
        " -1000000000.25000000000000000000\n", "-1000000000.2500000000000000000a", "2001-01-01T00:00:00Z",
      ]),
    Forms(type: "decimal", text: "12345678901234567.1", others: ["-0", "1e5", "00.5", "1.", ".5", "", "NaN", "nan", " 1.5 ", "+1", "1,5"]),
  ]

  private static let texts: [Forms] = [
    Forms(
      type: "binary", text: "AAE=",
      others: ["", "AAE", "AAF=", "A===", "====", "AAE=AAE=", "A A E =", "\nAA\tE=\n", "AAE=\r\n", "_-8=", "AA&#69;=", "AAE=<!---->"]),
    Forms(
      type: "uuid", text: "01020304-0506-0708-090A-0B0C0D0E0F01",
      others: [
        "01020304-0506-0708-090a-0b0c0d0e0f01", "01020304-0506-0708-090G-0B0C0D0E0F01", " 01020304-0506-0708-090A-0B0C0D0E0F01\n",
        "01020304-0506-0708-090A-0B0C0D0E0F0", "{01020304-0506-0708-090A-0B0C0D0E0F}", "0102030405060708090A0B0C0D0E0F01", "",
      ]),
    Forms(
      type: "string", text: "Volume 1",
      others: [
        "", " ", "\t\n ", "a\rb", "a\r\nb", "\r", "&lt;", "&amp;&gt;&quot;&apos;", "&#x41;&#65;", "&#0;", "&#xD;&#xA;&#9;", "&#xD800;",
        "&#x110000;", "&nbsp;", "&", "&#", "a>b", "]]", "]]&gt;", "]]>", "\"'", "<![CDATA[a]]>", "<?a?>", "<b/>", "a<!-- b -->c",
        "\u{7F}\u{85}\u{9F}\u{2028}\u{FEFF}", "\u{FFFD}\u{10000}\u{1FFFE}", "\u{FFFE}", "\u{FFFF}", "\u{1}", "\u{B}", "\u{0}", "\\", "\\u",
        "\\u0041", "\\u4100", "\\u41", "\\u3dd8\\u00de", "\\u3dd8", "\\u00de", "\\u3dd8\\u4100", "\\\\u4100", "\\U4100", "\\ufeff",
      ]),
  ]

  @Test func valuesInOtherFormsAreReadOrRefusedAsByLibxml2() throws {
    let text = try ObjectComparison.text()
    for forms in Self.numbers + Self.texts {
      let places = text.ranges(of: "type=\"\(forms.type)\">\(forms.text)<")
      #expect(!places.isEmpty, "\(forms.type)")
      for place in places {
        for other in forms.others {
          let changed = text.replacingCharacters(in: place, with: "type=\"\(forms.type)\">\(other)<")
          ObjectComparison.expectSame(Array(changed.utf8), "\(forms.type): \(other)")
        }
      }
    }
  }

  /// Lists of references, tags, and what is between objects.
  private static let tags: [(from: String, others: [String])] = [
    (
      "idrefs=\"z",
      [
        "idrefs=\"\tz", "idrefs=\"\nz", "idrefs=\"z2\tz", "idrefs=\"z2\nz", "idrefs=\"z2  z", "idrefs=\"z2&#32;z", "idrefs=\"&#122;",
        "idrefs=\"z0", "idrefs=\"z+", "idrefs=\"z-", "idrefs=\"Z", "idrefs=\"z99999999999999999", "idrefs = \"z",
        "idrefs=\"z2\" idrefs=\"z", "x=\"\" idrefs=\"z", "xmlns=\"a\" idrefs=\"z", "a:idrefs=\"z", "idrefs=\"z<",
      ]
    ),
    (
      "<object type=\"BOOK\" id=\"z2\">",
      [
        "<object\ttype=\"BOOK\" id=\"z2\">", "<object  type=\"BOOK\" id=\"z2\">", "<object type=\"BOOK\"\nid=\"z2\">",
        "<object type='BOOK' id='z2'>", "<object type=\"BOOK\" id=\"z2\" >", "<object type=\"BOOK\" id=\"z2\"/>",
        "<object type=\"Book\" id=\"z2\">", "<object type=\"BOOK \" id=\"z2\">", "<object type=\"BOOK\" id=\" z2\">",
        "<object type=\"BOOK\" id=\"z2\n\">", "<object type=\"BOOK\" id=\"z2\" id=\"z2\">", "<object type=\"&#66;OOK\" id=\"z2\">",
        "<object type=\"ATLAS\" id=\"z2\">", "<object type=\"BOOK\" id=\"z4611686018427387904\">",
        "<object type=\"BOOK\" id=\"z4611686018427387905\">", "<object type=\"BOOK\" id=\"z18446744073709551618\">",
        "<object type=\"BOOK\">", "<object id=\"z2\">", "<OBJECT type=\"BOOK\" id=\"z2\">", "<a:object type=\"BOOK\" id=\"z2\">",
        "<object xmlns=\"a\" type=\"BOOK\" id=\"z2\">", "\r\n<object type=\"BOOK\" id=\"z2\">", "]]><object type=\"BOOK\" id=\"z2\">",
        "&#32;<object type=\"BOOK\" id=\"z2\">", "\u{FEFF}<object type=\"BOOK\" id=\"z2\">",
        "</database><object type=\"BOOK\" id=\"z2\">", "<database/><object type=\"BOOK\" id=\"z2\">",
        "<object type=\"BOOK\" id=\"z2\"></object>\n<object type=\"BOOK\" id=\"z2\">",
        "<object type=\"BOOK\" id=\"z2\"><object type=\"BOOK\" id=\"z2\">",
      ]
    ), ("</object>", ["</object >", "</object\n>", "</objects>", "</Object>", "", "</object>\u{0}", "</object></object>", "x</object>"]),
    ("<relationship ", ["<relationship\n", "<Relationship ", "<relationship  ", "< relationship ", "<relationship x=\"\" "]),
    ("destination=\"SHELF\"", ["destination=\"shelf\"", "destination=\"BOOK\"", "destination=\"\"", ""]),
  ]

  @Test func tagsInOtherFormsAreReadOrRefusedAsByLibxml2() throws {
    let text = try ObjectComparison.text(), objects = try #require(text.range(of: "<object"))
    for (from, others) in Self.tags {
      let places = text[objects.lowerBound...].ranges(of: from)
      #expect(!places.isEmpty, "\(from)")
      for place in places {
        for other in others {
          let changed = text.replacingCharacters(in: place, with: other)
          ObjectComparison.expectSame(Array(changed.utf8), "\(from): \(other)")
        }
      }
    }
  }

  /// Overlong forms, surrogates, characters beyond the last one, parts of characters, and characters that XML doesn't allow.
  @Test(
    arguments: [
      [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x9F, 0xBF], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF],
      [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0x80], [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98], [0xFE], [0xFF],
      [0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80], [0xEF, 0xBF, 0xBD], [0xEF, 0xBF, 0xBE], [0xEF, 0xBF, 0xBF], [0xF4, 0x8F, 0xBF, 0xBF],
      [0x00], [0x0B], [0x1F], [0x7F], [0xC2, 0x80],
    ] as [[UInt8]])
  func bytesOfATextAreReadOrRefusedAsByLibxml2(_ other: [UInt8]) throws {
    let bytes = Array(try ObjectComparison.text().utf8)
    let place = try #require(bytes.firstRange(of: Array("Volume 1".utf8))).upperBound
    for offset in [place - 1, place] {
      var changed = bytes
      changed.insert(contentsOf: other, at: offset)
      ObjectComparison.expectSame(changed, "\(other)")
    }
  }

  /// As another program may save it.
  @Test func aFileWithOtherLineEndsOrAMarkOfItsEncodingIsReadOrRefusedAsByLibxml2() throws {
    let bytes = Array(try ObjectComparison.text().utf8)
    for end in [[0x0D, 0x0A], [0x0D], [], [0x0A, 0x0A], [0x0A, 0x20, 0x20]] as [[UInt8]] {
      ObjectComparison.expectSame(bytes.flatMap { $0 == 0x0A ? end : [$0] }, "\(end)")
    }
    ObjectComparison.expectSame([0xEF, 0xBB, 0xBF] + bytes)
  }

  @Test func aTruncatedFileIsRefusedAsByLibxml2() throws {
    let bytes = Array(try ObjectComparison.text().utf8)
    let start = try #require(bytes.firstRange(of: Array("<object".utf8))).lowerBound
    let step = 3 * TestTier.step(3), first = start + Int.random(in: 0..<step)
    for count in stride(from: first, to: bytes.count, by: step) {
      ObjectComparison.expectSame(Array(bytes.prefix(count)), "\(count) bytes")
    }
  }

  // MARK: The bytes that libxml2 receives at a time

  /// libxml2 receives 4,000 bytes at a time, and fewer before objects that are taken. Left to itself, it overlooks the three characters if it
  /// receives them in two parts.
  @Test func theEndOfACDATASectionInATextIsRefusedWhereverItIs() throws {
    let bytes = Array(try ObjectComparison.text().utf8)
    let place = try #require(bytes.ranges(of: Array("Volume 2".utf8)).first).lowerBound
    // At two offsets in a row, libxml2 receives the characters in two parts.
    let step = TestTier.step(2)
    for offset in stride(from: Int.random(in: 0..<step), to: 4_004, by: step) {
      var changed = bytes
      changed.insert(contentsOf: [UInt8](repeating: UInt8(ascii: "a"), count: offset) + Array("]]>".utf8), at: place)
      let results = [true, false].map { ObjectComparison.read(changed, lines: $0).result }
      if !results.allSatisfy({ $0.contains("libxml2 error 62") }) || results[0] != results[1] {
        Issue.record("\(offset): \(results)")
        return
      }
    }
  }

  /// Brackets are text. However many there are, none of them is lost or repeated.
  @Test(arguments: [1, 2, 3_999, 4_000, 4_001, 12_345]) func bracketsAreKept(count: Int) throws {
    let bytes = Array(try ObjectComparison.text().utf8)
    let place = try #require(bytes.ranges(of: Array("Volume 2".utf8)).first).lowerBound, brackets = [UInt8](repeating: 0x5D, count: count)
    var changed = bytes
    changed.insert(contentsOf: brackets, at: place)
    ObjectComparison.expectSame(changed)
    #expect(ObjectComparison.read(changed).result.contains(">" + String(decoding: brackets, as: UTF8.self) + "Volume 2<"))
  }

  /// libxml2 passes a long text on in parts, whose ends depend on the bytes that it has received.
  @Test(arguments: ["", "\n", " \n\n \n"]) func unexpectedTextHasTheLineOfItsFirstCharacter(before: String) throws {
    var random = SeededGenerator("Unexpected text")
    let bytes = try ObjectComparison.file(200, &random), end = Array("</object>\n".utf8)
    for place in bytes.ranges(of: end).map(\.upperBound).dropFirst(20).prefix(20) {
      var changed = bytes
      changed.insert(contentsOf: Array(before.utf8) + Array(("x" + String(repeating: "\n", count: 9_000)).utf8), at: place)
      let line = bytes[..<place].count { $0 == 0x0A } + before.utf8.count { $0 == 0x0A } + 1
      for lines in [true, false] {
        let error = ObjectComparison.read(changed, lines: lines).result
        let isRight = error.contains("Unexpected text.") && error.contains("on or before line \(line).")
        #expect(isRight, "HOLDFAST_SEED=\(random.seed), line \(line): \(error)")
      }
    }
  }
}
