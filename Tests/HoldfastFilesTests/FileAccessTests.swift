import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import HoldfastFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Permissions, links, file types, and changes by other programs to an open file.
@Suite struct FileAccessTests {
  private let folder = TemporaryFolder()

  // MARK: Modes and links

  @Test func aNewFileHasThePermissionsOfTheOptionsWhateverTheMask() throws {
    try DurableFile(path: folder.file()).replace([1])
    #expect(TestFile.permissions(folder.file()) == 0o600)
    try DurableFile(path: folder.file("shared"), options: DurableFileOptions(permissions: 0o666)).replace([1])
    #expect(TestFile.permissions(folder.file("shared")) == 0o666)
    #expect(TestFile.permissions(folder.file(".store.lock")) == 0o600)
  }

  @Test(arguments: [0o400, 0o600, 0o640, 0o644, 0o660, 0o666, 0o751] as [mode_t])
  func anExistingFileKeepsItsPermissions(permissions: mode_t) throws {
    TestFile.write([1], to: folder.file())
    TestFile.setPermissions(permissions, of: folder.file())
    let file = try DurableFile(path: folder.file())
    _ = try file.contents()
    try file.replace([2])
    #expect(TestFile.permissions(folder.file()) == UInt32(permissions))
    #expect(TestFile.read(folder.file()) == [2])
  }

  @Test func anExistingFileKeepsItsOwnerWhenThatIsPermitted() throws {
    guard System.isRoot else { return print("Skipped: only root may give files away.") }
    TestFile.write([1], to: folder.file())
    chown(folder.file(), 1234, 4321)
    TestFile.setPermissions(0o6754, of: folder.file())
    let file = try DurableFile(path: folder.file())
    _ = try file.contents()
    try file.replace([2])
    let status = try #require(TestFile.status(folder.file()))
    #expect(status.st_uid == 1234 && status.st_gid == 4321 && status.st_mode & 0o7777 == 0o6754)
  }

  /// Neither the group's rights nor the set-user-ID bit may pass to another owner.
  @Test(.ownThreads) func whereTheOwnerCannotBeKeptNoUserGainsRights() async throws {
    guard System.isRoot else { return print("Skipped: only root can become another user.") }
    // The folder is created and removed here, because the other process drops its rights.
    await #expect(processExitsWith: .success) { [folder = folder.path as String] in
      let path = folder + "/store"
      TestFile.setPermissions(0o1777, of: folder)
      TestFile.write([1], to: path)
      TestFile.setPermissions(0o6674, of: path)
      TestFile.setPermissions(0o777, of: folder)
      precondition(setgid(65_534) == 0 && setuid(65_534) == 0)
      let file = try DurableFile(path: path, options: DurableFileOptions(allowsSharedFolder: true))
      _ = try file.contents()
      try file.replace([2])
      let status = TestFile.status(path)!
      precondition(status.st_uid == 65_534 && status.st_mode & 0o7777 == 0o644, "\(String(status.st_mode, radix: 8))")
    }
  }

  /// Simulated, so that the user needs no rights of its own.
  @Test func whatCannotBeKeptGivesNoUserRights() throws {
    typealias Access = (fault: FileFault?, owner: UInt32, group: UInt32, permissions: UInt32)
    let cases: [Access] = [
      (nil, 17, 18, 0o6674),
      // The entries of an access list may have refused rights to members of the group.
      (FileFault(.copyAttributes, .error(EPERM)), 17, 18, 0o6644),
      // Only the owner can't be kept.
      (FileFault(.setOwner, .error(EPERM)), 0, 18, 0o674),
      (FileFault(.setOwner, .error(EPERM), isPersistent: true), 0, 0, 0o644),
    ]
    for (fault, owner, group, permissions) in cases {
      let disk = SimulatedFileSystem(), folder = try disk.openDirectory("/")
      disk.setContents(of: "store", [1])
      let former = try disk.openLockFile("store", in: folder)
      try disk.setOwner(17, group: 18, of: former)
      try disk.setPermissions(0o6674, of: former)
      try disk.close(former)
      let file = try DurableFile(path: "/store", options: DurableFileOptions(fileSystem: disk))
      _ = try file.contents()
      if let fault { disk.inject(fault) }
      try file.replace([2])
      let status = try disk.status(of: "store", in: folder)
      #expect(disk.contents(of: "store") == [2])
      #expect(
        [status.owner, status.group, status.permissions] == [owner, group, permissions],
        "\(String(describing: fault)): \(String(status.permissions, radix: 8))")
    }
  }

  @Test func extendedAttributesAreKept() throws {
    #if os(Linux)
      typealias SetAttribute = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer, Int, Int32) -> Int32
      typealias GetAttribute = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer, Int) -> Int
      let set = unsafeBitCast(dlsym(nil, "setxattr"), to: SetAttribute.self)
      let get = unsafeBitCast(dlsym(nil, "getxattr"), to: GetAttribute.self)
      TestFile.write([1], to: folder.file())
      guard set(folder.file(), "user.harbour", "Brest", 5, 0) == 0 else {
        return print("Skipped: this disk doesn't support extended attributes.")
      }
      let file = try DurableFile(path: folder.file())
      _ = try file.contents()
      try file.replace([2])
      var value = [UInt8](repeating: 0, count: 10)
      #expect(get(folder.file(), "user.harbour", &value, 10) == 5)
      #expect(value.prefix(5).elementsEqual("Brest".utf8))
    #endif
  }

  /// An access list with two more entries than the mode: user 1234 may read and write, the group has no rights.
  @Test func anAccessListIsKept() throws {
    #if os(Linux)
      typealias SetAttribute = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer, Int, Int32) -> Int32
      typealias GetAttribute = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer, Int) -> Int
      let set = unsafeBitCast(dlsym(nil, "setxattr"), to: SetAttribute.self)
      let get = unsafeBitCast(dlsym(nil, "getxattr"), to: GetAttribute.self)
      func entry(_ tag: UInt8, _ rights: UInt8, _ id: UInt32) -> [UInt8] {
        [tag, 0, rights, 0] + (0..<4).map { UInt8(truncatingIfNeeded: id >> (8 * $0)) }
      }
      let list: [UInt8] =
        [2, 0, 0, 0] + entry(1, 6, .max) + entry(2, 6, 1234) + entry(4, 0, .max) + entry(0x10, 6, .max) + entry(0x20, 0, .max)
      TestFile.write([1], to: folder.file())
      guard set(folder.file(), "system.posix_acl_access", list, list.count, 0) == 0 else {
        return print("Skipped: this disk doesn't support access lists.")
      }
      #expect(TestFile.permissions(folder.file()) == 0o660)
      let file = try DurableFile(path: folder.file())
      _ = try file.contents()
      try file.replace([2])
      var found = [UInt8](repeating: 0, count: 100)
      let count = get(folder.file(), "system.posix_acl_access", &found, 100)
      #expect(Array(found.prefix(max(count, 0))) == list)
      #expect(TestFile.permissions(folder.file()) == 0o660)
    #endif
  }

  /// The bug: after a save, users that the default list of the folder names could read and write the file.
  @Test(arguments: [false, true]) func aFileWithoutAnAccessListDoesNotGetTheFoldersOne(hasAttribute: Bool) throws {
    #if os(Linux)
      typealias SetAttribute = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer, Int, Int32) -> Int32
      typealias GetAttribute = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer, Int) -> Int
      let set = unsafeBitCast(dlsym(nil, "setxattr"), to: SetAttribute.self)
      let get = unsafeBitCast(dlsym(nil, "getxattr"), to: GetAttribute.self)
      func entry(_ tag: UInt8, _ rights: UInt8, _ id: UInt32) -> [UInt8] {
        [tag, 0, rights, 0] + (0..<4).map { UInt8(truncatingIfNeeded: id >> (8 * $0)) }
      }
      let list: [UInt8] =
        [2, 0, 0, 0] + entry(1, 7, .max) + entry(2, 7, 1234) + entry(4, 0, .max) + entry(0x10, 7, .max) + entry(0x20, 0, .max)
      TestFile.write([1], to: folder.file())
      TestFile.setPermissions(0o660, of: folder.file())
      guard set(folder.path, "system.posix_acl_default", list, list.count, 0) == 0,
        !hasAttribute || set(folder.file(), "user.harbour", "Brest", 5, 0) == 0
      else { return print("Skipped: this disk doesn't support access lists or extended attributes.") }
      let file = try DurableFile(path: folder.file())
      _ = try file.contents()
      try file.replace([2])
      var found = [UInt8](repeating: 0, count: 100)
      #expect(get(folder.file(), "system.posix_acl_access", &found, 100) < 0)
      #expect(TestFile.permissions(folder.file()) == 0o660)
    #endif
  }

  @Test func aSymbolicLinkStaysALinkAndItsTargetIsReplaced() throws {
    TestFile.makeFolder(folder.file("real"))
    TestFile.write([1], to: folder.file("real/target"))
    TestFile.makeLink(folder.file("link"), to: "real/target")
    let file = try DurableFile(path: folder.file("link"))
    #expect(file.path == folder.file("real/target"))
    #expect(try file.contents() == [1])
    try file.replace([2])
    #expect(TestFile.isLink(folder.file("link")))
    #expect(TestFile.read(folder.file("real/target")) == [2])
    #expect(folder.names == ["link", "real"], "The temporary file and the lock are beside the target.")
  }

  @Test func aDanglingLinkIsRefused() {
    TestFile.makeLink(folder.file("link"), to: "nowhere")
    #expect(storeError { try DurableFile(path: folder.file("link")) }?.code == .notFound)
  }

  @Test func aStoreFollowsAFolderThatIsMovedAway() throws {
    TestFile.makeFolder(folder.file("a"))
    let file = try DurableFile(path: folder.file("a/store"))
    try file.replace([1])
    rename(folder.file("a"), folder.file("b"))
    TestFile.makeFolder(folder.file("a"))
    try file.replace([2])
    #expect(TestFile.read(folder.file("b/store")) == [2])
    #expect(TemporaryFolder.names(in: folder.file("a")).isEmpty)
  }

  /// The bug: the error said that the folder must exist, although another one was at the path.
  @Test func aFolderThatIsRemovedAndMadeAgainIsAnErrorThatSaysWhatToDo() throws {
    TestFile.makeFolder(folder.file("a"))
    let file = try DurableFile(path: folder.file("a/store"))
    #expect(rmdir(folder.file("a")) == 0)
    TestFile.makeFolder(folder.file("a"))
    let error = storeError { try file.replace([1]) }
    #expect(error?.code == .notFound && error?.reason.contains("(errno 2)") == true, "\(String(describing: error))")
    #expect(error?.reason.hasSuffix("Close the store and open it again.") == true, "\(String(describing: error))")
    file.close()
    try DurableFile(path: folder.file("a/store")).replace([1])
  }

  @Test func aFolderThatAllUsersMayWriteToIsRefusedUnlessAllowed() throws {
    TestFile.makeFolder(folder.file("open"))
    TestFile.setPermissions(0o777, of: folder.file("open"))
    let path = folder.file("open/store")
    #expect(storeError { try DurableFile(path: path) }?.code == .notPermitted)
    try DurableFile(path: path, options: DurableFileOptions(allowsSharedFolder: true)).replace([1])
    TestFile.setPermissions(0o1777, of: folder.file("open"))
    _ = try DurableFile(path: path)
  }

  /// The process is that of user 10's app 57.
  @Test(
    arguments: [
      (1_010_057, .android, true), (1_010_057, .other, true), (1_020_057, .android, true), (1_020_057, .other, false),
      (1_020_058, .android, false), (1_030_057, .android, false), (20_057, .android, false), (0, .android, false),
    ] as [(UInt32, FileTrust.Platform, Bool)])
  func theGroupOfAnAppsCachesIsTrustedOnAndroid(group: UInt32, platform: FileTrust.Platform, isTrusted: Bool) {
    #expect(FileTrust.isTrusted(group: group, ofProcessWith: 1_010_057, on: platform) == isTrusted)
    // The system's own users aren't apps.
    #expect(!FileTrust.isTrusted(group: 12_000, ofProcessWith: 2000, on: .android))
  }

  @Test func theGroupOfAllUsersIsNotTrustedOnApplesSystems() {
    #expect(!FileTrust.isTrusted(group: 20, ofProcessWith: 20, on: .apple))
    #expect(FileTrust.isTrusted(group: 20, ofProcessWith: 20, on: .other))
  }

  @Test func anotherUsersFileIsRefusedIfTheOptionsRequireAnOwnFile() throws {
    guard System.isRoot else { return print("Skipped: only root may give files away.") }
    TestFile.write([1], to: folder.file())
    chown(folder.file(), 1234, 1234)
    #expect(storeError { try DurableFile(path: folder.file(), options: DurableFileOptions(requiresOwnFile: true)) }?.code == .notPermitted)
    _ = try DurableFile(path: folder.file())
  }

  /// The bug: the owner was checked only on opening.
  @Test func anotherUsersFileThatReplacesAnOpenOneIsRefusedIfTheOptionsRequireAnOwnFile() throws {
    let disk = SimulatedFileSystem()
    let file = try DurableFile(path: "/store", options: DurableFileOptions(requiresOwnFile: true, fileSystem: disk))
    try file.replace([1])
    disk.setContents(of: "store", [2])
    let root = try disk.openDirectory("/"), theirs = try disk.openLockFile("store", in: root)
    try disk.setOwner(17, group: 18, of: theirs)
    for handle in [theirs, root] { try disk.close(handle) }
    #expect(storeError { try file.contents() }?.code == .notPermitted)
    #expect(storeError { try file.beginReplacing() }?.code == .notPermitted)
    #expect(disk.contents(of: "store") == [2])
    disk.setContents(of: "store", [3])
    #expect(try file.contents() == [3])
    try file.replace([4])
  }

  @Test(.ownThreads) func aFolderThatMayNotBeWrittenToIsATypedError() async throws {
    guard System.isRoot else { return print("Skipped: only root can become another user.") }
    // The folder is created and removed here, because the other process drops its rights.
    await #expect(processExitsWith: .success) { [folder = folder.path as String] in
      let path = folder + "/store"
      TestFile.write([1], to: path)
      TestFile.setPermissions(0o755, of: folder)
      precondition(setgid(65_534) == 0 && setuid(65_534) == 0)
      let file = try DurableFile(path: path)
      let before = try file.contents()
      let error = storeError { try file.replace([2]) }
      precondition(error?.code == .notPermitted, "\(String(describing: error))")
      let after = try file.contents()
      precondition(before == [1] && after == [1])
    }
  }

  @Test func aFileWhoseNameLeavesNoRoomForTemporaryFilesCanOnlyBeRead() throws {
    let path = folder.file(String(repeating: "n", count: 255))
    TestFile.write([1], to: path)
    #expect(storeError { try DurableFile(path: path) }?.code == .invalidPath)
    #expect(try DurableFile(path: path, options: DurableFileOptions(isReadOnly: true)).contents() == [1])
  }

  // MARK: RE3

  @Test func RE3_otherThingsThanFilesAreRefusedAtOnce() throws {
    TestFile.makePipe(folder.file("pipe"))
    TestFile.makeFolder(folder.file("folder"))
    TestFile.makeLink(folder.file("to folder"), to: "folder")
    let disk = ReadCountingFileSystem()
    for path in [folder.file("pipe"), folder.file("folder"), folder.file("to folder"), "/dev/null", "/dev/zero", "/dev/tty", "/"] {
      let error = storeError { try DurableFile(path: path, options: DurableFileOptions(fileSystem: disk)).contents() }
      #expect(error?.code == .notAStore, "\(path): \(String(describing: error))")
    }
    #expect(disk.byteCount == 0)
  }

  @Test func RE3_anEmptyFileHasNoBytes() throws {
    TestFile.write([], to: folder.file())
    let file = try DurableFile(path: folder.file())
    #expect(try file.read { ($0.byteCount, try $0.next() == nil) }! == (0, true))
    file.close()
    #expect(throws: TestImage.Wrong.self) { try TestStore(folder.file()) }
  }

  @Test func RE3_aHugeSparseFileIsRefusedBeforeAByteIsRead() throws {
    TestFile.write([1], to: folder.file())
    guard truncate(folder.file(), 1 << 40) == 0 else { return print("Skipped: this disk doesn't support files of a terabyte.") }
    let disk = ReadCountingFileSystem()
    let file = try DurableFile(path: folder.file(), options: DurableFileOptions(fileSystem: disk))
    var calls = 0
    let error = storeError { try file.read { _ in calls += 1 } }
    #expect(error?.code == .tooLarge && calls == 0 && disk.byteCount == 0)
  }

  /// In a separate process, so that other tests don't change its memory.
  @Test(.ownThreads) func RE3_aHugeFileTakesNoMoreMemoryThanOnePiece() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      TestFile.write([1], to: folder.file())
      guard truncate(folder.file(), 1 << 40) == 0 else { return }
      var file = try DurableFile(path: folder.file())
      _ = storeError { try file.read { _ in } }
      let before = residentBytes()
      #if os(Linux)
        precondition(before > 0)
      #endif
      _ = storeError { try file.read { _ in } }
      precondition(TestTier.isThreadSanitized || residentBytes() - before <= 1 << 18)
      file.close()

      // If the options allow the size, only one piece is in memory at a time.
      file = try DurableFile(path: folder.file(), options: DurableFileOptions(maximumByteCount: 1 << 41))
      let found = try file.read { reader in
        for _ in 0..<100 { _ = try reader.next() }
        return (reader.byteCount, try reader.next()?.count)
      }
      precondition(found! == (1 << 40, 1 << 20))
      precondition(residentBytes() - before <= 3 << 20, "\(residentBytes() - before)")
    }
  }

  // MARK: RD3

  @Test func RD3_anotherFileInItsPlaceIsFoundBeforeAnythingIsWritten() throws {
    let store = try TestStore(folder.file())
    try store.save()
    TestFile.write(TestImage.encode(77, byteCount: 40), to: folder.file("new"))
    rename(folder.file("new"), folder.file())
    #expect(try store.file.change() == .replaced)
    #expect(storeError { try store.save() }?.code == .storeReplaced)
    // A second attempt fails too, because this process still has the old contents.
    #expect(storeError { try store.save() }?.code == .storeReplaced)
    #expect(try TestImage.decode(TestFile.read(folder.file())) == 77)
    try store.reload()
    try store.save()
    #expect(store.generation == 78 && folder.names == [".store.lock", "store"])
  }

  @Test func RD3_writingWithoutReadingAChangeIsRefused() throws {
    let file = try DurableFile(path: folder.file())
    try file.replace([1])
    TestFile.write([2, 2], to: folder.file())
    let replacement = try file.beginReplacing()
    #expect(replacement.foundChange == .replaced)
    let error = storeError { try replacement.write(UnsafeRawBufferPointer(start: nil, count: 0)) }
    #expect(error?.code == .storeReplaced && error?.coreDataCode == 134_050)
    // A failed call ends the replacement. Later calls throw the same error, and no lock is held.
    #expect(storeError { try replacement.commit() }?.code == .storeReplaced)
    let next = try file.beginReplacing()
    #expect(try next.read { try $0.allBytes() } == [2, 2])
    try next.commit()
    #expect(try file.contents() == [])
  }

  @Test func RD3_aFileThatWasChangedInPlaceIsFound() throws {
    let store = try TestStore(folder.file())
    try store.save()
    TestFile.setSize(10, of: folder.file())
    #expect(try store.file.change() == .replaced)
    #expect(throws: TestImage.Wrong.self) { try store.save() }
    #expect(TestFile.status(folder.file())?.st_size == 10)
    #expect(folder.names == [".store.lock", "store"])
  }

  @Test func RD3_aFileThatWasRemovedIsFound() throws {
    let store = try TestStore(folder.file())
    try store.save()
    TestFile.delete(folder.file())
    #expect(try store.file.change() == .removed)
    let replacement = try store.file.beginReplacing()
    #expect(replacement.foundChange == .removed)
    replacement.abort()
    #expect(storeError { try store.save() }?.code == .storeReplaced)
    #expect(folder.names == [".store.lock"])
    try store.reload()
    try store.save()
    #expect(store.generation == 1)
  }

  @Test func RD3_aFileThatAppearedIsFound() throws {
    let store = try TestStore(folder.file())
    TestFile.write(TestImage.encode(5, byteCount: 4), to: folder.file())
    #expect(storeError { try store.save() }?.code == .storeReplaced)
    #expect(try TestImage.decode(TestFile.read(folder.file())) == 5)
  }

  /// By a program that doesn't use the lock, or that got another one because the lock file was removed. The bug: its version was lost.
  @Test(arguments: [0, 2], [false, true]) func RD3_aVersionThatIsWrittenBesideAPreparedSaveIsNotOverwritten(backupCount: Int, removes: Bool)
    throws
  {
    let file = try DurableFile(path: folder.file(), options: DurableFileOptions(backupCount: backupCount))
    for version in [[1], [2, 2], nil, [3]] as [[UInt8]?] {
      let replacement = try file.beginReplacing()
      #expect(replacement.foundChange == .none)
      if !removes {
        try replacement.write([9, 9, 9])
        try replacement.finish()
      }
      if let version {
        TestFile.write(version, to: folder.file("new"))
        rename(folder.file("new"), folder.file())
      } else {
        TestFile.delete(folder.file())
      }
      let error = storeError { try removes ? replacement.commitRemoval() : replacement.commit() }
      #expect(error?.code == .storeReplaced && error?.isRetryable == true && error?.path == folder.file(), "\(String(describing: error))")
      #expect(folder.names == (version == nil ? [".store.lock"] : [".store.lock", "store"]))
      // The next save is based on this version.
      #expect(try file.contents() == version)
    }
    // A version that is read under the lock is replaced.
    let replacement = try file.beginReplacing()
    TestFile.write([4], to: folder.file("new"))
    rename(folder.file("new"), folder.file())
    #expect(try replacement.read { try $0.allBytes() } == [4])
    try replacement.write([5])
    try replacement.commit()
    #expect(try file.contents() == [5] && file.change() == .none)
  }

  @Test func RD3_changedPermissionsAreNotChangedContents() throws {
    let store = try TestStore(folder.file())
    try store.save()
    TestFile.setPermissions(0o640, of: folder.file())
    #expect(try store.file.change() == .replaced, "The status alone can't rule out another file.")
    try store.save()
    #expect(store.generation == 2 && TestFile.permissions(folder.file()) == 0o640)
  }

  @Test func RD3_aFileThatBecameALinkOrAFolderIsRefused() throws {
    let store = try TestStore(folder.file())
    try store.save()
    TestFile.delete(folder.file())
    TestFile.makeLink(folder.file(), to: "/etc/passwd")
    #expect(storeError { try store.save() }?.code == .notAStore)
    #expect(storeError { try store.reload() }?.code == .notAStore)
    TestFile.delete(folder.file())
    TestFile.makeFolder(folder.file())
    #expect(storeError { try store.save() }?.code == .notAStore)
    #expect(storeError { try store.reload() }?.code == .notAStore)
  }

  // MARK: RD4

  @Test func RD4_aSecondOpeningInOneProcessIsRefusedUnderEveryName() throws {
    let first = try DurableFile(path: folder.file())
    try first.replace([1])
    TestFile.makeLink(folder.file("link"), to: "store")
    TestFile.makeLink(folder.file("folder"), to: ".")
    for name in ["store", "link", "./store", "folder/store"] {
      let error = storeError { try DurableFile(path: folder.file(name)) }
      #expect(error?.code == .alreadyOpen, "\(name)")
    }
    #expect(storeError { try DurableFile(path: folder.file(), options: DurableFileOptions(isReadOnly: true)) }?.code == .alreadyOpen)
    _ = try DurableFile(path: folder.file("other"))
    first.close()
    let second = try DurableFile(path: folder.file("link"))
    #expect(try second.contents() == [1])
  }

  #if !canImport(Darwin)
    /// The names also have the same number of bytes.
    @Test func namesThatDifferOnlyInTheirNormalizationAreThoseOfDifferentFiles() throws {
      let names = ["a\u{323}\u{307}", "a\u{307}\u{323}", "\u{1EA1}\u{307}"]
      let files = try names.map { try DurableFile(path: folder.file($0)) }
      for (place, file) in files.enumerated() { try file.replace([UInt8(place)]) }
      // A save removes only the temporary files that are left of its own file.
      let temporary = names.map { ".\($0).0123456789abcdef.tmp" }
      for name in temporary { TestFile.write([9], to: folder.file(name)) }
      try files[0].replace([3])
      #expect(temporary.map { TestFile.exists(folder.file($0)) } == [false, true, true])
      for (file, contents) in zip(files, [[3], [1], [2]] as [[UInt8]]) { #expect(try file.contents() == contents) }
    }
  #endif

  @Test func RD4_ofManyThreadsOneOpensTheFile() async throws {
    let path = folder.file()
    let outcomes = await withTaskGroup(of: (DurableFile?, StoreError.Code?).self) { group in
      for _ in 0..<8 {
        group.addTask {
          do throws(StoreError) { return (try DurableFile(path: path), nil) } catch { return (nil, error.code) }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(outcomes.count { $0.0 != nil } == 1)
    #expect(outcomes.count { $0.1 == .alreadyOpen } == 7)
  }

  /// In a separate process, because a fork has only one thread of the test process.
  @Test(.ownThreads) func RD4_aForkedChildMayNotUseAnOpenFileButMayOpenItItself() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      let file = try DurableFile(path: folder.file(), options: DurableFileOptions(lockTimeout: .seconds(0.05)))
      try file.replace([1])
      var replacement: FileReplacement? = try file.beginReplacing()
      try [UInt8](repeating: 2, count: 2_000_000).withUnsafeBytes { try replacement?.write($0) }
      let outcome = System.inForkedChild {
        guard storeError({ try file.contents() })?.code == .failed, storeError({ try file.replace([9]) })?.code == .failed else { return 1 }
        // Releasing the replacement in the child removes neither the parent's temporary file nor its lock.
        replacement = nil
        guard folder.namesWithoutLock.count == 2 else { return 2 }
        guard let own = try? DurableFile(path: folder.file(), options: DurableFileOptions(lockTimeout: .seconds(0.05))) else { return 3 }
        guard (try? own.contents()) == [1] else { return 4 }
        guard storeError({ try own.replace([9]) })?.code == .locked else { return 5 }
        return 0
      }
      precondition(outcome == 0, "\(outcome)")
      try replacement?.commit()
      let count = try file.contents()?.count
      precondition(count == 2_000_000)
    }
  }
}

/// The resident anonymous memory of this process. Pages of its code don't count.
private func residentBytes() -> Int {
  guard TestFile.exists("/proc/self/status") else { return 0 }
  let lines = String(decoding: TestFile.read("/proc/self/status"), as: UTF8.self).split(separator: "\n")
  let fields = lines.first { $0.hasPrefix("RssAnon:") }?.split(whereSeparator: \.isWhitespace) ?? []
  return fields.count > 1 ? (Int(fields[1]) ?? 0) * 1024 : 0
}
