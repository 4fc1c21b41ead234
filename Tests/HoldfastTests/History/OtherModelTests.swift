import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// Another process migrates the file of an open store, or replaces it with a file of another version of the model.
@Suite(.serialized, .ownThreads) struct OtherModelTests {
  private let folder = TemporaryFolder()
  private static let wholeFiles = HistoryStore.allCases.filter { $0 != .sqlite }

  /// The second version has a further attribute, and an entity that precedes the others.
  private static func model(_ version: Int) throws -> ManagedObjectModel {
    var attributes = [AttributeDescription("text", .string)]
    if version > 1 { attributes.append(AttributeDescription("color", .string, isOptional: true)) }
    var entities = [
      EntityDescription("Note", attributes: attributes, relationships: [.toOne("folder", to: "Folder", inverse: "notes")]),
      EntityDescription(
        "Folder", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toMany("notes", to: "Note", inverse: "folder")]),
    ]
    if version > 1 { entities.append(EntityDescription("Ant", attributes: [AttributeDescription("name", .string, isOptional: true)])) }
    return try ManagedObjectModel(entities: entities)
  }

  /// The texts of the notes.
  private static func notes(_ context: ManagedObjectContext) throws -> [StoreValue?] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: "Note")).map { try $0.value(forKey: "text").storeValue }
  }

  /// A context with a saved note, in a store of the first version that reports saves of other processes.
  private func opened(_ description: StoreDescription) throws -> (context: ManagedObjectContext, note: ManagedObject) {
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: Self.model(1), store: description))
    context.automaticallyMergesChanges = true
    let note = try context.insert(entityNamed: "Note")
    try note.setValue("first", forKey: "text")
    try context.save()
    return (context, note)
  }

  /// Whatever would write to the file throws an error that says what to do, and the file stays the same.
  private func expectRefusals(_ context: ManagedObjectContext, _ note: ManagedObject, _ path: String, _ code: StoreError.Code) throws {
    let coordinator = context.persistentStoreCoordinator, before = try TemporaryFolder.read(path)
    func expectRefusal(_ body: () throws -> Void) throws {
      let error = try #require(throws: StoreError.self) { try body() }
      #expect(error.code == code && error.path == path && "\(error)".lowercased().contains("close the store"), "\(error)")
    }
    try note.setValue("changed", forKey: "text")
    try expectRefusal { try context.save() }
    #expect(try context.hasChanges && note.value(forKey: "text").storeValue == .string("changed"))
    context.rollback()
    let new = try context.insert(entityNamed: "Note")
    try new.setValue("new", forKey: "text")
    try expectRefusal { try context.save() }
    #expect(context.hasChanges && new.isInserted)
    context.rollback()
    try expectRefusal { try coordinator.setMetadata(["key": .string("value")]) }
    try expectRefusal { _ = try coordinator.deleteHistory(upTo: nil) }
    try coordinator.close()
    #expect(try TestBytes.areEqual(TemporaryFolder.read(path), before))
  }

  /// Opens the store and saves, before another process migrates its file. Returns the reports after that.
  private func migrateElsewhere(_ store: HistoryStore, _ path: String) async throws -> AsyncStream<SavedChanges> {
    let (context, note) = try opened(store.description(path, reports: true)), coordinator = context.persistentStoreCoordinator
    let reports = coordinator.savedChanges()
    await #expect(processExitsWith: .success) { [path = path as String, store = store as HistoryStore] in
      let other = try PersistentStoreCoordinator(model: OtherModelTests.model(2), store: store.description(path))
      let context = try ManagedObjectContext(coordinator: other)
      _ = try context.insert(entityNamed: "Ant")
      for note in try context.fetch(FetchRequest<ManagedObject>(entityName: "Note")) { try note.setValue("red", forKey: "color") }
      try context.save()
      try other.close()
    }
    #expect(try #require(throws: StoreError.self) { try coordinator.fetchHistory() }.code == .incompatibleModel)
    try context.processPendingChanges()
    try context.refreshAllObjects()
    #expect(try note.value(forKey: "text").storeValue == .string("first"))
    #expect(try Self.notes(ManagedObjectContext(coordinator: coordinator)) == [.string("first")])
    try expectRefusals(context, note, path, .incompatibleModel)
    return reports
  }

  /// A context reads the rows that the store had. Saves, and the history, report the migration.
  @Test(arguments: wholeFiles) func aFileThatAnotherProcessMigratesIsNotWrittenTo(_ store: HistoryStore) async throws {
    let path = store.path(folder), reports = try await migrateElsewhere(store, path)
    // The sequence ends with the coordinator.
    for await changes in reports { Issue.record("A change was reported: \(changes)") }
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: Self.model(2), store: store.description(path)))
    let note = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Note")).first)
    #expect(try note.value(forKey: "text").storeValue == .string("first") && note.value(forKey: "color").storeValue == .string("red"))
    #expect(try context.fetch(FetchRequest<ManagedObject>(entityName: "Ant")).count == 1)
  }

  @Test(arguments: HistoryStore.allCases) func aFileOfAnotherVersionInItsPlaceIsNotWrittenTo(_ store: HistoryStore) throws {
    let path = store.path(folder), other = store.path(folder, "Other")
    let (context, note) = try opened(store.description(path, reports: true)), coordinator = context.persistentStoreCoordinator
    let second = try PersistentStoreCoordinator(model: Self.model(2), store: store.description(other))
    let theirs = try ManagedObjectContext(coordinator: second)
    _ = try theirs.insert(entityNamed: "Ant")
    try theirs.save()
    try second.close()
    try #require(rename(other, path) == 0)
    // A database may notice it when it opens a further connection.
    do { #expect(try Self.notes(ManagedObjectContext(coordinator: coordinator)) == [.string("first")]) } catch let error as StoreError {
      #expect(store == .sqlite && error.code == .storeReplaced, "\(error)")
    }
    try expectRefusals(context, note, path, store == .sqlite ? .storeReplaced : .incompatibleModel)
    let again = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: Self.model(2), store: store.description(path)))
    #expect(try again.fetch(FetchRequest<ManagedObject>(entityName: "Ant")).count == 1 && Self.notes(again).isEmpty)
  }

  // MARK: SQLite

  private func options(_ journal: SQLiteStoreOptions.JournalMode) -> SQLiteStoreOptions {
    var options = SQLiteStoreOptions()
    (options.journalMode, options.historyTracking, options.reportsOtherProcesses) = (journal, .always, true)
    // Without a log, a save waits for the watch of the file, which reads it.
    options.busyTimeout = .seconds(3600)
    return options
  }

  /// Migrates the store. Returns the code of the error; nil if it was migrated.
  private static func migrate(
    _ path: String, _ journal: SQLiteStoreOptions.JournalMode, busyTimeout: Duration = .seconds(3600)
  ) throws -> StoreError.Code? {
    var options = SQLiteStoreOptions()
    (options.journalMode, options.busyTimeout) = (journal, busyTimeout)
    do {
      try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path, options: options), to: model(2))
      return nil
    } catch let error as StoreError { return error.code }
  }

  @Test func aDatabaseWithALogIsNotMigratedWhileAnotherProcessHasItOpen() async throws {
    let path = folder.file("Kennel.sqlite"), (context, note) = try opened(.sqlite(at: path, options: options(.wal)))
    await #expect(processExitsWith: .success) { [path = path as String] in
      guard try OtherModelTests.migrate(path, .wal, busyTimeout: .milliseconds(200)) == .locked else { exit(3) }
    }
    try note.setValue("second", forKey: "text")
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(try Self.migrate(path, .wal) == nil)
    let again = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: Self.model(2), store: .sqlite(at: path)))
    #expect(try Self.notes(again) == [.string("second")])
  }

  /// SQLite reads such a file without locks, so they don't prevent the migration. The bug: rows were read with the entities of the former model.
  @Test func aDatabaseThatIsOnlyReadAndThatAnotherProcessMigratesIsNotReadWithTheFormerModel() async throws {
    let path = folder.file("Kennel.sqlite")
    try opened(.sqlite(at: path)).context.persistentStoreCoordinator.close()
    let coordinator = try PersistentStoreCoordinator(model: Self.model(1), store: .sqlite(at: path, isReadOnly: true))
    #expect(try Self.notes(ManagedObjectContext(coordinator: coordinator)) == [.string("first")])
    await #expect(processExitsWith: .success) { [path = path as String] in
      guard try OtherModelTests.migrate(path, .wal) == nil else { exit(3) }
    }
    for _ in 0..<2 {
      let error = try #require(throws: StoreError.self) { try Self.notes(ManagedObjectContext(coordinator: coordinator)) }
      #expect(error.code == .incompatibleModel && error.path == path && "\(error)".contains("Close the store"), "\(error)")
    }
    try coordinator.close()
  }

  /// Without a log, a migration replaces the file.
  @Test func aDatabaseWithoutALogThatAnotherProcessMigratesIsNotWrittenTo() async throws {
    let path = folder.file("Kennel.sqlite"), (context, note) = try opened(.sqlite(at: path, options: options(.delete)))
    await #expect(processExitsWith: .success) { [path = path as String] in
      guard try OtherModelTests.migrate(path, .delete) == nil else { exit(3) }
    }
    let coordinator = context.persistentStoreCoordinator
    do { #expect(try Self.notes(ManagedObjectContext(coordinator: coordinator)) == [.string("first")]) } catch let error as StoreError {
      #expect(error.code == .storeReplaced, "\(error)")
    }
    try expectRefusals(context, note, path, .storeReplaced)
    let again = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: Self.model(2), store: .sqlite(at: path, options: options(.delete))))
    #expect(try Self.notes(again) == [.string("first")])
  }
}
