import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastStore
import Testing

/// Whether a binary store's file is undamaged.
func isWhole(_ path: String, _ model: ManagedObjectModel) throws -> Bool {
  var options = BinaryStoreOptions()
  options.wholeFile.file.isReadOnly = true
  let store = WholeFileStore(binaryAt: path, options: options)
  defer { try? store.close() }
  do {
    _ = try store.open(model: model, host: .none)
    try store.verify()
    return true
  } catch let error as StoreError where error.code == .damaged {
    return false
  }
}

@Suite struct BinaryFormatTests {
  @Test func theCheckOfTheArticleDistinguishesCompleteFilesFromDamagedOnes() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appending(path: "dogs.holdfast")
    let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [AttributeDescription("name", .string)])])
    let coordinator = try PersistentStoreCoordinator(model: model, store: .binary(at: file.path))
    let context = try ManagedObjectContext(coordinator: coordinator)
    try context.insert(entityNamed: "Dog").setValue(.string("Rex"), forKey: "name")
    try context.save()
    try coordinator.close()
    #expect(try isWhole(file.path, model))
    var bytes = try Data(contentsOf: file)
    let name = try #require(bytes.range(of: Data("Rex".utf8)))
    bytes[name.lowerBound] ^= 1
    try bytes.write(to: file)
    #expect(try !isWhole(file.path, model))
  }
}
