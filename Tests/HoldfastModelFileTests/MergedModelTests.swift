import HoldfastModelFile
import HoldfastStore
import TestSupport
import Testing

/// Merging several models into one.
@Suite struct MergedModelTests {
  private func entity(_ name: String, _ attribute: String = "x") -> EntityDescription {
    EntityDescription(name, attributes: [AttributeDescription(attribute, .string)])
  }

  @Test func entitiesConfigurationsAndIdentifiersAreJoined() throws {
    let first = try ManagedObjectModel(
      entities: [entity("A"), entity("B")], versionIdentifiers: ["1", ""], configurations: [ConfigurationDescription("C", ["A", "B"])])
    let second = try ManagedObjectModel(
      entities: [entity("B"), entity("D")], versionIdentifiers: ["2", "1"],
      configurations: [ConfigurationDescription("C", ["B", "D"]), ConfigurationDescription("E", ["D"])])
    let merged = try ManagedObjectModel.merging([first, second])
    #expect(merged.declarations.map(\.name) == ["A", "B", "D"])
    #expect(merged.versionIdentifiers == ["1", "", "2"])
    #expect(merged.configurations == [ConfigurationDescription("C", ["A", "B", "D"]), ConfigurationDescription("E", ["D"])])
    #expect(try ManagedObjectModel.merging([]).declarations.isEmpty)
  }

  @Test func differentThingsOfOneNameAreRefused() throws {
    let models = try [entity("A"), entity("A", "y")].map { try ManagedObjectModel(entities: [$0]) }
    #expect { try ManagedObjectModel.merging(models) } throws: {
      ($0 as? ModelFileError)?.code == .contradictory && "\($0)".contains("entity \"A\"")
    }
    let cased = try [entity("A"), entity("a")].map { try ManagedObjectModel(entities: [$0]) }
    #expect { try ManagedObjectModel.merging(cased) } throws: { ($0 as? ModelFileError)?.cause is ModelError }
  }

  /// The bug: an entity of a model file and the same one of a compiled model were different declarations.
  @Test func declarationsOfOneMeaningAreEqual() throws {
    func model(_ expressions: [String], isReversed: Bool) throws -> ManagedObjectModel {
      var attributes = [AttributeDescription("size", .double), AttributeDescription("ID", .string)]
      attributes.append(.derived("copy", .double, expressions[0]))
      attributes.append(.derived("count", .integer64, expressions[1]))
      var relationships = [RelationshipDescription.toMany("walks", to: "A", inverse: nil), .toOne("owner", to: "A", inverse: nil)]
      if isReversed {
        attributes.reverse()
        relationships.reverse()
      }
      return try ManagedObjectModel(entities: [EntityDescription("A", attributes: attributes, relationships: relationships)])
    }
    let file = try model(["size", "walks.@count"], isReversed: false), compiled = try model(["#size", "count:(walks)"], isReversed: true)
    #expect(try ManagedObjectModel.merging([file, compiled]) == file)
    let other = try model(["size", "walks.size.@sum"], isReversed: false)
    #expect(throws: ModelFileError.self) { try ManagedObjectModel.merging([file, other]) }
  }

  @Test func bundlesAreMergedByTheirCurrentVersions() throws {
    let folder = TemporaryFolder()
    for name in ["A", "B"] {
      let model = try ManagedObjectModel(entities: [entity(name)])
      try ModelBundle.write(try ModelDocument(model), to: folder.file("\(name).xcdatamodeld"))
    }
    let merged = try ManagedObjectModel.merged(contentsOf: [folder.file("A.xcdatamodeld"), folder.file("B.xcdatamodeld")])
    #expect(merged.declarations.map(\.name) == ["A", "B"])
    #expect(throws: ModelFileError.self) { try ManagedObjectModel.merged(contentsOf: [folder.file("C.xcdatamodeld")]) }
  }
}
