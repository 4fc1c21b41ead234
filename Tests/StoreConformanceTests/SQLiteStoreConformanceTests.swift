import Foundation
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

struct SQLiteHarness: StoreHarness {
  var capabilities: StoreCapabilities { SQLiteStore(path: "unused").capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return place(in: folder)
  }

  private func place(in folder: URL) -> StorePlace {
    let file = folder.appending(path: "store.sqlite")
    // The kit's values must be read back exactly.
    return StorePlace(
      .sqlite(at: file.path, options: SQLiteStoreOptions(storesExactDecimals: true)),
      readOnly: .sqlite(at: file.path, options: SQLiteStoreOptions(isReadOnly: true)),
      damage: { try Data("This is no store.".utf8).write(to: file) },
      cramped: .sqlite(at: file.path, options: SQLiteStoreOptions(maximumFileBytes: 256 << 10, storesExactDecimals: true)),
      copy: { try place(in: copy(folder)) }, externalFiles: { try WholeFileHarness.externalFiles(in: folder) },
      discard: { try? FileManager.default.removeItem(at: folder) })
  }

  /// Copies the file and its log in another process. Closing the file here would release SQLite's locks on it.
  private func copy(_ folder: URL) throws -> URL {
    let copy = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    _ = try Program.run("/bin/cp", ["-r", folder.path, copy.path])
    try FileManager.default.removeItem(at: copy.appending(path: "store.sqlite-shm"))
    return copy
  }
}

@Suite struct SQLiteStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: SQLiteHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: SQLiteHarness(), timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: SQLiteHarness(), timeLimit: nil) == [])
  }
}
