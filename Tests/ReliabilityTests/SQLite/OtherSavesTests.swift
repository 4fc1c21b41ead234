import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// Databases that other processes change without a history and without reports.
@Suite struct OtherSavesTests {
  private let folder = TemporaryFolder()

  /// The rows of this process's saves are in the coordinator's cache. A row that another process has replaced is never taken from there.
  @Test(.ownThreads, arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func aFaultGetsTheNewestRowAtOnce(_ journal: SQLiteStoreOptions.JournalMode) async throws {
    let path = folder.file("notes.sqlite")
    var options = SQLiteStoreOptions()
    options.journalMode = journal
    let model = try ManagedObjectModel(entities: [EntityDescription("Note", attributes: [AttributeDescription("text", .string)])])
    let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path, options: options))
    let context = try ManagedObjectContext(coordinator: coordinator)
    let note = try context.insert(entityNamed: "Note"), other = try context.insert(entityNamed: "Note")
    try other.setValue("other", forKey: "text")
    func text() throws -> StoreValue? {
      try ManagedObjectContext(coordinator: coordinator).object(with: note.objectID).value(forKey: "text").storeValue
    }
    for round in 0..<3 {
      try note.setValue("own \(round)", forKey: "text")
      try context.save()
      #expect(try text() == .string("own \(round)"))
      let before = coordinator.requestCounts.rows
      #expect(try text() == .string("own \(round)") && coordinator.requestCounts.rows == before, "The row isn't in the cache.")
      await #expect(processExitsWith: .success) { [path = path as String, round = round as Int] in
        let database = try BareDatabase(path)
        try database.run("UPDATE ZNOTE SET ZTEXT = 'changed \(round)', Z_OPT = Z_OPT + 1 WHERE ZTEXT = 'own \(round)'")
        if round == 2 { try database.run("DELETE FROM ZNOTE WHERE ZTEXT = 'other'") }
        database.close()
      }
      #expect(try text() == .string("changed \(round)"), "round \(round)")
      try context.refresh(note, mergeChanges: false)
    }
    let fresh = try ManagedObjectContext(coordinator: coordinator)
    #expect(throws: PersistenceError.self) { try fresh.existingObject(with: other.objectID) }
    try coordinator.close()
  }

  /// The cache has rows of fetches, and this process has never saved.
  @Test(.ownThreads, arguments: [SQLiteStoreOptions.JournalMode.wal, .delete], [false, true])
  func aProcessThatOnlyReadsGetsTheNewestRows(_ journal: SQLiteStoreOptions.JournalMode, _ isReadOnly: Bool) async throws {
    let path = folder.file("notes.sqlite")
    var options = SQLiteStoreOptions()
    options.journalMode = journal
    let model = try ManagedObjectModel(entities: [EntityDescription("Note", attributes: [AttributeDescription("text", .string)])])
    let writing = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .sqlite(at: path, options: options)))
    try writing.insert(entityNamed: "Note").setValue("text", forKey: "text")
    try writing.save()
    try writing.persistentStoreCoordinator.close()
    // Another process keeps the log open.
    let other = try BareDatabase(path)
    _ = try other.rows("SELECT COUNT(*) FROM ZNOTE")
    options.isReadOnly = isReadOnly
    let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path, options: options))
    let id = try #require(
      try ManagedObjectContext(coordinator: coordinator).fetch(FetchRequest<ManagedObject>(entityName: "Note")).first?.objectID)
    func text() throws -> StoreValue? {
      try ManagedObjectContext(coordinator: coordinator).object(with: id).value(forKey: "text").storeValue
    }
    for round in 0..<3 {
      let before = coordinator.requestCounts.rows
      #expect(try text() == .string(round == 0 ? "text" : "changed \(round - 1)"))
      #expect(round == 0 || coordinator.requestCounts.rows == before, "The row isn't in the cache.")
      await #expect(processExitsWith: .success) { [path = path as String, round = round as Int] in
        let database = try BareDatabase(path)
        try database.run("UPDATE ZNOTE SET ZTEXT = 'changed \(round)', Z_OPT = Z_OPT + 1")
        database.close()
      }
      #expect(try text() == .string("changed \(round)"))
    }
    try coordinator.close()
    other.close()
  }

  /// SQLite reads a file that no process has open without locks, and without the log's index, which shows commits.
  @Test(.ownThreads, arguments: [false, true]) func aReadOnlyStoreOfAClosedFileGetsTheNewestRows(afterAFetch: Bool) async throws {
    let path = folder.file("notes.sqlite")
    let model = try ManagedObjectModel(entities: [EntityDescription("Note", attributes: [AttributeDescription("text", .string)])])
    let writing = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .sqlite(at: path)))
    try writing.insert(entityNamed: "Note").setValue("text", forKey: "text")
    try writing.save()
    try writing.persistentStoreCoordinator.close()
    let coordinator = try PersistentStoreCoordinator(model: model, store: StoreDescription.sqlite(at: path).readOnly())
    func count() throws -> Int {
      try ManagedObjectContext(coordinator: coordinator).count(for: FetchRequest<ManagedObject>(entityName: "Note"))
    }
    let id = try #require(
      try ManagedObjectContext(coordinator: coordinator).fetch(FetchRequest<ManagedObject>(entityName: "Note")).first?.objectID)
    func text() throws -> StoreValue? {
      try ManagedObjectContext(coordinator: coordinator).object(with: id).value(forKey: "text").storeValue
    }
    let before = coordinator.requestCounts.rows
    #expect(try text() == .string("text") && coordinator.requestCounts.rows == before, "The row isn't in the cache.")
    for round in 0..<3 {
      await #expect(processExitsWith: .success) { [path = path as String, round = round as Int] in
        let database = try BareDatabase(path)
        try database.run("UPDATE ZNOTE SET ZTEXT = 'changed \(round)', Z_OPT = Z_OPT + 1")
        database.close()
      }
      // It opens another connection, which has the present state of the files.
      if afterAFetch { #expect(try count() == 1) }
      #expect(try text() == .string("changed \(round)"))
    }
    try coordinator.close()
  }

  /// The rows of siblings that were read for a fault are kept for objects that are created later.
  @Test(.ownThreads, arguments: [false, true])
  func rowsReadAheadAreDiscardedWhenAnotherProcessHasSaved(_ isToMany: Bool) async throws {
    let path = folder.file("notes.sqlite")
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Author", attributes: [AttributeDescription("name", .string)],
        relationships: [.toMany("notes", to: "Note", inverse: "author"), .toMany("read", to: "Note", inverse: "readers")]),
      EntityDescription(
        "Note",
        relationships: [
          .toOne("author", to: "Author", inverse: "notes"), .toMany("readers", to: "Author", inverse: "read"),
        ]),
    ])
    let writing = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .sqlite(at: path)))
    for _ in 0..<3 {
      let author = try writing.insert(entityNamed: "Author"), note = try writing.insert(entityNamed: "Note")
      try author.setValue("former", forKey: "name")
      try note.setValue(author, forKey: "author")
      try note.toMany(forKey: "readers").insert(author)
    }
    try writing.save()
    try writing.persistentStoreCoordinator.close()
    let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path))
    let context = try ManagedObjectContext(coordinator: coordinator)
    func fetchNotes() throws -> [ManagedObject] { try context.fetch(FetchRequest<ManagedObject>(entityName: "Note")) }
    func names(_ notes: [ManagedObject]) throws -> Set<StoreValue> {
      Set(try notes.compactMap { try $0.value(forKeyPath: "author.name").storeValue })
    }
    let notes = try fetchNotes()
    #expect(try names(notes) == [.string("former")])
    let before = coordinator.requestCounts.rows
    #expect(try names(notes) == [.string("former")] && coordinator.requestCounts.rows == before, "No rows were read ahead.")
    await #expect(processExitsWith: .success) { [path = path as String] in
      let database = try BareDatabase(path)
      try database.run("UPDATE ZAUTHOR SET ZNAME = 'changed', Z_OPT = Z_OPT + 1")
      database.close()
    }
    if isToMany {
      // Without their rows, which an iteration would request together with them.
      #expect(try notes.allSatisfy { try $0.toMany(forKey: "readers").count == 1 })
      let readers = try notes.map { try $0.value(forKeyPath: "readers.name").storeValues }
      #expect(readers.allSatisfy { $0 == [.string("changed")] })
    } else {
      #expect(try names(fetchNotes()) == [.string("changed")])
    }
    try coordinator.close()
  }

  /// Only the row of such an object determines its entity, so it isn't read as a fault.
  @Test(.ownThreads) func rowsReadAheadAreDiscardedBeforeAnObjectOfAFamilyIsReadByItsID() async throws {
    let path = folder.file("notes.sqlite")
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Author", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("notes", to: "Note", inverse: "author")]),
      EntityDescription("Editor", superentity: "Author"),
      EntityDescription("Note", relationships: [.toOne("author", to: "Author", inverse: "notes")]),
      EntityDescription("Memo", superentity: "Note"),
    ])
    let writing = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .sqlite(at: path)))
    for _ in 0..<3 {
      let author = try writing.insert(entityNamed: "Author"), note = try writing.insert(entityNamed: "Note")
      try author.setValue("former", forKey: "name")
      try note.setValue(author, forKey: "author")
    }
    try writing.save()
    try writing.persistentStoreCoordinator.close()
    let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path))
    let context = try ManagedObjectContext(coordinator: coordinator)
    func name(_ note: ManagedObject) throws -> StoreValue? { try note.value(forKeyPath: "author.name").storeValue }
    // Reads all authors together, and releases them and the notes.
    func readAll() throws -> [ManagedObjectID] {
      let notes = try context.fetch(FetchRequest<ManagedObject>(entityName: "Note"))
      #expect(try notes.allSatisfy { try name($0) == .string("former") })
      return notes.map(\.objectID)
    }
    let ids = try readAll()
    await #expect(processExitsWith: .success) { [path = path as String] in
      let database = try BareDatabase(path)
      try database.run("UPDATE ZAUTHOR SET ZNAME = 'changed', Z_OPT = Z_OPT + 1")
      database.close()
    }
    #expect(context.registeredObject(for: ids[0]) == nil)
    #expect(try name(context.existingObject(with: ids[0])) == .string("changed"))
    try coordinator.close()
  }

  // MARK: The check of a store

  /// A SQLite store whose check for other saves is a function of the test.
  private final class CheckedStore: ForwardingStore {
    let base: any IncrementalStore
    let check = Mutex<(@Sendable () -> Bool)?>(nil)

    init(_ path: String) { base = SQLiteStore(path: path) }

    func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
      let metadata = try base.open(model: model, host: host)
      host.setCheckForOtherSaves { [weak self] in self?.check.withLock { $0 }?() ?? false }
      return metadata
    }

    /// Whether the store has the row of an object.
    func hasRow(_ id: ManagedObjectID, of entity: EntityIndex) throws -> Bool {
      final class Sink: RowSink {
        var hasRow = false
        func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
          hasRow = true
          return .enough
        }
      }
      let sink = Sink(), view = try base.beginRead(.latest, options: .none)
      defer { view.end() }
      try base.rows(FaultRequest(entity: entity, keys: [id.key]), in: view, options: .none, into: sink)
      return sink.hasRow
    }
  }

  /// Opens a store and saves a note.
  private static func saveNote(_ store: CheckedStore) throws -> (PersistentStoreCoordinator, ManagedObjectID) {
    let model = try ManagedObjectModel(entities: [EntityDescription("Note", attributes: [AttributeDescription("text", .string)])])
    let coordinator = try PersistentStoreCoordinator(model: model, store: StoreDescription(type: "checked") { store })
    let context = try ManagedObjectContext(coordinator: coordinator), note = try context.insert(entityNamed: "Note")
    try note.setValue("text", forKey: "text")
    try context.save()
    return (coordinator, note.objectID)
  }

  private static func text(_ note: ManagedObjectID, _ coordinator: PersistentStoreCoordinator) throws -> StoreValue? {
    try ManagedObjectContext(coordinator: coordinator).object(with: note).value(forKey: "text").storeValue
  }

  @Test func aCheckMaySendRequestsToItsStore() throws {
    let store = CheckedStore(folder.file("notes.sqlite")), (coordinator, note) = try Self.saveNote(store)
    let entity = try #require(coordinator.model.entity(named: "Note")).index, count = Atomic(0)
    let check: @Sendable () -> Bool = { [weak store] in
      count.add(1, ordering: .relaxed)
      return (try? store?.hasRow(note, of: entity)) == true
    }
    store.check.withLock { $0 = check }
    for round in 1...3 {
      let before = coordinator.requestCounts.rows
      #expect(try Self.text(note, coordinator) == .string("text"))
      // The check returned true, so the cached row was discarded.
      #expect(coordinator.requestCounts.rows == before + 1)
      let calls = count.load(ordering: .relaxed)
      #expect(calls == round)
    }
    try coordinator.close()
  }

  @Test(.ownThreads) func aCheckThatReadsAnObjectTraps() async {
    let path = folder.file("notes.sqlite")
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [path = path as String] in
      let store = CheckedStore(path), (coordinator, note) = try Self.saveNote(store)
      let check: @Sendable () -> Bool = { (try? Self.text(note, coordinator)) == nil }
      store.check.withLock { $0 = check }
      _ = try Self.text(note, coordinator)
    }
    Misuse.expect(
      "A store's check for other saves read an object of a context; it may only send requests to the store itself.", child)
  }
}
