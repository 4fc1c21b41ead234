import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

/// Changes by other processes, which the store reports as they happen.
@Suite(.serialized, .ownThreads) struct RemoteChangeTests {
  private let folder = TemporaryFolder()

  private static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Note", attributes: [AttributeDescription("text", .string), AttributeDescription("count", .integer64, default: .int64(0))],
        relationships: [.toOne("folder", to: "Folder", inverse: "notes")]),
      EntityDescription(
        "Folder", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("notes", to: "Note", inverse: "folder")]),
    ])
  }

  private static func coordinator(
    _ store: HistoryStore, _ path: String, reports: Bool = true, isReadOnly: Bool = false
  ) throws -> PersistentStoreCoordinator {
    try PersistentStoreCoordinator(model: model(), store: store.description(path, reports: reports, isReadOnly: isReadOnly))
  }

  /// A SQLite store without a history.
  private static func database(
    _ path: String, _ journal: SQLiteStoreOptions.JournalMode, reports: Bool
  ) throws -> PersistentStoreCoordinator {
    var options = SQLiteStoreOptions(journalMode: journal)
    options.reportsOtherProcesses = reports
    return try PersistentStoreCoordinator(model: model(), store: .sqlite(at: path, options: options))
  }

  private func note(_ text: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    let note = try context.insert(entityNamed: "Note")
    try note.setValue(text, forKey: "text")
    return note
  }

  /// Saves two notes, the first one in a folder.
  private func saveNotes(_ context: ManagedObjectContext) throws -> (first: ManagedObject, second: ManagedObject, folder: ManagedObject) {
    let notes = (first: try note("first", context), second: try note("second", context), folder: try context.insert(entityNamed: "Folder"))
    try notes.folder.setValue("parent", forKey: "name")
    try notes.first.setValue(notes.folder, forKey: "folder")
    try context.save()
    return notes
  }

  private static func notes(_ context: ManagedObjectContext) throws -> [ManagedObject] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: "Note")).sorted { $0.objectID.key < $1.objectID.key }
  }

  /// Another process changes the first note, deletes the second one and adds one to the first note's folder.
  private func changeElsewhere(_ store: HistoryStore) async {
    await #expect(processExitsWith: .success) { [path = store.path(folder) as String, store = store as HistoryStore] in
      try RemoteChangeTests.change(RemoteChangeTests.coordinator(store, path, reports: false))
    }
  }

  private static func change(_ coordinator: PersistentStoreCoordinator) throws {
    let context = try ManagedObjectContext(coordinator: coordinator), notes = try notes(context)
    try notes[0].setValue("changed", forKey: "text")
    context.delete(notes[1])
    let new = try context.insert(entityNamed: "Note")
    try new.setValue("new", forKey: "text")
    guard case .single(.objectID(let folder)) = try notes[0].value(forKey: "folder") else { exit(3) }
    try new.setValue(.objectID(folder), forKey: "folder")
    try context.save()
    try coordinator.close()
  }

  @Test(arguments: HistoryStore.allCases) func savesOfOtherProcessesAreReportedAndMerged(_ store: HistoryStore) async throws {
    let coordinator = try Self.coordinator(store, store.path(folder)), context = try ManagedObjectContext(coordinator: coordinator)
    let (first, second, parent) = try saveNotes(context)
    context.automaticallyMergesChanges = true
    #expect(try parent.toMany(forKey: "notes").count == 1)
    var saves = coordinator.savedChanges().makeAsyncIterator()
    // Its own save isn't reported a second time.
    try first.setValue("own", forKey: "text")
    try context.save()
    let own = try #require(await saves.next(isolation: #isolation))
    #expect(own.updated == [first.objectID] && !own.mayIncludeOthers)
    await changeElsewhere(store)
    let changes = try #require(await saves.next(isolation: #isolation))
    #expect(changes.updated == [first.objectID] && changes.deleted == [second.objectID] && changes.inserted.count == 1)
    #expect(!changes.mayIncludeOthers)
    try context.processPendingChanges()
    #expect(try first.value(forKey: "text").storeValue == .string("changed") && second.isInaccessible)
    #expect(try parent.toMany(forKey: "notes").count == 2)
    try first.setValue("again", forKey: "text")
    try context.save()
  }

  /// Prints the time from the end of each save until a context has merged it.
  @Test(arguments: HistoryStore.allCases) func eachSaveOfAnotherProcessIsMerged(_ store: HistoryStore) async throws {
    let saves = TestTier.count(10, full: 200), path = store.path(folder), folder = folder.path
    let coordinator = try Self.coordinator(store, path)
    let first = try saveNotes(ManagedObjectContext(coordinator: coordinator)).first.objectID
    async let other: Void = Self.save(saves, store, path, folder)
    // On a thread, because the other process and its test occupy one that tasks use.
    let delays = try await onThread {
      let context = try ManagedObjectContext(coordinator: coordinator), note = try context.existingObject(with: first)
      context.automaticallyMergesChanges = true
      return try (1...saves).map { save in
        try waitUntil {
          try context.processPendingChanges()
          return try note.value(forKey: "count") == .int64(Int64(save))
        }
        let merged = DispatchTime.now().uptimeNanoseconds
        waitUntil { TemporaryFolder.exists(folder + "/saved\(save)") }
        let saved = UInt64(String(decoding: try TemporaryFolder.read(folder + "/saved\(save)"), as: UTF8.self)) ?? 0
        try TemporaryFolder.write([], to: folder + "/merged\(save)")
        return Double(Int64(bitPattern: merged &- saved)) / 1e6
      }.sorted()
    }
    await other
    print("REPORT of another process, \(store): median \(delays[saves / 2]) ms, at most \(delays[saves - 1]) ms, \(saves) saves")
    try coordinator.close()
  }

  /// Another process changes the first note again and again. After each save, it waits until it is merged.
  private static func save(_ saves: Int, _ store: HistoryStore, _ path: String, _ folder: String) async {
    await #expect(processExitsWith: .success) {
      [saves = saves as Int, path = path as String, folder = folder as String, store = store as HistoryStore] in
      let coordinator = try RemoteChangeTests.coordinator(store, path, reports: false)
      let context = try ManagedObjectContext(coordinator: coordinator), note = try RemoteChangeTests.notes(context)[0]
      for save in 1...saves {
        try note.setValue(.int64(Int64(save)), forKey: "count")
        try context.save()
        let time = DispatchTime.now().uptimeNanoseconds
        try TemporaryFolder.write(Array("\(time)".utf8), to: folder + "/new")
        guard rename(folder + "/new", folder + "/saved\(save)") == 0 else { exit(3) }
        waitUntil { TemporaryFolder.exists(folder + "/merged\(save)") }
      }
      try coordinator.close()
    }
  }

  @Test(arguments: HistoryStore.allCases) func aReadOnlyStoreReportsThemToo(_ store: HistoryStore) async throws {
    let first = try Self.coordinator(store, store.path(folder))
    _ = try saveNotes(ManagedObjectContext(coordinator: first))
    try first.close()
    let coordinator = try Self.coordinator(store, store.path(folder), isReadOnly: true)
    let context = try ManagedObjectContext(coordinator: coordinator), notes = try Self.notes(context)
    context.automaticallyMergesChanges = true
    var saves = coordinator.savedChanges().makeAsyncIterator()
    await changeElsewhere(store)
    let changes = try #require(await saves.next(isolation: #isolation))
    #expect(changes.mayIncludeOthers || changes.updated == [notes[0].objectID] && changes.deleted == [notes[1].objectID])
    try context.processPendingChanges()
    #expect(try notes[0].value(forKey: "text").storeValue == .string("changed") && Self.notes(context).count == 2)
  }

  /// Up to 10,000 changes are reported with their IDs. Another process changes the first note, and inserts the others.
  @Test(arguments: HistoryStore.allCases, [10_000, 10_001])
  func manyChangesAreReportedWithoutIDs(_ store: HistoryStore, _ count: Int) async throws {
    let coordinator = try Self.coordinator(store, store.path(folder)), context = try ManagedObjectContext(coordinator: coordinator)
    let first = try saveNotes(context).first
    context.automaticallyMergesChanges = true
    var saves = coordinator.savedChanges().makeAsyncIterator()
    await #expect(processExitsWith: .success) {
      [path = store.path(folder) as String, store = store as HistoryStore, count = count as Int] in
      let other = try RemoteChangeTests.coordinator(store, path, reports: false), context = try ManagedObjectContext(coordinator: other)
      try RemoteChangeTests.notes(context)[0].setValue("changed", forKey: "text")
      for _ in 1..<count { try context.insert(entityNamed: "Note").setValue("new", forKey: "text") }
      try context.save()
      try other.close()
    }
    let changes = try #require(await saves.next(isolation: #isolation)), isNamed = count <= 10_000
    #expect(changes.inserted.count == (isNamed ? count - 1 : 0) && changes.updated == (isNamed ? [first.objectID] : []))
    #expect(changes.deleted.isEmpty && changes.mayIncludeOthers == !isNamed)
    try context.processPendingChanges()
    #expect(try first.value(forKey: "text").storeValue == .string("changed"))
    #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Note")) == count + 1)
    try coordinator.close()
  }

  /// An object that gets another owner leaves the former one's list, although only the new owner's row changes.
  ///
  /// The history of a SQLite store names only the new owner. The bug: the former owner's list kept the object.
  @Test(arguments: HistoryStore.allCases) func aFormerOwnerLosesWhatAnotherProcessGivesAway(_ store: HistoryStore) async throws {
    let coordinator = try Self.albums(store, store.path(folder)), context = try ManagedObjectContext(coordinator: coordinator)
    let albums = try (0..<2).map { _ in try context.insert(entityNamed: "Album") }, photo = try context.insert(entityNamed: "Photo")
    try albums[0].toMany(forKey: "photos").insert(photo)
    try context.save()
    context.automaticallyMergesChanges = true
    #expect(try albums.map { try $0.toMany(forKey: "photos").count } == [1, 0])
    var saves = coordinator.savedChanges().makeAsyncIterator()
    await #expect(processExitsWith: .success) { [path = store.path(folder) as String, store = store as HistoryStore] in
      let coordinator = try RemoteChangeTests.albums(store, path), context = try ManagedObjectContext(coordinator: coordinator)
      let albums = try context.fetch(FetchRequest<ManagedObject>(entityName: "Album")).sorted { $0.objectID.key < $1.objectID.key }
      let photos = try context.fetch(FetchRequest<ManagedObject>(entityName: "Photo"))
      try albums[1].toMany(forKey: "photos").insert(photos[0])
      try context.save()
      try coordinator.close()
    }
    let changes = try #require(await saves.next(isolation: #isolation)), named = store == .sqlite ? [albums[1]] : albums
    #expect(changes.mayIncludeOthers || Set(changes.updated).isSuperset(of: named.map(\.objectID)))
    try context.processPendingChanges()
    #expect(try albums.map { try $0.toMany(forKey: "photos").count } == [0, 1])
  }

  private static func albums(_ store: HistoryStore, _ path: String) throws -> PersistentStoreCoordinator {
    try PersistentStoreCoordinator(model: Albums.model(), store: store.description(path, reports: true))
  }

  /// What another program has left in the place of the file isn't loaded. The rows stay, and a save reports it.
  @Test(arguments: HistoryStore.allCases.filter { $0 != .sqlite }) func aDamagedVersionIsntLoaded(_ store: HistoryStore) async throws {
    let coordinator = try Self.coordinator(store, store.path(folder)), context = try ManagedObjectContext(coordinator: coordinator)
    let first = try note("first", context)
    try context.save()
    var bytes = try TemporaryFolder.read(store.path(folder))
    bytes[bytes.count / 2] ^= 1
    try TemporaryFolder.write(bytes, to: store.path(folder) + ".new")
    try #require(rename(store.path(folder) + ".new", store.path(folder)) == 0)
    #expect(throws: StoreError.self) { try coordinator.fetchHistory() }
    try first.setValue("again", forKey: "text")
    #expect(try #require(throws: StoreError.self) { try context.save() }.code == .damaged)
    let other = try ManagedObjectContext(coordinator: coordinator)
    #expect(try Self.notes(other).map { try $0.value(forKey: "text").storeValue } == [.string("first")])
  }

  /// Without a history, the store knows only that another process has committed something.
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func aDatabaseWithoutHistoryReportsSavesWithoutIDs(_ journal: SQLiteStoreOptions.JournalMode) async throws {
    let path = HistoryStore.sqlite.path(folder), coordinator = try Self.database(path, journal, reports: true)
    let context = try ManagedObjectContext(coordinator: coordinator)
    let (first, second, parent) = try saveNotes(context)
    #expect(throws: StoreError.self) { try coordinator.fetchHistory() }
    context.automaticallyMergesChanges = true
    #expect(try parent.toMany(forKey: "notes").count == 1)
    var saves = coordinator.savedChanges().makeAsyncIterator()
    for text in ["own", "again", "and again"] {
      try first.setValue(text, forKey: "text")
      try context.save()
      let own = try #require(await saves.next(isolation: #isolation))
      #expect(own.updated == [first.objectID] && !own.mayIncludeOthers)
    }
    await #expect(processExitsWith: .success) { [path = path as String, journal = journal as SQLiteStoreOptions.JournalMode] in
      try RemoteChangeTests.change(RemoteChangeTests.database(path, journal, reports: false))
    }
    // It has committed more than once, because it has reserved a key.
    var isMerged = false
    while !isMerged {
      let changes = try #require(await saves.next(isolation: #isolation))
      #expect(changes.mayIncludeOthers && changes.inserted.isEmpty && changes.updated.isEmpty && changes.deleted.isEmpty)
      #expect(changes.storeIdentifier == coordinator.persistentStores.first?.identifier && changes.contextName.isEmpty)
      try context.processPendingChanges()
      isMerged = try first.value(forKey: "text").storeValue == .string("changed")
    }
    #expect(try parent.toMany(forKey: "notes").count == 2 && Self.notes(context).count == 2)
    _ = try? second.value(forKey: "text")
    #expect(second.isInaccessible)
    try first.setValue("last", forKey: "text")
    try context.save()
    try coordinator.close()
  }

  @Test(arguments: HistoryStore.allCases) func aFaultGetsTheRowThatAnotherProcessSaved(_ store: HistoryStore) async throws {
    let coordinator = try Self.coordinator(store, store.path(folder)), context = try ManagedObjectContext(coordinator: coordinator)
    let (first, second, _) = try saveNotes(context)
    // The saved rows are in the coordinator's cache.
    var saves = coordinator.savedChanges().makeAsyncIterator()
    await changeElsewhere(store)
    _ = await saves.next(isolation: #isolation)
    let other = try ManagedObjectContext(coordinator: coordinator)
    #expect(try other.object(with: first.objectID).value(forKey: "text").storeValue == .string("changed"))
    #expect(throws: PersistenceError.self) { try other.existingObject(with: second.objectID) }
  }

  /// The store was opened again, so that no row was read before. All of the generation is read after the other process has replaced it.
  @Test(arguments: HistoryStore.allCases) func aPinnedContextReadsItsGenerationWhenAnotherProcessSaves(_ store: HistoryStore) async throws {
    let former = try Self.coordinator(store, store.path(folder))
    let (first, second, parent) = try saveNotes(ManagedObjectContext(coordinator: former))
    let uris = [first, second, parent].map(\.objectID.uriRepresentation)
    try former.close()
    let coordinator = try Self.coordinator(store, store.path(folder))
    let ids = try uris.map { try #require(coordinator.managedObjectID(forURIRepresentation: $0)) }
    let pinned = try ManagedObjectContext(coordinator: coordinator)
    try pinned.setQueryGeneration(from: .current)
    var saves = coordinator.savedChanges().makeAsyncIterator()
    await changeElsewhere(store)
    _ = await saves.next(isolation: #isolation)
    let newest = try ManagedObjectContext(coordinator: coordinator)
    #expect(try Self.texts(newest) == ["changed", "new"])
    #expect(try newest.object(with: ids[0]).value(forKey: "text").storeValue == .string("changed"))
    // First faults, then a relationship and a fetch.
    #expect(try pinned.object(with: ids[0]).value(forKey: "text").storeValue == .string("first"))
    #expect(try pinned.existingObject(with: ids[1]).value(forKey: "text").storeValue == .string("second"))
    #expect(try pinned.existingObject(with: ids[2]).toMany(forKey: "notes").map(\.objectID) == [ids[0]])
    #expect(try Self.texts(pinned) == ["first", "second"])
    try pinned.setQueryGeneration(from: nil)
    try pinned.refreshAllObjects()
    #expect(try Self.texts(pinned) == ["changed", "new"])
    try coordinator.close()
  }

  private static func texts(_ context: ManagedObjectContext) throws -> [String] {
    try notes(context).map { note in
      guard case .string(let text)? = try note.value(forKey: "text").storeValue else { return "" }
      return text
    }
  }

  /// A context with a queue of its own merges the report without being used, keeps its unsaved change, and calls its handler.
  @Test(arguments: HistoryStore.allCases) func aBackgroundContextMergesTheSaveOfAnotherProcessByItself(_ store: HistoryStore) async throws {
    let container = try PersistentContainer(model: Self.model(), store: store.description(store.path(folder), reports: true))
    let id = try container.withContext { try saveNotes($0).first.objectID }
    let background = container.newBackgroundContext(), (told, teller) = AsyncStream<ObjectChanges>.makeStream()
    let observation = try await background.perform { context in
      try context.existingObject(with: id).setValue(.int64(5), forKey: "count")
      context.automaticallyMergesChanges = true
      return context.onChange { _, changes in teller.yield(changes) }
    }
    await changeElsewhere(store)
    for await changes in told where !changes.inserted.isEmpty {
      #expect(changes.inserted.count == 1 && changes.refreshed == [id])
      break
    }
    try await background.perform { context in
      let note = try context.existingObject(with: id)
      #expect(try note.value(forKey: "text").storeValue == .string("changed") && note.value(forKey: "count").storeValue == .int64(5))
      try context.save()
    }
    withExtendedLifetime(observation) {}
    try container.persistentStoreCoordinator.close()
  }

  /// Processes that add to one number, with a policy that adds both differences. No addition is lost, and no save fails.
  @Test(arguments: HistoryStore.allCases) func aPolicyLosesNoAdditionOfSeveralProcesses(_ store: HistoryStore) async throws {
    let coordinator = try Self.coordinator(store, store.path(folder)), context = try ManagedObjectContext(coordinator: coordinator)
    for number in 0..<3 { _ = try note("\(number)", context) }
    try context.save()
    // A multiple of the number of notes.
    let rounds = TestTier.count(60, full: 600)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask { [path = store.path(folder)] in
          await #expect(processExitsWith: .success) { [path = path as String, store = store as HistoryStore, rounds = rounds as Int] in
            let context = try ManagedObjectContext(coordinator: RemoteChangeTests.coordinator(store, path, reports: false))
            context.mergePolicy = .custom { conflict in
              guard case .int64(let base)? = conflict.base?["count"], case .int64(let ours)? = conflict.ours?["count"],
                case .int64(let theirs)? = conflict.theirs?["count"]
              else { return .error }
              return .values(["count": .int64(ours + theirs - base)])
            }
            let notes = try RemoteChangeTests.notes(context)
            for round in 0..<rounds {
              guard case .single(.int64(let count)) = try notes[round % 3].value(forKey: "count") else { exit(3) }
              try notes[round % 3].setValue(.int64(count + 1), forKey: "count")
              try context.save()
            }
          }
        }
      }
    }
    // A whole-file store then has the current version, even if it hasn't been reported yet.
    let transactions = try coordinator.fetchHistory().transactions
    #expect(transactions.count == 3 * rounds + 1 && transactions.map(\.transactionNumber) == (1...Int64(3 * rounds + 1)).map { $0 })
    let fresh = try ManagedObjectContext(coordinator: coordinator)
    try fresh.refreshAllObjects()
    let counts = try Self.notes(fresh).map { note -> Int64 in
      if case .single(.int64(let count)) = try note.value(forKey: "count") { count } else { -1 }
    }
    #expect(counts == [Int64](repeating: Int64(rounds), count: 3))
  }
}
