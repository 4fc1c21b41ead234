import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

/// The fuzzer's seed file, and small changes of it.
@Suite struct SQLiteSeedTests {
  private static let seed = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/SQLiteStores/items.sqlite")

  @Test func theSeedOpens() throws {
    let folder = TemporaryFolder(), bytes = Array(try Data(contentsOf: Self.seed))
    try Data(bytes).write(to: URL(fileURLWithPath: folder.file()))
    let store = StoreDescription.sqlite(at: folder.file(), options: SQLiteStoreOptions(isReadOnly: true))
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: SQLiteStoreProperty.model, store: store))
    #expect(try context.fetch(FetchRequest<ManagedObject>(entityName: "Item")).count == 4)
    #expect(SQLiteStoreProperty.violation(bytes) == nil)
  }

  @Test func changedSeedsAreReadOrRefused() throws {
    let bytes = Array(try Data(contentsOf: Self.seed))
    var random = SeededGenerator("Changed SQLite seeds"), refused = 0
    for _ in 0..<150 {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: 0..<changed.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: changed[place] = UInt8.random(in: 0...255, using: &random)
        case 1: changed.swapAt(place, Int.random(in: 0..<changed.count, using: &random))
        default: changed.removeLast(min(changed.count - 1, Int.random(in: 0..<600, using: &random)))
        }
      }
      if try refuses(changed) { refused += 1 }
      if let violation = SQLiteStoreProperty.violation(changed) { Issue.record("\(violation) HOLDFAST_SEED=\(random.seed)") }
    }
    #expect((40...145).contains(refused), "\(refused) of 150 refused")
  }

  /// Whether the bytes can't be opened and read.
  private func refuses(_ bytes: [UInt8]) throws -> Bool {
    let folder = TemporaryFolder()
    try TemporaryFolder.write(bytes, to: folder.file())
    let store = StoreDescription.sqlite(at: folder.file(), options: SQLiteStoreOptions(isReadOnly: true))
    do {
      let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: SQLiteStoreProperty.model, store: store))
      defer { try? context.persistentStoreCoordinator.close() }
      for entity in SQLiteStoreProperty.model.entities { _ = try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name)) }
      return false
    } catch { return true }
  }
}
