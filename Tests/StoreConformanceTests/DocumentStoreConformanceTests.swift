import CSVStore
import Foundation
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// The example of a document format.
struct CSVHarness: StoreHarness {
  var capabilities: StoreCapabilities { StoreDescription.document(CSVFormat(), at: "unused").makeStore().capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return place(in: folder)
  }

  private func place(in folder: URL) -> StorePlace {
    let file = folder.appending(path: "store.csv")
    var cramped = WholeFileOptions()
    cramped.file.fileSystem = POSIXFileSystem().withRoom(256 << 10)
    return StorePlace(
      .document(CSVFormat(), at: file.path), readOnly: .document(CSVFormat(), at: file.path, isReadOnly: true),
      damage: { try Data("This is no store.".utf8).write(to: file) },
      cramped: .document(CSVFormat(), at: file.path, options: cramped), copy: { try place(in: copy(folder)) },
      discard: { try? FileManager.default.removeItem(at: folder) })
  }

  private func copy(_ folder: URL) throws -> URL {
    let copy = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.copyItem(at: folder, to: copy)
    return copy
  }
}

@Suite struct DocumentStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: CSVHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) throws { try rule.run(on: CSVHarness()) }

  @Test(arguments: StoreConformance.undeclared(for: CSVHarness().capabilities))
  func isRightlyUndeclared(_ rule: StoreConformanceCase) {
    #expect(throws: StoreConformanceFailure.self, "The store holds this rule: declare it.") { try rule.run(on: CSVHarness()) }
  }
}
