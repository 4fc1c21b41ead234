import Foundation
import Holdfast
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// Malicious files are refused with a typed error, quickly and in little memory.
@Suite(.bothReaders) struct XMLHostileFileTests {
  private let file: XMLFile
  init() throws { file = try XMLFile() }

  static let signs: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Sign", attributes: [AttributeDescription("text", .string, isOptional: true)],
          relationships: [.toMany("near", to: "Sign", inverse: "near")])
      ])
    } catch { fatalError("\(error)") }
  }()

  private static let declaration = "<?xml version=\"1.0\"?>\n"
  private static let type = "<!DOCTYPE database SYSTEM \"file:///System/Library/DTDs/CoreData.dtd\">\n"

  /// A foreign file with one object.
  static func document(_ inside: String, declaration: String = declaration, type: String = type) -> String {
    "\(declaration)\(type)<database><databaseInfo><UUID>B4FC79D0-E654-43EF-9020-A5273B3F104A</UUID></databaseInfo>\(inside)</database>"
  }
  static func sign(_ text: String) -> String {
    "<object type=\"SIGN\" id=\"z1\"><attribute name=\"text\" type=\"string\">\(text)</attribute></object>"
  }

  /// libxml2 compares each attribute with all others. Two million would take hours.
  @Test func aTagWithManyAttributesIsRefusedBeforeTheyAreCompared() throws {
    let attributes = (0..<2_000_000).map { " a\(String($0, radix: 36))=\"\"" }.joined()
    for document in [Self.document("<object type=\"SIGN\" id=\"z1\"\(attributes)/>"), "<database\(attributes)></database>"] {
      try file.write(document)
      let error = #expect(throws: StoreError.self) { _ = try file.context(Self.signs) }
      #expect(error?.code == .damaged && error?.reason.contains("attributes") == true, "\(String(describing: error))")
    }
  }

  /// Text that only looks like attributes: a long text, and a comment.
  @Test func longTextsWithEqualsSignsAreNoAttributes() throws {
    let text = String(repeating: "a=&quot; b= c='d' ", count: 100_000)
    try file.write(Self.document(Self.sign(text)))
    let context = try file.context(Self.signs)
    let sign = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Sign")).first)
    #expect(try sign.value(forKey: "text").storeValue == .string(text.replacingOccurrences(of: "&quot;", with: "\"")))
    try context.persistentStoreCoordinator.close()
  }

  @Test func aPlainForeignFileOpens() throws {
    try file.write(Self.document(Self.sign("a&lt;b&#65;&#x42;\\u3c00\\\\u\\u12 &amp;")))
    let context = try file.context(Self.signs)
    let sign = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Sign")).first)
    #expect(try sign.value(forKey: "text").storeValue == .string("a<bAB<\\\\u\\u12 &"))
    #expect(sign.objectID.key == 1)
    try context.persistentStoreCoordinator.close()
  }

  static let laughs = (0..<10).map { "<!ENTITY l\($0) \"\(String(repeating: $0 == 0 ? "ha" : "&l\($0 - 1);", count: 10))\">" }
    .joined()

  static let hostile: [(String, String)] = [
    ("a billion laughs", document(sign("&l9;"), type: "<!DOCTYPE database [\(laughs)]>")),
    ("a billion laughs beside the external type", document(sign("&l9;"), type: "<!DOCTYPE database SYSTEM \"a\" [\(laughs)]>")),
    (
      "a large entity many times",
      document(
        sign(String(repeating: "&a;", count: 1000)), type: "<!DOCTYPE database [<!ENTITY a \"\(String(repeating: "a", count: 10_000))\">]>")
    ),
    ("an entity of a file", document(sign("&f;"), type: "<!DOCTYPE database [<!ENTITY f SYSTEM \"file:///etc/passwd\">]>")),
    ("an entity of a server", document(sign("&f;"), type: "<!DOCTYPE database [<!ENTITY f SYSTEM \"http://127.0.0.1:1/\">]>")),
    ("a parameter entity", document(sign("a"), type: "<!DOCTYPE database [<!ENTITY % p SYSTEM \"file:///etc/passwd\">%p;]>")),
    ("a public type", document(sign("a"), type: "<!DOCTYPE database PUBLIC \"-//A//B\" \"http://127.0.0.1:1/a.dtd\">")),
    ("another type", document(sign("a"), type: "<!DOCTYPE plist SYSTEM \"a\">")),
    ("a type whose name goes on", document(sign("a"), type: "<!DOCTYPE databases>")),
    ("two types", document(sign("a"), type: type + type)),
    ("an element declaration", document(sign("a"), type: "<!DOCTYPE database [<!ELEMENT database ANY>]>")),
    ("default attributes", document(sign("a"), type: "<!DOCTYPE database [<!ATTLIST object type CDATA \"SIGN\">]>")),
    ("a notation", document(sign("a"), type: "<!DOCTYPE database [<!NOTATION n SYSTEM \"a\">]>")),
    ("an entity that is declared nowhere", document(sign("&nobody;"))),
    ("an entity in an attribute", document("<object type=\"&nobody;\" id=\"z1\"/>")),
    ("a processing instruction", document("<?php echo 1 ?>" + sign("a"))),
    ("a processing instruction before all", declaration + "<?xml-stylesheet href=\"a\"?>" + document(sign("a"), declaration: "")),
    ("a literal section", document(sign("<![CDATA[a]]>"))), ("a namespace", document("<x:object xmlns:x=\"y\" type=\"SIGN\" id=\"z1\"/>")),
    ("an inclusion", document("<xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" href=\"file:///etc/passwd\"/>")),
    ("an attribute twice", document("<object type=\"SIGN\" type=\"SIGN\" id=\"z1\"/>")),
    ("an attribute that is unknown", document("<object type=\"SIGN\" id=\"z1\" class=\"a\"/>")),
    // The prefix xml is declared everywhere.
    ("a type with a namespace", document("<object xml:type=\"SIGN\" id=\"z1\"/>")),
    ("an ID with a namespace", document("<object type=\"SIGN\" xml:id=\"z1\"/>")),
    (
      "a name with a namespace",
      document("<object type=\"SIGN\" id=\"z1\"><attribute xml:name=\"text\" type=\"string\">a</attribute></object>")
    ),
    (
      "two types of which one has a namespace",
      document("<object type=\"SIGN\" id=\"z1\"><attribute name=\"text\" xml:type=\"int16\" type=\"string\">a</attribute></object>")
    ),
    (
      "a list with a namespace",
      document(
        "<object type=\"SIGN\" id=\"z1\"><relationship name=\"near\" type=\"0/0\" destination=\"SIGN\" xml:idrefs=\"z1\"/></object>")
    ),
    ("UTF-7", document(sign("+ADw-a+AD4-"), declaration: "<?xml version=\"1.0\" encoding=\"UTF-7\"?>")),
    ("Latin-1", document(sign("a"), declaration: "<?xml version=\"1.0\" encoding='ISO-8859-1'?>")),
    ("UTF-16 in name", document(sign("a"), declaration: "<?xml version=\"1.0\" encoding=\"UTF-16\"?>")),
    ("EBCDIC in name", document(sign("a"), declaration: "<?xml version=\"1.0\" encoding=\"IBM037\"?>")),
    ("deep elements", document(String(repeating: "<object type=\"SIGN\" id=\"z1\">", count: 10_000))),
    ("deep metadata", metadata(String(repeating: "<array>", count: 10_000))),
    ("text between objects", document("hello" + sign("a"))), ("an element in a value", document(sign("<b/>"))),
    (
      "an element in a relationship",
      document("<object type=\"SIGN\" id=\"z1\"><relationship name=\"near\" type=\"0/0\" destination=\"SIGN\"><a/></relationship></object>")
    ),
    ("a character that XML has not", document(sign("\u{1}"))), ("half a pair", document(sign("\\u3dd8"))),
    ("a zero", document(sign("&#0;"))), ("no end", String(document(sign("a")).dropLast(5))),
    ("something behind it", document(sign("a")) + "<a/>"),
    ("two property lists", metadata("<plist><dict/></plist><plist><dict/></plist>")), ("no property list", metadata("<dict/>")),
    ("a list for a dictionary", metadata("<plist><array/></plist>")),
    ("metadata behind objects", document(sign("a") + "<databaseInfo/>")),
    (
      "two of one element",
      document(sign("a")).replacingOccurrences(of: "<UUID>", with: "<UUID>B4FC79D0-E654-43EF-9020-A5273B3F104A</UUID><UUID>")
    ),
  ]

  static func metadata(_ inside: String) -> String {
    document(sign("a")).replacingOccurrences(of: "</databaseInfo>", with: "<metadata>\(inside)</metadata></databaseInfo>")
  }

  @Test(arguments: hostile) func RX10_itIsRefused(_ name: String, _ text: String) throws {
    try file.write(text)
    for options in [XMLStoreOptions(), XMLFile.unverified] {
      let refusal = try #require(file.refusal(Self.signs, options: options), "\(name)")
      #expect([.notAStore, .damaged, .incompatibleModel].contains(refusal.code) && refusal.path == file.path, "\(refusal)")
      #expect(!"\(refusal)".contains("root:"))
    }
    _ = try? PersistentStoreCoordinator.metadata(for: .xml(at: file.path))
    #expect(try file.text() == text)
  }

  @Test(arguments: [1, 2, 3]) func RX10_otherEncodingsAreRefusedWhateverTheySay(_ kind: Int) throws {
    let text = Self.document(Self.sign("a"))
    let bytes: [UInt8] =
      switch kind {
      case 1: [0xFF, 0xFE] + text.utf8.flatMap { [$0, 0] }
      case 2: text.utf8.flatMap { [0, $0] }
      // The beginning of a document in EBCDIC.
      default: [0x4C, 0x6F, 0xA7, 0x94, 0x93, 0x40] + text.utf8
      }
    try file.write(bytes)
    #expect(file.refusal(Self.signs)?.code == .notAStore)
  }

  @Test(arguments: [[0xC0, 0x80], [0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF], [0xE2, 0x82]] as [[UInt8]])
  func RX10_bytesThatAreNoUTF8AreRefused(_ bytes: [UInt8]) throws {
    let text = Self.document(Self.sign("MARK"))
    let place = try #require(text.range(of: "MARK"))
    try file.write(Array(text[..<place.lowerBound].utf8) + bytes + Array(text[place.upperBound...].utf8))
    #expect(file.refusal(Self.signs)?.code == .damaged)
  }

  @Test func RX10_anAttributeOfTwelveMegabytesIsRefused() throws {
    try file.write(Self.document("<object type=\"\(String(repeating: "S", count: 12 << 20))\" id=\"z1\"/>"))
    #expect(try #require(file.refusal(Self.signs)).code == .damaged)
  }

  @Test func RX17_numbersBeyondAllBoundsAreRefused() throws {
    for id in ["z0", "z-1", "z9223372036854775808", "z18446744073709551617", "z4611686018427387905", "1", "z", "zz1", "z1.0", "z+1", "z 1"]
    {
      try file.write(Self.document("<object type=\"SIGN\" id=\"\(id)\"/>"))
      #expect(try #require(file.refusal(Self.signs)).code == .damaged, "\(id)")
      try file.write(
        Self.document(
          "<object type=\"SIGN\" id=\"z1\"><relationship name=\"near\" type=\"0/0\" destination=\"SIGN\" idrefs=\"\(id)\"/></object>"))
      #expect(try #require(file.refusal(Self.signs)).code == .damaged, "\(id)")
    }
    try file.write(Self.document("<object type=\"SIGN\" id=\"z4611686018427387904\"/>"))
    #expect(file.refusal(Self.signs) == nil)
    for number in ["-1", "9223372036854775807", "4611686018427387905", "1e3", ""] {
      try file.write(
        Self.document("").replacingOccurrences(of: "</databaseInfo>", with: "<nextObjectID>\(number)</nextObjectID></databaseInfo>"))
      #expect(try #require(file.refusal(Self.signs)).code == .damaged, "\(number)")
    }
    try file.write(Self.document("").replacingOccurrences(of: "</databaseInfo>", with: "<version>1</version></databaseInfo>"))
    #expect(try #require(file.refusal(Self.signs)).code == .newerFormat)
  }

  @Test func RX17_notesWithCountsBeyondAllBoundsAreRefused() throws {
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    let text = try file.text()
    let found = try #require(text.firstMatch(of: /<key>_HoldfastRows<\/key>\s*<data>(.*?)<\/data>/.dotMatchesNewlines()))
    for bytes in [
      [0xFF, 0xFF, 0xFF, 0xFF, 0x07], Array(repeating: 0xFF, count: 9) + [1], Array(repeating: 0xFF, count: 20), [1], [0, 1, 0, 0x7F],
      [0, 0, 0], [],
    ] as [[UInt8]] {
      try file.write(XMLFile.sealed(text.replacingOccurrences(of: found.1, with: Data(bytes).base64EncodedString())))
      #expect(try #require(file.refusal()).code == .damaged, "\(bytes)")
    }
  }

  @Test func whatTheModelHasNotIsRefusedAndSaysSo() throws {
    for inside in [
      "<object type=\"HOUSE\" id=\"z1\"/>",
      "<object type=\"SIGN\" id=\"z1\"><attribute name=\"colour\" type=\"string\">red</attribute></object>",
      "<object type=\"SIGN\" id=\"z1\"><relationship name=\"far\" type=\"0/0\" destination=\"SIGN\"/></object>",
    ] {
      try file.write(Self.document(inside))
      let refusal = try #require(file.refusal(Self.signs))
      #expect(refusal.code == .incompatibleModel && refusal.reason.contains(" that isn't in the model"), "\(refusal)")
    }
    for inside in [
      "<object type=\"SIGN\" id=\"z1\"><attribute name=\"text\" type=\"int16\">1</attribute></object>",
      "<object type=\"SIGN\" id=\"z1\"><attribute name=\"near\" type=\"string\">1</attribute></object>",
      "<object type=\"SIGN\" id=\"z1\"><relationship name=\"text\" type=\"0/0\" destination=\"SIGN\"/></object>",
      "<object type=\"SIGN\" id=\"z1\"><relationship name=\"near\" type=\"0/0\" destination=\"HOUSE\"/></object>",
      "<object type=\"SIGN\" id=\"z1\"><attribute name=\"text\" type=\"string\">1</attribute><attribute name=\"TEXT\" type=\"string\">1</attribute></object>",
      "<object type=\"SIGN\" id=\"z1\"/><object type=\"SIGN\" id=\"z1\"/>", "<object type=\"SIGN\"/>", "<object id=\"z1\"/>",
    ] {
      try file.write(Self.document(inside))
      #expect(try #require(file.refusal(Self.signs)).code == .damaged, "\(inside)")
    }
  }
}
