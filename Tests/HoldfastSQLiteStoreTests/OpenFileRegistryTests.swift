import Foundation
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct OpenFileRegistryTests {
  private let folder = TemporaryFolder()

  private func code(_ path: String) -> StoreError.Code? {
    storeError { () throws(StoreError) in try SQLiteDatabase.opened(path: path, options: SQLiteStoreOptions()) }?.code
  }

  @Test func RD4_oneFileIsOneStoreUnderEveryName() throws {
    let database = try SQLiteDatabase.make(folder.file())
    TestFile.makeLink(folder.file("symbolic"), to: folder.file())
    TestFile.makeHardLink(folder.file("hard"), to: folder.file())
    for name in ["store.sqlite", "../\(folder.path.split(separator: "/").last!)/store.sqlite", "symbolic", "hard"] {
      #expect(code(folder.file(name)) == .alreadyOpen, "\(name)")
    }
    #expect(OpenFileRegistry.isOpen(database.file.node))
    // SQLite logs a warning about a second name whenever it opens or closes a file.
    TestFile.delete(folder.file("hard"))
    database.close()
    #expect(!OpenFileRegistry.isOpen(database.file.node))
    #expect(code(folder.file()) == nil)
  }

  @Test func RD4_theFileStaysOpenUntilTheLastReaderIsDone() throws {
    let database = try SQLiteDatabase.make(folder.file())
    let lease = try database.readers.lease(.snapshot, to: "read")
    database.close()
    #expect(code(folder.file()) == .alreadyOpen)
    #expect(try lease.connection.int64("SELECT count(*) FROM item") == 0)
    lease.end()
    #expect(code(folder.file()) == nil)
    #expect(folder.names == ["store.sqlite"])
  }

  /// A thread that has just ended a request still refers to the closed connection.
  ///
  /// The bug: the new store's log was opened read-only as well, so all its saves failed.
  @Test func RD4_aFileThatWasOpenReadOnlyCanBeWrittenAtOnce() throws {
    try SQLiteDatabase.make(folder.file()).close()
    var options = SQLiteStoreOptions()
    options.isReadOnly = true
    let reading = try SQLiteDatabase(path: folder.file(), options: options)
    let lease = try reading.readers.lease(.snapshot, to: "read")
    reading.close()
    lease.end()
    let writing = try SQLiteDatabase.make(folder.file())
    try writing.insert()
    #expect(try writing.count() == 1)
    writing.close()
    withExtendedLifetime(lease) {}
  }

  /// The log of the removed file is still beside the path, and would be applied to a new file there.
  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD4_noFileIsCreatedWhereTheProcessHasARemovedOneOpen(mode: SQLiteStoreOptions.JournalMode) throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(journalMode: mode))
    try database.insert()
    TestFile.delete(folder.file())
    let names = folder.names
    #expect(code(folder.file()) == .alreadyOpen && folder.names == names)
    database.close()
    #expect(code(folder.file()) == nil)
  }

  @Test func RD4_aNewFileIsNotTakenForARemovedOneThatIsBeingClosed() throws {
    // On a disk, where the number of a removed file is used again at once. In memory it isn't.
    let place = TemporaryFolder(in: "/var/tmp"), options = SQLiteStoreOptions()
    // While it is being closed, a store is registered without connections.
    let (file, registration) = try OpenFileRegistry.register { usedPaths throws(StoreError) in
      try SQLiteFile.locate(place.file("other.sqlite"), options: options, besides: usedPaths)
    }
    TestFile.delete(file.path)
    for number in 0..<8 {
      let new = try SQLiteDatabase.opened(path: place.file("\(number).sqlite"), options: options)
      #expect(new.file.node != file.node)
    }
    withExtendedLifetime(registration) {}
  }

  #if !canImport(Darwin)
    /// One of them is read-only, so it may have no files beside it that the other one needs.
    @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
    func pathsThatDifferOnlyInTheirNormalizationAreThoseOfDifferentFiles(mode: SQLiteStoreOptions.JournalMode) throws {
      let names = ["e\u{301}.sqlite", "\u{E9}.sqlite"], model = try TestModels.peopleModel()
      let made = try StoreUnderTest(folder, model, name: names[0])
      try made.insert("Person", [["id": .int64(1)]])
      try made.store.close()
      let readOnly = try StoreUnderTest(folder, model, name: names[0], options: SQLiteStoreOptions(isReadOnly: true))
      let writable = try StoreUnderTest(folder, model, name: names[1], options: SQLiteStoreOptions(journalMode: mode))
      try writable.insert("Person", [["id": .int64(2)], ["id": .int64(3)]])
      #expect(try readOnly.all("Person").count == 1)
      #expect(try writable.all("Person").count == 2)
      try writable.store.close()
      #expect(code(folder.file(names[0])) == .alreadyOpen)
      #expect(code(folder.file(names[1])) == nil)
    }
  #endif

  /// For Swift, U+0600 and the hyphen before the suffix of a log or journal are one character.
  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func aNameWhoseEndJoinsTheNextCharacterIsThatOfAStore(mode: SQLiteStoreOptions.JournalMode) throws {
    let database = try SQLiteDatabase.make(folder.file("store\u{600}"), SQLiteStoreOptions(journalMode: mode))
    try database.insert()
    #expect(try database.count() == 1)
    database.close()
    #expect(folder.names == ["store\u{600}"])
  }

  /// Other code of the process may have a file open, which would lose its locks.
  @Test func aFileThatTheProcessHasOpenIsFoundAmongItsDescriptors() throws {
    TestFile.write([1, 2, 3], to: folder.file())
    let node = try #require(OperatingSystem.node(of: folder.file()))
    #expect(OperatingSystem.status(ofOpenFile: node) == nil)
    let handle = try #require(FileHandle(forReadingAtPath: folder.file()))
    TestFile.move(folder.file(), to: folder.file("moved"))
    #expect(OperatingSystem.status(ofOpenFile: node) != nil)
    try handle.close()
    #expect(OperatingSystem.status(ofOpenFile: node) == nil)
  }

  @Test func aFailedOpeningIsForgotten() {
    TestFile.write(Array(repeating: 1, count: 1000), to: folder.file())
    #expect(code(folder.file()) == .notAStore)
    #expect(code(folder.file()) == .notAStore)
  }

  @Test func RD4_manyThreadsThatCreateOneStoreGetItOnce() async throws {
    let path = folder.file()
    let outcomes = await withTaskGroup(of: (SQLiteDatabase?, StoreError.Code?).self) { group in
      for _ in 0..<8 {
        group.addTask {
          do throws(StoreError) {
            return (try SQLiteDatabase.opened(path: path, options: SQLiteStoreOptions()), nil)
          } catch {
            return (nil, error.code)
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(outcomes.count { $0.0 != nil } == 1)
    #expect(outcomes.count { $0.1 == .alreadyOpen } == 7)
  }

  #if os(Linux)
    @Test func RD4_onlySQLiteOpensALiveStore() throws {
      let database = try SQLiteDatabase.make(folder.file())
      try database.insert()
      let counter = OpenCounter(folder.file())
      #expect(code(folder.file()) == .alreadyOpen)
      try database.insert()
      _ = database.checkpoint.afterCommit()
      #expect(counter.take() == 0)

      // The counter does count.
      let lease = try database.readers.lease(.request, to: "read")
      #expect(counter.take() > 0)
      lease.end()
    }
  #endif

  @Test(.ownThreads, arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD4_anotherProcessStaysLockedOutWhileTheStoreIsOpenedASecondTime(mode: SQLiteStoreOptions.JournalMode) async throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(journalMode: mode))
    try database.writer.begin(.immediate)
    try database.writer.run("INSERT INTO item (name) VALUES ('ours')")
    #expect(code(folder.file()) == .alreadyOpen)

    await #expect(processExitsWith: .success) { [path = folder.file() as String] in
      let other = try SQLiteDatabase.opened(path: path, options: SQLiteStoreOptions(busyTimeout: .seconds(0.05)))
      let error = storeError { () throws(StoreError) in try other.writer.begin(.immediate) }
      precondition(error?.code == .locked, "\(String(describing: error))")
      // If it couldn't see our locks, it would delete the log as the last known connection.
      other.close()
    }
    try database.writer.commit()
    database.close()
    #expect(try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(journalMode: mode)).count() == 1)
  }

  /// What the registry prevents: when a process closes any descriptor of a file, the system drops all locks of the process on that file.
  @Test(.ownThreads, arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD4_withoutTheRegistryAnotherProcessGetsTheLock(mode: SQLiteStoreOptions.JournalMode) async throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(journalMode: mode))
    try database.writer.begin(.immediate)
    try database.writer.run("INSERT INTO item (name) VALUES ('ours')")
    // The locks of a log are in its index.
    _ = try TemporaryFolder.read(folder.file() + (mode == .wal ? "-shm" : ""))

    await #expect(processExitsWith: .success) { [path = folder.file() as String] in
      let other = try SQLiteDatabase.opened(path: path, options: SQLiteStoreOptions(busyTimeout: .seconds(0.05)))
      let error = storeError { () throws(StoreError) in try other.writer.begin(.immediate) }
      precondition(error?.code != .locked, "\(String(describing: error))")
      // The process ends without closing the file, as if it were killed.
      _ = Unmanaged.passRetained(other)
    }
    database.writer.rollback()
    database.close()
  }
}
