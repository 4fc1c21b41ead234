import Foundation
import HoldfastModelFile
import HoldfastPropertyList
import TestSupport
import Testing

/// Mapping models of Xcode are read, and other files end in an error.
@Suite struct MappingModelFileTests {
  private static let mappings = Corpus.mappingModels

  @Test(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) func everyMappingModelOfXcodeIsRead() throws {
    #expect(Self.mappings.count == 13)
    var policies = 0, expressions: Set<String> = [], entities = 0
    for path in Self.mappings {
      let file = try MappingModelFile(contentsOf: Corpus.path(path))
      #expect(file.sourceModelPath.hasSuffix(".xcdatamodel") && file.destinationModelPath.hasSuffix(".xcdatamodel"))
      #expect(!file.entityMappings.isEmpty)
      entities += file.entityMappings.count
      policies += file.entityMappings.count { $0.policyClassName != nil }
      for mapping in file.entityMappings {
        #expect(mapping.sourceEntityName != nil || mapping.destinationEntityName != nil)
        #expect(!mapping.attributeMappings.isEmpty)
        expressions.formUnion((mapping.attributeMappings + mapping.relationshipMappings).compactMap(\.expressionText))
      }
    }
    #expect(entities == 49 && policies == 15, "\(entities) \(policies)")
    for text in [
      "$source.continent.numericISO3166Code", "TRUE", "$source.numberOfFlagella",
      "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"PersonToPerson\", $source.owner)",
      "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", \"cars\", $source.cars)",
    ] {
      #expect(expressions.contains(text), "\(expressions)")
    }
  }

  @Test(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) func aMappingModelSaysWhatXcodeShows() throws {
    let path = try #require(Self.mappings.first { $0.contains("Moody 2-Moody 3") })
    let file = try MappingModelFile(contentsOf: Corpus.path(path))
    #expect(file.sourceModelPath == "Migrations/Moody.xcdatamodeld/Moody 2.xcdatamodel")
    #expect(file.entityMappings.map(\.name) == ["MoodToMood", "CountryToCountry", "ContinentToContinent"])
    let mood = file.entityMappings[0]
    #expect(mood.policyClassName == nil && mood.attributeMappings.allSatisfy { $0.expressionText == nil })
    #expect(
      mood.relationshipMappings.first?.expressionText
        == "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"ContinentToContinent\", "
        + "$source.country.continent)")
  }

  // MARK: Other files

  private func read(_ text: String, _ options: ModelFileOptions = ModelFileOptions()) throws -> MappingModelFile {
    try MappingModelFile(bytes: Array(text.utf8), path: "p", options: options)
  }

  private func document(_ objects: String, prolog: String = "") -> String { "\(prolog)<database>\(objects)</database>" }

  private let model = "<object type=\"XDDEVMAPPINGMODEL\" id=\"z1\"><relationship name=\"entitymappings\" idrefs=\"z2\"/></object>"
  private let source = "<attribute name=\"sourcename\">A</attribute>"

  @Test func textIsDecodedAndEmptyTextIsNone() throws {
    let mapping =
      "<object type=\"XDDEVENTITYMAPPING\" id=\"z2\"><attribute name=\"sourcename\">A&amp;<![CDATA[<]]>&#66;</attribute>"
      + "<attribute name=\"migrationpolicyclassname\"></attribute>"
      + "<attribute name=\"sourcefilterpredicatestring\">age \\u3c00 3</attribute></object>"
    let file = try read(document(model + mapping, prolog: "<!DOCTYPE database SYSTEM \"file:///CoreData.dtd\">"))
    #expect(file.entityMappings.map(\.sourceEntityName) == ["A&<B"] && file.entityMappings[0].policyClassName == nil)
    #expect(file.entityMappings[0].name == "A&<B" && file.sourceModelPath == "" && file.entityMappings[0].sourceFilter == "age < 3")
  }

  /// The bug: each half of a surrogate pair remained an escape.
  @Test func twoEscapesCanBeOneCharacter() throws {
    func filter(_ text: String) throws -> String? {
      let filter = "<attribute name=\"sourcefilterpredicatestring\">\(text)</attribute>"
      return try read(document(model + "<object type=\"XDDEVENTITYMAPPING\" id=\"z2\">\(source)\(filter)</object>"))
        .entityMappings[0].sourceFilter
    }
    #expect(try filter("name == \"\\u3DD8\\u00DE\\u3dd8\\u01de\" AND age \\u3c00 3") == "name == \"\u{1F600}\u{1F601}\" AND age < 3")
    #expect(try filter("\\u3DD8 \\u3DD8\\u3c00 \\u00DE") == "\\u3DD8 \\u3DD8< \\u00DE")
  }

  @Test func otherFilesAreRefused() throws {
    let mapping = "<object type=\"XDDEVENTITYMAPPING\" id=\"z2\">\(source)"
    let bomb = "<!DOCTYPE database [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>"
    let cases: [(String, ModelFileError.Code)] = [
      ("", .malformed), ("<plist/>", .notAModel), ("<database/>", .notAModel), (document(model + model), .notAModel),
      (document(model), .malformed), (document(model + "<object type=\"XDDEVENTITYMAPPING\" id=\"z2\"/>"), .malformed),
      (document(model + mapping + "<relationship name=\"attributemappings\" idrefs=\"z3\"/></object>"), .malformed),
      (
        document(
          model + mapping + "<relationship name=\"attributemappings\" idrefs=\"z3\"/></object>"
            + "<object type=\"XDDEVATTRIBUTEMAPPING\" id=\"z3\"/>"), .malformed
      ),
      (
        document(
          model + mapping + "<relationship name=\"attributemappings\" idrefs=\"z3\"/></object>"
            + "<object type=\"XDDEVATTRIBUTEMAPPING\" id=\"z3\"><attribute name=\"name\">x</attribute>"
            + "<attribute name=\"valueexpressiondata\">!!</attribute></object>"), .malformed
      ),
      (document(model + mapping + "<attribute name=\"destinationname\">&b;</attribute></object>", prolog: bomb), .malformed),
      (String(repeating: "<database>", count: 70), .tooLarge), ("<database><object>", .malformed), ("<?php x?><database/>", .malformed),
    ]
    for (text, code) in cases {
      let error = #expect(throws: ModelFileError.self, "\(text.prefix(80))") { try read(text) }
      #expect(error?.code == code && error?.path == "p" && error?.operation == "read the mapping model", "\(text): \(error as Any)")
    }
    var options = ModelFileOptions()
    options.maximumByteCount = 10
    #expect(#expect(throws: ModelFileError.self) { try read(document(model), options) }?.code == .tooLarge)
    #expect(#expect(throws: ModelFileError.self) { try MappingModelFile(contentsOf: "/nowhere.xcmappingmodel") }?.code == .notFound)
  }

  /// The parser compares each attribute of a tag with all others.
  @Test func attributesOfATagAreBounded() throws {
    func mapping(_ count: Int, _ before: String = "", prolog: String = "") -> String {
      let attributes = (0..<count).map { "a\($0)=''" }.joined(separator: " ")
      return document(
        "\(before)\(model)<object type=\"XDDEVENTITYMAPPING\" id=\"z2\" \(attributes)>\(source)</object>", prolog: prolog)
    }
    #expect(try read(mapping(254)).entityMappings.count == 1)
    for text in [
      mapping(255), mapping(400_000), mapping(255, "<!-- ' -->"), mapping(255, "<x><![CDATA[<a b='>]]></x>"), mapping(255, "<x>\" '</x>"),
      mapping(255, prolog: "<!DOCTYPE database SYSTEM \"file:///a'b\">"),
    ] {
      let error = #expect(throws: ModelFileError.self) { try read(text) }
      #expect(error?.code == .tooLarge && error?.path == "p", "\(error as Any)")
    }
    for prolog in ["<!DOCTYPE database [<!ENTITY a \"<b c='\">]>", "<!DOCTYPE database SYSTEM \"", "<!ELEMENT a>"] {
      #expect(#expect(throws: ModelFileError.self) { try read(mapping(255, prolog: prolog)) }?.code == .malformed, "\(prolog)")
    }
  }

  /// Expressions may refer to one text many times, so that a small file would describe very long ones.
  @Test func theTextsOfAllExpressionsAreBounded() throws {
    func description(_ name: String) -> PropertyList {
      .dictionary(["$classname": .string(name), "$classes": .array([.string(name), .string("NSObject")])])
    }
    let objects: [PropertyList] = [
      .string("$null"), description("NSConstantValueExpression"), .string(String(repeating: "x", count: 1_000)),
      .dictionary(["$class": .uid(1), "NSConstantValue": .uid(2), "NSExpressionType": .integer(0)]), description("NSMutableArray"),
      .dictionary(["$class": .uid(4), "NS.objects": .array(Array(repeating: .uid(3), count: 8))]), description("NSAggregateExpression"),
      .dictionary(["$class": .uid(6), "NSCollection": .uid(5), "NSExpressionType": .integer(14)]),
    ]
    let archive = PropertyList.dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000), "$top": .dictionary(["root": .uid(7)]),
      "$objects": .array(objects),
    ]).binary
    func file(_ count: Int) throws -> MappingModelFile {
      let properties = (3..<3 + count).map { number in
        "<object type=\"XDDEVATTRIBUTEMAPPING\" id=\"z\(number)\"><attribute name=\"name\">a\(number)</attribute>"
          + "<attribute name=\"valueexpressiondata\">\(Data(archive).base64EncodedString())</attribute></object>"
      }
      let ids = (3..<3 + count).map { "z\($0)" }.joined(separator: " ")
      let mapping =
        "<object type=\"XDDEVENTITYMAPPING\" id=\"z2\">\(source)"
        + "<relationship name=\"attributemappings\" idrefs=\"\(ids)\"/></object>"
      var options = ModelFileOptions()
      options.maximumByteCount = 20_000
      return try read(document(model + mapping + properties.joined()), options)
    }
    #expect(try file(1).entityMappings[0].attributeMappings[0].expressionText?.utf8.count ?? 0 > 8_000)
    let error = #expect(throws: ModelFileError.self) { try file(4) }
    #expect(error?.code == .tooLarge, "\(error as Any)")
  }

  // MARK: Seeds of the fuzzer

  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/MappingModels")

  private static let seeds = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()

  @Test func theSeedsAreMappingModels() throws {
    #expect(Self.seeds.count >= 6)
    let files = try Self.seeds.map { try MappingModelFile(contentsOf: Self.folder.appendingPathComponent($0).path) }
    let expressions = files.flatMap(\.entityMappings).flatMap(\.attributeMappings).compactMap(\.expressionText)
    for text in [
      "$source.walks.@sum.minutes", "($source.age * 2)", "FUNCTION($entityPolicy, \"age:\", $source.age)", "{1.5, TRUE, $source}",
      "TERNARY($source.age > 10, \"old\", \"young\")", "SUBQUERY($source.walks, $w, $w.minutes > 30).@count",
    ] {
      #expect(expressions.contains(text), "\(expressions)")
    }
    #expect(files.flatMap(\.entityMappings).compactMap(\.sourceFilter) == ["minutes > 3", "image != nil AND size < 10"])
  }

  @Test(arguments: seeds) func aSeedKeepsToTheRules(_ name: String) throws {
    var random = SeededGenerator("Changed \(name)")
    let bytes = [UInt8](try Data(contentsOf: Self.folder.appendingPathComponent(name)))
    #expect(MappingModelProperty.violation(bytes) == nil)
    for _ in 0..<200 {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        changed[Int.random(in: changed.indices, using: &random)] = UInt8.random(in: .min ... .max, using: &random)
      }
      let violation = MappingModelProperty.violation(changed)
      #expect(violation == nil, "HOLDFAST_SEED=\(random.seed) \(String(decoding: changed, as: UTF8.self))")
    }
  }

  /// Damage is an error, or leaves a mapping model that can be read.
  @Test(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) func damagedFilesEndInAnErrorOrAValue() throws {
    var generator = SeededGenerator("Damage of mapping models"), refused = 0
    let rounds = 300
    // The model's copies in the files aren't read, and are most of the bytes.
    let files = try Self.mappings.map { path in
      String(decoding: try Corpus.bytes(path + "/xcmapping.xml"), as: UTF8.self).replacing(
        /<attribute name="(source|destination)modeldata" type="binary">[^<]*/, with: "<attribute name=\"data\" type=\"binary\">")
    }
    for _ in 0..<rounds {
      var bytes = Array(files[Int.random(in: files.indices, using: &generator)].utf8)
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let place = Int.random(in: bytes.indices, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &generator)
        case 1: bytes.removeSubrange(place..<min(place + Int.random(in: 1...200, using: &generator), bytes.count))
        case 2: bytes.insert(contentsOf: bytes[place..<min(place + 100, bytes.count)], at: place)
        default: bytes.swapAt(place, Int.random(in: bytes.indices, using: &generator))
        }
      }
      do throws(ModelFileError) { _ = try MappingModelFile(bytes: bytes) } catch { refused += 1 }
    }
    #expect(refused > rounds / 3, "\(refused) of \(rounds)")
  }
}
