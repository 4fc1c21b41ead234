import Foundation
import Holdfast
import Testing

@testable import HoldfastSQLiteStore

/// Statements end when their time is up or their rows aren't wanted any more, and a fetch takes no more memory than it may.
@Suite struct StatementWatchTests {
  private let folder = TemporaryFolder()
  /// Runs until it is stopped.
  private static let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

  /// Wants rows as often as it is asked so many times.
  private final class PatientSink: RowSink {
    private(set) var questions = 0
    private let patience: Int
    init(_ patience: Int) { self.patience = patience }
    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand { .more }
    func checkWanted() throws {
      questions += 1
      if questions > patience { throw StoreError(.cancelled, operation: "wait", reason: "It took too long.") }
    }
  }

  private func answer(_ sql: String, _ connection: SQLiteConnection, seconds: Double?, _ sink: PatientSink? = nil) throws -> Int64? {
    try connection.state.watch.limiting(toSeconds: seconds) {
      guard let sink else { return try connection.int64(sql) }
      return try connection.state.watch.asking(sink) { try connection.int64(sql) }
    }
  }

  @Test func aStatementEndsWhenItsTimeIsUp() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.readers.withConnection(to: "count") { (connection: SQLiteConnection) throws -> Void in
      let error = #expect(throws: StoreError.self) { try answer(Self.endless, connection, seconds: 0.02) }
      #expect(error?.code == .timedOut && error?.coreDataCode == 134_090 && error?.operation == "count", "\(String(describing: error))")
      // The connection is as good as before, and the next request has all its time.
      #expect(try answer("SELECT 7", connection, seconds: 1000) == 7)
    }
  }

  @Test func aStatementEndsWhenItsSinkWantsNoMoreRows() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.readers.withConnection(to: "count") { (connection: SQLiteConnection) throws -> Void in
      let sink = PatientSink(5)
      let error = #expect(throws: StoreError.self) { try answer(Self.endless, connection, seconds: nil, sink) }
      #expect(error?.code == .cancelled && error?.reason == "It took too long." && sink.questions == 6, "\(String(describing: error))")
      #expect(try answer("SELECT 7", connection, seconds: nil) == 7)
      // A sink whose request is over isn't asked.
      #expect(sink.questions == 6)
    }
  }

  /// A sink may make a request of its own while it takes rows.
  @Test func aRequestWithinAnotherHasTheTimeOfThatOne() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.readers.withConnection(to: "count") { (connection: SQLiteConnection) throws -> Void in
      let error = #expect(throws: StoreError.self) {
        try connection.state.watch.limiting(toSeconds: 0.02) { try answer(Self.endless, connection, seconds: 1e6) }
      }
      #expect(error?.code == .timedOut)
    }
  }

  // MARK: Through the stack

  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [EntityDescription("Item", attributes: [AttributeDescription("number", .integer64)])])
    } catch { fatalError("\(error)") }
  }()

  private func context(_ options: SQLiteStoreOptions = SQLiteStoreOptions()) throws -> ManagedObjectContext {
    try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: Self.model, store: .sqlite(at: folder.file(), options: options)))
  }

  private func insert(_ count: Int, _ context: ManagedObjectContext) throws {
    for number in 0..<count { try context.insert(entityNamed: "Item").setValue(.int64(Int64(number)), forKey: "number") }
  }

  private func makeItems() throws {
    let context = try context()
    try insert(5000, context)
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  @Test func aRequestWithoutTimeLeftChangesNothing() throws {
    try makeItems()
    let late = try context(SQLiteStoreOptions(requestTimeoutSeconds: 0))
    #expect(throws: StoreError.self) { try late.fetch(FetchRequest<ManagedObject>(entityName: "Item")) }
    try insert(5000, late)
    let error = #expect(throws: StoreError.self) { try late.save() }
    #expect(error?.code == .timedOut && error?.reason.contains("requestTimeoutSeconds") == true, "\(String(describing: error))")
    #expect(late.insertedObjects.count == 5000)
    try late.persistentStoreCoordinator.close()
    #expect(try context().count(for: FetchRequest<ManagedObject>(entityName: "Item")) == 5000)
  }

  @Test func aFetchTakesNoMoreMemoryThanItMay() throws {
    try makeItems()
    let small = try context(SQLiteStoreOptions(largestFetchBytes: 100_000))
    let request = FetchRequest<ManagedObject>(entityName: "Item")
    let error = #expect(throws: StoreError.self) { try small.fetch(request) }
    #expect(error?.code == .tooLarge && error?.reason.contains("largestFetchBytes") == true, "\(String(describing: error))")
    #expect(try small.count(for: request) == 5000)
    var few = request
    few.fetchLimit = 100
    #expect(try small.fetch(few).count == 100)
    try insert(1, small)
    try small.save()
  }
}
