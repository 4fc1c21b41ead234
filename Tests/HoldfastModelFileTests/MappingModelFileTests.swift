import Foundation
import HoldfastModelFile
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
