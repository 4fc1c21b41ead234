import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct SQLiteFileTests {
  private let folder = TemporaryFolder()

  private func error(_ path: String, _ options: SQLiteStoreOptions = SQLiteStoreOptions()) -> StoreError? {
    storeError { () throws(StoreError) in try SQLiteDatabase.opened(path: path, options: options) }
  }

  @Test func aMissingFileIsNotFoundUnlessANewStoreMayBeMade() {
    #expect(error(folder.file(), SQLiteStoreOptions(createsIfMissing: false))?.code == .notFound)
    #expect(error(folder.file(), SQLiteStoreOptions(isReadOnly: true))?.code == .notFound)
    #expect(error(folder.file("no/such/folder.sqlite"))?.code == .notFound)
    #expect(folder.names == [])
  }

  @Test func whatIsNoFileIsNotAStore() {
    TestFile.makeFolder(folder.file("folder"))
    TestFile.makePipe(folder.file("pipe"))
    for path in [folder.file("folder"), folder.file("pipe"), "/dev/null", "/"] {
      #expect(error(path)?.code == .notAStore, "\(path)")
    }
    TestFile.write([1], to: folder.file("file"))
    #expect(error(folder.file("file/below"))?.code == .notFound)
  }

  /// The bug: a copy, a move or a repair to a new path threw, for example in an app on Android.
  @Test(arguments: [ErrorNumber.notPermitted, ErrorNumber.accessDenied])
  func aFileGetsAnUnusedNameAlsoWhereHardLinksCannotBeCreated(number: Int32) throws {
    let files = WithoutLinks(number: number), path = folder.file("copy"), newPath = folder.file("store")
    TestFile.write([1], to: path)
    TestFile.write([2], to: newPath)
    let error = storeError { () throws(StoreError) in
      try OperatingSystem.rename(path, toUnused: newPath, "copy the store", in: files)
    }
    #expect((error?.cause as? FileSystemError)?.number == ErrorNumber.exists)
    #expect(TestFile.read(path) == [1] && TestFile.read(newPath) == [2])
    TestFile.delete(newPath)
    try OperatingSystem.rename(path, toUnused: newPath, "copy the store", in: files)
    #expect(folder.names == ["store"] && TestFile.read(newPath) == [1])
  }

  /// The bug: the group of the process got the rights that the group of the former file had.
  @Test(arguments: [(0o664, 0o644), (0o660, 0o600), (0o606, 0o606)] as [(UInt32, UInt32)])
  func aCopyGivesNoOtherGroupTheRightsOfTheFormerOne(permissions: UInt32, expected: UInt32) throws {
    TestFile.write([1], to: folder.file())
    var former = try OperatingSystem.status(of: folder.file())
    (former.permissions, former.group) = (permissions, former.group &+ 1)
    try OperatingSystem.createFile(at: folder.file("copy"), like: former, in: WithoutOwners())
    #expect(TestFile.permissions(folder.file("copy")) == expected)
  }

  @Test(arguments: [1, 15, 16, 100, 511, 512, 4096, 100_000])
  func aForeignFileIsNotAStoreAndStaysAsItWas(size: Int) {
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
    TestFile.write(bytes, to: folder.file())
    #expect(error(folder.file())?.code == .notAStore)
    #expect(TestFile.read(folder.file()) == bytes)
    #expect(folder.names == ["store.sqlite"])
  }

  @Test func aFileWithABrokenHeaderIsDamagedOrNotAStore() throws {
    try SQLiteDatabase.make(folder.file()).close()
    var bytes = TestFile.read(folder.file())
    bytes.replaceSubrange(100..<4096, with: repeatElement(0xff, count: 3996))
    TestFile.write(bytes, to: folder.file())
    #expect(error(folder.file())?.code == .damaged)
  }

  @Test func anEmptyFileIsANewStore() throws {
    TestFile.write([], to: folder.file())
    #expect(error(folder.file(), SQLiteStoreOptions(createsIfMissing: false))?.code == .notAStore)
    let database = try SQLiteDatabase.make(folder.file())
    #expect(database.file.isEmpty)
    #expect(try database.writer.int64("PRAGMA auto_vacuum") == 2)
  }

  @Test(.ownThreads) func aNewStoreIsReadableByItsOwnerOnly() async {
    await #expect(processExitsWith: .success) {
      System.setFileMask(0)
      let folder = TemporaryFolder()
      let database = try SQLiteDatabase.make(folder.file())
      for name in ["", "-wal", "-shm"] { precondition(TestFile.permissions(folder.file() + name) == 0o600, name) }
      database.close()
    }
  }

  @Test(.ownThreads) func theMaskOfTheProcessDoesNotNarrowThePermissions() async {
    await #expect(processExitsWith: .success) {
      System.setFileMask(0o077)
      let folder = TemporaryFolder()
      let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(filePermissions: 0o664))
      for name in ["", "-wal", "-shm"] { precondition(TestFile.permissions(folder.file() + name) == 0o664, name) }
      database.close()
    }
  }

  @Test(.ownThreads) func whatTheUserMayNotReadOrWriteIsNotPermitted() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      for name in ["secret", "readable"] {
        // In rollback mode: even reading a log would write companion files.
        try SQLiteDatabase.make(folder.file(name), SQLiteStoreOptions(journalMode: .delete)).close()
      }
      TestFile.setPermissions(0o000, of: folder.file("secret"))
      TestFile.setPermissions(0o444, of: folder.file("readable"))
      TestFile.makeFolder(folder.file("locked"))
      TestFile.setPermissions(0o000, of: folder.file("locked"))
      TestFile.setPermissions(0o555, of: folder.path)
      precondition(!System.isRoot || System.dropRights(), "Root couldn't drop its rights.")

      func code(_ name: String, _ options: SQLiteStoreOptions = SQLiteStoreOptions()) -> StoreError.Code? {
        storeError { () throws(StoreError) in try SQLiteDatabase.opened(path: folder.file(name), options: options) }?.code
      }
      precondition(code("secret") == .notPermitted)
      precondition(code("secret", SQLiteStoreOptions(isReadOnly: true)) == .notPermitted)
      precondition(code("readable") == .notPermitted)
      precondition(code("readable", SQLiteStoreOptions(isReadOnly: true)) == nil)
      precondition(code("new") == .notPermitted)
      precondition(code("locked/below") == .notPermitted)
    }
  }

  @Test func aSymbolicLinkIsFollowedOnce() throws {
    TestFile.makeFolder(folder.file("real"))
    TestFile.makeLink(folder.file("folder"), to: "real")
    try SQLiteDatabase.make(folder.file("real/store.sqlite")).close()
    TestFile.makeLink(folder.file("link"), to: "folder/store.sqlite")
    let database = try SQLiteDatabase.make(folder.file("link"))
    #expect(database.file.path == folder.file("real/store.sqlite"))
    #expect(TestFile.exists(folder.file("real/store.sqlite-wal")))

    // A new store is created in the folder that the link points to.
    let other = try SQLiteDatabase.make(folder.file("folder/../folder/new.sqlite"))
    #expect(other.file.path == folder.file("real/new.sqlite"))
  }

  @Test func aLinkToNothingIsNotFound() {
    TestFile.makeLink(folder.file(), to: "nowhere")
    #expect(error(folder.file())?.code == .notFound)
    #expect(folder.names == ["store.sqlite"])
  }

  @Test func aLinkToItselfIsNotAStore() {
    TestFile.makeLink(folder.file(), to: "store.sqlite")
    #expect(error(folder.file())?.code == .notAStore)
    #expect(folder.names == ["store.sqlite"])
  }

  @Test(arguments: ["", "a\0b", ":memory:", "file::memory:?cache=shared", "file:store.sqlite?mode=memory", "file:///tmp/x.sqlite"])
  func aTextThatIsNoPathIsRefusedWithWhatToUse(path: String) {
    let error = error(path)
    #expect(error?.code == .invalidPath)
    #expect(error?.reason.contains("path") == true || error?.reason.contains(".memory()") == true)
    if path.isEmpty || path.contains(":memory:") { #expect(error?.reason.contains("`.memory()`") == true) }
    #expect(!TestFile.exists(path.isEmpty ? "none" : path))
  }

  @Test(.ownThreads) func aNameThatMeansSomethingToSQLiteIsANameInAFolder() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      System.enterFolder(folder.path)
      for name in ["file:store.sqlite?mode=memory", ":memory:"] {
        let database = try SQLiteDatabase.make("./" + name)
        precondition(database.file.path == folder.file(name))
        database.close()
      }
      precondition(folder.names == [":memory:", "file:store.sqlite?mode=memory"], "\(folder.names)")
      System.enterFolder("/")
    }
  }

  @Test func aFileThatIsReplacedWhileItIsOpenedIsNoticed() throws {
    TestFile.write([], to: folder.file())
    let file = try SQLiteFile.locate(folder.file(), options: SQLiteStoreOptions())
    try file.checkIdentity()
    TestFile.write([], to: folder.file("other"))
    TestFile.delete(folder.file())
    TestFile.makeHardLink(folder.file(), to: folder.file("other"))
    #expect(storeError { () throws(StoreError) in try file.checkIdentity() }?.isRetryable == true)
  }
}

/// A file system on which hard links can't be created.
private struct WithoutLinks: ForwardingFileSystem {
  let base: any StoreFileSystem = POSIXFileSystem()
  let number: Int32

  func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    throw FileSystemError(.link, name: newName, number: number)
  }
}

/// A file system on which the owner and the group of a file can't be set.
private struct WithoutOwners: ForwardingFileSystem {
  let base: any StoreFileSystem = POSIXFileSystem()

  func setOwner(_ owner: UInt32?, group: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    throw FileSystemError(.setOwner, name: file.name, number: ErrorNumber.notPermitted)
  }
}
