import Foundation
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastXMLStore
import Testing

struct XMLHarness: StoreHarness {
  var capabilities: StoreCapabilities { XMLStore.make(at: "unused").capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return place(in: folder)
  }

  private func place(in folder: URL) -> StorePlace {
    let file = folder.appending(path: "store.xml")
    var cramped = XMLStore.Options()
    cramped.wholeFile.file.fileSystem = POSIXFileSystem().withRoom(256 << 10)
    return StorePlace(
      .xml(at: file.path), readOnly: .xml(at: file.path, isReadOnly: true),
      damage: { try Data("This is no store.".utf8).write(to: file) },
      cramped: .xml(at: file.path, options: cramped), copy: { try place(in: copy(folder)) },
      discard: { try? FileManager.default.removeItem(at: folder) })
  }

  private func copy(_ folder: URL) throws -> URL {
    let copy = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.copyItem(at: folder, to: copy)
    return copy
  }
}

@Suite struct XMLStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: XMLHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) throws { try rule.run(on: XMLHarness()) }

  @Test(arguments: StoreConformance.undeclared(for: XMLHarness().capabilities))
  func isRightlyUndeclared(_ rule: StoreConformanceCase) {
    #expect(throws: StoreConformanceFailure.self, "The store holds this rule: declare it.") { try rule.run(on: XMLHarness()) }
  }
}
