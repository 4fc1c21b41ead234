import Foundation
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

@Suite struct KeyedArchiveTests {
  /// An archive of objects given as property lists. The first one is the root.
  static func archive(_ objects: [PropertyList]) -> PropertyList {
    [
      "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000), "$top": ["root": .uid(1)],
      "$objects": .array([.string("$null")] + objects),
    ]
  }

  static func description(_ name: String) -> PropertyList {
    ["$classname": .string(name), "$classes": .array([.string(name), .string("NSObject")])]
  }

  private static func failure(_ objects: [PropertyList], limits: PropertyListLimits = PropertyListLimits()) -> PropertyListError? {
    do throws(PropertyListError) {
      _ = try KeyedArchive(archive(objects)).propertyListValue(limits: limits)
      return nil
    } catch { return error }
  }

  @Test func whatIsWrittenIsReadAgain() throws {
    var random = SeededGenerator("Keyed archives")
    for _ in 0..<200 {
      let list = RandomPropertyLists.list(.null, using: &random)
      #expect(try KeyedArchive(KeyedArchive.bytes(of: list)).propertyListValue() == list)
    }
    let word: PropertyList = ["$null": .array([.string("$null"), .null])]
    #expect(try KeyedArchive(KeyedArchive.bytes(of: word)).propertyListValue() == word)
    #expect(throws: PropertyListError.self) { try KeyedArchive.bytes(of: .array([.uid(1)])) }
  }

  /// The bug: the second of two such texts was archived as the first one.
  @Test func textsThatDifferOnlyInTheirNormalizationAreBothArchived() throws {
    let texts = ["caf\u{E9}", "cafe\u{301}", "caf\u{E9}"]
    let bytes = try KeyedArchive.bytes(of: .array(texts.map { .string($0) }))
    let read = try KeyedArchive(bytes).propertyListValue().array?.map { Array(($0.string ?? "").utf8) }
    #expect(read == texts.map { Array($0.utf8) })
  }

  @Test func foundationUnarchivesWhatIsWritten() throws {
    let list: PropertyList = [
      "name": .string("Zoë"), "numbers": .array([.integer(1), .real(2.5), .bool(true)]), "born": .date(12.5), "raw": .data([1, 2]),
      "inner": ["name": .string("Zoë")],
    ]
    let classes = [NSDictionary.self, NSArray.self, NSString.self, NSNumber.self, NSDate.self, NSData.self]
    let found = try NSKeyedUnarchiver.unarchivedObject(ofClasses: classes, from: Data(KeyedArchive.bytes(of: list)))
    let expected: NSDictionary = [
      "name": "Zoë", "numbers": [1, 2.5, true] as [Any], "born": Date(timeIntervalSinceReferenceDate: 12.5), "raw": Data([1, 2]),
      "inner": ["name": "Zoë"],
    ]
    #expect(found as? NSDictionary == expected)
  }

  @Test func whatFoundationArchivesIsRead() throws {
    let uuid = NSUUID(), url = NSURL(string: "c?d", relativeTo: URL(string: "https://example.org/a/b"))
    let theirs: NSDictionary = [
      "text": "Zoë", "mutable": NSMutableString(string: "m"), "data": Data([1]), "mutableData": NSMutableData(data: Data([2])),
      "date": Date(timeIntervalSinceReferenceDate: 5), "list": NSMutableArray(array: [1, false]), "set": NSSet(object: "one"),
      "null": NSNull(),
      "uuid": uuid, "url": try #require(url), "ordered": NSOrderedSet(array: ["a", "b"]),
    ]
    for format in [PropertyListSerialization.PropertyListFormat.binary, .xml] {
      let archiver = NSKeyedArchiver(requiringSecureCoding: false)
      archiver.outputFormat = format
      archiver.encode(theirs, forKey: "root")
      archiver.finishEncoding()
      let value = try KeyedArchive(Array(archiver.encodedData)).propertyListValue()
      #expect(
        value == [
          "text": .string("Zoë"), "mutable": .string("m"), "data": .data([1]), "mutableData": .data([2]), "date": .date(5),
          "list": .array([.integer(1), .bool(false)]), "set": .array([.string("one")]), "null": .null, "uuid": .string(uuid.uuidString),
          "url": .string("https://example.org/a/c?d"), "ordered": .array([.string("a"), .string("b")]),
        ])
    }
  }

  @Test func dictionariesOfKnownKeysAreDictionaries() throws {
    let archive = try KeyedArchive(
      Self.archive([
        ["$class": .uid(2), "values": .uid(3), "searchMapping": .uid(5), "emptyToken": .uid(8), "version": .integer(1)],
        Self.description("NSKnownKeysDictionary1"), ["$class": .uid(4), "NS.objects": .array([.uid(8), .uid(7)])],
        Self.description("NSArray"),
        ["$class": .uid(6), "keys": .uid(9), "length": .integer(2)], Self.description("NSKnownKeysMappingStrategy1"), .string("value"),
        .string("nothing here"), ["$class": .uid(4), "NS.objects": .array([.uid(10), .uid(11)])], .string("a"), .string("b"),
      ]))
    #expect(try archive.propertyListValue() == ["b": .string("value")])
  }

  /// Many small dictionaries can share two long lists.
  @Test func missingValuesCount() throws {
    let count = 1_000
    func archive(_ dictionaries: Int) -> PropertyList {
      let list = PropertyList.array((0..<dictionaries).map { .uid(UInt64(9 + $0)) })
      let missing = PropertyList.array(Array(repeating: .uid(8), count: count))
      let dictionary: PropertyList = ["$class": .uid(4), "values": .uid(5), "searchMapping": .uid(6), "emptyToken": .uid(8)]
      return Self.archive(
        [
          ["$class": .uid(2), "NS.objects": list], Self.description("NSArray"), .bool(true), Self.description("NSKnownKeysDictionary1"),
          ["$class": .uid(2), "NS.objects": missing], ["$class": .uid(7), "keys": .uid(5)],
          Self.description("NSKnownKeysMappingStrategy1"), .string("nothing here"),
        ] + Array(repeating: dictionary, count: dictionaries))
    }
    let limits = PropertyListLimits(objects: 5_000)
    #expect(try KeyedArchive(archive(4)).propertyListValue(limits: limits) == .array(Array(repeating: [:], count: 4)))
    let error = #expect(throws: PropertyListError.self) { try KeyedArchive(archive(5)).propertyListValue(limits: limits) }
    #expect(error?.code == .tooLarge)
  }

  @Test func theGraphIsWalkedWithoutKnowingClasses() throws {
    let archive = try KeyedArchive(
      Self.archive([
        ["$class": .uid(2), "other": .uid(1), "text": .uid(3), "none": .uid(0), "count": .integer(3)], Self.description("Zebra"),
        .string("t"),
      ]))
    guard case .instance(let zebra) = try archive.object(archive.root) else {
      Issue.record("The root isn't an object.")
      return
    }
    #expect(zebra.className == "Zebra" && zebra.isKind(of: "NSObject") && !zebra.isKind(of: "NSString"))
    #expect(try archive.object(zebra["other"]) == .instance(zebra))
    #expect(try archive.object(zebra["text"]) == .value(.string("t")))
    #expect(try archive.object(zebra["none"]) == .null)
    #expect(try archive.object(zebra["missing"]) == .null)
    #expect(try archive.object(zebra["count"]) == .value(.integer(3)))
    #expect(zebra["$class"] == nil)
  }

  @Test func RX14_anotherClassIsRefusedByName() {
    let error = Self.failure([
      ["$class": .uid(2), "NS.objects": .array([.uid(3)])], Self.description("NSArray"), ["$class": .uid(4)], Self.description("UIColor"),
    ])
    #expect(error?.code == .unsupportedClass)
    #expect(error?.className == "UIColor")
    #expect(error?.description == "In object 3 of the archive: An object of the class UIColor has no plain value. [unsupportedClass]")
  }

  /// A floating-point number or a text in its place would be another value.
  @Test func aDecimalNumberHasNoPlainValue() {
    let error = Self.failure([
      [
        "$class": .uid(2), "NS.mantissa": .data([5] + Array(repeating: 0, count: 15)), "NS.exponent": .integer(0),
        "NS.length": .integer(1), "NS.negative": .bool(false), "NS.compact": .bool(true), "NS.mantissa.bo": .integer(1),
      ], Self.description("NSDecimalNumber"),
    ])
    #expect(error?.code == .unsupportedClass && error?.className == "NSDecimalNumber")
  }

  @Test func RX14_anObjectThatContainsItselfIsRefused() {
    #expect(Self.failure([["$class": .uid(2), "NS.objects": .array([.uid(1)])], Self.description("NSArray")])?.code == .cyclic)
  }

  @Test func referencesThatLeadNowhereAreRefused() {
    #expect(Self.failure([["$class": .uid(2), "NS.objects": .array([.uid(99)])], Self.description("NSArray")])?.code == .damaged)
    #expect(Self.failure([["$class": .uid(99)]])?.code == .damaged)
    #expect(Self.failure([["$class": .uid(1)]])?.code == .damaged)
    #expect(Self.failure([.array([])])?.code == .damaged)
    #expect(Self.failure([])?.code == .damaged)
  }

  @Test func objectsThatLackTheirPartsAreRefused() {
    for name in ["NSArray", "NSDictionary", "NSString", "NSData", "NSDate", "NSUUID", "NSURL", "NSKnownKeysDictionary1"] {
      #expect(Self.failure([["$class": .uid(2), "other": .integer(1)], Self.description(name)])?.code == .damaged, "\(name)")
    }
    let another: PropertyList = ["$class": .uid(2), "NS.object.1": .uid(3)]
    #expect(Self.failure([another, Self.description("NSArray"), .string("a")])?.code == .damaged)
    let uneven: PropertyList = ["$class": .uid(2), "NS.keys": .array([.uid(3)]), "NS.objects": .array([])]
    #expect(Self.failure([uneven, Self.description("NSDictionary"), .string("a")])?.code == .damaged)
    let numbered: PropertyList = ["$class": .uid(2), "NS.keys": .array([.uid(3)]), "NS.objects": .array([.uid(3)])]
    #expect(Self.failure([numbered, Self.description("NSDictionary"), .integer(1)])?.code == .unsupported)
  }

  @Test func twoKeysThatDifferOnlyInTheirNormalizationAreNotSupported() throws {
    func objects(_ second: String) -> [PropertyList] {
      let keys = PropertyList.array([.uid(3), .uid(4)])
      return [
        ["$class": .uid(2), "NS.keys": keys, "NS.objects": keys], Self.description("NSDictionary"), .string("\u{E9}"), .string(second),
      ]
    }
    for (second, code) in [("e\u{301}", PropertyListError.Code.unsupported), ("\u{E9}", .damaged)] {
      #expect(Self.failure(objects(second))?.code == code)
      let archive = try KeyedArchive(Self.archive(objects(second)))
      let error = #expect(throws: PropertyListError.self) { try archive.entries(archive.root) }
      #expect(error?.code == code)
    }
  }

  @Test func RX14_sharedObjectsThatWouldUnfoldWithoutEndAreRefusedQuickly() {
    let lists = (0..<40).map {
      PropertyList.dictionary(["$class": .uid(42), "NS.objects": .array(Array(repeating: .uid($0 + 2), count: 10))])
    }
    #expect(Self.failure(lists + [.integer(1), Self.description("NSArray")])?.code == .tooLarge)
    let chain = (0..<300).map { PropertyList.dictionary(["$class": .uid(302), "NS.objects": .array([.uid($0 + 2)])]) }
    #expect(Self.failure(chain + [.integer(1), Self.description("NSArray")])?.code == .tooDeep)
  }

  @Test func otherPropertyListsAreNoArchives() {
    #expect(throws: PropertyListError.self) { try KeyedArchive(.dictionary([:])) }
    #expect(throws: PropertyListError.self) { try KeyedArchive(Array("<plist><dict/></plist>".utf8)) }
    var newer = Self.archive([.string("a")]).dictionary
    newer?["$version"] = .integer(100_001)
    let error = #expect(throws: PropertyListError.self) { try KeyedArchive(.dictionary(newer ?? [:])) }
    #expect(error?.code == .unsupported)
  }

  @Test func changedArchivesAreReadOrRefused() throws {
    var random = SeededGenerator("Changed keyed archives")
    let archiver = NSKeyedArchiver(requiringSecureCoding: false)
    let object: NSDictionary = ["a": NSSet(object: NSURL(string: "x:y") as Any), "b": [NSUUID(), NSNull(), Date()] as [Any]]
    archiver.encode(object, forKey: "root")
    archiver.finishEncoding()
    let bytes = Array(archiver.encodedData)
    let rounds = TestTier.count(5_000, full: 20_000)
    var read = 0
    for _ in 0..<rounds {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        guard let place = changed.indices.randomElement(using: &random) else { continue }
        changed[place] = UInt8.random(in: .min ... .max, using: &random)
      }
      if (try? KeyedArchive(changed).propertyListValue()) != nil { read += 1 }
    }
    #expect((1 + rounds / 200...rounds * 2 / 5).contains(read), "\(read) of \(rounds) read")
  }

  private static let corpus = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS is not set")) func everyArchivedModelOpensAndAllItsObjectsHaveClasses() throws {
    let corpus = try #require(Self.corpus)
    let files = try FileManager.default.subpathsOfDirectory(atPath: corpus).filter { $0.hasSuffix(".mom") || $0.hasSuffix("/elements") }
    #expect(files.count >= 10)
    for file in files {
      let archive = try KeyedArchive(Array(Data(contentsOf: URL(fileURLWithPath: corpus + "/" + file))))
      guard case .instance(let root) = try archive.object(archive.root) else {
        Issue.record("\(file) has no root.")
        continue
      }
      #expect(["NSManagedObjectModel", "XDPMModel"].contains(root.className), "\(file)")
    }
  }
}
