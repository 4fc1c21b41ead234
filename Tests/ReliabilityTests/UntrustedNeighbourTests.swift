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

/// Files beside a store's file are untrusted too: another local user, or the sender of the folder, may have created them.
@Suite struct UntrustedNeighbourTests {
  private let folder: TemporaryFolder
  /// A file in another folder that must stay unchanged.
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

  /// SQLite deletes any file that a journal names as its super-journal.
  @Test(arguments: Opening.allCases)
  func aJournalThatNamesASuperJournalDeletesNothing(opening: Opening) throws {
    try makeStore()
    try TemporaryFolder.write(RollbackJournal.bytes(for: path, superJournal: victim), to: path + "-journal")
    try expectNothingChanges { try expectRefusal(opening) }
  }

  /// Another process has just begun to write a journal. Its header begins with the bytes with which a super-journal's name ends.
  @Test(arguments: 1...8) func theBeginningOfAJournalIsNotASuperJournal(count: Int) throws {
    try makeStore()
    let header: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
    try TemporaryFolder.write(Array(header.prefix(count)), to: path + "-journal")
    let context = try Harbour.context(.sqlite(at: path))
    #expect(try context.count(for: FetchRequest<Ship>()) > 0)
    try context.persistentStoreCoordinator.close()
  }

  /// A super-journal's name may end in `-wal`, like a log's.
  @Test func aJournalThatNamesAnotherStoresLogDeletesNothing() throws {
    try makeStore()
    let log = victimFolder.file("other.sqlite-wal")
    try TemporaryFolder.write([1, 2, 3], to: log)
    try TemporaryFolder.write(RollbackJournal.bytes(for: path, superJournal: log), to: path + "-journal")
    try expectNothingChanges { for opening in Opening.allCases { try expectRefusal(opening) } }
  }

  /// A journal contains the file's previous length, and rolling it back truncates the file to it.
  @Test(arguments: [Opening.readOnly, .metadata])
  func aJournalDoesNotShortenAFileThatIsOnlyRead(opening: Opening) throws {
    try makeStore()
    try TemporaryFolder.write(RollbackJournal.bytes(for: path, pages: 1), to: path + "-journal")
    try expectNothingChanges { try expectRefusal(opening, reason: "-journal") }
  }

  // MARK: Backups

  enum Planted: CaseIterable { case link, pipe, folder }

  /// Backups are renamed and removed but never opened, so links at their names aren't followed and pipes don't block.
  @Test(arguments: FileStore.wholeFile, Planted.allCases)
  func aPlantedBackupIsNeverOpened(store: FileStore, planted: Planted) throws {
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

  // MARK: File types

  @Test(arguments: CompanionKind.allCases, ["-journal", "-wal", "-shm"])
  func companionFilesOfOtherTypesAreRefused(kind: CompanionKind, suffix: String) throws {
    try makeStore()
    try kind.make(at: path + suffix, victim: victim)
    try expectNothingChanges { for opening in Opening.allCases { try expectRefusal(opening, reason: suffix) } }
  }

  @Test(arguments: FileStore.wholeFile, [CompanionKind.pipe, .hardLink, .symbolicLink, .directory])
  func lockFilesOfOtherTypesAreRefused(store: FileStore, kind: CompanionKind) throws {
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

  @Test func filesOfAnotherUserAreRefusedUnlessThatUserOwnsTheStore() throws {
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
    // Root can open the store of another user whose log belongs to the same user.
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

  /// The bug: a SQLite store belonged to the user who replaced it, and other users couldn't open it any more.
  @Test(arguments: AdministrationTests.stores) func aStoreThatIsReplacedKeepsItsOwnerAndItsGroup(store: FileStore) throws {
    guard System.isRoot else { return print("Skipped: only root can give files to other users.") }
    let path = folder.file("harbour.store"), source = folder.file("source.store")
    for file in [path, source] { try Harbour.makeFile(store.description(at: file)) }
    #expect(chown(path, 1234, 4321) == 0 && chmod(path, 0o660) == 0)
    try PersistentStoreCoordinator.replacePersistentStore(store.description(at: path), withCopyOf: store.description(at: source))
    let status = try POSIXFileSystem().status(of: path, in: .workingDirectory)
    #expect(status.owner == 1234 && status.group == 4321 && status.permissions == 0o660)
    #expect(try Voyage.check(Harbour.context(store.description(at: path))).saves == 12)
  }

  // MARK: The folder

  /// Every store accepts and refuses the same folder permissions.
  @Test(arguments: FileStore.all, [0o700, 0o755, 0o1777, 0o1775, 0o775, 0o777, 0o757] as [mode_t])
  func allStoresHaveTheSameRulesForFolderPermissions(store: FileStore, mode: mode_t) throws {
    let path = folder.file("harbour.store")
    try Harbour.makeFile(store.description(at: path))
    #expect(chmod(folder.path, mode) == 0)
    if mode & 0o1002 == 0o0002 {
      let error = #expect(throws: StoreError.self) { _ = try Harbour.context(store.description(at: path)) }
      #expect(error?.code == .notPermitted && error?.path == path && error?.reason.contains("sticky") == true)
    } else {
      // The folder may be writable for the process's own group.
      try Harbour.context(store.description(at: path)).persistentStoreCoordinator.close()
    }
    guard System.isRoot, mode & 0o1020 == 0o0020 else { return }
    #expect(chown(folder.path, 0, 65_534) == 0)
    let error = #expect(throws: StoreError.self) { _ = try Harbour.context(store.description(at: path)) }
    #expect(error?.code == .notPermitted, "\(String(describing: error))")
  }

  @Test(arguments: FileStore.all) func nothingIsCreatedInAFolderThatIsRefused(store: FileStore) throws {
    #expect(chmod(folder.path, 0o777) == 0)
    let error = #expect(throws: StoreError.self) { _ = try Harbour.context(store.description(at: folder.file("harbour.store"))) }
    #expect(error?.code == .notPermitted, "\(String(describing: error))")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
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

  /// The bug: only the user who had created the lock file and the folder of external values could use them.
  @Test(.ownThreads, arguments: FileStore.all) func usersOfAGroupCanSaveToOneStore(store: FileStore) async throws {
    guard System.isRoot else { return print("Skipped: only root can become another user.") }
    #expect(chown(folder.path, 0, 4321) == 0 && chmod(folder.path, 0o2770) == 0)
    for user in [1234, 1235, 1234] as [uid_t] {
      await #expect(processExitsWith: .success) { [store = store as FileStore, path = path as String, user = user as uid_t] in
        precondition(setgid(4321) == 0 && setuid(user) == 0)
        let description =
          store == .sqlite(.wal)
          ? StoreDescription.sqlite(
            at: path, options: SQLiteStoreOptions(filePermissions: 0o660, allowsSharedFolder: true, externalData: Gallery.small))
          : store.description(
            at: path,
            WholeFileOptions(file: DurableFileOptions(permissions: 0o660, allowsSharedFolder: true), externalData: Gallery.small))
        let context = try Gallery.context(description)
        for photo in try Gallery.photos(context) {
          precondition(photo.image?.count == 4000)
          photo.image = Gallery.bytes(Int64(user), 4000)
        }
        Gallery.insert(Int64(user), Gallery.bytes(1, 4000), context)
        try context.save()
        try context.persistentStoreCoordinator.close()
      }
    }
  }

  // MARK: Reading changes nothing

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func readingAClosedStoreChangesNothing(journal: SQLiteStoreOptions.JournalMode) throws {
    try Harbour.makeFile(path, options: SQLiteStoreOptions(journalMode: journal))
    try expectNothingChanges { try readAll() }
  }

  @Test(.ownThreads) func readingAStoreWhoseProcessWasKilledChangesNothing() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<12 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
    try expectNothingChanges { try readAll() }
    // Without the index, SQLite keeps one in memory.
    #expect(unlink(path + "-shm") == 0)
    try expectNothingChanges { try readAll() }
    #expect(try Voyage.check(Harbour.context(.sqlite(at: path))).saves == 12)
  }

  /// The log and its index exist while another program has the store open.
  @Test func aStoreThatAnotherProgramHasOpenIsReadWithItsLog() throws {
    try makeStore()
    let other = try BareDatabase(path)
    try other.run("UPDATE ZSHIP SET ZCREW = 7")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    let bytes = try (TemporaryFolder.read(path), TemporaryFolder.read(path + "-wal"))
    let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
    #expect(try crews(context) == [7])
    try other.run("UPDATE ZSHIP SET ZCREW = 8")
    context.reset()
    #expect(try crews(context) == [8])
    try context.persistentStoreCoordinator.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == names)
    #expect(try TemporaryFolder.read(path) == bytes.0 && TemporaryFolder.read(path + "-wal").starts(with: bytes.1.prefix(32)))
    other.close()
  }

  /// The store was opened as immutable before the other program begins to write.
  @Test func changesOfAProgramThatBeginsToWriteWhileAStoreIsReadAreRead() throws {
    try makeStore()
    let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
    #expect(try crews(context) == [nil])
    let other = try BareDatabase(path)
    for crew in 1...3 {
      try other.run("UPDATE ZSHIP SET ZCREW = \(crew)")
      context.reset()
      #expect(try crews(context) == [crew])
    }
    other.close()
    context.reset()
    #expect(try crews(context) == [3])
    // The program couldn't remove its log while the store was reading, and a read-only store removes nothing.
    try context.persistentStoreCoordinator.close()
    #expect(TemporaryFolder.exists(path + "-wal"))
    try expectNothingChanges { try readAllShips(crew: 3) }
    try Harbour.context(.sqlite(at: path)).persistentStoreCoordinator.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["harbour.sqlite"])
  }

  /// A log without an index is read without locks until another program creates the index.
  @Test(.ownThreads) func changesOfAProgramThatCreatesTheIndexOfALogAreRead() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<12 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
    #expect(unlink(path + "-shm") == 0)
    let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
    #expect(try crews(context) == [nil])
    let other = try BareDatabase(path)
    for crew in 1...3 {
      try other.run("UPDATE ZSHIP SET ZCREW = \(crew)")
      context.reset()
      #expect(try crews(context) == [crew])
    }
    other.close()
    context.reset()
    #expect(try crews(context) == [3])
    try context.persistentStoreCoordinator.close()
  }

  // MARK: Support

  /// A way of opening a SQLite file.
  enum Opening: CaseIterable { case writable, readOnly, metadata }

  /// A file type planted at the name of one of the store's companion files.
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

  /// The numbers of the crews of all ships.
  private func crews(_ context: ManagedObjectContext) throws -> Set<Int?> { Set(try context.fetch(FetchRequest<Ship>()).map(\.crew)) }

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
    #expect(try crews(context) == [crew])
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
