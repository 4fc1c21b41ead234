import Foundation
import Holdfast
import HoldfastCommands
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore
import Testing

/// A version that can't be read is reported, and neither lost nor replaced by another.
@Suite struct UnreadableVersionTests {
  /// A bundle whose current version, Zoo 2, is in the format of Xcode before version 4.
  private func oldModel(_ fixture: Fixture) throws -> String {
    let path = try fixture.writeModel()
    try FileManager.default.removeItem(atPath: path + "/Zoo 2.xcdatamodel/contents")
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path + "/Zoo 2.xcdatamodel/elements"))
    return path
  }

  /// Every file below a path, with its bytes.
  private func files(_ path: String) throws -> [String: Data] {
    var found: [String: Data] = [:]
    for name in FileManager.default.subpaths(atPath: path) ?? [] where !name.hasSuffix(".xcdatamodel") {
      found[name] = try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)"))
    }
    return found
  }

  @Test(arguments: ["Copy.xcdatamodeld", "copy.json", "Copy.xcdatamodel"]) func convertRefusesToLeaveItOut(_ name: String) throws {
    let fixture = try Fixture()
    let path = try oldModel(fixture)
    let error = try #require(throws: CommandError.self) { try ModelConvert.run(path, to: fixture.path(name)) }
    #expect(error.description.contains("Zoo 2") && error.description.contains("oldFormat"), "\(error)")
    #expect(!error.description.contains("\n") && error.description.contains("--version: Zoo."), "\(error)")
    #expect(!FileManager.default.fileExists(atPath: fixture.path(name)))
  }

  @Test func convertOntoTheModelItselfChangesNothing() throws {
    let fixture = try Fixture()
    let path = try oldModel(fixture)
    let before = try files(path)
    #expect(throws: CommandError.self) { try ModelConvert.run(path, to: path) }
    #expect(try files(path) == before && before.count == 3)
  }

  @Test func eachOfSeveralIsNamedWithItsReason() throws {
    let fixture = try Fixture()
    let path = try oldModel(fixture)
    let third = path + "/Zoo 3.xcdatamodel"
    try FileManager.default.createDirectory(atPath: third, withIntermediateDirectories: true)
    try Data("<model>".utf8).write(to: URL(fileURLWithPath: third + "/contents"))
    let error = try #require(throws: CommandError.self) { try ModelConvert.run(path, to: fixture.path("Copy.xcdatamodeld")) }
    for words in ["Zoo 2, Zoo 3", "oldFormat", "malformed"] { #expect(error.description.contains(words), "\(error)") }
  }

  @Test func whatCanBeReadIsWrittenWhenItIsAskedFor() throws {
    let fixture = try Fixture()
    try ModelConvert.run(try oldModel(fixture), to: fixture.path("Copy.xcdatamodeld"), version: "Zoo")
    #expect(try ModelSource(path: fixture.path("Copy.xcdatamodeld")).versions.map(\.name) == ["Zoo"])
  }

  @Test func aVersionThatIsNotWrittenDoesNotStandInTheWay() throws {
    let fixture = try Fixture()
    let path = try fixture.writeModel()
    try Data("<model>".utf8).write(to: URL(fileURLWithPath: path + "/Zoo.xcdatamodel/contents"))
    try ModelConvert.run(path, to: fixture.path("zoo.json"))
    #expect(try ModelSource(path: fixture.path("zoo.json")).current?.model.versionDigest == Fixture.model().versionDigest)
  }

  @Test(arguments: ModelGraph.Format.allCases) func theGraphOfTheCurrentVersionIsNotThatOfAnother(_ format: ModelGraph.Format) throws {
    let fixture = try Fixture()
    let path = try oldModel(fixture)
    let error = try #require(throws: CommandError.self) { try ModelGraph.text(path: path, format) }
    #expect(error.reason.hasPrefix("The current version, Zoo 2, can't be read."), "\(error)")
    #expect(try ModelGraph.text(path: path, version: "Zoo", format).contains("Dog"))
    #expect(try ModelSource(path: path).current == nil)
  }

  @Test func lintFindsIt() throws {
    let fixture = try Fixture()
    let found = ModelLint.findings(in: try ModelSource(path: try oldModel(fixture))).filter { $0.rule == "unreadable-version" }
    #expect(found.count == 1 && found.first?.version == "Zoo 2" && found.first?.reason.contains("oldFormat") == true, "\(found)")
  }

  @Test func infoSaysWhichIsInUse() throws {
    let fixture = try Fixture()
    let report = ModelReport(try ModelSource(path: try oldModel(fixture)))
    #expect(report.currentVersion == "Zoo 2")
    #expect(report.text().contains("version Zoo 2 (current): can't be read."), "\(report.text())")
  }

  @Test func aStoreOfAnotherVersionIsReadWithIt() throws {
    let fixture = try Fixture(), model = try oldModel(fixture), path = fixture.path("old.sqlite"), newer = fixture.path("new.sqlite")
    try PersistentStoreCoordinator(model: Fixture.model(rating: 4), store: .sqlite(at: path)).close()
    #expect(try StoreSource(path: path, modelPath: model).check().objectCount == 0)
    try fixture.writeStore(.sqlite(at: newer))
    let before = try Data(contentsOf: URL(fileURLWithPath: newer))
    let error = try #require(throws: CommandError.self) { try StoreSource(path: newer, modelPath: model) }
    #expect(error.reason.contains("These entities differ") && error.reason.contains("These versions can't be read: Zoo 2."), "\(error)")
    #expect(try Data(contentsOf: URL(fileURLWithPath: newer)) == before)
  }
}
