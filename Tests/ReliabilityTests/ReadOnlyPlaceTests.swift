import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// SQLite stores opened read-only in folders without write permission. Root can write everywhere, so these tests drop their rights in a separate
/// process, or mount a disk read-only.
@Suite(.ownThreads) struct ReadOnlyPlaceTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file() }

  init() throws { folder = TemporaryFolder() }

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RC7_aClosedStoreOpensInAFolderThatCannotBeWritten(journal: SQLiteStoreOptions.JournalMode) async throws {
    try Harbour.makeFile(path, options: SQLiteStoreOptions(journalMode: journal))
    try ReadOnlyPlace.forbid(folder)
    await #expect(processExitsWith: .success) { [path = path as String] in
      try ReadOnlyPlace.giveUpRights()
      try ReadOnlyPlace.expectReadable(path)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["harbour.sqlite"])
  }

  /// A process that is killed while it begins the first commit leaves such a log. SQLite tried to read it for ten seconds, and gave up.
  @Test(arguments: [0, 31, 32]) func RC7_aLogWithoutPagesIsRead(byteCount: Int) async throws {
    try Harbour.makeFile(path, options: SQLiteStoreOptions(journalMode: .wal))
    // The format's number, its version, the size of a page, and numbers that change with each log.
    let header: [UInt8] = [0x37, 0x7F, 0x06, 0x82, 0x00, 0x2D, 0xE2, 0x18, 0x00, 0x00, 0x10, 0x00] + Array(repeating: 0x5A, count: 20)
    try Data(header.prefix(byteCount)).write(to: URL(fileURLWithPath: path + "-wal"))
    try Data(count: 32_768).write(to: URL(fileURLWithPath: path + "-shm"))
    await #expect(processExitsWith: .success) { [path = path as String] in
      _ = try PersistentStoreCoordinator.metadata(for: .sqlite(at: path))
      try ReadOnlyPlace.expectReadable(path)
    }
  }

  /// Such a store is opened by a URI, which contains the path.
  @Test func RC7_aClosedStoreOpensWithSpecialCharactersInItsPath() async throws {
    let path = folder.file("50% & more? #1 ü.sqlite?immutable=0")
    try Harbour.makeFile(path)
    #expect(chmod(path, 0o444) == 0 && chmod(folder.path, 0o555) == 0)
    await #expect(processExitsWith: .success) { [path = path as String] in
      try ReadOnlyPlace.giveUpRights()
      try ReadOnlyPlace.expectReadable(path)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 1)
  }

  /// The folder is writable, but SQLite couldn't remove the files that it would create there.
  @Test func RC7_aClosedStoreThatCannotBeWrittenItselfLeavesNoFileBehind() async throws {
    try Harbour.makeFile(path)
    #expect(chmod(path, 0o444) == 0 && chmod(folder.path, 0o1777) == 0)
    await #expect(processExitsWith: .success) { [path = path as String] in
      try ReadOnlyPlace.giveUpRights()
      try ReadOnlyPlace.expectReadable(path)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["harbour.sqlite"])
  }

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RC7_aClosedStoreOpensOnAReadOnlyDisk(journal: SQLiteStoreOptions.JournalMode) async throws {
    #if os(Linux)
      guard System.isRoot else { return print("Skipped: only root can mount a disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [path = folder.path as String, journal = journal as SQLiteStoreOptions.JournalMode] in
        guard FullDisk.mountSmallDisk(path) else { return print("Skipped: this root may not mount a disk.") }
        let file = path + "/harbour.sqlite"
        try Harbour.makeFile(file, options: SQLiteStoreOptions(journalMode: journal))
        demand(ReadOnlyPlace.makeDiskReadOnly(path), "The disk couldn't be made read-only: errno \(errno).")
        try ReadOnlyPlace.expectReadable(file)
        let names = try FileManager.default.contentsOfDirectory(atPath: path)
        demand(names == ["harbour.sqlite"], "\(names)")
        print("REPORT read")
      }
      report(child)
    #endif
  }

  /// The index of the log can't be created there, so SQLite keeps one in memory.
  @Test(arguments: [true, false])
  func RC7_aLogIsReadWithItsIndexAndWithoutIt(hasIndex: Bool) async throws {
    try await makeKilled()
    if !hasIndex { #expect(unlink(path + "-shm") == 0) }
    try ReadOnlyPlace.forbid(folder)
    let before = try folder.snapshot()
    await #expect(processExitsWith: .success) { [path = path as String] in
      try ReadOnlyPlace.giveUpRights()
      try ReadOnlyPlace.expectReadable(path)
    }
    #expect(try folder.snapshot() == before)
  }

  /// A process that is killed between writing its first pages to a journal and synchronizing it leaves one that begins with zeros. The
  /// database hasn't changed.
  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RC7_aJournalThatWasNeverSynchronizedIsIgnored(journal: SQLiteStoreOptions.JournalMode) throws {
    try Harbour.makeFile(path, options: SQLiteStoreOptions(journalMode: journal))
    try TemporaryFolder.write([UInt8](repeating: 0, count: 512) + [1, 2, 3], to: path + "-journal")
    let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true, journalMode: journal)))
    #expect(try Voyage.check(context).fault == nil)
    try context.persistentStoreCoordinator.close()
    #expect(TemporaryFolder.exists(path + "-journal"))
  }

  @Test func RC7_aJournalThatCannotBeRolledBackIsAnErrorThatNamesIt() async throws {
    try Harbour.makeFile(path, options: SQLiteStoreOptions(journalMode: .delete))
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let database = try BareDatabase(path)
      // With a small cache, pages are written to the file before the commit.
      try database.run("PRAGMA cache_size=1; BEGIN IMMEDIATE; UPDATE ZSHIP SET ZLOG = zeroblob(20000)")
      kill(getpid(), SIGKILL)
    }
    #expect(TemporaryFolder.exists(path + "-journal"))
    try ReadOnlyPlace.forbid(folder)
    await #expect(processExitsWith: .success) { [path = path as String] in
      try ReadOnlyPlace.giveUpRights()
      try ReadOnlyPlace.expectRefusal(path, "-journal")
    }
  }

  /// Another user, with write permission, changes the file while the store is read without locks.
  @Test func RC7_concurrentWritesOfAnotherUserAreRead() async throws {
    guard System.isRoot else { return print("Skipped: only root can act as two users.") }
    try Harbour.makeFile(path)
    try ReadOnlyPlace.forbid(folder)
    await #expect(processExitsWith: .success) { [path = path as String] in
      precondition(seteuid(65_534) == 0)
      let context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
      func crews() throws -> [Int?] {
        context.reset()
        return Array(Set(try context.fetch(FetchRequest<Ship>()).map(\.crew)))
      }
      let atFirst = try crews()
      precondition(atFirst == [nil], "\(atFirst)")
      for crew in 1...5 {
        try ReadOnlyPlace.waitForNextTick(since: path)
        try ReadOnlyPlace.asRoot { try BareDatabase.change(path, "UPDATE ZSHIP SET ZCREW = \(crew)") }
        let found = try crews()
        precondition(found == [crew], "\(found)")
      }
      // The other program keeps the file open, with a log.
      let other = try ReadOnlyPlace.asRoot {
        let other = try BareDatabase(path)
        try other.run("UPDATE ZSHIP SET ZCREW = 6")
        return other
      }
      let found = try crews()
      precondition(found == [6], "\(found)")
      try ReadOnlyPlace.asRoot { other.close() }
      let last = try crews()
      precondition(last == [6], "\(last)")
      try context.persistentStoreCoordinator.close()
    }
  }

  @Test func RC7_aFetchDuringAnotherUsersWriteIsARetryableError() async throws {
    guard System.isRoot else { return print("Skipped: only root can act as two users.") }
    try Harbour.makeFile(path)
    try ReadOnlyPlace.forbid(folder)
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) { [path = path as String] in
      precondition(seteuid(65_534) == 0)
      let store = SQLiteStore(path: path, options: SQLiteStoreOptions(isReadOnly: true))
      _ = try store.open(model: Harbour.model)
      let ship = try #require(Harbour.model.entity(named: "Ship")).index
      for kind in [ReadViewKind.latest, .consistent] {
        try ReadOnlyPlace.waitForNextTick(since: path)
        let view = try store.beginRead(kind)
        let sink = MeddlingSink {
          try ReadOnlyPlace.asRoot { try BareDatabase.change(path, "UPDATE ZSHIP SET ZCREW = ifnull(ZCREW, 0) + 1") }
        }
        do {
          try store.fetch(FetchPlan(entity: ship, concreteEntities: [ship]), in: view, into: sink)
          complain("Rows were read while they changed, in a view of kind \(kind).")
        } catch let error as StoreError {
          demand(error.code == .locked && error.isRetryable && error.path == path, "\(error)")
        }
        view.end()
      }
      try store.close()
      print("REPORT refused")
    }
    report(child)
  }

  /// Makes a store, and kills the process that has it open.
  private func makeKilled() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<12 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
  }
}

/// A sink that calls a closure when it receives the first rows.
private final class MeddlingSink: RowSink {
  private let meddle: () throws -> Void
  private var hasMeddled = false

  init(_ meddle: @escaping () throws -> Void) { self.meddle = meddle }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    if !hasMeddled { try meddle() }
    hasMeddled = true
    return .more
  }
}

private enum ReadOnlyPlace {
  /// Makes the files readable for everyone, and the files and their folder writable only for root.
  static func forbid(_ folder: TemporaryFolder) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) { #expect(chmod(folder.file(name), 0o644) == 0) }
    if !System.isRoot { for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) { chmod(folder.file(name), 0o444) } }
    #expect(chmod(folder.path, 0o555) == 0)
  }

  static func giveUpRights() throws { precondition(!System.isRoot || System.dropRights(), "Root couldn't drop its rights.") }

  static func asRoot<Result>(_ body: () throws -> Result) throws -> Result {
    precondition(seteuid(0) == 0)
    defer { precondition(seteuid(65_534) == 0) }
    return try body()
  }

  /// Waits until the file system's clock has advanced since the last change of a file. A second change within the same tick couldn't be
  /// detected.
  static func waitForNextTick(since path: String) throws {
    let probe = path + ".tick"
    try waitUntil {
      try asRoot { TestFile.write([1], to: probe) }
      return TestFile.modificationTime(probe) != TestFile.modificationTime(path)
    }
  }

  #if os(Linux)
    static func makeDiskReadOnly(_ path: String) -> Bool {
      let remountReadOnly: UInt = 32 | 1
      return mount(nil, path, nil, remountReadOnly, nil) == 0
    }
  #endif

  /// Opens the store read-only by every entry point, and reads all of it in several contexts.
  static func expectReadable(_ path: String) throws {
    let store = StoreDescription.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true))
    let before = try FileManager.default.contentsOfDirectory(atPath: (path as NSString).deletingLastPathComponent).sorted()
    for _ in 0..<2 {
      let context = try Harbour.context(store)
      let found = try Voyage.check(context)
      precondition(found == (12, nil), "\(found)")
      let second = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Harbour.classes)
      let again = try Voyage.check(second)
      precondition(again == (12, nil), "\(again)")
      context.insert(Journal.self).saves = 1
      do {
        try context.save()
        preconditionFailure("A read-only store was saved.")
      } catch let error as StoreError { precondition(error.code == .readOnly, "\(error)") }
      try context.persistentStoreCoordinator.close()
    }
    let metadata = try PersistentStoreCoordinator.metadata(for: store)
    precondition(!metadata.storeUUID.isEmpty)
    let after = try FileManager.default.contentsOfDirectory(atPath: (path as NSString).deletingLastPathComponent).sorted()
    precondition(before == after, "\(after)")
  }

  static func expectRefusal(_ path: String, _ suffix: String) throws {
    do {
      _ = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: true)))
      preconditionFailure("The store was opened.")
    } catch let error as StoreError {
      precondition(error.code == .notPermitted && error.path == path && error.reason.contains(suffix), "\(error)")
      precondition(error.reason.contains("with a copy of the file"), "\(error)")
    }
  }
}
