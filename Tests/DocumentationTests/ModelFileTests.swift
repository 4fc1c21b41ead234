import Foundation
import Holdfast
import HoldfastModelFile
import HoldfastStore
import Testing

/// The examples of model files behave as they describe.
@Suite struct ModelFileTests {
  @Test @MainActor func aZooIsWrittenReadAndGivenVersions() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-zoo-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let path = folder.appendingPathComponent("Zoo.xcdatamodeld").path
    #expect(try ModelFileExamples.write(to: path) == ModelFileExamples.model)
    try ModelFileExamples.addVersion(to: path)
    #expect(try ManagedObjectModel(contentsOf: path).versionIdentifiers == ["2"])
    try ModelFileExamples.add(ModelFileExamples.age(), to: path)
    let current = try ManagedObjectModel(contentsOf: path)
    #expect(current.entity(named: "Animal")?.attributes.map(\.name) == ["age", "name"])
    let hashes = Dictionary(uniqueKeysWithValues: ModelFileExamples.model.entities.map { ($0.name, $0.versionHash) })
    let metadata = PersistentStoreMetadata(storeUUID: "", type: "SQLite", entityVersionHashes: hashes, userInfo: [:])
    #expect(try ModelFileExamples.version(of: metadata, in: path) == "Zoo")
  }

  @Test @MainActor func aContainerTakesAModelFromAFile() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-zoo-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let path = folder.appendingPathComponent("Zoo.xcdatamodeld").path
    _ = try ModelFileExamples.write(to: path)
    let container = try ModelFileExamples.container(path)
    container.viewContext.insert(ModelFileExamples.Animal.self).name = "Ernie"
    try container.viewContext.save()
    #expect(ModelFileExamples.age()["optional"] == "YES")
  }
}
