import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import Testing

@Suite struct ReadmeTests {
  @Test @MainActor func theBackgroundExampleForgetsLongWalks() async throws {
    let model = try ManagedObjectModel(entities: FirstGraph.entities)
    let container = try PersistentContainer(model: model, classes: [FirstGraph.Dog.self, FirstGraph.Walk.self], store: .memory())
    for minutes in [25, 61, 90] { container.viewContext.insert(FirstGraph.Walk.self).minutes = minutes }
    try container.viewContext.save()
    #expect(try await forgetLongWalks(container) == 2)
    #expect(try container.viewContext.count(FirstGraph.Walk.self) == 1)
  }

  /// The line that keeps the first graph in a file.
  @Test(arguments: ["sqlite", "json"]) @MainActor func theLineThatChangesTheStoreKeepsTheGraph(_ kind: String) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-first-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    for run in 1...2 {
      let path = folder.appendingPathComponent("dogs." + kind).path
      let container = try PersistentContainer(
        model: ManagedObjectModel(entities: FirstGraph.entities), classes: [FirstGraph.Dog.self, FirstGraph.Walk.self],
        store: kind == "json" ? .json(at: path) : .sqlite(at: path))
      container.viewContext.insert(FirstGraph.Dog.self).name = "Fido"
      try container.viewContext.save()
      #expect(try container.viewContext.count(FirstGraph.Dog.self) == run)
      try container.persistentStoreCoordinator.close()
    }
  }

  @Test @MainActor func theConcertIsPlayedInOrder() throws {
    #expect(try concert() == ["Eroica", "Allegro con brio", "Marcia funebre", "Scherzo", "Finale"])
  }

  @Test @MainActor func theObserverReceivesTheDescribedChanges() throws {
    #expect(try listening() == ["1 new, 0 changed", "0 new, 1 changed", "1 saved", "Erbarme dich, mein Gott", "6′ 43″"])
  }

  @Test @MainActor func theLibraryIsStoredInTwoStores() throws {
    #expect(try library() == ["Book in own", "Book in shared"])
  }

  @Test func aFileThatWasChangedByHandIsMendedAsTheTextSays() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-mend-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appendingPathComponent("dogs.json").path
    let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [AttributeDescription("name", .string)])])
    try PersistentStoreCoordinator(model: model, store: .json(at: path)).close()
    let text = try String(contentsOfFile: path, encoding: .utf8)
    try text.replacingOccurrences(of: "\"Dog\":[]", with: "\"Dog\":[{\"$key\":1,\"name\":\"Fido\"}]")
      .write(toFile: path, atomically: true, encoding: .utf8)
    #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: model, store: .json(at: path)) }
    try mend(path, model)
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .json(at: path)))
    #expect(
      try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog")).map { try $0.value(forKey: "name").storeValue } == [.string("Fido")]
    )
  }
}
