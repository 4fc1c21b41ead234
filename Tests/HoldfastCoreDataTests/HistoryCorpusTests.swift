import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastSQLiteStore
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
}
