import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// Databases that other processes change without a history and without reports.
@Suite struct OtherSavesTests {
  private let folder = TemporaryFolder()

  /// The rows of this process's saves are in the coordinator's cache. A row that another process has replaced is never taken from there.
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
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
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete], [false, true])
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
}
