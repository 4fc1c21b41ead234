import Foundation
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

@Suite struct CompiledBundleTests {
  private static func bundle(_ info: PropertyList?, versions: [String] = ["Zoo", "Zoo 2"]) throws -> TemporaryFolder {
    let folder = TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.file("Zoo.momd"), withIntermediateDirectories: true)
    for name in versions { try Data(ZooArchive().bytes()).write(to: URL(fileURLWithPath: folder.file("Zoo.momd/\(name).mom"))) }
    try folder.write("private", to: "Zoo.momd/Zoo.omo")
    if let info { try folder.write(info.xml(), to: "Zoo.momd/VersionInfo.plist") }
    return folder
  }

  private static func failure(_ folder: TemporaryFolder) -> ModelFileError? {
    do throws(ModelFileError) {
      _ = try CompiledModelBundle(contentsOf: folder.file("Zoo.momd"))
      return nil
    } catch { return error }
  }

  private static let info = PropertyList.dictionary([
    "NSManagedObjectModel_CurrentVersionName": .string("Zoo 2"),
    "NSManagedObjectModel_VersionHashes": .dictionary(["Zoo": .dictionary(["Dog": .data([1])])]),
  ])

  @Test func theCurrentVersionIsTheOneThatTheBundleNames() throws {
    let folder = try Self.bundle(Self.info)
    let bundle = try CompiledModelBundle(contentsOf: folder.file("Zoo.momd") + "/")
    #expect(bundle.versionNames == ["Zoo", "Zoo 2"] && bundle.currentVersionName == "Zoo 2")
    #expect(bundle.versionHashes == ["Zoo": ["Dog": [1]]])
    let zoo = try CompiledModel(bytes: ZooArchive().bytes())
    #expect(try bundle.version().model == zoo.model)
    #expect(try CompiledModel(contentsOf: folder.file("Zoo.momd")).model == zoo.model)
    #expect(try CompiledModel(contentsOf: folder.file("Zoo.momd/Zoo.mom")).model == zoo.model)
    // With the API that a Core Data developer would expect.
    #expect(try ManagedObjectModel(contentsOf: folder.file("Zoo.momd") + "/") == zoo.model)
    #expect(try ManagedObjectModel(contentsOf: folder.file("Zoo.momd"), version: "Zoo") == zoo.model)
    #expect(try ManagedObjectModel(contentsOf: folder.file("Zoo.momd/Zoo.mom"), version: "Zoo") == zoo.model)
    for path in ["Zoo.momd", "Zoo.momd/Zoo.mom"] {
      let error = #expect(throws: ModelFileError.self) { try ManagedObjectModel(contentsOf: folder.file(path), version: "Zoo 9") }
      #expect(error?.code == .unknownVersion)
    }
    #expect(throws: ModelFileError.self) { try bundle.version("Zoo 3") }
  }

  @Test func aBundleWithoutListOrVersionsIsRefused() throws {
    #expect(Self.failure(try Self.bundle(nil))?.code == .notAModel)
    #expect(Self.failure(try Self.bundle(Self.info, versions: []))?.code == .notAModel)
    #expect(Self.failure(try Self.bundle(.dictionary([:])))?.code == .malformed)
    #expect(Self.failure(try Self.bundle(.dictionary(["NSManagedObjectModel_CurrentVersionName": .string("No")])))?.code == .unknownVersion)
    let folder = try Self.bundle(nil)
    try folder.write("no list", to: "Zoo.momd/VersionInfo.plist")
    #expect(Self.failure(folder)?.code == .malformed)
    #expect(Self.failure(folder)?.path?.hasSuffix("VersionInfo.plist") == true)
  }

  @Test func aVersionThatCannotBeReadDoesNotHideTheOthers() throws {
    let folder = try Self.bundle(Self.info)
    try folder.write("no model", to: "Zoo.momd/Zoo 2.mom")
    let bundle = try CompiledModelBundle(contentsOf: folder.file("Zoo.momd"))
    #expect(bundle.versionNames == ["Zoo", "Zoo 2"])
    #expect(try bundle.version("Zoo").model == CompiledModel(bytes: ZooArchive().bytes()).model)
    let error = #expect(throws: ModelFileError.self) { try bundle.version() }
    #expect(error?.path == folder.file("Zoo.momd/Zoo 2.mom"), "\(error as Any)")
  }

  @Test func aMissingFileIsNamed() {
    let error = #expect(throws: ModelFileError.self) { try CompiledModel(contentsOf: "/nowhere/Zoo.mom") }
    #expect(error?.code == .notFound && error?.path == "/nowhere/Zoo.mom")
  }
}
