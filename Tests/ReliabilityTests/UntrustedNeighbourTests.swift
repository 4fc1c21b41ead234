import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastFiles
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastXMLStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Files beside a store's file are as untrusted as the file: another local user, or whoever packed the folder, may have made them.
@Suite struct UntrustedNeighbourTests {
  private let folder: TemporaryFolder
  /// A file elsewhere that must stay as it is.
  private let victim: String
  private let victimFolder: TemporaryFolder
  private var path: String { folder.file() }

  init() throws {
    folder = TemporaryFolder()
    victimFolder = TemporaryFolder()
    victim = victimFolder.file("victim")
    try TemporaryFolder.write(Array("precious".utf8), to: victim)
  }

  // MARK: Journals

  /// SQLite deletes the file that a journal names as its super-journal, whatever it is.
  @Test(arguments: Opening.allCases)
  func aJournalThatNamesASuperJournalDeletesNothing(opening: Opening) throws {
    try makeStore()
    try TemporaryFolder.write(RollbackJournal.bytes(for: path, superJournal: victim), to: path + "-journal")
    try expectNothingChanges { try expectRefusal(opening) }
  }

  /// A super-journal's name may end as the name of a log does.
  @Test func aJournalThatNamesAnotherStoresLogDeletesNothing() throws {
    try makeStore()
    let log = victimFolder.file("other.sqlite-wal")
    try TemporaryFolder.write([1, 2, 3], to: log)
    try TemporaryFolder.write(RollbackJournal.bytes(for: path, superJournal: log), to: path + "-journal")
    try expectNothingChanges { for opening in Opening.allCases { try expectRefusal(opening) } }
  }

  /// A journal tells how long the file was, and rolling it back cuts the file off.
  @Test(arguments: [Opening.readOnly, .metadata])
  func aJournalDoesNotShortenAFileThatIsOnlyRead(opening: Opening) throws {
    try makeStore()
    try TemporaryFolder.write(RollbackJournal.bytes(for: path, pages: 1), to: path + "-journal")
    try expectNothingChanges { try expectRefusal(opening, reason: "-journal") }
  }

  // MARK: Backups

  enum Planted: CaseIterable { case link, pipe, folder }

  /// Backups are renamed and removed, and never opened, so nothing at their names is followed or waited for.
  @Test(arguments: FileStore.wholeFile, Planted.allCases)
  func whatIsPlantedAsABackupIsNeverOpened(store: FileStore, planted: Planted) throws {
    let options = WholeFileOptions(file: DurableFileOptions(backupCount: 2)), path = folder.file("harbour")
    try Harbour.makeFile(store.description(at: path, options))
    for number in 1...2 {
      unlink(path + "~\(number)")
      switch planted {
      case .link: try #require(symlink(victim, path + "~\(number)") == 0)
      case .pipe: try #require(mkfifo(path + "~\(number)", 0o600) == 0)
      case .folder: try #require(mkdir(path + "~\(number)", 0o700) == 0)
      }
    }
    let context = try Harbour.context(store.description(at: path, options))
    do {
      for _ in 0..<3 { try Voyage.saveNext(context) }
    } catch let error as StoreError {
      #expect(planted == .folder && error.reason.count > 20, "\(error)")
    }
    try context.persistentStoreCoordinator.close()
    #expect(try TemporaryFolder.read(victim) == Array("precious".utf8))
  }

  // MARK: What is at the names

  @Test(arguments: CompanionKind.allCases, ["-journal", "-wal", "-shm"])
  func whatIsNoFileOfSQLiteIsRefused(kind: CompanionKind, suffix: String) throws {
    try makeStore()
    try kind.make(at: path + suffix, victim: victim)
    try expectNothingChanges { for opening in Opening.allCases { try expectRefusal(opening, reason: suffix) } }
  }

  @Test(arguments: FileStore.wholeFile, [CompanionKind.pipe, .hardLink, .symbolicLink, .directory])
  func whatIsNoLockFileIsRefused(store: FileStore, kind: CompanionKind) throws {
    let path = folder.file("harbour.store")
    try Harbour.makeFile(store.description(at: path))
    let lock = folder.file(".harbour.store.lock")
    unlink(lock)
    try kind.make(at: lock, victim: victim)
    try expectNothingChanges {
      let context = try Harbour.context(store.description(at: path))
      let error = #expect(throws: StoreError.self) { try Voyage.saveNext(context) }
      #expect([.notPermitted, .notAStore].contains(error?.code), "\(String(describing: error))")
      try? context.persistentStoreCoordinator.close()
    }
  }

  @Test func filesOfAnotherUserAreRefusedUnlessTheStoreIsTheirs() throws {
    guard System.isRoot else { return print("Skipped: only root can give files to other users.") }
    for suffix in ["-journal", "-wal", "-shm"] {
      let path = folder.file("of\(suffix).sqlite")
      try Harbour.makeFile(.sqlite(at: path))
      try TemporaryFolder.write([], to: path + suffix)
      #expect(chown(path + suffix, 65_534, 65_534) == 0)
      let error = #expect(throws: StoreError.self) { _ = try Harbour.context(.sqlite(at: path)) }
      #expect(error?.code == .notPermitted && error?.reason.contains("another user") == true)
      try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(allowsSharedFolder: true))).persistentStoreCoordinator.close()
    }
    // Root opens the store of another user, who has a log of their own.
    let path = folder.file("theirs.sqlite")
    try Harbour.makeFile(.sqlite(at: path))
    try TemporaryFolder.write([], to: path + "-wal")
    for name in [path, path + "-wal"] { #expect(chown(name, 65_534, 65_534) == 0) }
    try Harbour.context(.sqlite(at: path)).persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile)
  func aLockFileOfAnotherUserIsRefused(store: FileStore) throws {
    guard System.isRoot else { return print("Skipped: only root can give files to other users.") }
    let path = folder.file("harbour.store")
    try Harbour.makeFile(store.description(at: path))
    #expect(chown(folder.file(".harbour.store.lock"), 65_534, 65_534) == 0)
    let context = try Harbour.context(store.description(at: path))
    let error = #expect(throws: StoreError.self) { try Voyage.saveNext(context) }
    #expect(error?.code == .notPermitted && error?.reason.contains("another user") == true, "\(String(describing: error))")
    try? context.persistentStoreCoordinator.close()
  }

  // MARK: The folder

  /// What every store says of a folder's permissions.
  @Test(arguments: FileStore.all, [0o700, 0o755, 0o1777, 0o1775, 0o775, 0o777, 0o757] as [mode_t])
  func allStoresJudgeTheirFolderInTheSameWay(store: FileStore, mode: mode_t) throws {
    let path = folder.file("harbour.store")
    try Harbour.makeFile(store.description(at: path))
    #expect(chmod(folder.path, mode) == 0)
    if mode & 0o1002 == 0o0002 {
      let error = #expect(throws: StoreError.self) { _ = try Harbour.context(store.description(at: path)) }
      #expect(error?.code == .notPermitted && error?.path == path && error?.reason.contains("sticky") == true)
    } else {
      // A group that is the process's own may write.
      try Harbour.context(store.description(at: path)).persistentStoreCoordinator.close()
    }
    guard System.isRoot, mode & 0o1020 == 0o0020 else { return }
    #expect(chown(folder.path, 0, 65_534) == 0)
    let error = #expect(throws: StoreError.self) { _ = try Harbour.context(store.description(at: path)) }
    #expect(error?.code == .notPermitted, "\(String(describing: error))")
  }

  @Test(arguments: FileStore.all) func anOptionAllowsSharedFolders(store: FileStore) throws {
    let path = folder.file("harbour.store")
    #expect(chmod(folder.path, 0o777) == 0)
    let description =
      store == .sqlite(.wal)
      ? StoreDescription.sqlite(at: path, options: SQLiteStoreOptions(allowsSharedFolder: true))
      : store.description(at: path, file: DurableFileOptions(allowsSharedFolder: true))
    try Harbour.makeFile(description)
    #expect(try Voyage.check(Harbour.context(description)).saves == 12)
  }

  // MARK: Reading changes nothing

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func readingAClosedStoreChangesNothing(journal: SQLiteStoreOptions.JournalMode) throws {
    try Harbour.makeFile(path, options: SQLiteStoreOptions(journalMode: journal))
    try expectNothingChanges { try readAll() }
  }

  @Test func readingAStoreWhoseProcessWasKilledChangesNothing() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<12 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
    try expectNothingChanges { try readAll() }
    // Without the index, SQLite has one in memory.
    #expect(unlink(path + "-shm") == 0)
    try expectNothingChanges { try readAll() }
    #expect(try Voyage.check(Harbour.context(.sqlite(at: path))).saves == 12)
  }

  /// The log and its index are there while another program has the store open.
  @Test func aStoreThatAnotherProgramHasOpenIsReadWithItsLog() throws {
    try makeStore()
    let other = try BareDatabase(path)
    try other.run("UPDATE ZSHIP SET ZCREW = 7")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    let bytes = try (TemporaryFolder.read(path), TemporaryFolder.read(path + "-wal"))
    let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
    #expect(try context.fetch(FetchRequest<Ship>()).allSatisfy { $0.crew == 7 })
    try other.run("UPDATE ZSHIP SET ZCREW = 8")
    context.reset()
    #expect(try context.fetch(FetchRequest<Ship>()).allSatisfy { $0.crew == 8 })
    try context.persistentStoreCoordinator.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == names)
    #expect(try TemporaryFolder.read(path) == bytes.0 && TemporaryFolder.read(path + "-wal").starts(with: bytes.1.prefix(32)))
    other.close()
  }

  /// It was read as one that doesn't change, until a program came that writes.
  @Test func aProgramThatBeginsToWriteWhileAStoreIsReadIsFollowed() throws {
    try makeStore()
    let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
    #expect(try context.fetch(FetchRequest<Ship>()).allSatisfy { $0.crew == nil })
    let other = try BareDatabase(path)
    for crew in 1...3 {
      try other.run("UPDATE ZSHIP SET ZCREW = \(crew)")
      context.reset()
      #expect(try context.fetch(FetchRequest<Ship>()).allSatisfy { $0.crew == crew })
    }
    other.close()
    context.reset()
    #expect(try context.fetch(FetchRequest<Ship>()).allSatisfy { $0.crew == 3 })
    // The program could not remove its log while it was read, and who only reads removes nothing.
    try context.persistentStoreCoordinator.close()
    #expect(TemporaryFolder.exists(path + "-wal"))
    try expectNothingChanges { try readAllShips(crew: 3) }
    try Harbour.context(.sqlite(at: path)).persistentStoreCoordinator.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["harbour.sqlite"])
  }

  /// A log without an index is read without locks, until a program comes that makes the index.
  @Test func aProgramThatMakesTheIndexOfALogThatIsReadIsFollowed() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<12 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
    #expect(unlink(path + "-shm") == 0)
    let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
    #expect(try context.fetch(FetchRequest<Ship>()).allSatisfy { $0.crew == nil })
    let other = try BareDatabase(path)
    for crew in 1...3 {
      try other.run("UPDATE ZSHIP SET ZCREW = \(crew)")
      context.reset()
      #expect(try context.fetch(FetchRequest<Ship>()).allSatisfy { $0.crew == crew })
    }
    other.close()
    context.reset()
    #expect(try context.fetch(FetchRequest<Ship>()).allSatisfy { $0.crew == 3 })
    try context.persistentStoreCoordinator.close()
  }

  // MARK: Support

  /// A way in which a SQLite file is opened.
  enum Opening: CaseIterable { case writable, readOnly, metadata }

  /// What somebody puts where a store looks for a file of its own.
  enum CompanionKind: CaseIterable {
    case pipe, hardLink, symbolicLink, directory

    func make(at path: String, victim: String) throws {
      let code =
        switch self {
        case .pipe: mkfifo(path, 0o600)
        case .hardLink: link(victim, path)
        case .symbolicLink: symlink(victim, path)
        case .directory: mkdir(path, 0o700)
        }
      try #require(code == 0)
    }
  }

  private func makeStore() throws { try Harbour.makeFile(.sqlite(at: path)) }

  private func open(_ opening: Opening) throws {
    switch opening {
    case .writable: try Harbour.context(.sqlite(at: path)).persistentStoreCoordinator.close()
    case .readOnly: try readAll()
    case .metadata: _ = try PersistentStoreCoordinator.metadata(for: .sqlite(at: path))
    }
  }

  private func readAll() throws {
    let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
    #expect(try Voyage.check(context).saves == 12)
    try context.persistentStoreCoordinator.close()
    #expect(try !PersistentStoreCoordinator.metadata(for: .sqlite(at: path)).storeUUID.isEmpty)
  }

  private func readAllShips(crew: Int) throws {
    let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
    #expect(try context.fetch(FetchRequest<Ship>()).allSatisfy { $0.crew == crew })
    try context.persistentStoreCoordinator.close()
  }

  private func expectRefusal(_ opening: Opening, reason: String = "-journal") throws {
    let error = #expect(throws: StoreError.self) { try open(opening) }
    #expect([.notPermitted, .failed].contains(error?.code), "\(String(describing: error))")
    #expect(error?.path == path && error?.reason.contains(reason) == true, "\(String(describing: error))")
  }

  private func expectNothingChanges(_ body: () throws -> Void) throws {
    let before = try (folder.snapshot(), victimFolder.snapshot())
    try body()
    let after = try (folder.snapshot(), victimFolder.snapshot())
    #expect(after == before)
  }
}
