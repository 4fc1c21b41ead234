import Holdfast
import HoldfastAtomicStore
import HoldfastFiles
import HoldfastSQLiteStore
import TestSupport
import Testing

/// Backups: the previous versions that a store keeps beside its file.
@Suite struct BackupStoreTests {
  @Test(arguments: FileStore.wholeFile)
  func eachBackupOpensAsAStoreWithTheGraphOfItsSave(store: FileStore) throws {
    let folder = TemporaryFolder(), path = folder.file("harbour")
    let options = DurableFileOptions(backupCount: 2)
    let context = try Harbour.context(store.description(at: path, file: options))
    for _ in 0..<3 { try Voyage.saveNext(context) }
    // The open store reads only the current version.
    #expect(try Voyage.check(context) == (3, nil))
    try context.persistentStoreCoordinator.close()
    #expect(try folder.snapshot().keys.sorted() == [".harbour.lock", "harbour", "harbour~1", "harbour~2"])
    for (name, saves) in [("harbour", 3), ("harbour~1", 2), ("harbour~2", 1)] {
      let before = try TemporaryFolder.read(folder.file(name))
      try expectGraph(store.description(at: folder.file(name), file: DurableFileOptions(isReadOnly: true)), saves, name)
      let isAsBefore = try TemporaryFolder.read(folder.file(name)) == before
      #expect(isAsBefore, "\(name)")
    }
  }

  /// Saving to a backup changes neither the file nor the other backups.
  @Test(arguments: FileStore.wholeFile)
  func savingToABackupChangesNoOtherVersion(store: FileStore) throws {
    let folder = TemporaryFolder(), options = DurableFileOptions(backupCount: 2)
    let context = try Harbour.context(store.description(at: folder.file("harbour"), file: options))
    for _ in 0..<3 { try Voyage.saveNext(context) }
    try context.persistentStoreCoordinator.close()
    let others = try ["harbour", "harbour~2"].map { try TemporaryFolder.read(folder.file($0)) }

    let backup = try Harbour.context(store.description(at: folder.file("harbour~1")))
    #expect(try Voyage.saveNext(backup) == 3 && Voyage.saveNext(backup) == 4)
    try backup.persistentStoreCoordinator.close()
    try expectGraph(store.description(at: folder.file("harbour~1")), 4, "harbour~1")
    let isAsBefore = try ["harbour", "harbour~2"].map { try TemporaryFolder.read(folder.file($0)) } == others
    #expect(isAsBefore)
  }

  @Test(arguments: FileStore.wholeFile)
  func movingAStoreMovesItsBackups(store: FileStore) throws {
    let folder = TemporaryFolder(), options = DurableFileOptions(backupCount: 2)
    func description(_ name: String) -> StoreDescription { store.description(at: folder.file(name), file: options) }
    for (name, saves) in [("harbour", 3), ("other", 2)] {
      let context = try Harbour.context(description(name))
      for _ in 0..<saves { try Voyage.saveNext(context) }
      try context.persistentStoreCoordinator.close()
    }
    try PersistentStoreCoordinator.movePersistentStore(description("harbour"), to: description("moved"))
    #expect(!folder.names.contains { $0.hasPrefix("harbour") } && !folder.exists("moved~3"))
    for (name, saves) in [("moved", 3), ("moved~1", 2), ("moved~2", 1)] { try expectGraph(description(name), saves, name) }
    // The store that is replaced becomes a backup, and the others follow.
    try PersistentStoreCoordinator.movePersistentStore(description("moved"), to: description("other"))
    #expect(folder.names.filter { !$0.hasPrefix(".") } == ["other", "other~1", "other~2", "other~3", "other~4"])
    for (name, saves) in [("other", 3), ("other~1", 2), ("other~2", 1), ("other~3", 2), ("other~4", 1)] {
      try expectGraph(description(name), saves, name)
    }
    // Another type of store has no place for them.
    try PersistentStoreCoordinator.movePersistentStore(description("other"), to: .sqlite(at: folder.file("row")))
    #expect(folder.names.filter { !$0.hasPrefix(".") } == ["row"])
    try expectGraph(.sqlite(at: folder.file("row")), 3, "row")
  }

  private func expectGraph(_ store: StoreDescription, _ saves: Int, _ name: String) throws {
    let context = try Harbour.context(store)
    #expect(try Voyage.check(context) == (saves, nil), "\(name)")
    try context.persistentStoreCoordinator.close()
  }
}
