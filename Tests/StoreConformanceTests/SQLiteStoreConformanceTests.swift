import FoundationEssentials
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

struct SQLiteHarness: StoreHarness {
  var capabilities: StoreCapabilities { SQLiteStore(path: "unused").capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appending(path: "store.sqlite")
    var readOnly = SQLiteStoreOptions()
    readOnly.isReadOnly = true
    return StorePlace(
      .sqlite(at: file.path), readOnly: .sqlite(at: file.path, options: readOnly),
      damage: { try Data("This is no store.".utf8).write(to: file) },
      discard: { try? FileManager.default.removeItem(at: folder) })
  }
}

@Suite struct SQLiteStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: SQLiteHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) throws { try rule.run(on: SQLiteHarness()) }

  @Test(arguments: StoreConformance.undeclared(for: SQLiteHarness().capabilities))
  func isRightlyUndeclared(_ rule: StoreConformanceCase) { withKnownIssue { try rule.run(on: SQLiteHarness()) } }
}
