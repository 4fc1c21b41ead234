import Foundation
import Holdfast
import HoldfastSQLiteStore
import Testing

@Suite struct LargeValuesTests {
  @Test func theModelOfTheArticleKeepsAnImageInAFile() throws {
    let photo = EntityDescription(
      "Photo",
      attributes: [
        AttributeDescription("title", .string, isOptional: true),
        AttributeDescription("image", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
      ])
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let coordinator = try PersistentStoreCoordinator(
      model: ManagedObjectModel(entities: [photo]), store: .sqlite(at: folder.path + "/album.sqlite"))
    let context = try ManagedObjectContext(coordinator: coordinator)
    let image = Data(repeating: 7, count: 200_000)
    try context.insert(entityNamed: "Photo").setValue(.data(image), forKey: "image")
    try context.save()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/.album_SUPPORT/_EXTERNAL_DATA").count == 1)
    let other = try ManagedObjectContext(coordinator: coordinator)
    let found = try other.fetch(FetchRequest<ManagedObject>(entityName: "Photo"))
    #expect(try found.map { try $0.value(forKey: "image") } == [.single(.data(image))])
    try coordinator.close()
  }
}
