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

/// Another program replaces, truncates, removes or forbids access to the file of an open store, or the file is opened a second time.
@Suite(.ownThreads) struct ForeignChangeTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file("harbour") }

  init() throws { folder = TemporaryFolder() }

  private func opened(_ store: FileStore) throws -> ManagedObjectContext {
    try Harbour.makeFile(store.description(at: path))
    return try Harbour.context(store.description(at: path))
  }

  private func ships(_ context: ManagedObjectContext) throws -> [Ship] {
    try context.fetch(FetchRequest<Ship>(sortedBy: [.ascending(\.number)]))
  }

  /// Copies the folder, changes the copy in another process, and renames the copy's file over the store's file. Keys reserved in the copy's
  /// lock file are lost.
  ///
  /// - Parameter meanwhile: What happens after the copy was made.
  private func replaceByLaterVersion(_ store: FileStore, _ change: Change, meanwhile: () throws -> Void = {}) async throws {
    let copy = folder.path + "-copy"
    try FileManager.default.copyItem(atPath: folder.path, toPath: copy)
    defer { try? FileManager.default.removeItem(atPath: copy) }
    try meanwhile()
    await #expect(processExitsWith: .success) {
      [path = copy + "/harbour" as String, store = store as FileStore, change = change as Change] in
      let context = try Harbour.context(store.description(at: path))
      try change.make(context)
      try context.save()
      try context.persistentStoreCoordinator.close()
    }
    #expect(rename(copy + "/harbour", path) == 0)
  }

  enum Change: Codable, Sendable {
    case rename(Int64, String)
    case delete(Int64)
    /// Inserts ships with these numbers.
    case insert([Int64])

    func make(_ context: ManagedObjectContext) throws {
      switch self {
      case .rename(let number, let name): try Self.ship(number, context).name = name
      case .delete(let number): context.delete(try Self.ship(number, context))
      case .insert(let numbers):
        for number in numbers {
          let ship = context.insert(Ship.self)
          (ship.name, ship.number) = ("Theirs", number)
        }
      }
    }

    private static func ship(_ number: Int64, _ context: ManagedObjectContext) throws -> Ship {
      try #require(try context.fetch(FetchRequest<Ship> { $0.number == number }).first)
    }
  }

  /// Expects a save to be refused and to leave the store unchanged.
  @discardableResult
  private func expectRefusedSave(_ context: ManagedObjectContext, _ codes: [StoreError.Code], _ comment: String = "") throws -> StoreError {
    let before = try folder.snapshot().filter { !$0.key.hasPrefix(".") }
    let error = try #require(throws: StoreError.self, "\(comment)") { try context.save() }
    #expect(codes.contains(error.code) && error.path == path, "\(comment): \(error)")
    #expect(context.hasChanges)
    #expect(try folder.snapshot().filter { !$0.key.hasPrefix(".") } == before, "\(comment)")
    #expect(try folder.snapshot().keys.allSatisfy { !$0.hasSuffix(".tmp") }, "\(comment)")
    // The contents read before are still readable.
    let reader = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Harbour.classes)
    #expect(try Voyage.check(reader) == (12, nil), "\(comment)")
    return error
  }

  // MARK: RD3, a later version

  @Test(arguments: FileStore.wholeFile)
  func RD3_aLaterVersionIsMergedByTheNextSave(store: FileStore) async throws {
    let context = try opened(store)
    let own = try ships(context)
    own[0].name = "Ours"
    try await replaceByLaterVersion(store, .rename(try #require(own[5].number), "Theirs"))
    let announced = context.persistentStoreCoordinator.savedChanges()
    try context.save()
    // The other program's changes, then this save's.
    var changes = announced.makeAsyncIterator()
    // A binary file that was read page by page has no tables to compare with.
    let theirs = try #require(await changes.next())
    #expect(store == .binary ? theirs.mayIncludeOthers : theirs.updated == [own[5].objectID] && !theirs.mayIncludeOthers)
    #expect(await changes.next()?.updated == [own[0].objectID])
    context.reset()
    #expect(try ships(context).map(\.name).filter { !$0.hasPrefix("Ship") } == ["Ours", "Theirs"])
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(store.description(at: path))
    #expect(try ships(again).map(\.name).filter { !$0.hasPrefix("Ship") } == ["Ours", "Theirs"])
    try again.persistentStoreCoordinator.close()
  }

  /// Keys reserved beside a copy of the file are unknown here, so new keys are chosen after reading the new file.
  @Test(arguments: FileStore.wholeFile)
  func RD3_newObjectsHereAndInALaterVersionAreBothKept(store: FileStore) async throws {
    let context = try opened(store)
    let own = (100..<103).map { number in
      let ship = context.insert(Ship.self)
      (ship.name, ship.number) = ("Ours", Int64(number))
      return ship
    }
    own[0].routes.insert(try #require(try context.fetch(FetchRequest<Route>()).first))
    try await replaceByLaterVersion(store, .insert([200, 201]))
    try context.save()
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(store.description(at: path))
    let added = try ships(again).filter { !$0.name.hasPrefix("Ship") }
    #expect(added.map(\.number) == [100, 101, 102, 200, 201] && added.map(\.routes.count) == [1, 0, 0, 0, 0])
    #expect(Set(try ships(again).map(\.objectID)).count == 15)
    try again.persistentStoreCoordinator.close()
  }

  /// The bug: each save said that the next one would succeed.
  @Test(arguments: FileStore.wholeFile)
  func RD3_anObjectWhosePermanentIDALaterVersionHasIsRefusedForGood(store: FileStore) async throws {
    let context = try opened(store), ship = context.insert(Ship.self)
    (ship.name, ship.number) = ("Ours", 100)
    try await replaceByLaterVersion(store, .insert([200])) { try context.obtainPermanentIDs(for: [ship]) }
    for isRetryable in [true, false, false] {
      let error = try #require(throws: StoreError.self) { try context.save() }
      #expect(error.code == .storeReplaced && error.isRetryable == isRetryable && error.path == path && context.hasChanges, "\(error)")
    }
    context.delete(ship)
    let other = context.insert(Ship.self)
    (other.name, other.number) = ("Ours", 100)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(store.description(at: path))
    #expect(try ships(again).map(\.name).filter { !$0.hasPrefix("Ship") } == ["Ours", "Theirs"])
    try again.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile)
  func RD3_aUniqueValueThatALaterVersionHasIsAConstraintConflict(store: FileStore) async throws {
    let context = try opened(store)
    let ship = context.insert(Ship.self)
    (ship.name, ship.number) = ("Ours", 200)
    try await replaceByLaterVersion(store, .insert([200]))
    for _ in 0..<2 {
      let error = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(error.code == .constraintConflict && error.objectIDs == [ship.objectID] && context.hasChanges, "\(error)")
    }
    ship.number = 201
    try context.save()
    context.reset()
    #expect(try ships(context).suffix(2).map(\.name) == ["Theirs", "Ours"])
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile)
  func RD3_objectsChangedByBothAreAConflictThatNamesThem(store: FileStore) async throws {
    for deletes in [false, true] {
      for name in ["harbour", ".harbour.lock"] { try? FileManager.default.removeItem(atPath: folder.file(name)) }
      let context = try opened(store)
      let own = try ships(context)
      (own[0].name, own[1].name) = ("Ours", "Ours")
      let number = try #require(own[0].number)
      try await replaceByLaterVersion(store, deletes ? .delete(number) : .rename(number, "Theirs"))
      let theirs = try TemporaryFolder.read(path)
      for _ in 0..<2 {
        let conflict = try #require(throws: PersistenceError.self) { try context.save() }
        #expect(conflict.code == .conflict && conflict.objectIDs == [own[0].objectID], "\(conflict)")
        #expect((conflict.cause as? StoreError)?.path == path && context.hasChanges)
        let isTheirs = try TemporaryFolder.read(path) == theirs
        #expect(isTheirs)
      }
      context.reset()
      #expect(try ships(context).map(\.name).filter { !$0.hasPrefix("Ship") } == (deletes ? [] : ["Theirs"]))
      try ships(context)[1].name = "Ours"
      try context.save()
      try context.persistentStoreCoordinator.close()
    }
  }

  /// Another file with the same bytes isn't a change.
  @Test(arguments: FileStore.wholeFile)
  func RD3_replacingTheFileWithItsCopyIsNotAConflict(store: FileStore) throws {
    let context = try opened(store)
    try Voyage.saveNext(context)
    try TemporaryFolder.write(try TemporaryFolder.read(path), to: folder.file("copy"))
    #expect(rename(folder.file("copy"), path) == 0)
    #expect(try Voyage.saveNext(context) == 14)
    context.reset()
    #expect(try Voyage.check(context) == (14, nil))
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile)
  func RD3_aRestoredOlderVersionIsNotOverwritten(store: FileStore) throws {
    let context = try opened(store)
    let older = try TemporaryFolder.read(path)
    try Voyage.saveNext(context)
    try TemporaryFolder.write(older, to: folder.file("older"))
    #expect(rename(folder.file("older"), path) == 0)
    _ = try Voyage.changeNext(context)
    let conflict = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(conflict.code == .conflict && !conflict.objectIDs.isEmpty, "\(conflict)")
    context.reset()
    #expect(try Voyage.check(context) == (12, nil))
    #expect(try Voyage.saveNext(context) == 13)
    #expect(try Voyage.check(context) == (13, nil))
    try context.persistentStoreCoordinator.close()
  }

  /// The bug: the next save of a restored row gave it the version of the newer one. So a context that had read that one overwrote it in
  /// silence.
  @Test(arguments: FileStore.wholeFile)
  func RD3_aChangeOfARestoredObjectIsAConflictForAContextThatReadTheNewerOne(store: FileStore) throws {
    let context = try opened(store), older = try TemporaryFolder.read(path), ship = try ships(context)[0]
    ship.name = "Newer"
    try context.save()
    ship.tons = 77
    try TemporaryFolder.write(older, to: folder.file("older"))
    #expect(rename(folder.file("older"), path) == 0)
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Harbour.classes)
    // The save of another object loads the older version.
    try ships(other)[1].tons = 5
    try other.save()
    other.reset()
    let restored = try ships(other)[0]
    #expect(restored.name != "Newer")
    restored.name = "Ours"
    try other.save()
    let conflict = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(conflict.code == .conflict && conflict.objectIDs == [ship.objectID] && context.hasChanges, "\(conflict)")
    context.reset()
    #expect(try ships(context)[0].name == "Ours" && ships(context)[1].tons == 5)
    try context.persistentStoreCoordinator.close()
  }

  /// The store continues with an older version. Its later saves don't contain the version that it had saved before.
  @Test(arguments: FileStore.wholeFile)
  func RD3_aVersionThatAnOlderOneHadReplacedIsNotOverwrittenLater(store: FileStore) throws {
    func put(_ version: [UInt8]) throws {
      try TemporaryFolder.write(version, to: folder.file("version"))
      #expect(rename(folder.file("version"), path) == 0)
    }
    let context = try opened(store)
    let older = try TemporaryFolder.read(path)
    try ships(context)[0].name = "Newer"
    try context.save()
    let newer = try TemporaryFolder.read(path)
    try put(older)
    try ships(context)[0].tons = 5
    #expect(throws: PersistenceError.self) { try context.save() }
    context.reset()
    let ship = try ships(context)[0]
    #expect(ship.name != "Newer")
    ship.name = "Ours"
    try context.save()
    try put(newer)
    ship.tons = 77
    for _ in 0..<2 {
      let error = try #require(throws: StoreError.self) { try context.save() }
      #expect(error.code == .storeReplaced && error.path == path && context.hasChanges, "\(error)")
    }
    let isNewer = try TemporaryFolder.read(path) == newer
    #expect(isNewer)
    try context.persistentStoreCoordinator.close()
  }

  /// Two copies diverged, so rows with equal versions may differ.
  @Test(arguments: FileStore.wholeFile, [0, 1, 3])
  func RD3_aDivergedVersionIsNotOverwritten(store: FileStore, further: Int) throws {
    let context = try opened(store)
    let ship = try ships(context)[0]
    let copy = TemporaryFolder()
    try TemporaryFolder.write(try TemporaryFolder.read(path), to: copy.file("harbour"))
    let other = try Harbour.context(store.description(at: copy.file("harbour")))
    let theirs = try ships(other)
    theirs[0].name = "Theirs"
    try other.save()
    for _ in 0..<further {
      theirs[1].tons += 1
      try other.save()
    }
    try other.persistentStoreCoordinator.close()
    ship.name = "Ours"
    try context.save()
    #expect(rename(copy.file("harbour"), path) == 0)

    let before = try TemporaryFolder.read(path)
    ship.tons = 77
    for _ in 0..<2 {
      let error = try #require(throws: StoreError.self) { try context.save() }
      #expect(error.code == .storeReplaced && error.path == path && error.reason.contains("older copy") && context.hasChanges, "\(error)")
    }
    #expect(ship.name == "Ours" && ship.tons == 77)
    let isAsBefore = try TemporaryFolder.read(path) == before
    #expect(isAsBefore)
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(store.description(at: path))
    #expect(try ships(again)[0].name == "Theirs")
    try again.persistentStoreCoordinator.close()
  }

  /// An editor changes values and no versions. The bug: a save of the same object reverted the edit in silence, and it wasn't reported.
  @Test(arguments: [FileStore.json, .xml])
  func RD3_anEditByHandOfAnObjectThatIsChangedHereIsAConflict(store: FileStore) async throws {
    try Harbour.makeFile(store.description(at: path))
    let context = try Harbour.context(store.unverified(at: path)), own = try ships(context)
    let announced = context.persistentStoreCoordinator.savedChanges(), id = own[0].objectID
    let (before, after) = store == .json ? ("\"\(own[0].name)\"", "\"Theirs\"") : (">\(own[0].name)<", ">Theirs<")
    own[0].tons = 77
    own[1].tons = 78
    let text = String(decoding: try TemporaryFolder.read(path), as: UTF8.self)
    #expect(text.ranges(of: before).count == 1)
    try TemporaryFolder.write(Array(text.replacing(before, with: after).utf8), to: folder.file("edited"))
    #expect(rename(folder.file("edited"), path) == 0)
    for mode in [0o640, 0o600] as [mode_t] {
      let conflict = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(conflict.code == .conflict && conflict.objectIDs == [id] && context.hasChanges, "\(conflict)")
      // The file is read again, and the object is still in conflict.
      #expect(chmod(path, mode) == 0)
    }
    var changes = announced.makeAsyncIterator()
    #expect(await changes.next()?.updated == [id])
    context.reset()
    let ship = try ships(context)[0]
    #expect(ship.name == "Theirs" && ship.tons != 77)
    ship.tons = 77
    try context.save()
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(store.description(at: path))
    #expect(try ships(again)[0].name == "Theirs" && ships(again)[0].tons == 77)
    try again.persistentStoreCoordinator.close()
  }

  /// Another process loads the edit and saves, so the file has a valid digest again. The bug: edits were looked for only in files without
  /// one.
  @Test(arguments: [FileStore.json, .xml], [false, true])
  func RD3_anEditByHandThatAnotherProcessSavesIsAConflict(store: FileStore, isLoadedBefore: Bool) throws {
    try Harbour.makeFile(store.description(at: path))
    let context = try Harbour.context(store.unverified(at: path))
    var own = try ships(context)
    let id = own[0].objectID
    let (before, after) = store == .json ? ("\"\(own[0].name)\"", "\"Theirs\"") : (">\(own[0].name)<", ">Theirs<")
    let text = String(decoding: try TemporaryFolder.read(path), as: UTF8.self)
    #expect(text.ranges(of: before).count == 1)
    let edited = Array(text.replacing(before, with: after).utf8)
    if isLoadedBefore {
      // The edited row then has the version here that the other process's save gives it.
      try TemporaryFolder.write(edited, to: folder.file("edited"))
      #expect(rename(folder.file("edited"), path) == 0)
      own[0].tons = 77
      #expect(throws: PersistenceError.self) { try context.save() }
      context.reset()
      own = try ships(context)
    }
    let copy = TemporaryFolder()
    try TemporaryFolder.write(edited, to: copy.file("harbour"))
    let other = try Harbour.context(store.unverified(at: copy.file("harbour")))
    try ships(other)[isLoadedBefore ? 0 : 1].tons = 4321
    try other.save()
    try other.persistentStoreCoordinator.close()
    own[0].tons = 77
    #expect(rename(copy.file("harbour"), path) == 0)
    let conflict = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(conflict.code == .conflict && conflict.objectIDs == [id] && context.hasChanges, "\(conflict)")
    context.reset()
    let found = try ships(context)
    #expect(found[0].name == "Theirs" && found[0].tons != 77 && found[isLoadedBefore ? 0 : 1].tons == 4321)
    found[0].tons = 77
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  // MARK: RD3, other files

  @Test(arguments: FileStore.wholeFile)
  func RD3_anotherStoreAtThePathIsNotOverwritten(store: FileStore) throws {
    let context = try opened(store)
    _ = try Voyage.changeNext(context)
    try Harbour.makeFile(store.description(at: folder.file("other")), saves: 3)
    try FileManager.default.removeItem(atPath: folder.file(".other.lock"))
    #expect(rename(folder.file("other"), path) == 0)
    for _ in 0..<2 { try expectRefusedSave(context, [.storeReplaced]) }
    try context.persistentStoreCoordinator.close()
    let other = try Harbour.context(store.description(at: path))
    #expect(try Voyage.check(other) == (3, nil))
    try other.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile)
  func RD3_aTruncatedFileIsNotOverwrittenAndCanBeRestored(store: FileStore) throws {
    let context = try opened(store)
    let whole = try TemporaryFolder.read(path)
    _ = try Voyage.changeNext(context)
    for length in [whole.count - 1, whole.count / 2, 100, 0] {
      #expect(truncate(path, off_t(length)) == 0)
      try expectRefusedSave(context, [.damaged, .notAStore], "\(length) bytes")
    }
    try TemporaryFolder.write(whole, to: path)
    try context.save()
    context.reset()
    #expect(try Voyage.check(context) == (13, nil))
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile)
  func RD3_aRemovedFileIsNotRecreatedAndCanBeRestored(store: FileStore) throws {
    let context = try opened(store)
    _ = try Voyage.changeNext(context)
    #expect(rename(path, folder.file("elsewhere")) == 0)
    for _ in 0..<2 { try expectRefusedSave(context, [.storeReplaced]) }
    #expect(throws: StoreError.self) { try context.persistentStoreCoordinator.setMetadata([:]) }
    #expect(!TemporaryFolder.exists(path))
    #expect(rename(folder.file("elsewhere"), path) == 0)
    try context.save()
    #expect(try Voyage.check(context) == (13, nil))
    try context.persistentStoreCoordinator.close()
    #expect(folder.openDescriptors == 0)
  }

  @Test(arguments: FileStore.wholeFile)
  func RD3_aFolderThatWasRemovedIsATypedError(store: FileStore) throws {
    let context = try opened(store)
    _ = try Voyage.changeNext(context)
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) { #expect(unlink(folder.file(name)) == 0) }
    #expect(rmdir(folder.path) == 0)
    let error = try #require(throws: StoreError.self) { try context.save() }
    #expect([.notFound, .storeReplaced].contains(error.code) && error.path == path && context.hasChanges, "\(error)")
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile)
  func RD3_aFolderOrALinkAtThePathIsNotOverwritten(store: FileStore) throws {
    let context = try opened(store)
    _ = try Voyage.changeNext(context)
    #expect(rename(path, folder.file("elsewhere")) == 0)
    #expect(mkdir(path, 0o700) == 0)
    try expectRefusedSave(context, [.notAStore], "folder")
    #expect(rmdir(path) == 0)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "elsewhere")
    try expectRefusedSave(context, [.notAStore], "link")
    #expect(unlink(path) == 0)
    #expect(mkfifo(path, 0o600) == 0)
    try expectRefusedSave(context, [.notAStore], "pipe")
    try context.persistentStoreCoordinator.close()
  }

  // MARK: RD3, permissions

  @Test(arguments: FileStore.wholeFile)
  func RD3_changedPermissionsAreKeptByTheNextSave(store: FileStore) throws {
    let context = try opened(store)
    for mode in [0o640, 0o444, 0o400] as [mode_t] {
      #expect(chmod(path, mode) == 0)
      try Voyage.saveNext(context)
      var status = stat()
      #expect(stat(path, &status) == 0 && status.st_mode & 0o7777 == mode)
    }
    context.reset()
    #expect(try Voyage.check(context) == (15, nil))
    try context.persistentStoreCoordinator.close()
  }

  /// Root may do everything, so this runs in a process that drops its rights.
  @Test(arguments: FileStore.wholeFile)
  func RD3_aFileOrFolderThatBecameUnwritableIsATypedError(store: FileStore) async throws {
    #expect(chmod(folder.path, 0o777 | mode_t(S_ISVTX)) == 0)
    await #expect(processExitsWith: .success) { [folder = folder.path as String, store = store as FileStore] in
      precondition(!System.isRoot || System.dropRights(), "Root couldn't drop its rights.")
      // A new folder, because the process can't change the permissions of the other one.
      let inner = folder + "/inner"
      precondition(mkdir(inner, 0o700) == 0)
      let path = inner + "/harbour"
      try Harbour.makeFile(store.description(at: path))
      let context = try Harbour.context(store.description(at: path))
      _ = try Voyage.changeNext(context)
      for mode in [0o500, 0o000] as [mode_t] {
        precondition(chmod(inner, mode) == 0)
        do {
          try context.save()
          preconditionFailure("The store was saved.")
        } catch let error as StoreError {
          precondition(error.code == .notPermitted && error.path == path && context.hasChanges, "\(error)")
        }
      }
      precondition(chmod(inner, 0o700) == 0)
      try context.save()
      let found = try Voyage.check(context)
      precondition(found == (13, nil), "\(found)")
      try context.persistentStoreCoordinator.close()
    }
  }

  // MARK: RD4

  @Test(arguments: FileStore.wholeFile)
  func RD4_aSecondOpeningIsRefusedUnderEveryName(store: FileStore) throws {
    let context = try opened(store)
    try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: "harbour")
    try FileManager.default.createSymbolicLink(atPath: folder.file("folder"), withDestinationPath: ".")
    let last = (folder.path as NSString).lastPathComponent
    for name in ["harbour", "link", "./harbour", "folder/harbour", "../\(last)/harbour", "folder/../\(last)/link"] {
      let error = try #require(throws: StoreError.self, "\(name)") { try Harbour.context(store.description(at: folder.file(name))) }
      #expect(error.code == .alreadyOpen && error.path == path, "\(name): \(error)")
    }
    // The attempts don't affect the open store, not even its lock.
    #expect(try Voyage.saveNext(context) == 13)
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(store.description(at: folder.file("link")))
    #expect(try Voyage.check(again) == (13, nil))
    try again.persistentStoreCoordinator.close()
    #expect(folder.openDescriptors == 0)
  }

  @Test(arguments: FileStore.wholeFile)
  func RD4_aForkedProcessMayNotUseAnOpenStoreButMayOpenItItself(store: FileStore) async throws {
    await #expect(processExitsWith: .success) { [path = path as String, store = store as FileStore] in
      try Harbour.makeFile(store.description(at: path))
      let context = try Harbour.context(store.description(at: path))
      _ = try Voyage.changeNext(context)
      let child = System.fork()
      if child == 0 { _exit(ForkedChild.outcome(context, store, path)) }
      var status: Int32 = 0
      waitpid(child, &status, 0)
      precondition(status == 0, "The child ended with \(status).")
      // The child saved too, so this save is a conflict. The store stays usable.
      do {
        try context.save()
        preconditionFailure("The child's save was overwritten.")
      } catch let error as PersistenceError {
        precondition(error.code == .conflict, "\(error)")
      }
      context.reset()
      let saves = try Voyage.saveNext(context)
      precondition(saves == 14)
      try context.persistentStoreCoordinator.close()
    }
  }
}

private enum ForkedChild {
  /// 0 if every check passes.
  static func outcome(_ context: ManagedObjectContext, _ store: FileStore, _ path: String) -> Int32 {
    do {
      try context.save()
      return 1
    } catch let error as StoreError {
      guard error.code == .failed, error.path == path, error.reason.contains("forked"), context.hasChanges else { return 2 }
    } catch { return 3 }
    do {
      let own = try Harbour.context(store.description(at: path))
      guard try Voyage.saveNext(own) == 13, try Voyage.check(own) == (13, nil) else { return 4 }
      try own.persistentStoreCoordinator.close()
      return 0
    } catch { return 5 }
  }
}
