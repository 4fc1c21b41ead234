import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Persistent history that Core Data wrote, if `HOLDFAST_CORPUS` names a folder with its stores.
@Suite(.enabled(if: CorpusFolder.path != nil, "HOLDFAST_CORPUS isn't set.")) struct HistoryCorpusTests {
  @Test func aHistoryOfCoreDataIsReadAndContinued() throws {
    let corpus = try #require(CorpusFolder.path) + "/sqlite/CoreDataPlus/Tests/Resources/SampleModel2/Fixtures"
    let folder = TemporaryFolder(), path = folder.file("Books.sqlite")
    try FileManager.default.copyItem(atPath: corpus + "/SampleModel2_V1.sqlite", toPath: path)
    var options = SQLiteStoreOptions()
    options.historyTracking = .ifPresent
    let container = try PersistentContainer(existing: .sqlite(at: path, options: options))
    let coordinator = container.persistentStoreCoordinator
    let history = try coordinator.fetchHistory(), transaction = try #require(history.transactions.first)
    #expect(history.transactions.count == 1 && transaction.changes.count == 5468 && transaction.processID == "xctest")
    #expect(
      transaction.bundleID == "com.apple.dt.xctest.tool")
    #expect(transaction.changes.allSatisfy { $0.changeType == .insert })
    let context = try ManagedObjectContext(coordinator: coordinator)
    let book = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")).first)
    try book.setValue("A title of ours", forKey: "title")
    context.transactionAuthor = "holdfast"
    try context.save()
    let new = try coordinator.fetchHistory(after: history.token)
    #expect(new.transactions.map(\.transactionNumber) == [2] && new.transactions[0].author == "holdfast")
    #expect(new.changes.map(\.changedObjectID) == [book.objectID] && new.changes[0].updatedProperties == ["title"])
    #expect(try SQL.rows(path, "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = 16001") == [["5469"]])
  }

  /// An object with a text that can be changed, and the text's name.
  private func changeable(_ context: ManagedObjectContext) throws -> (object: ManagedObject, name: String)? {
    for entity in context.persistentStoreCoordinator.model.entities where !entity.isAbstract {
      let text = entity.attributes.first { attribute in
        attribute.type == .string && attribute.derivation == nil && attribute.declaration.validation == .none
          && !entity.uniquenessConstraints.contains { $0.contains(attribute.name) }
      }
      var request = FetchRequest<ManagedObject>(entityName: entity.name)
      request.includesSubentities = false
      request.fetchLimit = 1
      if let text, let object = try context.fetch(request).first { return (object, text.name) }
    }
    return nil
  }

  @Test func aStoreWithoutAHistoryGetsCoreDatasTablesOnlyWhenItIsAsked() throws {
    let corpus = try #require(CorpusFolder.path) + "/sqlite/CoreDataPlus/Tests/Resources/SampleModel2/Fixtures"
    let original = TemporaryFolder(), real = original.file("Books.sqlite")
    try TemporaryFolder.write(try TemporaryFolder.read(corpus + "/SampleModel2_V1.sqlite"), to: real)
    // The table of changes also has columns for values of deleted objects.
    let definitions = """
      SELECT name, sql FROM sqlite_master WHERE tbl_name IN ('ACHANGE', 'ATRANSACTION', 'ATRANSACTIONSTRING') AND name <> 'ACHANGE' \
      ORDER BY name
      """
    let expected = try SQL.rows(real, definitions)
    #expect(expected.count == 10)
    var count = 0
    for path in CorpusFolder.stores {
      let folder = TemporaryFolder(), file = try CorpusFolder.copy(path, to: folder), model = try CorpusFolder.model(of: path, at: file)
      if try !SQL.rows(file, definitions).isEmpty { continue }
      for tracking in [HistoryTracking.ifPresent, .always] {
        var options = SQLiteStoreOptions()
        options.historyTracking = tracking
        let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: file, options: options))
        defer { try? coordinator.close() }
        let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
        guard let (object, name) = try changeable(context) else { continue }
        try object.setValue("Changed by a test, \(tracking)", forKey: name)
        try context.save()
        if tracking == .ifPresent {
          #expect(try SQL.rows(file, definitions).isEmpty, "\(path)")
          continue
        }
        let history = try coordinator.fetchHistory(), change = history.changes.first { $0.changedObjectID == object.objectID }
        #expect(history.transactions.count == 1, "\(path)")
        #expect(change?.changeType == .update && change?.updatedProperties?.contains(name) == true, "\(path)")
        #expect(try SQL.rows(file, definitions) == expected, "\(path)")
        // As Core Data numbers updates.
        let rows = try SQL.rows(file, "SELECT ZENTITYPK, ZCHANGETYPE FROM ACHANGE")
        #expect(rows.contains(["\(object.objectID.key)", "1"]), "\(path): \(rows)")
        count += 1
      }
      #expect(try SQL.rows(file, "PRAGMA integrity_check") == [["ok"]], "\(path)")
    }
    #expect(count >= 20, "\(count)")
  }
}
