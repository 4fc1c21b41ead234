import Foundation
import HoldfastRowStore
import HoldfastStoreConformance
import LogStore
import Testing

/// The example of a row store.
struct LogHarness: StoreHarness {
  var capabilities: StoreCapabilities { StoreDescription.log(at: "unused").makeStore().capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return place(in: folder)
  }

  private func place(in folder: URL) -> StorePlace {
    let file = folder.appending(path: "store.log")
    return StorePlace(
      .log(at: file.path), readOnly: .log(at: file.path, isReadOnly: true),
      damage: { try Data("This is no store.\n".utf8).write(to: file) }, copy: { try place(in: copy(folder)) },
      discard: { try? FileManager.default.removeItem(at: folder) })
  }

  private func copy(_ folder: URL) throws -> URL {
    let copy = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.copyItem(at: folder, to: copy)
    return copy
  }
}

@Suite struct RowStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: LogHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: LogHarness(), timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: LogHarness(), timeLimit: nil) == [])
  }
}
