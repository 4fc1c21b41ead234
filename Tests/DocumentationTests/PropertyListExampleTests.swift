import Foundation
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore
import Testing

/// The examples in comments about property lists behave as they describe.
@Suite struct PropertyListExampleTests {
  private static let zoo = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/CompiledModels/zoo.mom")

  @Test func aListContainsTheCurrentVersion() throws {
    let info = PropertyList.dictionary(["NSManagedObjectModel_CurrentVersionName": .string("Zoo 2")])
    let (version, changed) = try PropertyListExamples.lists(Array(info.xml().utf8))
    #expect(version == "Zoo 2")
    #expect(try PropertyList(changed)["name"] == .string("Rex"))
  }

  @Test func anArchiveListsItsEntities() throws {
    #expect(try PropertyListExamples.entityNames(Array(Data(contentsOf: Self.zoo))).sorted() == ["Animal", "Dog", "Walk"])
    #expect(try PropertyListExamples.entityNames(KeyedArchive.bytes(of: .dictionary([:]))) == [])
  }

  @Test func aCompiledModelThatIsNotThereIsNamed() {
    let error = #expect(throws: ModelFileError.self) { try PropertyListExamples.compiledModel() }
    #expect(error?.code == .notFound && error?.path == "Zoo.momd")
  }
}
