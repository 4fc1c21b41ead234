import Foundation
import Holdfast
import HoldfastAtomicStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Files and folders without permission to read or write. The tests drop their rights in a separate process, because root may do everything.
@Suite(.ownThreads) struct ForbiddenTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  @Test(arguments: FileStore.wholeFile)
  func RC7_everyCombinationOfRightsIsASaveOrATypedErrorAndReadOnlyLeavesNoFile(store: FileStore) async throws {
    #expect(chmod(folder.path, 0o777 | mode_t(S_ISVTX)) == 0)
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [folder = folder.path as String, store = store as FileStore] in
      demand(!System.isRoot || System.dropRights(), "Root couldn't drop its rights.")
      var report = Forbidden.Report()
      for withLock in [true, false] {
        for (folderMode, fileMode) in [0o700, 0o500, 0o600, 0o400, 0o300, 0o000].flatMap({ folder in
          [0o600, 0o400, 0o200, 0o000].map { (folder, $0) }
        }) {
          let forbidden = Forbidden(store: store, folder: folder + "/inner", folderMode: mode_t(folderMode), fileMode: mode_t(fileMode))
          try forbidden.run(withLock: withLock, &report)
        }
      }
      demand(report.saved >= 2 && report.refused >= 20 && report.read >= 4, "\(report)")
      print("REPORT RC7, \(store): \(report)")
    }
    report(child)
  }

  #if os(Linux)
    /// Even root can't write to such a disk.
    @Test(arguments: FileStore.wholeFile)
    func RC7_onAReadOnlyDiskAStoreOpensReadOnlyAndEverySaveIsATypedError(store: FileStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a read-only disk.") }
      let path = folder.file("harbour")
      try Harbour.makeFile(store.description(at: path))
      unlink(folder.file(".harbour.lock"))
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [folder = folder.path as String, path = path as String, store = store as FileStore] in
        typealias Unshare = @convention(c) (Int32) -> Int32
        let (newMounts, bind, readOnlyAgain): (Int32, UInt, UInt) = (0x20000, 4096, 4096 | 32 | 1)
        guard let unshare = System.symbol("unshare", as: Unshare.self), unshare(newMounts) == 0,
          mount(nil, "/", nil, 1 << 18 | 1 << 14, nil) == 0, mount(folder, folder, nil, bind, nil) == 0,
          mount(nil, folder, nil, readOnlyAgain, nil) == 0
        else { return print("Skipped: this root may not mount a read-only disk.") }
        try Forbidden.expectReadOnly(store, path)
        do {
          let context = try Harbour.context(store.description(at: path))
          _ = try Voyage.changeNext(context)
          do {
            try context.save()
            complain("The store was saved.")
          } catch let error as StoreError {
            demand(error.code == .notPermitted && error.path == path && context.hasChanges, "\(error)")
          }
          try context.persistentStoreCoordinator.close()
        } catch let error as StoreError { demand(error.code == .notPermitted && error.path == path, "\(error)") }
        demand(try FileManager.default.contentsOfDirectory(atPath: folder) == ["harbour"], "A file was created.")
        print("REPORT RC7, \(store): a read-only disk")
      }
      report(child)
    }

    /// Files that even root may not change.
    @Test(arguments: FileStore.wholeFile, [true, false])
    func RC7_anImmutableFileOrFolderIsATypedErrorAndTheSameSaveSucceedsLater(store: FileStore, isFolder: Bool) throws {
      let path = folder.file("harbour")
      try Harbour.makeFile(store.description(at: path))
      let context = try Harbour.context(store.description(at: path))
      _ = try Voyage.changeNext(context)
      let target = isFolder ? folder.path : path
      guard change("+i", target) else {
        try context.persistentStoreCoordinator.close()
        return print("Skipped: chattr is missing, or not supported here.")
      }
      // The lock file changes, because it contains the reserved keys.
      func snapshot() throws -> [String: [UInt8]] { try folder.snapshot().filter { $0.key != ".harbour.lock" } }
      let before = try snapshot()
      let error = #expect(throws: StoreError.self) { try context.save() }
      let isAsBefore = try snapshot() == before
      #expect(change("-i", target))
      #expect(error?.code == .notPermitted && error?.path == path && context.hasChanges, "\(String(describing: error))")
      #expect(isAsBefore)
      try context.save()
      #expect(try Voyage.check(context) == (13, nil))
      try context.persistentStoreCoordinator.close()
    }

    /// Runs `chattr`.
    private func change(_ attribute: String, _ path: String) -> Bool {
      (try? Program.run("/usr/bin/chattr", [attribute, path]))?.status == 0
    }
  #endif
}

/// A store in a folder with few permissions. Runs in a process without root's rights.
private struct Forbidden {
  struct Report: CustomStringConvertible {
    var saved = 0
    var refused = 0
    var read = 0
    var description: String { "\(saved) saved, \(refused) refused, \(read) read read-only" }
  }

  let store: FileStore
  let folder: String
  let folderMode: mode_t
  let fileMode: mode_t
  private var path: String { folder + "/harbour" }
  private var name: String { "folder \(String(folderMode, radix: 8)), file \(String(fileMode, radix: 8))" }

  func run(withLock: Bool, _ report: inout Report) throws {
    try? FileManager.default.removeItem(atPath: folder)
    demand(mkdir(folder, 0o700) == 0, "No folder: errno \(errno)")
    defer { chmod(folder, 0o700) }
    try Harbour.makeFile(store.description(at: path))
    if !withLock { unlink(folder + "/.harbour.lock") }
    demand(chmod(path, fileMode) == 0 && chmod(folder, folderMode) == 0, name)
    // The store opens the folder to find the file in it.
    let isReadable = fileMode & 0o400 != 0 && folderMode & 0o500 == 0o500
    // Opens it read-only first, before a save can create files.
    let before = try names()
    do {
      try Self.expectReadOnly(store, path)
      demand(isReadable, "\(name): read without the rights for it")
      report.read += 1
    } catch let error as StoreError {
      demand(!isReadable && error.code == .notPermitted && error.path == path, "\(name), read-only: \(error)")
    }
    try demand(try names() == before, "\(name), read-only: \(try names())")
    let saved = try save(&report)
    // A save succeeds only with the rights for it.
    demand(!saved || folderMode & 0o300 == 0o300 && isReadable, "\(name): saved without the rights for it")
    demand(chmod(folder, 0o700) == 0 && chmod(path, 0o600) == 0, name)
    try demand(try names().allSatisfy { ["harbour", ".harbour.lock"].contains($0) }, "\(name): \(try names())")
    let context = try Harbour.context(store.description(at: path))
    demand(try Voyage.check(context) == (saved ? 13 : 12, nil), "\(name): wrong contents")
    try context.persistentStoreCoordinator.close()
  }

  /// - Returns: Whether the save succeeded.
  private func save(_ report: inout Report) throws -> Bool {
    var context: ManagedObjectContext?
    defer { try? context?.persistentStoreCoordinator.close() }
    do {
      context = try Harbour.context(store.description(at: path))
      if let context { try Voyage.saveNext(context) }
      report.saved += 1
      return true
    } catch let error as StoreError {
      report.refused += 1
      demand(error.code == .notPermitted && error.path == path, "\(name): \(error)")
      demand(context?.hasChanges != false, "\(name): the changes are missing.")
      return false
    }
  }

  /// The names in the folder, whatever its permissions.
  private func names() throws -> [String] {
    var status = stat()
    stat(folder, &status)
    chmod(folder, 0o700)
    defer { chmod(folder, status.st_mode & 0o7777) }
    return try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
  }

  /// Opens a store with twelve saves read-only, and checks it.
  static func expectReadOnly(_ store: FileStore, _ path: String) throws {
    let context = try Harbour.context(store.description(at: path, file: DurableFileOptions(isReadOnly: true)))
    demand(try Voyage.check(context) == (12, nil), "Wrong contents were read.")
    _ = try Voyage.changeNext(context)
    do {
      try context.save()
      complain("A read-only store was saved.")
    } catch let error as StoreError { demand(error.path == path && context.hasChanges, "\(error)") }
    try context.persistentStoreCoordinator.close()
  }
}
