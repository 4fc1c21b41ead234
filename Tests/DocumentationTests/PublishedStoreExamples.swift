// swift-format-ignore-file
// The examples of the article about publishing a store, word for word; `SnippetTests` compares them. The tests run.
import Foundation
import HoldfastJSONStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

struct NotesHarness: StoreHarness {
  var capabilities: StoreCapabilities { place(in: URL(filePath: "unused")).description.makeStore().capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return place(in: folder)
  }

  private func place(in folder: URL) -> StorePlace {
    let file = folder.appending(path: "notes.json")
    return StorePlace(
      .json(at: file.path), readOnly: .json(at: file.path, isReadOnly: true),
      damage: { try Data("This is no store.".utf8).write(to: file) },
      copy: {
        let copy = folder.deletingLastPathComponent().appending(path: UUID().uuidString)
        try FileManager.default.copyItem(at: folder, to: copy)
        return place(in: copy)
      },
      file: DamageableFile(read: { try [UInt8](Data(contentsOf: file)) }, write: { try Data($0).write(to: file) }),
      discard: { try? FileManager.default.removeItem(at: folder) })
  }
}

@Suite struct NotesStoreTests {
  @Test(arguments: StoreConformance.cases(for: NotesHarness().capabilities))
  func contract(_ rule: StoreConformanceCase) async throws { try await rule.run(on: NotesHarness(), timeLimit: .seconds(3600)) }

  @Test func everyAbilityIsDeclared() async {
    let undeclared = await StoreConformance.undeclaredAbilities(of: NotesHarness(), timeLimit: .seconds(3600))
    #expect(undeclared == [])
  }
}
