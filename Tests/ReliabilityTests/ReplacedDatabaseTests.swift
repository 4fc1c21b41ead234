import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Another program removes, replaces or overwrites the files of an open SQLite store.
@Suite struct ReplacedDatabaseTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file() }

  init() throws { folder = TemporaryFolder() }

  private func store(_ journal: SQLiteStoreOptions.JournalMode, checkpointPages: Int = 1000) -> StoreDescription {
    .sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal, checkpointPages: checkpointPages))
  }

  /// An open store with 12 saves. The last three are in the log, if there is one.
  private func opened(_ journal: SQLiteStoreOptions.JournalMode) throws -> ManagedObjectContext {
    try Harbour.makeFile(store(journal), saves: 9)
    let context = try Harbour.context(store(journal))
    for _ in 0..<3 { try Voyage.saveNext(context) }
    return context
  }

  /// The store that a backup contains.
  enum Backup: String, CaseIterable {
    /// An older copy of the same store.
    case older
    /// Another store.
    case other
  }

  /// The bytes of a backup.
  private func backup(_ kind: Backup, _ journal: SQLiteStoreOptions.JournalMode) throws -> [UInt8] {
    let copy = folder.file("backup")
    switch kind {
    case .older:
      try BareDatabase.change(path, "VACUUM INTO '\(copy)'")
      if journal == .wal { try BareDatabase.change(copy, "PRAGMA journal_mode=wal") }
    case .other: try Harbour.makeFile(.sqlite(at: copy, options: SQLiteStoreOptions(journalMode: journal)), saves: 5)
    }
    defer { unlink(copy) }
    return try TemporaryFolder.read(copy)
  }

  /// Waits until a file written now gets a later modification time than the store's file.
  private func waitForClock() throws {
    func time(_ path: String) -> (Int, Int) {
      var status = stat()
      precondition(stat(path, &status) == 0)
      return (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
    repeat { try TemporaryFolder.write([1], to: folder.file("clock")) } while time(folder.file("clock")) <= time(path)
    unlink(folder.file("clock"))
  }

  /// Overwrites a file in place, as `cp` does.
  private func overwrite(_ path: String, _ bytes: [UInt8]) throws {
    let file = open(path, O_WRONLY | O_TRUNC)
    precondition(file >= 0 && write(file, bytes, bytes.count) == bytes.count && close(file) == 0)
  }

  /// Expects every kind of write to be refused, and the files of the other program to be unchanged, also after closing the store.
  private func expectRefusals(_ context: ManagedObjectContext, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let before = try folder.snapshot()
    let coordinator = context.persistentStoreCoordinator
    for _ in 0..<2 {
      _ = try? Voyage.changeNext(context)
      context.insert(Journal.self).saves = 99
      let error = #expect(throws: StoreError.self, sourceLocation: sourceLocation) { try context.save() }
      #expect(
        error?.code == .storeReplaced && error?.path == path && error?.isRetryable == false, "\(error as Any)",
        sourceLocation: sourceLocation)
      #expect(error?.coreDataCode == 134_050 && context.hasChanges, sourceLocation: sourceLocation)
      let metadata = #expect(throws: StoreError.self, sourceLocation: sourceLocation) { try coordinator.setMetadata(["a": .int64(1)]) }
      #expect(metadata?.code == .storeReplaced, "\(metadata as Any)", sourceLocation: sourceLocation)
    }
    #expect(try folder.snapshot()["harbour.sqlite"] == before["harbour.sqlite"], sourceLocation: sourceLocation)
    try coordinator.close()
    #expect(try folder.snapshot()["harbour.sqlite"] == before["harbour.sqlite"], "closed", sourceLocation: sourceLocation)
    #expect(folder.openDescriptors == 0, sourceLocation: sourceLocation)
  }

  /// Opens the store that is at the path now, and saves.
  private func expectSound(saves: Int, _ journal: SQLiteStoreOptions.JournalMode, sourceLocation: SourceLocation = #_sourceLocation) throws
  {
    #expect(try BareDatabase(path).rows("PRAGMA integrity_check") == ["ok"], sourceLocation: sourceLocation)
    let context = try Harbour.context(store(journal))
    #expect(try Voyage.check(context) == (saves, nil), sourceLocation: sourceLocation)
    #expect(try Voyage.saveNext(context) == saves + 1, sourceLocation: sourceLocation)
    try context.persistentStoreCoordinator.close()
  }

  // MARK: The database

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD3_savesIntoAFileThatWasRemovedAreRefused(journal: SQLiteStoreOptions.JournalMode) throws {
    let context = try opened(journal)
    #expect(unlink(path) == 0)
    try expectRefusals(context)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty, "A log was left beside the next file.")
  }

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases, Backup.allCases)
  func RD3_aBackupThatIsMovedOverTheFileStaysUnchanged(journal: SQLiteStoreOptions.JournalMode, kind: Backup) throws {
    let context = try opened(journal)
    try TemporaryFolder.write(try backup(kind, journal), to: folder.file("restored"))
    for _ in 0..<2 { try Voyage.saveNext(context) }
    #expect(rename(folder.file("restored"), path) == 0)
    try expectRefusals(context)
    try expectSound(saves: kind == .older ? 12 : 5, journal)
  }

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases, Backup.allCases)
  func RD3_aBackupThatIsCopiedOverTheFileStaysUnchanged(journal: SQLiteStoreOptions.JournalMode, kind: Backup) throws {
    let context = try opened(journal)
    let backup = try backup(kind, journal)
    for _ in 0..<2 { try Voyage.saveNext(context) }
    try waitForClock()
    try overwrite(path, backup)
    try expectRefusals(context)
    try expectSound(saves: kind == .older ? 12 : 5, journal)
  }

  /// The names of the kept logs of overwritten files.
  private func keptLogs() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("harbour.sqlite-wal.replaced-") }
  }

  /// The log may contain the only copy of some saves.
  @Test(arguments: Backup.allCases)
  func RD3_theLogOfAnOverwrittenFileIsKeptUnderAnotherNameAndNotApplied(kind: Backup) throws {
    let context = try opened(.wal)
    let backup = try backup(kind, .wal)
    try Voyage.saveNext(context)
    let log = try TemporaryFolder.read(path + "-wal")
    try waitForClock()
    try overwrite(path, backup)
    try expectRefusals(context)
    let kept = try keptLogs()
    #expect(kept.count == 1)
    #expect(try TemporaryFolder.read(folder.file(try #require(kept.first))) == log)
    #expect(Set(try FileManager.default.contentsOfDirectory(atPath: folder.path)) == Set(["harbour.sqlite"] + kept))
    try expectSound(saves: kind == .older ? 12 : 5, .wal)
    #expect(try keptLogs() == kept)
  }

  /// Another program restores a backup of another store through SQLite, so the file isn't overwritten. Every attempt to write is refused.
  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD3_aDatabaseThatContainsAnotherStoreIsNotWrittenTo(journal: SQLiteStoreOptions.JournalMode) throws {
    let context = try opened(journal), uuid = "0C5AF5B1-4D5F-4E37-9B5E-2C0B1F6D8A11"
    try BareDatabase.change(path, "UPDATE Z_METADATA SET Z_UUID = '\(uuid)'")
    for _ in 0..<3 {
      _ = try? Voyage.changeNext(context)
      let error = #expect(throws: StoreError.self) { try context.save() }
      #expect(error?.code == .storeReplaced && context.hasChanges, "\(error as Any)")
      context.rollback()
    }
    try context.persistentStoreCoordinator.close()
    let database = try BareDatabase(path)
    #expect(try database.rows("SELECT Z_UUID FROM Z_METADATA") == [uuid])
    #expect(try database.rows("SELECT ZSAVES FROM ZJOURNAL") == ["12"])
  }

  /// A copy from before an update can have the same size and the same file header.
  @Test func RD3_aCopyWithTheSameFirstPageIsDetected() throws {
    try Harbour.makeFile(store(.wal), saves: 9)
    try BareDatabase.change(path, "UPDATE ZSHIP SET ZCREW = 76")
    let backup = try TemporaryFolder.read(path)
    try BareDatabase.change(path, "UPDATE ZSHIP SET ZCREW = 77")
    let now = try TemporaryFolder.read(path)
    #expect(now != backup)
    #expect(now.count == backup.count && now.prefix(100) == backup.prefix(100))
    let context = try Harbour.context(store(.wal))
    try Voyage.saveNext(context)
    try waitForClock()
    try overwrite(path, backup)
    try expectRefusals(context)
    #expect(try keptLogs().count == 1)
    try expectSound(saves: 9, .wal)
  }

  /// A changed modification time can't be distinguished from an overwritten file, so no save may be lost.
  @Test func RD3_afterATouchAllSavesAreInTheFileAndTheKeptLog() throws {
    let context = try opened(.wal)
    try waitForClock()
    #expect(utimes(path, nil) == 0)
    try expectRefusals(context)
    #expect(rename(folder.file(try #require(try keptLogs().first)), path + "-wal") == 0)
    try expectSound(saves: 12, .wal)
  }

  @Test(arguments: [false, true])
  func RD3_aFileThatWasOverwrittenAndThenMovedStaysUnchanged(isNoticed: Bool) throws {
    let context = try opened(.wal)
    let backup = try backup(.other, .wal)
    try Voyage.saveNext(context)
    let log = try TemporaryFolder.read(path + "-wal")
    try waitForClock()
    try overwrite(path, backup)
    if isNoticed {
      context.insert(Journal.self).saves = 99
      #expect(throws: StoreError.self) { try context.save() }
    }
    #expect(rename(path, folder.file("elsewhere")) == 0)
    try context.persistentStoreCoordinator.close()
    #expect(try TemporaryFolder.read(folder.file("elsewhere")) == backup)
    let kept = try keptLogs()
    #expect(Set(try FileManager.default.contentsOfDirectory(atPath: folder.path)) == Set(["elsewhere"] + kept))
    #expect(try TemporaryFolder.read(folder.file(try #require(kept.first))) == log)
  }

  @Test(arguments: [0, 100, 5000])
  func RD3_aFileThatWasTruncatedIsNotWrittenTo(length: Int) throws {
    let context = try opened(.wal)
    try waitForClock()
    #expect(truncate(path, off_t(length)) == 0)
    try expectRefusals(context)
  }

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases, [false, true])
  func RD3_aReplacedFileIsNotCompacted(journal: SQLiteStoreOptions.JournalMode, inPlace: Bool) throws {
    try Harbour.makeFile(store(journal))
    let backup = try backup(.other, journal)
    let store = SQLiteStore(path: path, options: SQLiteStoreOptions(journalMode: journal))
    _ = try store.open(model: Harbour.model)
    try waitForClock()
    if inPlace {
      try overwrite(path, backup)
    } else {
      try TemporaryFolder.write(backup, to: folder.file("restored"))
      #expect(rename(folder.file("restored"), path) == 0)
    }
    let error = #expect(throws: StoreError.self) { try store.compact() }
    #expect(error?.code == .storeReplaced && error?.path == path, "\(error as Any)")
    #expect(try TemporaryFolder.read(path) == backup)
    try store.close()
    #expect(try TemporaryFolder.read(path) == backup)
    try expectSound(saves: 5, journal)
  }

  /// After a crash, the log's index reports an unfinished checkpoint. That must not hide that the file was overwritten.
  @Test(.ownThreads) func RD3_aBackupThatIsCopiedOverAStoreWithTheLogOfAKilledProcessStaysUnchanged() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<12 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
    let context = try Harbour.context(store(.wal))
    #expect(try Voyage.check(context) == (12, nil))
    let backup = try backup(.older, .wal)
    try waitForClock()
    try overwrite(path, backup)
    try expectRefusals(context)
    try expectSound(saves: 12, .wal)
  }

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD3_aRestoredFileCanBeSavedToAgain(journal: SQLiteStoreOptions.JournalMode) throws {
    let context = try opened(journal)
    #expect(rename(path, folder.file("elsewhere")) == 0)
    _ = try? Voyage.changeNext(context)
    #expect(throws: StoreError.self) { try context.save() }
    context.rollback()
    #expect(rename(folder.file("elsewhere"), path) == 0)
    #expect(try Voyage.saveNext(context) == 13)
    try context.persistentStoreCoordinator.close()
    try expectSound(saves: 13, journal)
  }

  /// The log stays at the old path, so closing writes its pages to the moved file.
  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases, [false, true])
  func RD3_aFileThatWasMovedAwayHasAllSavesWhenTheStoreIsClosed(journal: SQLiteStoreOptions.JournalMode, isReplaced: Bool) throws {
    let context = try opened(journal)
    let backup = isReplaced ? try backup(.older, journal) : []
    try Voyage.saveNext(context)
    #expect(rename(path, folder.file("elsewhere")) == 0)
    if isReplaced { try TemporaryFolder.write(backup, to: path) }
    try context.persistentStoreCoordinator.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == (isReplaced ? 2 : 1))
    if isReplaced { try expectSound(saves: 12, journal) }
    unlink(path)
    #expect(rename(folder.file("elsewhere"), path) == 0)
    try expectSound(saves: 13, journal)
  }

  /// A store that only reads also has the log of the old file open.
  @Test(.ownThreads) func RD3_aStoreThatOnlyReadLeavesNoLogBesideARestoredFile() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<12 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
    let context = try Harbour.context(store(.wal))
    #expect(try Voyage.check(context) == (12, nil))
    try TemporaryFolder.write(try backup(.other, .wal), to: folder.file("restored"))
    #expect(rename(folder.file("restored"), path) == 0)
    let before = try folder.snapshot()["harbour.sqlite"]
    try context.persistentStoreCoordinator.close()
    #expect(try folder.snapshot() == ["harbour.sqlite": try #require(before)])
    try expectSound(saves: 5, .wal)
  }

  // MARK: The log

  @Test(arguments: ["-wal", "-shm"])
  func RD3_aLogOrIndexThatWasRemovedIsAnErrorAndNoSaveIsLost(suffix: String) throws {
    let context = try opened(.wal)
    #expect(unlink(path + suffix) == 0)
    _ = try Voyage.changeNext(context)
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .storeReplaced && error?.reason.contains("-wal") == true, "\(error as Any)")
    try context.persistentStoreCoordinator.close()
    try expectSound(saves: 12, .wal)
  }

  @Test(arguments: ["-wal", "-shm"])
  func RD3_aLogOrIndexThatWasReplacedIsAnErrorAndStaysUnchanged(suffix: String) throws {
    let context = try opened(.wal)
    try TemporaryFolder.write(try TemporaryFolder.read(path + suffix), to: folder.file("copy"))
    #expect(rename(folder.file("copy"), path + suffix) == 0)
    try expectRefusals(context)
    try expectSound(saves: 12, .wal)
  }

  @Test func RD3_aLogThatWasTruncatedIsNotWrittenTo() throws {
    let context = try opened(.wal)
    #expect(truncate(path + "-wal", 0) == 0)
    try expectRefusals(context)
    try expectSound(saves: 9, .wal)
  }

  // MARK: The folder

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases, [false, true])
  func RD3_savesInAFolderThatWasRemovedOrReplacedAreRefused(journal: SQLiteStoreOptions.JournalMode, isReplaced: Bool) throws {
    let inner = folder.file("inner"), path = inner + "/harbour.sqlite"
    #expect(mkdir(inner, 0o700) == 0)
    let options = SQLiteStoreOptions(journalMode: journal)
    try Harbour.makeFile(path, options: options)
    let context = try Harbour.context(.sqlite(at: path, options: options))
    try Voyage.saveNext(context)
    let other = folder.file("other")
    #expect(mkdir(other, 0o700) == 0)
    try Harbour.makeFile(other + "/harbour.sqlite", options: options, saves: 5)
    #expect(rename(inner, folder.file("old")) == 0)
    if isReplaced { #expect(rename(other, inner) == 0) }
    let before = isReplaced ? try TemporaryFolder.read(path) : []
    context.insert(Journal.self).saves = 99
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .storeReplaced && context.hasChanges, "\(error as Any)")
    try context.persistentStoreCoordinator.close()
    if isReplaced {
      #expect(try TemporaryFolder.read(path) == before)
      #expect(try FileManager.default.contentsOfDirectory(atPath: inner) == ["harbour.sqlite"])
    }
    // The store in the old folder still has all saves.
    let old = try Harbour.context(.sqlite(at: folder.file("old/harbour.sqlite"), options: options))
    #expect(try Voyage.check(old) == (13, nil))
    try old.persistentStoreCoordinator.close()
  }

  // MARK: Permissions

  /// Open connections keep their rights, and new ones need them. Root may do everything, so this runs in a process that drops its rights.
  @Test(.ownThreads, arguments: SQLiteStoreOptions.JournalMode.allCases, [true, false])
  func RD3_aFileThatBecameReadOnlyOrUnreadableIsATypedErrorOrASave(journal: SQLiteStoreOptions.JournalMode, hasSaved: Bool) async throws {
    #expect(chmod(folder.path, 0o777 | mode_t(S_ISVTX)) == 0)
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [folder = folder.path as String, journal = journal as SQLiteStoreOptions.JournalMode, hasSaved = hasSaved as Bool] in
      demand(!System.isRoot || System.dropRights(), "Root couldn't drop its rights.")
      var report = ForbiddenDatabase.Report()
      for suffix in journal == .wal && hasSaved ? ["", "-wal", "-shm"] : [""] {
        for mode in [0o444, 0o000] as [mode_t] {
          // A new folder, because the process can't change the permissions of the other one.
          let database = ForbiddenDatabase(folder: folder + "/inner", journal: journal, hasSaved: hasSaved, suffix: suffix, mode: mode)
          do { try database.run(&report) } catch { complain("\(error)") }
        }
      }
      demand(hasSaved || report.refused == 2, "\(report)")
      print("REPORT RD3, \(journal): \(report)")
    }
    report(child)
  }

  // MARK: Ordinary writes

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD3_commitsOfOtherProgramsWithSQLiteAreOrdinaryWrites(journal: SQLiteStoreOptions.JournalMode) throws {
    let context = try opened(journal)
    for save in 13..<25 {
      let other = try BareDatabase(path)
      try other.run("UPDATE ZSHIP SET ZCREW = \(save)")
      // The other program runs a checkpoint, and the log starts again.
      if journal == .wal { try other.run("PRAGMA wal_checkpoint(\(save % 2 == 0 ? "TRUNCATE" : "PASSIVE"))") }
      other.close()
      context.reset()
      #expect(try Voyage.saveNext(context) == save)
    }
    try BareDatabase.change(path, "VACUUM")
    #expect(try Voyage.saveNext(context) == 25)
    try context.persistentStoreCoordinator.close()
    try expectSound(saves: 25, journal)
  }

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD3_aBackupOfTheSameStoreThatSQLiteRestoresIsAnOrdinaryWrite(journal: SQLiteStoreOptions.JournalMode) throws {
    let context = try opened(journal)
    try TemporaryFolder.write(try backup(.older, journal), to: folder.file("older"))
    try TemporaryFolder.write(try backup(.other, journal), to: folder.file("other"))
    try Voyage.saveNext(context)
    try BareDatabase.restore(path, from: folder.file("older"))
    context.reset()
    #expect(try Voyage.check(context) == (12, nil))
    #expect(try Voyage.saveNext(context) == 13)
    try BareDatabase.restore(path, from: folder.file("other"))
    context.insert(Journal.self).saves = 99
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .storeReplaced && error?.reason.contains("another store") == true, "\(error as Any)")
    try context.persistentStoreCoordinator.close()
    try expectSound(saves: 5, journal)
  }

  @Test func RD3_aSecondOpeningOfAReplacedPathIsRefusedUntilTheFirstIsClosed() throws {
    let context = try opened(.wal)
    try TemporaryFolder.write(try backup(.other, .wal), to: folder.file("restored"))
    #expect(rename(folder.file("restored"), path) == 0)
    let error = #expect(throws: StoreError.self) { try Harbour.context(store(.wal)) }
    #expect(error?.code == .alreadyOpen && error?.reason.contains("replaced") == true, "\(error as Any)")
    try context.persistentStoreCoordinator.close()
    try expectSound(saves: 5, .wal)
  }

  // MARK: Readers

  /// Readers that have the old file open continue to read it, or get a typed error.
  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD3_readersOfAReplacedFileReadTheOldOneOrFail(journal: SQLiteStoreOptions.JournalMode) throws {
    let context = try opened(journal)
    try TemporaryFolder.write(try backup(.other, journal), to: folder.file("restored"))
    #expect(rename(folder.file("restored"), path) == 0)
    context.reset()
    do { #expect(try Voyage.check(context) == (12, nil)) } catch let error as StoreError {
      #expect(error.code == .storeReplaced)
    }
    try context.persistentStoreCoordinator.close()
  }
}

/// An open store one of whose files loses permissions. Runs in a process without root's rights.
private struct ForbiddenDatabase {
  struct Report: CustomStringConvertible {
    var saved = 0
    var refused = 0
    var read = 0
    var unread = 0
    var description: String { "\(saved) saved, \(refused) refused, \(read) read, \(unread) unread" }
  }

  let folder: String
  let journal: SQLiteStoreOptions.JournalMode
  /// Whether the store has been saved since it was opened, so that a connection can write.
  let hasSaved: Bool
  /// The suffix of the file that loses its permissions.
  let suffix: String
  /// The permissions that are left.
  let mode: mode_t
  private var path: String { folder + "/harbour" }
  private var name: String { "\(suffix) \(String(mode, radix: 8))" }

  func run(_ report: inout Report) throws {
    try? FileManager.default.removeItem(atPath: folder)
    demand(mkdir(folder, 0o700) == 0, "No folder: errno \(errno)")
    let store = StoreDescription.sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal))
    try Harbour.makeFile(store)
    let context = try Harbour.context(store)
    if hasSaved { try Voyage.saveNext(context) }
    var saves = try Voyage.changeNext(context).saves - 1
    demand(chmod(path + suffix, mode) == 0, "\(name): errno \(errno)")
    do {
      try context.save()
      saves += 1
      report.saved += 1
    } catch let error as StoreError {
      demand(error.code == .notPermitted && error.path == path && context.hasChanges, "\(name), save: \(error)")
      report.refused += 1
    }
    try read(saves, context.persistentStoreCoordinator, &report)
    demand(chmod(path + suffix, 0o600) == 0, "\(name): errno \(errno)")
    // SQLite gives an empty log the permissions of the file each time when it opens the log. So the first attempt may only restore them.
    for _ in 0..<2 where context.hasChanges {
      do {
        try context.save()
        saves += 1
      } catch let error as StoreError {
        demand(error.code == .notPermitted, "\(name), saved again: \(error)")
      }
    }
    demand(!context.hasChanges, "\(name): the changes weren't saved with the permissions")
    try Voyage.saveNext(context)
    saves += 1
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(store), found = try Voyage.check(again)
    demand(found == (saves, nil), "\(name): \(found), not \(saves) saves")
    try again.persistentStoreCoordinator.close()
    let fault = try FileStore.sqlite(journal).fault(at: path)
    demand(fault == nil, "\(name): \(fault ?? "")")
  }

  /// Reads the store through a snapshot, which has its own connection.
  private func read(_ saves: Int, _ coordinator: PersistentStoreCoordinator, _ report: inout Report) throws {
    let reader = try ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes)
    do {
      try reader.setQueryGeneration(from: .current)
      let found = try Voyage.check(reader)
      demand(found == (saves, nil), "\(name), read: \(found), not \(saves) saves")
      report.read += 1
    } catch let error as StoreError {
      demand(error.code == .notPermitted && error.path == path, "\(name), read: \(error)")
      report.unread += 1
    }
    try reader.setQueryGeneration(from: nil)
  }
}
