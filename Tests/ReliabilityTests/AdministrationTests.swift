import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastFiles
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// Destroying, replacing and moving stores that aren't open, on every store with a file.
@Suite struct AdministrationTests {
  static let stores: [FileStore] = [.sqlite(.wal), .sqlite(.delete)] + FileStore.wholeFile

  private let folder = TemporaryFolder()

  /// A gallery with one small and some large images, closed.
  @discardableResult private func gallery(_ kind: FileStore, _ name: String, seed: Int64, images: Int = 2) throws -> StoreDescription {
    let description = self.description(kind, name)
    let context = try Gallery.context(description)
    Gallery.insert(0, Gallery.bytes(seed, 10), context)
    for number in 0..<images { Gallery.insert(Int64(number + 1), Gallery.bytes(seed + Int64(number), 3000), context) }
    try context.save()
    try context.persistentStoreCoordinator.setMetadata(["seed": .int64(seed)])
    try context.persistentStoreCoordinator.close()
    return description
  }

  private func description(_ kind: FileStore, _ name: String, isReadOnly: Bool = false) -> StoreDescription {
    AdministrationTests.description(kind, at: folder.file(name), isReadOnly: isReadOnly)
  }

  private static func description(_ kind: FileStore, at path: String, isReadOnly: Bool = false) -> StoreDescription {
    if case .sqlite(let mode) = kind {
      return .sqlite(
        at: path,
        options: SQLiteStoreOptions(isReadOnly: isReadOnly, journalMode: mode, busyTimeout: .seconds(0.2), externalData: Gallery.small))
    }
    let file = DurableFileOptions(lockTimeout: .seconds(0.2), isReadOnly: isReadOnly)
    return kind.description(at: path, WholeFileOptions(file: file, externalData: Gallery.small))
  }

  /// The images in a store. Reads every external file.
  private func images(_ description: StoreDescription) throws -> [Data?] {
    let context = try Gallery.context(description)
    defer { try? context.persistentStoreCoordinator.close() }
    return try Gallery.photos(context).map(\.image)
  }

  private func expected(seed: Int64, images: Int = 2) -> [Data?] {
    [Gallery.bytes(seed, 10)] + (0..<images).map { Gallery.bytes(seed + Int64($0), 3000) }
  }

  /// The names of all regular files in the folder and its subfolders, except lock files.
  private var files: [String] {
    get throws {
      try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { name in
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: folder.file(name), isDirectory: &isFolder) && !isFolder.boolValue
          && !name.hasSuffix(".lock")
      }.sorted()
    }
  }

  @Test(arguments: stores)
  func `destroying a store removes its logs, backups and external data, and may be repeated`(kind: FileStore) throws {
    let description = try gallery(kind, "a.store", seed: 1)
    #expect(try files.count == 3)
    if case .sqlite = kind {} else { try Data([1]).write(to: URL(fileURLWithPath: folder.file("a.store~1"))) }
    try PersistentStoreCoordinator.destroyPersistentStore(description)
    #expect(try files == [])
    try PersistentStoreCoordinator.destroyPersistentStore(description)
    try PersistentStoreCoordinator.destroyPersistentStore(self.description(kind, "nofolder/none.store"))
    #expect(try files == [])
    // The location can be used again.
    try gallery(kind, "a.store", seed: 2)
    #expect(try images(description) == expected(seed: 2))
  }

  @Test(arguments: stores)
  func `destroying a container closes its store and removes the same files`(kind: FileStore) throws {
    let description = try gallery(kind, "a.store", seed: 1)
    if case .sqlite = kind {} else { try Data([1]).write(to: URL(fileURLWithPath: folder.file("a.store~1"))) }
    let container = try PersistentContainer(model: Gallery.model, classes: [Photo.self], store: description)
    let context = container.newContext()
    Gallery.insert(9, Gallery.bytes(9, 3000), context)
    try context.save()
    #expect(try files.count > 3)
    try container.destroy()
    #expect(try files == [])
    #expect(throws: StoreError.self) { try context.count(Photo.self) }
  }

  @Test(arguments: stores)
  func `a store that doesn't exist isn't created by destroying it`(kind: FileStore) throws {
    try PersistentStoreCoordinator.destroyPersistentStore(description(kind, "none.store"))
    #expect(try folder.snapshot().isEmpty)
  }

  @Test(arguments: stores)
  func `a store that this process has open isn't destroyed or replaced`(kind: FileStore) throws {
    let description = try gallery(kind, "a.store", seed: 1), other = try gallery(kind, "b.store", seed: 7)
    let context = try Gallery.context(description)
    for attempt in [
      { try PersistentStoreCoordinator.destroyPersistentStore(description) },
      { try PersistentStoreCoordinator.replacePersistentStore(description, withCopyOf: other) },
      { try PersistentStoreCoordinator.replacePersistentStore(other, withCopyOf: description) },
      { try PersistentStoreCoordinator.movePersistentStore(description, to: other) },
    ] as [() throws -> Void] {
      let error = try #require(throws: StoreError.self) { try attempt() }
      #expect(error.code == .alreadyOpen, "\(error)")
    }
    #expect(try Gallery.photos(context).map(\.image) == expected(seed: 1))
    try context.persistentStoreCoordinator.close()
    #expect(try images(other) == expected(seed: 7))
  }

  @Test(arguments: stores)
  func `a file that isn't a store of the type is neither destroyed nor replaced`(kind: FileStore) throws {
    let source = try gallery(kind, "a.store", seed: 1)
    let path = folder.file("letter.store"), letter = Data("Dear reader, this is a letter and not a store.\n".utf8)
    try letter.write(to: URL(fileURLWithPath: path))
    for attempt in [
      { try PersistentStoreCoordinator.destroyPersistentStore(self.description(kind, "letter.store")) },
      { try PersistentStoreCoordinator.replacePersistentStore(self.description(kind, "letter.store"), withCopyOf: source) },
      { try PersistentStoreCoordinator.replacePersistentStore(source, withCopyOf: self.description(kind, "letter.store")) },
    ] as [() throws -> Void] {
      let error = try #require(throws: StoreError.self) { try attempt() }
      #expect(error.code == .notAStore && error.path == path, "\(error)")
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == letter)
    #expect(try images(source) == expected(seed: 1))
  }

  @Test(arguments: stores)
  func `a damaged store can be destroyed and replaced, but not copied`(kind: FileStore) throws {
    let good = try gallery(kind, "good.store", seed: 1), damaged = try gallery(kind, "damaged.store", seed: 5)
    let url = URL(fileURLWithPath: folder.file("damaged.store"))
    var bytes = try Data(contentsOf: url)
    // In the middle, behind the header. In a SQLite file, the page of the table of contents.
    if case .sqlite = kind { for place in 100..<400 { bytes[place] = 0xff } } else { bytes[bytes.count / 2] ^= 0x55 }
    try bytes.write(to: url)
    let before = try files
    let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator.replacePersistentStore(good, withCopyOf: damaged) }
    #expect(error.code == .damaged && error.path == url.path, "\(error)")
    #expect(try images(good) == expected(seed: 1))
    #expect(try files == before)
    try PersistentStoreCoordinator.replacePersistentStore(damaged, withCopyOf: good)
    #expect(try images(damaged) == expected(seed: 1))
    try bytes.write(to: url)
    try PersistentStoreCoordinator.destroyPersistentStore(damaged)
    #expect(!TemporaryFolder.exists(url.path))
  }

  @Test(arguments: stores)
  func `a copy has the rows, metadata, UUID and external data of its source, and replaces those of the old store`(kind: FileStore) throws {
    let source = try gallery(kind, "a.store", seed: 1, images: 3), old = try gallery(kind, "b.store", seed: 7)
    for destination in [old, description(kind, "new.store")] {
      let sourceFiles = try files.filter { $0.contains("a.store") || $0.contains(".a_SUPPORT") }
      try PersistentStoreCoordinator.replacePersistentStore(destination, withCopyOf: source)
      #expect(try images(destination) == expected(seed: 1, images: 3))
      #expect(try images(source) == expected(seed: 1, images: 3))
      let (copied, original) = (
        try PersistentStoreCoordinator.metadata(for: destination), try PersistentStoreCoordinator.metadata(for: source)
      )
      #expect(copied == original && copied.userInfo == ["seed": .int64(1)])
      #expect(try files.filter { $0.contains("a.store") || $0.contains(".a_SUPPORT") } == sourceFiles)
    }
    // Two copies beside the source, each with three files.
    #expect(try files.filter { $0.contains("_EXTERNAL_DATA") }.count == 9)
    #expect(try files.filter { $0.contains(".tmp") }.isEmpty)
    // The copies are independent.
    let context = try Gallery.context(old)
    context.delete(try Gallery.photos(context)[1])
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(try images(source) == expected(seed: 1, images: 3))
  }

  @Test(arguments: stores)
  func `a copy includes saves that are only in the log`(kind: FileStore) throws {
    guard case .sqlite(.wal) = kind else { return }
    let source = try gallery(kind, "a.store", seed: 1)
    // Another process saved and was killed, so the log remains.
    let copy = TemporaryFolder()
    let context = try Gallery.context(source)
    Gallery.insert(9, nil, context)
    try context.save()
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(atPath: folder.file("a.store") + suffix, toPath: copy.file("a.store") + suffix)
    }
    try context.persistentStoreCoordinator.close()
    let crashed = StoreDescription.sqlite(at: copy.file("a.store"), options: SQLiteStoreOptions(externalData: Gallery.small))
    try FileManager.default.copyItem(atPath: folder.path + "/.a_SUPPORT", toPath: copy.path + "/.a_SUPPORT")
    let destination = description(kind, "b.store")
    try PersistentStoreCoordinator.replacePersistentStore(destination, withCopyOf: crashed)
    #expect(try images(destination) == expected(seed: 1) + [nil])
  }

  /// SQLite applies a log to any database with its name.
  @Test func `a log that a removed store left isn't applied to a copy`() throws {
    let kind = FileStore.sqlite(.wal), source = try gallery(kind, "a.store", seed: 1), destination = description(kind, "b.store")
    let log = try logOfAChange(to: try gallery(kind, "b.store", seed: 7), "b.store")
    for place in [
      { try PersistentStoreCoordinator.replacePersistentStore(destination, withCopyOf: source) },
      { _ = try PersistentStoreCoordinator.repairPersistentStore(source, to: destination) },
      { try PersistentStoreCoordinator.movePersistentStore(source, to: destination) },
    ] as [() throws -> Void] {
      try PersistentStoreCoordinator.destroyPersistentStore(destination)
      for suffix in ["-wal", "-journal", "-shm"] { try log.write(to: URL(fileURLWithPath: folder.file("b.store" + suffix))) }
      try place()
      #expect(try images(destination) == expected(seed: 1))
      #expect(try !files.contains("b.store-journal"))
    }
  }

  /// A destruction removes the database first. A damaged one may still have its log.
  @Test func `a log that a killed destruction left is removed by the next one`() throws {
    let kind = FileStore.sqlite(.wal), store = try gallery(kind, "a.store", seed: 1), log = try logOfAChange(to: store, "a.store")
    try PersistentStoreCoordinator.destroyPersistentStore(store)
    for suffix in ["-wal", "-journal", "-shm"] { try log.write(to: URL(fileURLWithPath: folder.file("a.store" + suffix))) }
    try PersistentStoreCoordinator.destroyPersistentStore(store)
    #expect(try files == [])
  }

  @Test func `the log of a damaged store isn't applied to the copy that replaces it`() throws {
    let kind = FileStore.sqlite(.wal), good = try gallery(kind, "a.store", seed: 1), damaged = try gallery(kind, "b.store", seed: 7)
    let log = try logOfAChange(to: damaged, "b.store"), url = URL(fileURLWithPath: folder.file("b.store"))
    var bytes = try Data(contentsOf: url)
    for place in 100..<400 { bytes[place] = 0xff }
    try bytes.write(to: url)
    try log.write(to: URL(fileURLWithPath: url.path + "-wal"))
    try PersistentStoreCoordinator.replacePersistentStore(damaged, withCopyOf: good)
    #expect(try images(damaged) == expected(seed: 1))
  }

  /// Changes and closes a store with a log, and returns the log that a killed process would have left.
  private func logOfAChange(to store: StoreDescription, _ name: String) throws -> Data {
    let context = try Gallery.context(store)
    Gallery.insert(9, nil, context)
    try context.save()
    let log = try Data(contentsOf: URL(fileURLWithPath: folder.file(name + "-wal")))
    try context.persistentStoreCoordinator.close()
    #expect(log.count > 4096)
    return log
  }

  @Test(arguments: stores)
  func `a store isn't moved to its own file, which would then be destroyed`(kind: FileStore) throws {
    let store = try gallery(kind, "a.store", seed: 1)
    try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: folder.file("a.store"))
    var destinations = [store, description(kind, "./a.store"), description(kind, "link")]
    for other in FileStore.wholeFile where other != kind { destinations.append(description(other, "a.store")) }
    for destination in destinations {
      let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator.movePersistentStore(store, to: destination) }
      #expect(error.code == .invalidPath, "\(error)")
      #expect(try images(store) == expected(seed: 1))
    }
  }

  @Test(arguments: stores)
  func `a moved store is only at its destination`(kind: FileStore) throws {
    let source = try gallery(kind, "a.store", seed: 1)
    try PersistentStoreCoordinator.movePersistentStore(source, to: description(kind, "moved.store"))
    #expect(try images(description(kind, "moved.store")) == expected(seed: 1))
    #expect(try files.allSatisfy { !$0.hasPrefix("a.store") && !$0.contains(".a_SUPPORT/_EXTERNAL_DATA/") })
  }

  @Test func `SQLite stores whose external data share a folder keep their files when one of them is destroyed`() throws {
    let kind = FileStore.sqlite(.wal)
    let first = try gallery(kind, "photos.one", seed: 1), second = try gallery(kind, "photos.two", seed: 7)
    #expect(try files.filter { $0.contains(".photos_SUPPORT") }.count == 4)
    try PersistentStoreCoordinator.destroyPersistentStore(first)
    #expect(try images(second) == expected(seed: 7))
  }

  /// The bug: the repeated call kept the copy as a backup of itself, so the oldest backup was lost, or the order was wrong.
  @Test(arguments: FileStore.wholeFile)
  func `an interrupted move that is repeated moves each backup to the number that it would have had`(kind: FileStore) throws {
    func described(_ name: String) -> StoreDescription {
      kind.description(at: folder.file(name), WholeFileOptions(file: DurableFileOptions(backupCount: 3), externalData: Gallery.small))
    }
    let source = described("a.store"), destination = described("moved.store")
    for number in 0..<4 {
      let context = try Gallery.context(source)
      Gallery.insert(Int64(number), nil, context)
      try context.save()
      try context.persistentStoreCoordinator.close()
    }
    let suffixes = ["", "~1", "~2", "~3"], contents = try suffixes.map { try TemporaryFolder.read(folder.file("a.store" + $0)) }
    #expect(Set(contents).count == 4)
    // The process ended after it had moved the oldest backup.
    try PersistentStoreCoordinator.replacePersistentStore(destination, withCopyOf: source)
    try FileManager.default.moveItem(atPath: folder.file("a.store~3"), toPath: folder.file("moved.store~3"))
    try PersistentStoreCoordinator.movePersistentStore(source, to: destination)
    #expect(try suffixes.map { try TemporaryFolder.read(folder.file("moved.store" + $0)) } == contents)
    #expect(!folder.exists("moved.store~4") && !folder.names.contains { $0.hasPrefix("a.store") })
    // Other contents are still kept.
    let other = described("other.store")
    try Gallery.context(other).persistentStoreCoordinator.close()
    try PersistentStoreCoordinator.replacePersistentStore(destination, withCopyOf: other)
    #expect(try TemporaryFolder.read(folder.file("moved.store~1")) == contents[0])
  }

  /// The bug: both copies named the same files, so that destroying, replacing or saving one of them removed those of the other.
  @Test func `a SQLite store isn't copied beside another copy whose external data share its folder`() throws {
    let kind = FileStore.sqlite(.wal), source = try gallery(kind, "source.store", seed: 1)
    let first = description(kind, "copy.one"), second = description(kind, "copy.two")
    try TemporaryFolder.write(Array("notes".utf8), to: folder.file("copy.txt"))
    try PersistentStoreCoordinator.replacePersistentStore(first, withCopyOf: source)
    func expectRefusal() throws {
      let error = try #require(throws: StoreError.self) {
        try PersistentStoreCoordinator.replacePersistentStore(second, withCopyOf: source)
      }
      #expect(error.code == .unsupportedRequest && error.reason.contains("copy.one"), "\(error)")
    }
    try expectRefusal()
    let context = try Gallery.context(first)
    try expectRefusal()
    #expect(!folder.exists("copy.two"))
    #expect(try Gallery.photos(context).map(\.image) == expected(seed: 1))
    try context.persistentStoreCoordinator.close()
    // A store whose files have other names.
    let other = try gallery(kind, "other.store", seed: 7)
    try PersistentStoreCoordinator.replacePersistentStore(second, withCopyOf: other)
    try expectRefusal()
    #expect(try images(second) == expected(seed: 7) && images(first) == expected(seed: 1))
    // The same copy again, and one beside nothing.
    try PersistentStoreCoordinator.replacePersistentStore(first, withCopyOf: source)
    try PersistentStoreCoordinator.destroyPersistentStore(first)
    try PersistentStoreCoordinator.replacePersistentStore(second, withCopyOf: source)
    #expect(try images(second) == expected(seed: 1))
  }

  /// The bug: a store that couldn't be read counted as one without these files.
  @Test func `a SQLite store isn't copied beside one that may have the same external data and is locked`() throws {
    let kind = FileStore.sqlite(.delete), source = try gallery(kind, "source.store", seed: 1)
    let first = description(kind, "copy.one"), second = description(kind, "copy.two")
    try PersistentStoreCoordinator.replacePersistentStore(first, withCopyOf: source)
    let other = try BareDatabase(folder.file("copy.one"))
    try other.run("BEGIN EXCLUSIVE")
    let error = try #require(throws: StoreError.self) {
      try PersistentStoreCoordinator.replacePersistentStore(second, withCopyOf: source)
    }
    #expect(error.code == .locked && error.isRetryable && error.path?.hasSuffix("/copy.one") == true, "\(error)")
    #expect(!folder.exists("copy.two"))
    try other.run("ROLLBACK")
    other.close()
    #expect(try images(first) == expected(seed: 1))
  }

  @Test(arguments: stores)
  func `a read-only description can be copied, but not destroyed or replaced`(kind: FileStore) throws {
    let source = try gallery(kind, "a.store", seed: 1), other = try gallery(kind, "b.store", seed: 7)
    let readOnly = description(kind, "a.store", isReadOnly: true)
    for attempt in [
      { try PersistentStoreCoordinator.destroyPersistentStore(readOnly) },
      { try PersistentStoreCoordinator.replacePersistentStore(readOnly, withCopyOf: other) },
    ] as [() throws -> Void] {
      let error = try #require(throws: StoreError.self) { try attempt() }
      #expect(error.code == .readOnly, "\(error)")
    }
    try PersistentStoreCoordinator.replacePersistentStore(other, withCopyOf: readOnly)
    #expect(try images(other) == expected(seed: 1))
    #expect(try images(source) == expected(seed: 1))
  }

  /// The bug: the copy answered these requests with the administration of the store for writing.
  @Test(arguments: stores)
  func `a copy of a description that is read-only refuses all changes`(kind: FileStore) throws {
    let source = try gallery(kind, "a.store", seed: 1), other = try gallery(kind, "b.store", seed: 7)
    let readOnly = source.readOnly(), metadata = try PersistentStoreCoordinator.metadata(for: source)
    let model = try #require(try PersistentStoreCoordinator.cachedModel(for: readOnly))
    for attempt in [
      { try PersistentStoreCoordinator.destroyPersistentStore(readOnly) },
      { try PersistentStoreCoordinator.replacePersistentStore(readOnly, withCopyOf: other) },
      { try PersistentStoreCoordinator.setMetadata(["seed": .int64(2)], for: readOnly) },
      { try readOnly.administration.perform(MigrationRequest(try MappingModel.inferred(from: model, to: model))) },
    ] as [() throws -> Void] {
      let error = try #require(throws: StoreError.self) { try attempt() }
      #expect(error.code == .readOnly && error.path == folder.file("a.store"), "\(error)")
    }
    #expect(try PersistentStoreCoordinator.metadata(for: readOnly) == metadata)
    try PersistentStoreCoordinator.replacePersistentStore(other, withCopyOf: readOnly)
    #expect(try images(other) == expected(seed: 1))
    #expect(try images(source) == expected(seed: 1))
  }

  /// The bug: the copy was made first, or the error was that of a missing file.
  @Test(arguments: stores)
  func `nothing is copied to a read-only description`(kind: FileStore) throws {
    let other: FileStore = kind == .json ? .binary : .json
    let source = try gallery(other, "a.store", seed: 1), destination = try gallery(kind, "b.store", seed: 7)
    for readOnly in [destination.readOnly(), description(kind, "b.store", isReadOnly: true)] {
      let error = try #require(throws: StoreError.self) {
        try PersistentStoreCoordinator.replacePersistentStore(readOnly, withCopyOf: source)
      }
      #expect(error.code == .readOnly && error.path == folder.file("b.store"), "\(error)")
    }
    for readOnly in [description(kind, "c.store").readOnly(), description(kind, "c.store", isReadOnly: true)] {
      let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator.copyPersistentStore(source, to: readOnly) }
      #expect(error.code == .readOnly && error.path == folder.file("c.store"), "\(error)")
    }
    #expect(try images(destination) == expected(seed: 7) && !folder.exists("c.store"))
  }

  /// The bug: the copy had already replaced the store at the destination.
  @Test(arguments: stores)
  func `a store that can't be removed isn't moved`(kind: FileStore) throws {
    let source = try gallery(kind, "a.store", seed: 1), destination = try gallery(kind, "b.store", seed: 7)
    let contents = MemoryStoreContents(), memory = StoreDescription.memory(contents: contents)
    try Gallery.context(memory).persistentStoreCoordinator.close()
    for (store, code) in [
      (source.readOnly(), .readOnly), (description(kind, "a.store", isReadOnly: true), .readOnly), (memory, .unsupportedRequest),
    ] as [(StoreDescription, StoreError.Code)] {
      let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator.movePersistentStore(store, to: destination) }
      #expect(error.code == code, "\(error)")
      #expect(try images(destination) == expected(seed: 7))
    }
    #expect(try images(source) == expected(seed: 1))
  }

  @Test func `a store without a file can't be destroyed or replaced`() throws {
    let json = try gallery(.json, "a.store", seed: 1)
    for attempt in [
      { try PersistentStoreCoordinator.destroyPersistentStore(.memory()) },
      { try PersistentStoreCoordinator.replacePersistentStore(.memory(), withCopyOf: .memory()) },
      { try PersistentStoreCoordinator.replacePersistentStore(json, withCopyOf: .memory()) },
    ] as [() throws -> Void] {
      let error = try #require(throws: StoreError.self) { try attempt() }
      #expect(error.code == .unsupportedRequest, "\(error)")
    }
    #expect(try images(json) == expected(seed: 1))
  }

  @Test(.ownThreads, arguments: stores)
  func `a store that another process is using isn't destroyed or replaced`(kind: FileStore) async throws {
    let description = try gallery(kind, "a.store", seed: 1)
    try gallery(kind, "b.store", seed: 7)
    var user: User? = try use(kind, description)
    await #expect(processExitsWith: .success) { [folder = folder.path as String, kind] in
      let store = AdministrationTests.description(kind, at: folder + "/a.store")
      let other = AdministrationTests.description(kind, at: folder + "/b.store")
      for attempt in [
        { try PersistentStoreCoordinator.destroyPersistentStore(store) },
        { try PersistentStoreCoordinator.replacePersistentStore(store, withCopyOf: other) },
      ] as [() throws -> Void] {
        do {
          try attempt()
          preconditionFailure("The store was destroyed or replaced.")
        } catch let error as StoreError {
          precondition(error.code == .locked && error.isRetryable, "\(error)")
        }
      }
      do {
        try PersistentStoreCoordinator.movePersistentStore(store, to: AdministrationTests.description(kind, at: folder + "/c.store"))
        preconditionFailure("The store was moved.")
      } catch let error as StoreError {
        precondition(error.code == .locked && error.reason.contains("The copy is complete: \(folder)/c.store."), "\(error)")
      }
    }
    try user?.end()
    user = nil
    #expect(try images(description) == expected(seed: 1))
    #expect(try images(self.description(kind, "c.store")) == expected(seed: 1))
    try PersistentStoreCoordinator.destroyPersistentStore(description)
    #expect(!TemporaryFolder.exists(folder.file("a.store")))
  }

  /// Someone who uses a store until the end. With a log, having it open suffices.
  private struct User {
    let end: () throws -> Void
  }

  private func use(_ kind: FileStore, _ description: StoreDescription) throws -> User {
    switch kind {
    case .sqlite(.wal):
      let context = try Gallery.context(description)
      _ = try Gallery.photos(context)
      return User { try context.persistentStoreCoordinator.close() }
    case .sqlite:
      let database = try BareDatabase(folder.file("a.store"))
      try database.run("BEGIN IMMEDIATE")
      return User { try database.run("ROLLBACK") }
    default:
      let file = try DurableFile(path: folder.file("a.store"))
      let replacement = try file.beginReplacing()
      return User {
        replacement.abort()
        file.close()
      }
    }
  }
}
