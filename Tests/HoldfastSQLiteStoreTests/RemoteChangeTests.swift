import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

/// Changes by other processes, which the store reports as they happen.
@Suite(.serialized) struct RemoteChangeTests {
  private let folder = TemporaryFolder()
  private var path: String { folder.file("Notes.sqlite") }

  private static func coordinator(
    _ path: String, reports: Bool = true, tracking: SQLiteStoreOptions.HistoryTracking = .always
  ) throws -> PersistentStoreCoordinator {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note", attributes: [AttributeDescription("text", .string), AttributeDescription("count", .integer64, default: .int64(0))],
        relationships: [.toOne("folder", to: "Folder", inverse: "notes")]),
      EntityDescription(
        "Folder", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("notes", to: "Note", inverse: "folder")]),
    ])
    var options = SQLiteStoreOptions()
    options.historyTracking = tracking
    options.reportsOtherProcesses = reports
    return try PersistentStoreCoordinator(model: model, store: .sqlite(at: path, options: options))
  }

  private func note(_ text: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    let note = try context.insert(entityNamed: "Note")
    try note.setValue(text, forKey: "text")
    return note
  }

  private static func notes(_ context: ManagedObjectContext) throws -> [ManagedObject] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: "Note")).sorted { $0.objectID.key < $1.objectID.key }
  }

  /// Another process changes the first note, deletes the second one and adds one to the first note's folder.
  private func changeElsewhere(tracking: SQLiteStoreOptions.HistoryTracking) async {
    await #expect(processExitsWith: .success) { [path = path as String, tracking = tracking as SQLiteStoreOptions.HistoryTracking] in
      let coordinator = try RemoteChangeTests.coordinator(path, reports: false, tracking: tracking)
      let context = try ManagedObjectContext(coordinator: coordinator), notes = try RemoteChangeTests.notes(context)
      try notes[0].setValue("changed", forKey: "text")
      context.delete(notes[1])
      let new = try context.insert(entityNamed: "Note")
      try new.setValue("new", forKey: "text")
      guard case .single(.objectID(let folder)) = try notes[0].value(forKey: "folder") else { exit(3) }
      try new.setValue(.objectID(folder), forKey: "folder")
      try context.save()
      try coordinator.close()
    }
  }

  @Test func savesOfOtherProcessesAreReportedAndMerged() async throws {
    let coordinator = try Self.coordinator(path), context = try ManagedObjectContext(coordinator: coordinator)
    let first = try note("first", context), second = try note("second", context), parent = try context.insert(entityNamed: "Folder")
    try parent.setValue("parent", forKey: "name")
    try first.setValue(parent, forKey: "folder")
    try context.save()
    context.automaticallyMergesChanges = true
    #expect(try parent.toMany(forKey: "notes").count == 1)
    var saves = coordinator.savedChanges().makeAsyncIterator()
    // Its own save isn't reported a second time.
    try first.setValue("own", forKey: "text")
    try context.save()
    let own = try #require(await saves.next(isolation: #isolation))
    #expect(own.updated == [first.objectID] && !own.mayIncludeOthers)
    await changeElsewhere(tracking: .always)
    let changes = try #require(await saves.next(isolation: #isolation))
    #expect(changes.updated == [first.objectID] && changes.deleted == [second.objectID] && changes.inserted.count == 1)
    #expect(!changes.mayIncludeOthers)
    try context.processPendingChanges()
    #expect(try first.value(forKey: "text").storeValue == .string("changed") && second.isInaccessible)
    #expect(try parent.toMany(forKey: "notes").count == 2)
    try first.setValue("again", forKey: "text")
    try context.save()
  }

  @Test func aFileWithoutHistoryIsRefused() throws {
    let error = try #require(throws: StoreError.self) { try Self.coordinator(path, tracking: .ifPresent) }
    #expect(error.code == .unsupportedRequest)
  }

  @Test func aFaultGetsTheRowThatAnotherProcessSaved() async throws {
    let coordinator = try Self.coordinator(path), context = try ManagedObjectContext(coordinator: coordinator)
    let first = try note("first", context), second = try note("second", context), parent = try context.insert(entityNamed: "Folder")
    try parent.setValue("parent", forKey: "name")
    try first.setValue(parent, forKey: "folder")
    try context.save()
    // The saved rows are in the coordinator's cache.
    var saves = coordinator.savedChanges().makeAsyncIterator()
    await changeElsewhere(tracking: .always)
    _ = await saves.next(isolation: #isolation)
    let other = try ManagedObjectContext(coordinator: coordinator)
    #expect(try other.object(with: first.objectID).value(forKey: "text").storeValue == .string("changed"))
    #expect(throws: PersistenceError.self) { try other.existingObject(with: second.objectID) }
  }

  /// Processes that add to one number, with a policy that adds both differences. No addition is lost, and no save fails.
  @Test func aPolicyLosesNoAdditionOfSeveralProcesses() async throws {
    let coordinator = try Self.coordinator(path), context = try ManagedObjectContext(coordinator: coordinator)
    for number in 0..<3 { _ = try note("\(number)", context) }
    try context.save()
    // A multiple of the number of notes.
    let rounds = TestTier.count(60, full: 600)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask { [path] in
          await #expect(processExitsWith: .success) { [path = path as String, rounds = rounds as Int] in
            let context = try ManagedObjectContext(coordinator: RemoteChangeTests.coordinator(path, reports: false))
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
    let fresh = try ManagedObjectContext(coordinator: coordinator)
    try fresh.refreshAllObjects()
    let counts = try Self.notes(fresh).map { note -> Int64 in
      if case .single(.int64(let count)) = try note.value(forKey: "count") { count } else { -1 }
    }
    #expect(counts == [Int64](repeating: Int64(rounds), count: 3))
    let transactions = try coordinator.fetchHistory().transactions
    #expect(transactions.count == 3 * rounds + 1 && transactions.map(\.transactionNumber) == (1...Int64(3 * rounds + 1)).map { $0 })
  }
}
