import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastFiles
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// Processes that are killed while they remove or replace a store with external files. Later calls finish what they left.
@Suite(.ownThreads) struct InterruptedRemovalTests {
  @Test(arguments: FileStore.all)
  func RA4_whatRemainsOfAStoreWhoseDestructionIsKilledIsRemovedByTheNextOneOrByANewStore(kind: FileStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) { [kind = kind as FileStore] in
      try KilledRemoval(kind: kind, replaces: false).run()
    }
    report(child)
  }

  @Test(arguments: FileStore.all)
  func RA4_whatRemainsOfAReplacementThatIsKilledIsRemovedWhenTheStoreIsOpened(kind: FileStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) { [kind = kind as FileStore] in
      try KilledRemoval(kind: kind, replaces: true).run()
    }
    report(child)
  }

  /// The bug: they remained forever, because no store with the UUID in their note is opened again.
  @Test(arguments: FileStore.all, [false, true])
  func filesOfAnInterruptedSaveAreRemovedWithTheStore(kind: FileStore, replaces: Bool) throws {
    let gallery = try GalleryFolder(kind), other = try GalleryFolder(kind)
    let names = try gallery.make([Gallery.bytes(1, 3000)]).compactMap(\.self)
    let copied = try other.make([Gallery.bytes(2, 3000)]).compactMap(\.self)
    try #require(gallery.files == names && names.count == 1)
    let store = kind.description(at: gallery.path, Gallery.small), lost = UUID().uuidString
    let uuid = try PersistentStoreCoordinator.metadata(for: store).storeUUID
    try TemporaryFolder.write(Array("half a value".utf8), to: gallery.data + "/" + lost)
    let note = "\(lost)\t1\tPhoto\timage\n\(names[0])\t1\tPhoto\timage\n"
    try TemporaryFolder.write(Array(note.utf8), to: "\(gallery.support)/.holdfast-\(uuid).0123456789abcdef.save")
    if replaces {
      try PersistentStoreCoordinator.replacePersistentStore(store, withCopyOf: kind.description(at: other.path, Gallery.small))
    } else {
      try PersistentStoreCoordinator.destroyPersistentStore(store)
    }
    #expect(gallery.files == (replaces ? copied : []) && gallery.notes.isEmpty)
  }

  /// A note is as untrusted as any file: it removes only files that the store at its path doesn't name.
  @Test(arguments: FileStore.all) func aNoteOfARemovalRemovesNoFileThatTheStoreNames(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind), names = try gallery.make([Gallery.bytes(1, 3000), Gallery.bytes(2, 3000)]).compactMap(\.self)
    try #require(names.count == 2 && gallery.files == names.sorted())
    let lost = UUID().uuidString
    try TemporaryFolder.write(Array("orphan".utf8), to: gallery.data + "/" + lost)
    func write(_ lines: [String], _ digit: String) throws {
      try TemporaryFolder.write(
        Array((lines.joined(separator: "\n") + "\n").utf8),
        to: "\(gallery.support)/.holdfast-\(UUID().uuidString).\(digit)123456789abcdef.removal")
    }
    // The note of a store beside it.
    try write(["gallery.other", lost] + names, "0")
    try gallery.open().persistentStoreCoordinator.close()
    #expect(gallery.files == (names + [lost]).sorted() && gallery.notes.count == 1)
    // That of an earlier store at the path, and two that were interrupted while they were written.
    try write(["gallery.store", lost] + names + ["../../gallery.store", "nothing"], "1")
    try write(["gallery.other"], "2")
    try TemporaryFolder.write([], to: "\(gallery.support)/.holdfast-\(UUID().uuidString).3123456789abcdef.removal")
    try gallery.open(isReadOnly: true).persistentStoreCoordinator.close()
    #expect(gallery.files.count == 3)
    let context = try gallery.open()
    #expect(try Gallery.photos(context).map(\.image) == [Gallery.bytes(1, 3000), Gallery.bytes(2, 3000)])
    try context.persistentStoreCoordinator.close()
    #expect(gallery.files == names.sorted() && gallery.notes.count == 1)
  }

  /// The rows that were read don't name the files of a store that another process puts in place meanwhile.
  @Test(arguments: FileStore.wholeFile) func aStoreThatIsReplacedWhileItIsOpenedKeepsItsFiles(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind), place = URL(fileURLWithPath: gallery.path)
    _ = try gallery.make([nil])
    let former = try Data(contentsOf: place)
    let names = try gallery.make([Gallery.bytes(1, 3000)]).compactMap(\.self), new = try Data(contentsOf: place)
    try #require(names.count == 1 && gallery.files == names)
    try former.write(to: place)
    // An earlier attempt to replace the store was interrupted.
    try TemporaryFolder.write(
      Array("gallery.store\n\(names[0])\n".utf8), to: "\(gallery.support)/.holdfast-\(UUID().uuidString).0123456789abcdef.removal")
    let fileSystem = ReplacingFileSystem { try? new.write(to: place, options: .atomic) }
    let options = WholeFileOptions(file: DurableFileOptions(fileSystem: fileSystem), externalData: Gallery.small)
    try Gallery.context(kind.description(at: gallery.path, options)).persistentStoreCoordinator.close()
    #expect(fileSystem.hasReplaced && gallery.files == names)
    let context = try gallery.open()
    #expect(try Gallery.photos(context).map(\.image) == [nil, Gallery.bytes(1, 3000)])
    try context.persistentStoreCoordinator.close()
    #expect(gallery.files == names && gallery.notes.isEmpty)
  }

  /// The bug: the error said that the store couldn't be replaced, although the copy was in place.
  @Test(arguments: FileStore.wholeFile) func aReplacementSucceedsIfOnlyTheFormerFilesCannotBeRemoved(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind), other = try GalleryFolder(kind)
    let former = try gallery.make([Gallery.bytes(1, 3000)]).compactMap(\.self)
    let names = try other.make([Gallery.bytes(2, 3000)]).compactMap(\.self)
    let options = WholeFileOptions(file: DurableFileOptions(fileSystem: KeepingFileSystem(names: former)), externalData: Gallery.small)
    try PersistentStoreCoordinator.replacePersistentStore(
      kind.description(at: gallery.path, options), withCopyOf: kind.description(at: other.path, Gallery.small))
    #expect(gallery.files == (former + names).sorted() && gallery.notes.count == 1)
    let context = try gallery.open()
    #expect(try Gallery.photos(context).map(\.image) == [Gallery.bytes(2, 3000)])
    try context.persistentStoreCoordinator.close()
    #expect(gallery.files == names && gallery.notes.isEmpty)
  }
}

/// Can't remove some files.
private struct KeepingFileSystem: ForwardingFileSystem {
  let names: [String]
  let base: any StoreFileSystem = POSIXFileSystem()

  func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) {
    if names.contains(name) { throw FileSystemError(.unlink, name: name, number: EIO) }
    try base.unlink(name, in: directory)
  }
}

/// Calls a closure before the names in a support folder are listed for the first time.
private final class ReplacingFileSystem: ForwardingFileSystem {
  let base: any StoreFileSystem = POSIXFileSystem()
  private let replace: Mutex<(@Sendable () -> Void)?>

  init(_ replace: @escaping @Sendable () -> Void) { self.replace = Mutex(replace) }

  var hasReplaced: Bool { replace.withLock { $0 == nil } }

  func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String] {
    if directory.name.hasSuffix("_SUPPORT") {
      replace.withLock { replace in
        replace?()
        replace = nil
      }
    }
    return try base.names(in: directory)
  }
}

/// Runs in a separate process.
private struct KilledRemoval {
  let kind: FileStore
  /// Whether the store is replaced, or destroyed.
  let replaces: Bool

  private static let images: [Data?] = [Gallery.bytes(1, 3000), Gallery.bytes(2, 3000)]
  private static let others: [Data?] = [Gallery.bytes(3, 4000)]

  private struct Galleries {
    let store: GalleryFolder
    let other: GalleryFolder
  }

  func run() throws {
    guard let whole = try watched(killingAt: nil) else { return print(Tracer.skipped) }
    demand(whole.run.isSuccess, "The process could not remove the store: \(whole.run.lines.suffix(5))")
    let step = TestTier.step(calls: whole.run.calls.count, kills: 6), first = Int.random(in: 0..<step)
    var (kills, removed) = (0, 0)
    for (place, call) in whole.run.calls.enumerated() where place % step == first {
      guard let (run, galleries) = try watched(killingAt: call) else { return print(Tracer.skipped) }
      demand(run.isKilled || run.isSuccess, "\(call): the process ended with \(run.status)")
      if run.isKilled { kills += 1 }
      do { if try apart({ try survey(galleries, call) }) { removed += 1 } } catch {
        complain("\(call), after which \(galleries.store.folder.namesOfAllLevels): \(error)")
      }
    }
    demand(kills > 0, "No kills")
    print(
      "REPORT RA4, \(replaces ? "replacement" : "destruction") of \(kind), from call \(first), each \(step): killed at \(kills) of "
        + "\(whole.run.calls.count) calls, \(removed) were done")
  }

  private func watched(killingAt call: Tracer.Call?) throws -> (run: Tracer.Run, galleries: Galleries)? {
    let galleries = Galleries(store: try GalleryFolder(kind), other: try GalleryFolder(kind))
    try apart {
      _ = try galleries.store.make(Self.images)
      _ = try galleries.other.make(Self.others)
    }
    let run = try Tracer.run(notes: galleries.store.folder.path + ".trace", killingAt: call) {
    } _: {
      try change(galleries)
    }
    return run.map { ($0, galleries) }
  }

  private func description(_ gallery: GalleryFolder) -> StoreDescription { kind.description(at: gallery.path, Gallery.small) }

  private func change(_ galleries: Galleries) throws {
    if replaces {
      try PersistentStoreCoordinator.replacePersistentStore(description(galleries.store), withCopyOf: description(galleries.other))
    } else {
      try PersistentStoreCoordinator.destroyPersistentStore(description(galleries.store))
    }
  }

  /// Finishes what was interrupted, and returns whether the store had changed.
  private func survey(_ galleries: Galleries, _ call: Tracer.Call) throws -> Bool {
    let store = galleries.store, isGone = !TemporaryFolder.exists(store.path)
    if replaces {
      let context = try store.open(), found = try Gallery.photos(context).map(\.image)
      try context.persistentStoreCoordinator.close()
      demand(found == Self.images || found == Self.others, "\(call): the store has other contents.")
      demand(store.files.count == found.count && store.notes.isEmpty, "\(call): \(store.files) and \(store.notes) remain.")
      return found == Self.others
    }
    // A new store at the path, or the next destruction.
    if isGone && Bool.random() {
      _ = try store.make(Self.others)
      demand(store.files.count == 1 && store.notes.isEmpty, "\(call): \(store.files) and \(store.notes) remain beside a new store.")
      return true
    }
    if !isGone {
      let context = try store.open()
      let found = try Gallery.photos(context).map(\.image)
      try context.persistentStoreCoordinator.close()
      demand(found == Self.images && store.notes.isEmpty, "\(call): the store has other contents, or \(store.notes) remain.")
    }
    try PersistentStoreCoordinator.destroyPersistentStore(description(store))
    demand(store.files.isEmpty && store.notes.isEmpty, "\(call): \(store.files) and \(store.notes) remain.")
    return isGone
  }
}
