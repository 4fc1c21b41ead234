import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Another process holds the lock, or writes between a read and a save.
@Suite struct OtherProcessTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file() }

  init() throws {
    folder = TemporaryFolder()
    try Harbour.makeFile(folder.file())
  }

  private func context(_ options: SQLiteStoreOptions = SQLiteStoreOptions(busyTimeout: .seconds(0.2))) throws -> ManagedObjectContext {
    try Harbour.context(.sqlite(at: path, options: options))
  }

  @Test(.ownThreads) func aSaveThatTimedOutWaitingForALockCanBeRepeated() async throws {
    async let other: Void = holdLock()
    let isLocked = await eventually { TemporaryFolder.exists(folder.file("locked")) }
    #expect(isLocked)
    let refused = try whileLocked()
    #expect(refused.code == .locked && refused.isRetryable && refused.path == path, "\(refused)")
    #expect(refused.coreDataCode == 134_090)
    await other
    let context = try context()
    #expect(try Voyage.check(context) == (13, nil))
    try context.persistentStoreCoordinator.close()
  }

  /// Holds the write lock in another process until a file appears.
  private func holdLock() async {
    await #expect(processExitsWith: .success) { [folder = folder.path as String] in
      let database = try BareDatabase(folder + "/harbour.sqlite")
      try database.run("BEGIN IMMEDIATE; UPDATE ZJOURNAL SET ZSAVES = 77")
      try TemporaryFolder.write([], to: folder + "/locked")
      let mayEnd = await eventually { TemporaryFolder.exists(folder + "/release") }
      precondition(mayEnd)
      try database.run("ROLLBACK")
      // Closing a database also locks it, for a moment.
      database.close()
      try TemporaryFolder.write([], to: folder + "/released")
    }
  }

  /// Tries to save while the lock is held, has it released, and saves.
  private func whileLocked() throws -> StoreError {
    let context = try context()
    let journal = try Voyage.changeNext(context)
    let inserted = context.insertedObjects.count
    let began = Date()
    let refused = try #require(throws: StoreError.self) { try context.save() }
    #expect(Date().timeIntervalSince(began) >= 0.15)
    #expect(context.hasChanges && journal.saves == 13 && context.insertedObjects.count == inserted)
    // Reading doesn't wait for the lock, and doesn't return uncommitted changes.
    let reader = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Harbour.classes)
    #expect(try Voyage.check(reader) == (12, nil))
    #expect(throws: StoreError.self) { try context.save() }
    try TemporaryFolder.write([], to: folder.file("release"))
    waitUntil { TemporaryFolder.exists(folder.file("released")) }
    try context.save()
    #expect(!context.hasChanges)
    try context.persistentStoreCoordinator.close()
    return refused
  }

  @Test func aSaveThatTimedOutWaitingForARollbackJournalsLockCanBeRepeated() throws {
    let options = SQLiteStoreOptions(journalMode: .delete, busyTimeout: .seconds(0.2))
    try Harbour.context(.sqlite(at: path, options: options)).persistentStoreCoordinator.close()
    let context = try context(options)
    try Voyage.saveNext(context)
    _ = try Voyage.changeNext(context)
    let other = try BareDatabase(path)
    try other.run("BEGIN EXCLUSIVE")
    let refused = try #require(throws: StoreError.self) { try context.save() }
    #expect(refused.code == .locked && refused.isRetryable)
    let reader = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Harbour.classes)
    let unread = try #require(throws: StoreError.self) { _ = try reader.count(for: FetchRequest<Ship>()) }
    #expect(unread.code == .locked && unread.isRetryable)
    try other.run("ROLLBACK")
    try context.save()
    #expect(try Voyage.check(reader) == (14, nil))
    try context.persistentStoreCoordinator.close()
  }

  @Test func aReaderThatBlocksTheCommitOfARollbackJournalLosesNothing() throws {
    let options = SQLiteStoreOptions(journalMode: .delete, busyTimeout: .seconds(0.2))
    let context = try context(options)
    try Voyage.saveNext(context)
    _ = try Voyage.changeNext(context)
    let other = try BareDatabase(path)
    try other.run("BEGIN")
    _ = try other.rows("SELECT COUNT(*) FROM ZSHIP")
    // The save has written everything except the commit, which needs the file without readers.
    let refused = try #require(throws: StoreError.self) { try context.save() }
    #expect(refused.code == .locked && refused.isRetryable, "\(refused)")
    #expect(context.hasChanges)
    try other.run("COMMIT")
    try context.save()
    context.reset()
    #expect(try Voyage.check(context) == (14, nil))
    try context.persistentStoreCoordinator.close()
  }

  /// A generation reads the file as long as it lasts, and a rollback journal can't be committed while the file is read.
  @Test func aPinnedContextBlocksTheCommitOfARollbackJournalUntilItIsUnpinned() throws {
    let context = try context(SQLiteStoreOptions(journalMode: .delete, busyTimeout: .seconds(0.2)))
    let coordinator = context.persistentStoreCoordinator
    try Voyage.saveNext(context)
    let pinned = try ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes)
    try pinned.setQueryGeneration(from: .current)
    _ = try Voyage.changeNext(context)
    let refused = try #require(throws: StoreError.self) { try context.save() }
    #expect(refused.code == .locked && refused.isRetryable && context.hasChanges, "\(refused)")
    #expect(try Voyage.check(pinned) == (13, nil))
    try pinned.setQueryGeneration(from: nil)
    try context.save()
    let reader = try ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes)
    #expect(try Voyage.check(reader) == (14, nil))
    try coordinator.close()
  }

  @Test func aLockOnlyDelaysASaveWithinTheTimeout() async throws {
    let context = try context(SQLiteStoreOptions(busyTimeout: .seconds(3600)))
    _ = try Voyage.changeNext(context)
    let other = try BareDatabase(path)
    try other.run("BEGIN IMMEDIATE")
    // From here on, only the other thread uses the connection.
    nonisolated(unsafe) let lent = other
    Thread.detachNewThread {
      // Gives the save time to wait for the lock. On a busy machine it may start later and not wait.
      usleep(100_000)
      try? lent.run("ROLLBACK")
    }
    try context.save()
    #expect(try Voyage.check(context) == (13, nil))
    try context.persistentStoreCoordinator.close()
  }

  @Test(.ownThreads) func concurrentSavesOfAnotherProcessAreAConflictThatNamesTheObjects() async throws {
    let context = try context()
    let ships = try context.fetch(FetchRequest<Ship>(sortedBy: [.ascending(\.number)]))
    let berth = try #require(ships[3].berth)
    let before = berth.count
    await #expect(processExitsWith: .success) { [path = path as String] in
      let other = try Harbour.context(.sqlite(at: path))
      let ships = try other.fetch(FetchRequest<Ship>(sortedBy: [.ascending(\.number)]))
      ships[0].name = "Changed by another"
      other.delete(ships[1])
      ships[4].name = "Changed by another, and not by us"
      try other.save()
      try other.persistentStoreCoordinator.close()
    }
    ships[0].name = "Ours"
    ships[1].name = "Ours"
    context.delete(ships[4])
    ships[2].name = "Ours"
    berth.count = before + 1
    let conflict = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(conflict.code == .conflict && conflict.coreDataCode == 133_020)
    #expect(Set(conflict.objectIDs) == [ships[0].objectID, ships[1].objectID, ships[4].objectID], "\(conflict)")
    #expect((conflict.cause as? StoreError)?.path == path)
    #expect(context.hasChanges && ships[2].name == "Ours" && berth.count == before + 1)

    // None of the changes is in the store. After rolling back, the context returns the changes of the other process.
    context.rollback()
    context.reset()
    #expect(try context.count(for: FetchRequest<Ship> { $0.name == "Ours" }) == 0)
    let names = try context.fetch(FetchRequest<Ship> { $0.name.beginsWith("Changed by another") })
    #expect(names.count == 2)
    names[0].name = "Ours"
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  @Test func aUniqueValueSavedByAnotherProcessIsAConflictThatNamesTheObject() throws {
    let context = try context()
    let ship = context.insert(Ship.self)
    ship.name = "New"
    ship.number = 5000
    try BareDatabase.change(
      path,
      "UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1 WHERE Z_NAME = 'Ship'; "
        + "INSERT INTO ZSHIP (Z_PK, Z_ENT, Z_OPT, ZNAME, ZNUMBER, ZTONS, ZISAFLOAT) SELECT Z_MAX, Z_ENT, 1, 'Theirs', 5000, 1, 1 FROM Z_PRIMARYKEY WHERE Z_NAME = 'Ship'"
    )
    let conflict = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(conflict.code == .constraintConflict && conflict.objectIDs == [ship.objectID], "\(conflict)")
    #expect(ship.isInserted && context.hasChanges)
    ship.number = 5001
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  @Test func RD3_aFileThatAnotherProcessDeletedUnderAnOpenStoreIsATypedError() throws {
    let context = try context()
    try Voyage.saveNext(context)
    for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
    _ = try Voyage.changeNext(context)
    let error = FullDisk.refusal(of: context)
    #expect(error?.code == .storeReplaced && error?.path == path && context.hasChanges, "\(String(describing: error))")
    try context.persistentStoreCoordinator.close()
    #expect(folder.openDescriptors == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }
}
