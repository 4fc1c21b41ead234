import Holdfast
import HoldfastAtomicStore
import HoldfastFiles
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

  private func expectGraph(_ store: StoreDescription, _ saves: Int, _ name: String) throws {
    let context = try Harbour.context(store)
    #expect(try Voyage.check(context) == (saves, nil), "\(name)")
    try context.persistentStoreCoordinator.close()
  }
}
