import Foundation
import HoldfastModelFile
import HoldfastStore
import TestSupport
import Testing

/// The meaning of elements in a file, and how models are written.
@Suite struct MappingTests {
  private func model(_ text: String) throws -> ManagedObjectModel {
    try ModelDocument(bytes: Array("<model>\(text)</model>".utf8)).model()
  }

  private func attribute(_ text: String) throws -> AttributeDescription {
    let entity = try #require(try model("<entity name='E'><attribute name='a' \(text)/></entity>").declarations.first)
    return try #require(entity.attributes.first)
  }

  @Test(
    arguments: [
      ("Integer 16", "-5", .int16(-5)), ("Integer 16", "0.0", .int16(0)), ("Integer 32", "7", .int32(7)),
      ("Integer 64", "9223372036854775807", .int64(.max)), ("Double", "0", .double(0)), ("Double", "1e-3", .double(0.001)),
      ("Float", "0.1", .float(0.1)), ("Decimal", "0.10", .decimal(Decimal(string: "0.1") ?? 0)), ("Decimal", "-4", .decimal(-4)),
      ("Boolean", "YES", .bool(true)), ("Boolean", "0", .bool(false)), ("Boolean", "true", .bool(true)), ("String", "", .string("")),
      ("String", "YES", .string("YES")), ("URI", "http://a/", .uri("http://a/")),
      ("UUID", "5431C046-D30E-7F32-C2CC-809958ADD1E7", .uuid(UUID(uuidString: "5431C046-D30E-7F32-C2CC-809958ADD1E7") ?? UUID())),
      ("Integer 16", "", nil), ("Binary", "x", nil), ("Transformable", "x", nil),
    ] as [(String, String, StoreValue?)]) func defaultValuesAreOfTheirType(_ type: String, _ text: String, _ value: StoreValue?) throws
  {
    #expect(try attribute("attributeType='\(type)' defaultValueString='\(text)'").defaultValue == value)
  }

  private static let foreignDefaults: [(type: String, text: String, value: StoreValue, corrected: String)] = [
    ("Integer 16", "NO", .int16(0), "0"), ("Integer 32", "YES", .int32(1), "1"), ("Integer 64", "yes", .int64(1), "1"),
    ("Double", "YES", .double(1), "1.0"), ("Float", "NO", .float(0), "0.0"), ("Decimal", "true", .decimal(1), "1"),
    ("Boolean", "0", .bool(false), "NO"), ("Boolean", "1", .bool(true), "YES"), ("Boolean", "2", .bool(true), "YES"),
    ("Boolean", "-1", .bool(true), "YES"), ("Boolean", "0.0", .bool(false), "NO"), ("Boolean", "0.5", .bool(true), "YES"),
  ]

  @Test(arguments: foreignDefaults.indices) func aDefaultOfAnotherTypeIsConvertedAsCoreDataDoes(_ place: Int) throws {
    let (type, text, value, corrected) = Self.foreignDefaults[place]
    let document = try ModelDocument(
      bytes: Array(
        """
        <model><entity name='E'><attribute name='a' attributeType='\(type)' defaultValueString='\(text)'/></entity>
        <composite name='C'><attribute name='b' attributeType='\(type)' defaultValueString='\(text)'/></composite></model>
        """.utf8))
    let model = try document.model()
    #expect(model.declarations[0].attributes[0].defaultValue == value)
    #expect(model.composites[0].elements[0].defaultValue == value)
    #expect(document.convertedDefaults.map(\.path) == ["E.a", "composite C.b"])
    #expect(document.convertedDefaults.allSatisfy { $0.text == text && $0.value == value && $0.correctedText == corrected })
    // The document keeps the text. A model's own document has the value in its type's format.
    #expect(try String(decoding: document.serialized(), as: UTF8.self).contains("defaultValueString=\"\(text)\""))
    #expect(try ModelDocument(model).convertedDefaults.isEmpty)
  }

  @Test func aDefaultOfTheTypeIsNotConverted() throws {
    let texts = [
      ("Integer 16", "1"), ("Integer 16", "0.0"), ("Double", "0"), ("Boolean", "YES"), ("Boolean", "false"), ("String", "NO"),
      ("Integer 16", "maybe"), ("Nothing", "NO"), ("Binary", "NO"), ("Date", "0"), ("Integer 32", ""),
      ("Integer 16' derived='YES' derivationExpression='x", "NO"),
    ]
    let attributes = texts.enumerated().map { "<attribute name='a\($0)' attributeType='\($1.0)' defaultValueString='\($1.1)'/>" }
    let document = try ModelDocument(bytes: Array("<model><entity name='E'>\(attributes.joined())</entity></model>".utf8))
    #expect(document.convertedDefaults.isEmpty)
  }

  @Test func datesAreSecondsAndTheirTextsAreNotRead() throws {
    let date = try attribute(
      "attributeType='Date' minDateTimeInterval='-1.5' minValueString='12/4/2013' defaultDateTimeInterval='388411200' defaultValueString='gestern'"
    )
    #expect(date.defaultValue == .date(388_411_200))
    #expect(date.validation == .range(.date(-1.5), nil))
    #expect(try attribute("attributeType='Date' defaultValueString='2013-04-23'").defaultValue == nil)
  }

  @Test func boundsOfTextAreLengths() throws {
    let text = try attribute("attributeType='String' minValueString='1' maxValueString='64' regularExpressionString='^[a-z]+$'")
    #expect(text.validation == AttributeValidation(minimumLength: 1, maximumLength: 64, regularExpression: "^[a-z]+$"))
    #expect(try attribute("attributeType='Integer 16' minValueString='-3' maxValueString='9'").validation == .range(.int16(-3), .int16(9)))
    // Xcode keeps the text of a bound when a number becomes a text.
    #expect(try attribute("attributeType='String' minValueString='0.0' maxValueString='64.0'").validation == .length(0, 64))
    // A leftover from another type.
    #expect(try attribute("attributeType='Boolean' minValueString='x' regularExpressionString='y'").validation == .none)
  }

  @Test func handMadeTruthValuesAreRead() throws {
    #expect(try attribute("attributeType='String' optional='true'").isOptional)
    #expect(try attribute("attributeType='String' optional='YES'").isOptional)
    #expect(try !attribute("attributeType='String' optional='NO'").isOptional)
    #expect(try !attribute("attributeType='String' optional='false'").isOptional)
    #expect(try !attribute("attributeType='String'").isOptional)
  }

  @Test func aDerivedAttributeHasNoDefault() throws {
    let text = "<entity name='E'><attribute name='n' optional='YES' attributeType='String'/><attribute name='a' optional='YES' "
    let derived = try model(text + "attributeType='String' derived='YES' derivationExpression='n' defaultValueString='0'/></entity>")
    #expect(derived.declarations[0].attributes[1].derivationExpression == "n")
    #expect(derived.declarations[0].attributes[1].defaultValue == nil)
    let plain = try model(text + "attributeType='String' derivationExpression='n' defaultValueString='0'/></entity>")
    #expect(plain.declarations[0].attributes[1].defaultValue == .string("0"))
  }

  @Test func cardinalityIsReadAsXcodeOfEveryAgeWroteIt() throws {
    let entity = try model(
      """
      <entity name='E'>
      <relationship name='a' maxCount='1' destinationEntity='E'/>
      <relationship name='b' minCount='1' maxCount='1' deletionRule='No Action' destinationEntity='E'/>
      <relationship name='c' toMany='YES' deletionRule='Deny' ordered='YES' destinationEntity='E'/>
      <relationship name='d' toMany='YES' minCount='1' maxCount='9' deletionRule='Cascade' destinationEntity='E'/>
      <relationship name='e' destinationEntity='E' inverseName='e' inverseEntity='E'/>
      <relationship name='f' maxCount='1' ordered='YES' destinationEntity='E'/>
      </entity>
      """
    ).declarations[0]
    #expect(entity.relationships.map(\.isToMany) == [false, false, true, true, false, false])
    #expect(entity.relationships.map(\.minCount) == [0, 1, 0, 1, 0, 0])
    #expect(entity.relationships.map(\.maxCount) == [1, 1, 0, 9, 1, 1])
    #expect(entity.relationships.map(\.deleteRule) == [.nullify, .noAction, .deny, .cascade, .nullify, .nullify])
    // The order of a to-one relationship is part of the version hash.
    #expect(entity.relationships.map(\.isOrdered) == [false, false, true, false, false, true])
    #expect(entity.relationships.map(\.inverse) == [nil, nil, nil, nil, "e", nil])
  }

  @Test func transientRelationshipsAreReadAndWritten() throws {
    let read = try model(
      """
      <entity name='E'>
      <relationship name='a' optional='YES' transient='YES' maxCount='1' destinationEntity='E' inverseName='b' inverseEntity='E' indexed='YES'/>
      <relationship name='b' optional='YES' transient='YES' toMany='YES' ordered='YES' destinationEntity='E' inverseName='a' inverseEntity='E'/>
      <fetchIndex name='byA'><fetchIndexElement property='a'/></fetchIndex></entity>
      """)
    #expect(read.declarations[0].relationships.map(\.isTransient) == [true, true])
    #expect(read.entities[0].relationships.isEmpty && read.entities[0].transientRelationships.map(\.name) == ["a", "b"])
    #expect(read.entities[0].indexes.isEmpty && read.declarations[0].indexes.map(\.name) == ["byA"])
    #expect(read.versionChecksum == (try model("<entity name='E'/>")).versionChecksum)
    let written = try ModelDocument(read)
    #expect(try ModelDocument(bytes: written.serialized()).model() == read)
    #expect(
      try String(decoding: written.serialized(), as: UTF8.self).contains("<relationship name=\"a\" optional=\"YES\" transient=\"YES\" "))
  }

  @Test func oldMarksOfIndexesAreIndexes() throws {
    let entity = try model(
      """
      <entity name='E'><attribute name='a' attributeType='String' indexed='YES'/><attribute name='b' attributeType='String' indexed='YES'/>
      <attribute name='t' transient='YES' attributeType='String' indexed='YES'/>
      <relationship name='m' toMany='YES' indexed='YES' destinationEntity='E'/>
      <relationship name='o' maxCount='1' indexed='YES' destinationEntity='E'/>
      <fetchIndex name='B'><fetchIndexElement property='b' type='Binary' order='descending'/></fetchIndex>
      <compoundIndexes><compoundIndex><index value='a'/><index value='b'/></compoundIndex></compoundIndexes></entity>
      """
    ).declarations[0]
    #expect(
      entity.indexes == [
        FetchIndexDescription("B", elements: [FetchIndexElement("b", isAscending: false)]), FetchIndexDescription("a_b", ["a", "b"]),
        FetchIndexDescription("a", ["a"]), FetchIndexDescription("o", ["o"]),
      ])
  }

  @Test func anIndexThatNoStoreCanKeepIsIgnoredAndWrittenAgain() throws {
    let entities = """
      <entity name='E' isAbstract='YES'><relationship name='m' toMany='YES' destinationEntity='E'/></entity>
      <entity name='F' parentEntity='E'><attribute name='a' attributeType='String'/><attribute name='t' transient='YES'/>
      <fetchIndex name='byMany'><fetchIndexElement property='m' type='Binary' order='ascending'/></fetchIndex>
      <fetchIndex name='bySelf'><fetchIndexElement property='self' type='Binary' order='ascending'/></fetchIndex>
      <fetchIndex name='byTransient'><fetchIndexElement property='t' type='Binary' order='ascending'/></fetchIndex>
      <fetchIndex name='byExpression'><fetchIndexElement expression='lowercase:(a)' type='Binary' order='descending'/></fetchIndex>
      <fetchIndex name='byNothing'/>
      <fetchIndex name='byA'><fetchIndexElement property='a' type='Binary' order='ascending'/></fetchIndex>
      <fetchIndex name='BYA'><fetchIndexElement property='a' type='Binary' order='descending'/></fetchIndex></entity>
      """
    let model = try model(entities)
    let indexes = try #require(model.entity(named: "F")).declaration.indexes
    #expect(
      indexes.filter(\.isIgnored).map(\.name) == ["byMany", "bySelf", "byTransient", "byExpression", "byNothing", "BYA"],
      "\(indexes)")
    #expect(model.entity(named: "F")?.indexes == [FetchIndexDescription("byA", ["a"])])
    let written = try ModelDocument(model)
    #expect(try ModelDocument(bytes: written.serialized()).model() == model)
    let text = try String(decoding: written.serialized(), as: UTF8.self)
    #expect(text.contains("<fetchIndexElement property=\"self\"") && text.contains("expression=\"lowercase:(a)\""))
    // Indexes aren't part of the version.
    let plain = try self.model(entities.replacing(/<fetchIndex .*?<\/fetchIndex>|<fetchIndex name='byNothing'\/>/, with: ""))
    #expect(plain.versionChecksum == model.versionChecksum && plain.declarations.allSatisfy(\.indexes.isEmpty))
  }

  @Test func theIdentifierOfAVersionMayBeEmptyOrAbsent() throws {
    func identifiers(_ text: String) throws -> [String] {
      try ModelDocument(bytes: Array("<model \(text)/>".utf8)).model().versionIdentifiers
    }
    #expect(try identifiers("") == [])
    #expect(try identifiers("userDefinedModelVersionIdentifier=''") == [""])
    #expect(try identifiers("userDefinedModelVersionIdentifier='2.1'") == ["2.1"])
  }

  // MARK: A model built in code

  @Test func aModelBuiltInCodeIsWrittenAndReadAgain() throws {
    let model = try FullModel.model()
    let document = try ModelDocument(model)
    let again = try ModelDocument(bytes: document.serialized()).model()
    #expect(again == model)
    #expect(again.versionChecksum == model.versionChecksum)
  }

  @Test func aModelBuiltInCodeLooksAsXcodeWritesIt() throws {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Zoo",
          attributes: [
            AttributeDescription("opened", .date, default: .date(388_411_200.5), validation: .range(.date(-1), nil)),
            AttributeDescription("area", .double, default: .double(0)), AttributeDescription("name", .string, isOptional: true),
          ], relationships: [.toMany("animals", to: "Animal", inverse: "zoo", deleteRule: .cascade)],
          indexes: [FetchIndexDescription("byName", ["name"])], managedObjectClassName: "Zoo"),
        EntityDescription("Animal", isAbstract: true, relationships: [.toOne("zoo", to: "Zoo", inverse: "animals")]),
      ], versionIdentifiers: [""])
    #expect(
      String(decoding: try ModelDocument(model).serialized(), as: UTF8.self) == """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522" systemVersion="23E224" minimumToolsVersion="Automatic" sourceLanguage="Swift" userDefinedModelVersionIdentifier="">
            <entity name="Animal" isAbstract="YES" syncable="YES">
                <relationship name="zoo" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Zoo" inverseName="animals" inverseEntity="Zoo"/>
            </entity>
            <entity name="Zoo" representedClassName="Zoo" syncable="YES">
                <attribute name="area" attributeType="Double" defaultValueString="0.0" usesScalarValueType="YES"/>
                <attribute name="name" optional="YES" attributeType="String"/>
                <attribute name="opened" attributeType="Date" minDateTimeInterval="-1" minValueString="2000-12-31 23:59:59 +0000" defaultDateTimeInterval="388411200.5" defaultValueString="2013-04-23 12:00:00 +0000" usesScalarValueType="NO"/>
                <relationship name="animals" optional="YES" toMany="YES" deletionRule="Cascade" destinationEntity="Animal" inverseName="zoo" inverseEntity="Animal"/>
                <fetchIndex name="byName">
                    <fetchIndexElement property="name" type="Binary" order="ascending"/>
                </fetchIndex>
            </entity>
        </model>
        """)
  }

  @Test func datesAreShownInTheCalendar() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "yyyy-MM-dd HH:mm:ss"
    // For dates after 1582, Foundation's calendar agrees.
    let edges = [0, -1, 86_399, 86_400, 59_443_200, 59_529_600, -31_622_400, -13_190_000_000, 252_455_615_999].map(Double.init)
    for seconds in edges + (0..<300).map({ _ in Double.random(in: -13_190_000_000..<252_455_616_000, using: &generator) }) {
      let model = try ManagedObjectModel(entities: [
        EntityDescription("E", attributes: [AttributeDescription("d", .date, default: .date(seconds))])
      ])
      let shown = try ModelDocument(model).root.children[0].children[0]["defaultValueString"]
      let expected = formatter.string(from: Date(timeIntervalSinceReferenceDate: seconds.rounded(.down)))
      #expect(shown == expected + " +0000", "\(seconds), seed \(seed)")
    }
  }

  @Test(arguments: [1e300, -1e300, .infinity, .nan, 252_455_616_000, -63_113_904_001])
  func datesOutsideOfTheCalendarAreNotShown(_ seconds: Double) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("E", attributes: [AttributeDescription("d", .date, default: .date(seconds))])
    ])
    let written = try ModelDocument(model)
    #expect(written.root.children[0].children[0]["defaultValueString"] == nil)
    guard case .date(let again) = try written.model().declarations[0].attributes[0].defaultValue else {
      Issue.record("The default value isn't a date.")
      return
    }
    #expect(again == seconds || again.isNaN && seconds.isNaN)
  }

  @Test func aDefaultOfBytesIsNotWritten() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("E", attributes: [AttributeDescription("b", .binaryData, default: .data(Data([1])))])
    ])
    #expect { try ModelDocument(model) } throws: {
      ($0 as? ModelFileError)?.code == .unwritable && "\($0)".contains("attribute \"b\" of entity \"E\"")
    }
  }
}
