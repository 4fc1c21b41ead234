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
