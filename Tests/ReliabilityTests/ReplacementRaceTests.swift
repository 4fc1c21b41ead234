import Foundation
import Holdfast
import HoldfastFiles
import HoldfastSQLiteStore
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// Another process saves after a caller has looked at a store, and before the store's lock is granted to destroy, replace or
/// migrate it.
@Suite struct ReplacementRaceTests {
  static let stores: [FileStore] = [.sqlite(.wal), .sqlite(.delete)] + FileStore.wholeFile

  enum Operation: CaseIterable, Sendable { case destruction, replacement, move, plan, migration }

  private let folder = TemporaryFolder()
  private var path: String { folder.file("a.store") }

  /// The next version of the gallery's model.
  private static let later = Harbour.made([
    EntityDescription(
      "Photo",
      attributes: [
        AttributeDescription("number", .integer64),
        AttributeDescription("image", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
        AttributeDescription("revision", .integer64, default: .int64(0)), AttributeDescription("title", .string, isOptional: true),
        AttributeDescription("place", .string, isOptional: true),
      ])
  ])

  @Test(arguments: stores, Operation.allCases)
  func `a save that another process makes before the lock is granted isn't lost`(kind: FileStore, operation: Operation) throws {
    let (store, save) = try contested(kind)
    let error = try #require(throws: StoreError.self) { try perform(operation, kind, store, meanwhile: save) }
    #expect(error.code == .storeReplaced && error.isRetryable && error.path == path, "\(error)")
    #expect(try revision(store) == 77)
    // It succeeds when it is repeated.
    try perform(operation, kind, store) {}
    switch operation {
    case .destruction: #expect(!TemporaryFolder.exists(path))
    case .replacement: #expect(try revision(store) == 5)
    case .move: #expect(try !TemporaryFolder.exists(path) && revision(kind.description(at: folder.file("c.store"))) == 77)
    case .plan, .migration: #expect(try PersistentStoreCoordinator.metadata(for: store).isCompatible(with: Self.later))
    }
  }

  @Test(arguments: stores)
  func `a request for an unused path doesn't replace a store that another process creates there`(kind: FileStore) throws {
    try change(kind.description(at: path), to: 1)
    let destination = folder.file("b.store"), create = try creation(of: kind, at: destination)
    var description = kind.description(at: destination), options = RequestOptions.none
    if case .sqlite = kind {
      // It has no lock before it has a file, which isn't replaced by renaming the copy.
      options = RequestOptions(progress: { _ in create() })
    } else {
      let disk = ContestedFileSystem(lockFile: folder.file(".b.store.lock"))
      description = kind.description(at: destination, file: DurableFileOptions(fileSystem: disk))
      disk.arm(create)
    }
    let request = ReplacementRequest(source: .file(path), expecting: .missing)
    let error = try #require(throws: StoreError.self) { try description.administration.perform(request, options: options) }
    #expect(error.code == .storeReplaced && error.isRetryable && error.path == destination, "\(error)")
    #expect(try revision(description) == 7)
    #expect(throws: StoreError.self) { try description.administration.perform(request) }
    #expect(try revision(description) == 7)
    try PersistentStoreCoordinator.destroyPersistentStore(description)
    try description.administration.perform(request)
    #expect(try revision(description) == 1)
  }

  @Test(arguments: FileStore.wholeFile)
  func `a copy to another type doesn't replace a store that another process creates before the lock is granted`(kind: FileStore) throws {
    let source = FileStore.sqlite(.wal).description(at: path), destination = folder.file("b.store")
    try change(source, to: 1)
    let disk = ContestedFileSystem(lockFile: folder.file(".b.store.lock"))
    let description = kind.description(at: destination, file: DurableFileOptions(fileSystem: disk))
    disk.arm(try creation(of: kind, at: destination))
    let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator.copyPersistentStore(source, to: description) }
    #expect(error.code == .unsupportedRequest && error.path == destination, "\(error)")
    #expect(try revision(description) == 7)
  }

  /// With a log, SQLite would create the log of the former file beside the new one, and apply it to the new one.
  @Test(arguments: [FileStore.sqlite(.wal), .sqlite(.delete)])
  func `a program that opened the file before it was replaced can't write to the new one`(kind: FileStore) throws {
    let store = kind.description(at: path), other = kind.description(at: folder.file("b.store"))
    try change(store, to: 1)
    try change(other, to: 5)
    // It has read nothing yet, so it has no lock.
    let program = try BareDatabase(path)
    defer { program.close() }
    try PersistentStoreCoordinator.replacePersistentStore(store, withCopyOf: other)
    #expect(throws: BareDatabase.Failure.self) { try program.run("UPDATE ZPHOTO SET ZREVISION = 99") }
    #expect(try revision(store) == 5)
  }

  @Test func `the state of a file changes with the file and its log`() throws {
    let file = folder.file("file")
    #expect(StoreFileState(ofFileAt: file) == .missing)
    // What a former file left.
    try folder.write("log", to: "file-wal")
    #expect(StoreFileState(ofFileAt: file) == .missing)
    try folder.write("", to: "file-wal")
    try folder.write("one", to: "file")
    let one = StoreFileState(ofFileAt: file)
    #expect(one != .missing)
    try one.verify(fileAt: file, operation: "test")
    try FileManager.default.removeItem(atPath: file + "-wal")
    #expect(StoreFileState(ofFileAt: file) == one)
    try folder.write("log", to: "file-wal")
    #expect(StoreFileState(ofFileAt: file) != one)
    try FileManager.default.removeItem(atPath: file + "-wal")
    try folder.write("other", to: "file")
    let error = #expect(throws: StoreError.self) { try one.verify(fileAt: file, operation: "test") }
    #expect(error?.code == .storeReplaced && error?.path == file && error?.operation == "test")
  }

  // MARK: Operations

  /// - Parameter save: Lets another process begin a save. It is called after the caller has looked at the store.
  private func perform(_ operation: Operation, _ kind: FileStore, _ store: StoreDescription, meanwhile save: @escaping @Sendable () -> Void)
    throws
  {
    let state = StoreFileState(ofFileAt: path), other = folder.file("b.store")
    switch operation {
    case .destruction:
      save()
      try store.administration.perform(DestructionRequest(expecting: state))
    case .replacement:
      try change(kind.description(at: other), to: 5)
      save()
      try store.administration.perform(ReplacementRequest(source: .file(other), expecting: state))
    case .move:
      // The last report is the one of the complete copy.
      try PersistentStoreCoordinator.movePersistentStore(store, to: kind.description(at: folder.file("c.store"))) { share in
        if share == 1 { save() }
      }
    case .plan:
      var plan = MigrationPlan(from: Gallery.model)
      plan.add(Self.later, named: "place") { _ in save() }
      try PersistentStoreCoordinator.migratePersistentStore(store, with: plan)
    case .migration:
      save()
      try store.administration.perform(MigrationRequest(try MappingModel.inferred(from: Gallery.model, to: Self.later), expecting: state))
    }
  }

  // MARK: Stores

  /// A store, and a closure that lets another process save the revision 77 before the lock is granted the next time.
  private func contested(_ kind: FileStore) throws -> (store: StoreDescription, save: @Sendable () -> Void) {
    let path = path, url = URL(fileURLWithPath: path)
    if case .sqlite(let mode) = kind {
      let store = StoreDescription.sqlite(at: path, options: SQLiteStoreOptions(journalMode: mode, busyTimeout: .seconds(3600)))
      try change(store, to: 1)
      return (store, { try? Self.saveSlowly(to: path) })
    }
    let disk = ContestedFileSystem(lockFile: folder.file(".a.store.lock"))
    let store = kind.description(at: path, file: DurableFileOptions(fileSystem: disk))
    try change(store, to: 1)
    let former = try Data(contentsOf: url)
    try change(store, to: 77)
    let saved = try Data(contentsOf: url)
    try former.write(to: url)
    return (store, { disk.arm { try? saved.write(to: url, options: .atomic) } })
  }

  /// Holds the lock of a database for a while, and then commits. On a busy machine, the operation may begin later and not wait.
  private static func saveSlowly(to path: String) throws {
    let other = try BareDatabase(path)
    try other.run("BEGIN IMMEDIATE; UPDATE ZPHOTO SET ZREVISION = 77")
    // From here on, only the other thread uses the connection.
    nonisolated(unsafe) let lent = other
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: 0.2)
      try? lent.run("COMMIT")
      lent.close()
    }
  }

  /// A closure that creates a store with the revision 7, unless something is at the path.
  private func creation(of kind: FileStore, at path: String) throws -> @Sendable () -> Void {
    let other = folder.file("other.store"), url = URL(fileURLWithPath: path)
    try change(kind.description(at: other), to: 7)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: other))
    return { if !TemporaryFolder.exists(path) { try? bytes.write(to: url) } }
  }

  /// Sets the revision of the only photo in a store, and creates both if necessary.
  private func change(_ store: StoreDescription, to revision: Int64) throws {
    let context = try Gallery.context(store)
    let photo = try Gallery.photos(context).first ?? Gallery.insert(0, nil, context)
    photo.revision = revision
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  private func revision(_ store: StoreDescription) throws -> Int64? {
    let context = try Gallery.context(store)
    defer { try? context.persistentStoreCoordinator.close() }
    return try Gallery.photos(context).first?.revision
  }
}

/// A file system in which another process saves before the lock of a store's file is granted.
private final class ContestedFileSystem: ForwardingFileSystem {
  let base: any StoreFileSystem = POSIXFileSystem()
  private let lockFile: String
  /// What the other process does; nil if nothing. Guarded because calls come from any thread.
  private let save = Mutex<(@Sendable () -> Void)?>(nil)

  init(lockFile: String) { self.lockFile = lockFile }

  /// Lets the other process save before the lock is granted the next time.
  func arm(_ save: @escaping @Sendable () -> Void) { self.save.withLock { $0 = save } }

  func lock(_ file: StoreFileHandle, timeout: Duration) throws(FileSystemError) {
    // Copies in other folders have lock files with the same name.
    let opened = try base.status(of: file).identity.inode
    if inode == "\(opened)" {
      let save = save.withLock { save in
        defer { save = nil }
        return save
      }
      save?()
    }
    try base.lock(file, timeout: timeout)
  }

  private var inode: String? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: lockFile)
    // The type of the number depends on the platform.
    return attributes?[.systemFileNumber].map { "\($0)" }
  }
}
