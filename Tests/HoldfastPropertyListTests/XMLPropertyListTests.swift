import Foundation
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

@Suite struct XMLPropertyListTests {
  private static func read(_ content: String, limits: PropertyListLimits = PropertyListLimits()) throws -> PropertyList {
    try PropertyList(xml: Array("<plist version=\"1.0\">\(content)</plist>".utf8), limits: limits)
  }

  private static func failure(_ text: String, limits: PropertyListLimits = PropertyListLimits()) -> PropertyListError? {
    do throws(PropertyListError) {
      _ = try PropertyList(xml: Array(text.utf8), limits: limits)
      return nil
    } catch { return error }
  }

  private static func code(_ content: String, limits: PropertyListLimits = PropertyListLimits()) -> PropertyListError.Code? {
    failure("<plist>\(content)</plist>", limits: limits)?.code
  }

  @Test func whatIsWrittenIsReadAgain() throws {
    var random = SeededGenerator("XML property lists")
    for _ in 0..<300 {
      let list = RandomPropertyLists.list(.uid, using: &random)
      let text = try list.xml()
      #expect(try PropertyList(Array(text.utf8)) == list, "\(text)")
    }
  }

  @Test func theLayoutIsApples() throws {
    let list: PropertyList = [
      "b": .array([.integer(1), .real(0.5), .bool(false)]), "a": .string("1 < 2 & \"3\""), "date": .date(0), "data": .data([1, 2, 3]),
      "none": .array([]), "nothing": .dictionary([:]),
    ]
    let expected = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>
      \t<key>a</key>
      \t<string>1 &lt; 2 &amp; "3"</string>
      \t<key>b</key>
      \t<array>
      \t\t<integer>1</integer>
      \t\t<real>0.5</real>
      \t\t<false/>
      \t</array>
      \t<key>data</key>
      \t<data>
      \tAQID
      \t</data>
      \t<key>date</key>
      \t<date>2001-01-01T00:00:00Z</date>
      \t<key>none</key>
      \t<array/>
      \t<key>nothing</key>
      \t<dict/>
      </dict>
      </plist>

      """
    #expect(try list.xml() == expected)
    #expect(try PropertyList.integer(1).xml(isDocument: false) == "<plist version=\"1.0\">\n<integer>1</integer>\n</plist>\n")
  }

  @Test func foundationReadsWhatIsWritten() throws {
    let list: PropertyList = ["name": .string("Zoë <&>"), "born": .date(-86_400), "raw": .data(Array(0..<100)), "n": .integer(-7)]
    let found = try PropertyListSerialization.propertyList(from: Data(try list.xml().utf8), format: nil)
    let expected: NSDictionary = [
      "name": "Zoë <&>", "born": Date(timeIntervalSinceReferenceDate: -86_400), "raw": Data(0..<100), "n": -7,
    ]
    #expect(found as? NSDictionary == expected)
  }

  @Test func whatFoundationWritesIsRead() throws {
    let theirs: [String: Any] = [
      "text": "a & b", "list": [1, 2.5, true] as [Any], "data": Data(0..<90), "date": Date(timeIntervalSinceReferenceDate: 1),
    ]
    let bytes = try PropertyListSerialization.data(fromPropertyList: theirs, format: .xml, options: 0)
    #expect(
      try PropertyList(Array(bytes)) == [
        "text": .string("a & b"), "list": .array([.integer(1), .real(2.5), .bool(true)]), "data": .data(Array(0..<90)), "date": .date(1),
      ])
  }

  @Test func datesAgreeWithFoundationsCalendar() throws {
    let formatter = ISO8601DateFormatter()
    var random = SeededGenerator("Dates")
    for _ in 0..<2000 {
      let seconds = Double(Int.random(in: -12_000_000_000...250_000_000_000, using: &random))
      let text = formatter.string(from: Date(timeIntervalSinceReferenceDate: seconds))
      #expect(try PropertyList.date(seconds).xml().contains(text))
      #expect(try Self.read("<date>\(text)</date>") == .date(seconds))
    }
    #expect(try PropertyList.date(0.75).xml().contains("2001-01-01T00:00:00Z"))
    #expect(try PropertyList.date(-0.25).xml().contains("2000-12-31T23:59:59Z"))
    #expect(Self.code("<date>2001-02-30T00:00:00Z</date>") == .damaged)
    #expect(throws: PropertyListError.self) { try PropertyList.date(1e15).xml() }
    #expect(throws: PropertyListError.self) { try PropertyList.date(.nan).xml() }
  }

  @Test func textIsTakenAsItStandsButForReferencesSectionsAndEndsOfLines() throws {
    #expect(try Self.read("<string> a&lt;&gt;&amp;&quot;&apos;&#65;&#x1F600; </string>") == .string(" a<>&\"'A😀 "))
    #expect(try Self.read("<string>a<![CDATA[<&amp;]]>b<!-- c -->d</string>") == .string("a<&amp;bd"))
    #expect(try Self.read("<string>a\r\nb\rc&#13;</string>") == .string("a\nb\nc\r"))
    #expect(try Self.read("<string/>") == .string(""))
  }

  @Test func numbersAreReadInAllTheirForms() throws {
    #expect(try Self.read("<integer> 0x1F </integer>") == .integer(31))
    #expect(try Self.read("<integer>+7</integer>") == .integer(7))
    #expect(try Self.read("<integer>-9223372036854775808</integer>") == .integer(.min))
    #expect(try Self.read("<integer>18446744073709551615</integer>") == .unsigned(.max))
    #expect(try Self.read("<real>-1e3</real>") == .real(-1000))
    #expect(try Self.read("<real>+infinity</real>") == .real(.infinity))
    #expect(try Self.read("<real>nan</real>").real?.isNaN == true)
    for wrong in ["", "-", "--1", "1.5", "99999999999999999999", "-9223372036854775809", "0x", "a"] {
      #expect(Self.code("<integer>\(wrong)</integer>") == .damaged, "\(wrong)")
    }
  }

  @Test func commentsInstructionsAndTheDocumentTypeArePassedOver() throws {
    let text = """
      \u{FEFF}<?xml version="1.0" encoding="utf-8"?>
      <!-- one -->
      <!DOCTYPE plist PUBLIC "-//Apple Computer//DTD PLIST 1.0//EN" "file://localhost/System/Library/DTDs/PropertyList.dtd">
      <?two?>
      <plist version='1.0'><dict><!-- > --><key>a</key><true/></dict></plist>
      <!-- three -->
      """
    #expect(try PropertyList(Array(text.utf8)) == ["a": .bool(true)])
  }

  @Test func aDocumentTypeWithDeclarationsIsRefused() {
    let text = "<!DOCTYPE plist [<!ENTITY a \"b\">]><plist><string>&a;</string></plist>"
    #expect(Self.failure(text)?.code == .unsupported)
    #expect(Self.code("<string>&a;</string>") == .damaged)
  }

  @Test func otherEncodingsAreRefused() {
    #expect(Self.failure("<?xml version='1.0' encoding='ISO-8859-1'?><plist><true/></plist>")?.code == .unsupported)
    #expect(throws: PropertyListError.self) { try PropertyList(xml: [0x3C, 0x70, 0x6C, 0x69, 0x73, 0x74, 0x3E, 0xFF, 0xFE]) }
  }

  @Test(arguments: [
    "", "<true/><true/>", "<dict><true/></dict>", "<dict><key>a</key></dict>", "<dict><key>a</key><true/><key>a</key><true/></dict>",
    "<array><true/>", "<string>a<b/></string>", "<string>a", "<string>&#0;</string>", "<string>&#xD800;</string>",
    "<string>&#x110000;</string>",
    "<string>&#99999999999;</string>", "<string>\u{1}</string>", "<integer/>", "<other/>", "<other>1</other>", "<data>A</data>",
    "<data>*</data>",
    "<true>x</true>", "text", "<array>text</array>", "<true a='b'/>", "<key>a</key>", "</array>", "<", "<!-- ", "<![CDATA[",
  ]) func whatIsNoPropertyListIsRefused(_ content: String) {
    #expect(Self.code(content) == .damaged)
  }

  @Test func twoKeysThatDifferOnlyInTheirNormalizationAreNotSupported() {
    let error = Self.failure("<plist>\n<dict><key>\u{E9}</key><true/>\n<key>e\u{301}</key><true/></dict></plist>")
    #expect(error?.code == .unsupported && error?.place == .line(3))
  }

  @Test func somethingElseIsNoPropertyList() {
    for text in ["", "hello", "<html></html>", "<?xml version='1.0'?>", "{}"] { #expect(Self.failure(text)?.code == .notAPropertyList) }
  }

  @Test func limitsHold() {
    let deep = { (count: Int) in String(repeating: "<array>", count: count) + String(repeating: "</array>", count: count) }
    #expect(Self.code(deep(128)) == nil)
    #expect(Self.code(deep(129)) == .tooDeep)
    #expect(Self.failure("<plist>" + String(repeating: "<array>", count: 100_000))?.code == .tooDeep)
    #expect(Self.code("<array><true/><true/></array>", limits: PropertyListLimits(objects: 2)) == .tooLarge)
    #expect(Self.code("<true/>", limits: PropertyListLimits(bytes: 10)) == .tooLarge)
  }

  @Test func anErrorNamesTheLine() {
    #expect(Self.failure("<plist>\n<array>\n<other/>\n</array></plist>")?.place == .line(3))
  }

  @Test func whatXMLCannotHaveIsRefusedWhenWriting() {
    #expect(throws: PropertyListError.self) { try PropertyList.null.xml() }
    #expect(throws: PropertyListError.self) { try PropertyList.string("\u{0}").xml() }
    #expect(throws: PropertyListError.self) { try PropertyList.dictionary(["\u{FFFF}": .bool(true)]).xml() }
  }

  @Test func everyCutAndEveryChangedByteIsReadOrRefused() throws {
    var random = SeededGenerator("Damaged XML property lists"), refused = 0
    for _ in 0..<20 {
      let bytes = Array(try RandomPropertyLists.list(.uid, using: &random).xml().utf8)
      let parts = ["<", ">", "&", "/", "<!--", "]]>", "<![CDATA[", "dict", "key", "[", "\"", "\u{0}", "&#x", ";"].map { Array($0.utf8) }
      for _ in 0..<300 {
        var changed = Array(bytes[..<Int.random(in: 0...bytes.count, using: &random)])
        if Bool.random(using: &random) { changed = bytes }
        let place = Int.random(in: 0...changed.count, using: &random)
        changed.replaceSubrange(
          place..<min(changed.count, place + Int.random(in: 0...2, using: &random)), with: parts.randomElement(using: &random) ?? [])
        if (try? PropertyList(xml: changed)) == nil { refused += 1 }
      }
    }
    #expect((3000...5900).contains(refused), "\(refused) of 6000 refused")
  }
}
