import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Statements end when they time out or are cancelled, and a fetch stays within its memory limit.
@Suite struct StatementWatchTests {
  private let folder = TemporaryFolder()
  /// Runs until it is stopped.
  private static let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

  private func answer(_ sql: String, _ connection: SQLiteConnection, seconds: Double?, _ options: RequestOptions = .none) throws -> Int64? {
    try connection.state.watch.limiting(toSeconds: seconds) {
      try connection.state.watch.obeying(options) { try connection.int64(sql) }
    }
  }

  @Test func aStatementEndsWhenItsTimeIsUp() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.readers.withConnection(to: "count") { (connection: SQLiteConnection) throws -> Void in
      let error = #expect(throws: StoreError.self) { try answer(Self.endless, connection, seconds: 0.02) }
      #expect(error?.code == .timedOut && error?.coreDataCode == 134_090 && error?.operation == "count", "\(String(describing: error))")
      // The connection remains usable, and the next request gets the full time.
      #expect(try answer("SELECT 7", connection, seconds: 1000) == 7)
    }
  }

  @Test func aStatementEndsAtItsDeadlineOrWhenItIsCancelled() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.readers.withConnection(to: "count") { (connection: SQLiteConnection) throws -> Void in
      let late = #expect(throws: StoreError.self) {
        try answer(Self.endless, connection, seconds: nil, RequestOptions(deadline: .now + .milliseconds(20)))
      }
      #expect(late?.code == .timedOut && late?.operation == "count" && late?.isRetryable == true, "\(String(describing: late))")
      let cancellation = RequestCancellation()
      startThread(after: 0.02) { cancellation.cancel() }
      let error = #expect(throws: StoreError.self) {
        try answer(Self.endless, connection, seconds: nil, RequestOptions(cancellation: cancellation))
      }
      #expect(error?.code == .cancelled && error?.path == connection.path, "\(String(describing: error))")
      // The connection remains usable, and the next request isn't cancelled.
      #expect(try answer("SELECT 7", connection, seconds: nil) == 7)
    }
  }

  @Test func aRequestWithinACancelledOneHasItsOwnOptions() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.readers.withConnection(to: "count") { (connection: SQLiteConnection) throws -> Void in
      let cancellation = RequestCancellation()
      cancellation.cancel()
      let long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT count(*) FROM n"
      let count = try connection.state.watch.obeying(RequestOptions(cancellation: cancellation)) {
        let count = try answer(long, connection, seconds: nil)
        #expect(throws: StoreError.self) { try connection.int64(long) }
        return count
      }
      #expect(count == 100_000)
    }
  }

  /// A sink may make its own request while it receives rows.
  @Test func aRequestWithinAnotherHasTheTimeOfThatOne() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.readers.withConnection(to: "count") { (connection: SQLiteConnection) throws -> Void in
      let error = #expect(throws: StoreError.self) {
        try connection.state.watch.limiting(toSeconds: 0.02) { try answer(Self.endless, connection, seconds: 1e6) }
      }
      #expect(error?.code == .timedOut)
    }
  }

  private final class IgnoringSink: RowSink {
    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand { .more }
  }

  // MARK: In the stack

  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Item",
          attributes: [
            AttributeDescription("number", .integer64), AttributeDescription("name", .string, default: .string("")),
            AttributeDescription("mark", .integer64, default: .int64(0)),
          ],
          relationships: [
            .toMany("parts", to: "Item", inverse: "wholes"), .toMany("wholes", to: "Item", inverse: "parts"),
            .toMany("sons", to: "Item", inverse: "father"), .toOne("father", to: "Item", inverse: "sons"),
          ])
      ])
    } catch { fatalError("\(error)") }
  }()

  private func context(_ options: SQLiteStoreOptions = SQLiteStoreOptions()) throws -> ManagedObjectContext {
    try Self.context(folder.file(), options)
  }

  private static func context(_ path: String, _ options: SQLiteStoreOptions = SQLiteStoreOptions()) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .sqlite(at: path, options: options)))
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
    let late = try context(SQLiteStoreOptions(requestTimeout: .seconds(0)))
    #expect(throws: StoreError.self) { try late.fetch(FetchRequest<ManagedObject>(entityName: "Item")) }
    try insert(5000, late)
    let error = #expect(throws: StoreError.self) { try late.save() }
    #expect(error?.code == .timedOut && error?.reason.contains("requestTimeout") == true, "\(String(describing: error))")
    #expect(late.insertedObjects.count == 5000)
    try late.persistentStoreCoordinator.close()
    #expect(try context().count(for: FetchRequest<ManagedObject>(entityName: "Item")) == 5000)
  }

  /// Every object is linked to every other one, so a search along three links checks billions of rows.
  private static func endlessRequest() -> FetchRequest<ManagedObject> {
    let marked = QueryExpression.comparison(.property("mark"), .greaterThan, .constant(.int64(5)), [])
    return FetchRequest(entityName: "Item", where: FetchPredicate((0..<3).reduce(marked) { part, _ in .any("parts", part) }))
  }

  private func makeMesh() throws {
    let context = try context()
    try insert(300, context)
    let items = Array(context.insertedObjects)
    for item in items { try item.setValue(PropertyValue.objects(items), forKey: "parts") }
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  @Test func aFetchWhoseTaskIsCancelledEndsWithinItsStatement() async throws {
    try makeMesh()
    let store = SQLiteStore(path: folder.file())
    // On a queue of its own: on a thread of the concurrency pool, the fetch could keep this test from ever cancelling it.
    let background = try PersistentContainer(model: Self.model, store: StoreDescription(type: "SQLite") { store }).newBackgroundContext()
    let readers = try store.opened("watch").database.readers
    let task = Task { try await background.perform { try $0.fetch(Self.endlessRequest()).count } }
    // Once the fetch has a connection, it notices the cancellation only in its statement.
    let hasBegun = await eventually { readers.leasedCount > 0 }
    #expect(hasBegun)
    task.cancel()
    let error = await #expect(throws: StoreError.self) { try await task.value }
    #expect(error?.code == .cancelled, "\(String(describing: error))")
  }

  @Test func aFetchThatTakesTooLongEndsWithinItsStatement() throws {
    try makeMesh()
    let context = try context(SQLiteStoreOptions(requestTimeout: .seconds(0.3)))
    let error = #expect(throws: StoreError.self) { try context.fetch(Self.endlessRequest()) }
    #expect(error?.code == .timedOut, "\(String(describing: error))")
    // The store remains usable.
    #expect(try untilInTime { try context.count(for: FetchRequest<ManagedObject>(entityName: "Item")) } == 300)
  }

  private func expectTooLarge<R>(_ body: () throws -> R, sourceLocation: SourceLocation = #_sourceLocation) {
    let error = #expect(throws: StoreError.self, sourceLocation: sourceLocation) { try body() }
    #expect(
      error?.code == .tooLarge && error?.reason.contains("maximumFetchByteCount") == true, "\(String(describing: error))",
      sourceLocation: sourceLocation)
  }

  @Test func faultsGroupsAndTargetsTakeNoMoreMemoryThanTheyMay() throws {
    let first = try context()
    try insert(5000, first)
    let items = Array(first.insertedObjects)
    for (place, item) in items.enumerated() { try item.setValue(.string("Item number \(place)"), forKey: "name") }
    for relationship in ["parts", "sons"] { try items[0].setValue(PropertyValue.objects(items), forKey: relationship) }
    try first.save()
    let id = items[0].objectID
    try first.persistentStoreCoordinator.close()

    let small = try context(SQLiteStoreOptions(maximumFetchByteCount: 30_000))
    for key in ["number", "name"] {
      expectTooLarge {
        try small.fetch(DictionaryFetchRequest<ManagedObject>(entityName: "Item", columns: ["n": .count()], groupedBy: [key]))
      }
    }
    let few = DictionaryFetchRequest<ManagedObject>(entityName: "Item", columns: ["n": .count()], groupedBy: ["mark"])
    #expect(try small.fetch(few).count == 1)
    for relationship in ["parts", "sons"] {
      let item = try small.existingObject(with: id)
      expectTooLarge { try item.value(forKey: relationship) as PropertyValue }
      small.reset()
    }
    #expect(try small.existingObject(with: id).value(forKey: "mark") == .single(.int64(0)))
    try small.persistentStoreCoordinator.close()

    let store = SQLiteStore(path: folder.file(), options: SQLiteStoreOptions(maximumFetchByteCount: 30_000))
    _ = try store.open(model: Self.model)
    defer { try? store.close() }
    let view = try store.beginRead(.latest, options: .none), sink = IgnoringSink()
    expectTooLarge { try store.rows(FaultRequest(entity: 0, keys: Array(1...5000)), in: view, options: .none, into: sink) }
    try store.rows(FaultRequest(entity: 0, keys: Array(1...50)), in: view, options: .none, into: sink)
  }

  /// A batch of rows is passed on in parts when rows of several entities alternate.
  @Test func rowsOfAlternatingEntitiesCountOnceForTheMemoryLimit() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal", isAbstract: true, attributes: [AttributeDescription("name", .string)]),
      EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"),
    ])
    let name = String(repeating: "n", count: 100), options = SQLiteStoreOptions(maximumFetchByteCount: 150_000)
    let tested = try StoreUnderTest(folder, model, options: options)
    // Keys of the family alternate between its entities.
    for _ in 0..<200 { for entity in ["Cat", "Dog"] { try tested.insert(entity, [["name": .string(name)]]) } }
    let animal = try tested.entity("Animal")
    let plan = FetchPlan(entity: animal.index, concreteEntities: animal.concreteIndexes, limit: Int.max)
    let rows = try tested.fetch(plan)
    #expect(rows.count == 400 && Set(rows.map(\.key)).count == 400)
    let sink = CollectingSink()
    try tested.store.rows(FaultRequest(entity: animal.index, keys: Array(1...400)), in: tested.store.beginRead(.latest), into: sink)
    #expect(sink.rows.count == 400)
    // The limit remains one for the entire result.
    for _ in 0..<5 {
      for entity in ["Cat", "Dog"] { try tested.insert(entity, Array(repeating: ["name": .string(name)], count: 200)) }
    }
    expectTooLarge { try tested.fetch(plan) }
  }

  /// The bug: the limit was checked only for new groups. But sums of numbers of very different sizes take more memory, also in known groups.
  @Test func sumsOfKnownGroupsTakeNoMoreMemoryThanTheyMay() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Part", attributes: [AttributeDescription("number", .integer64), AttributeDescription("size", .double)])
    ])
    let tested = try StoreUnderTest(folder, model, options: SQLiteStoreOptions(maximumFetchByteCount: 60_000))
    let part = try tested.entity("Part")
    let number = try #require(part.slot(named: "number")), size = try #require(part.slot(named: "size"))
    var plan = try tested.plan("Part")
    plan.output = .aggregates(AggregatePlan(groupBy: [number], columns: [.sum(slot: size), .average(slot: size)]))
    func insert(size: Double) throws {
      try tested.insert("Part", (Int64(0)..<100).map { ["number": .int64($0), "size": .double(size)] })
    }
    for size in [1, 1e300] { try insert(size: size) }
    #expect(try tested.fetch(plan).count == 100)
    // The sums need more than two numbers now.
    try insert(size: 1e-300)
    expectTooLarge { try tested.fetch(plan) }
  }

  @Test func destinationsOfAGroupThatAreTooManyAreReadObjectByObject() async throws {
    let first = try context()
    try insert(10, first)
    let owners = Array(first.insertedObjects)
    try insert(2000, first)
    let parts = Array(first.insertedObjects.dropFirst(10))
    for owner in owners {
      try owner.setValue(.int64(1), forKey: "mark")
      try owner.setValue(PropertyValue.objects(parts), forKey: "parts")
    }
    try first.save()
    try first.persistentStoreCoordinator.close()

    let small = try context(SQLiteStoreOptions(maximumFetchByteCount: 30_000))
    let found = try small.fetch(
      FetchRequest<ManagedObject>(
        entityName: "Item",
        where: FetchPredicate(
          .comparison(.property("mark"), .equalTo, .constant(.int64(1)), []))))
    #expect(found.count == 10)
    for owner in found {
      guard case .objects(let parts) = try owner.value(forKey: "parts") as PropertyValue else {
        Issue.record("No parts.")
        return
      }
      #expect(parts.count == 2000)
    }
    #expect(small.faultError == nil)
    // The save looks for the objects that lose the deleted ones, and divides its requests too.
    let announced = small.persistentStoreCoordinator.savedChanges()
    for owner in found { small.delete(owner) }
    try small.save()
    var changes = announced.makeAsyncIterator()
    #expect(await changes.next()?.updated.count == 2000)
    #expect(try small.count(for: FetchRequest<ManagedObject>(entityName: "Item")) == 2000)
  }

  @Test func aRequestThatWaitsForAConnectionEndsAtItsDeadlineAndWhenItIsCancelled() throws {
    let store = SQLiteStore(path: folder.file(), options: SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1000)))
    _ = try store.open(model: Self.model)
    let readers = try store.opened("watch").database.readers
    let begun = DispatchSemaphore(value: 0), end = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      try? readers.withConnection(to: "read") { _ in
        begun.signal()
        end.wait()
      }
    }
    begun.wait()
    let request = FaultRequest(entity: 0, keys: [1])
    func wait(_ options: RequestOptions) -> StoreError.Code? {
      do {
        let view = try store.beginRead(.latest, options: options)
        try store.rows(request, in: view, options: options, into: IgnoringSink())
        return nil
      } catch { return (error as? StoreError)?.code }
    }
    #expect(wait(RequestOptions(deadline: .now + .milliseconds(20))) == .timedOut)
    let cancellation = RequestCancellation()
    startThread(after: 0.02) { cancellation.cancel() }
    #expect(wait(RequestOptions(cancellation: cancellation)) == .cancelled)
    #expect(wait(RequestOptions(cancellation: cancellation)) == .cancelled)
    #expect(readers.waitingCount == 0)
    end.signal()
    #expect(wait(.none) == nil)
    try store.close()
  }

  /// The bug: it waited for the lock as long as a request without options, and threw `locked`.
  @Test func aRequestThatWaitsForTheLockOfAnotherProcessEndsAtItsDeadlineAndWhenItIsCancelled() throws {
    let store = SQLiteStore(path: folder.file(), options: SQLiteStoreOptions(journalMode: .delete, busyTimeout: .seconds(1000)))
    _ = try store.open(model: Self.model)
    let request = FaultRequest(entity: 0, keys: [1])
    func wait(_ kind: ReadViewKind, _ options: RequestOptions) -> StoreError? {
      do {
        let view = try store.beginRead(kind, options: options)
        defer { view.end() }
        try store.rows(request, in: view, options: options, into: IgnoringSink())
        return nil
      } catch { return error as? StoreError }
    }
    // Opens the connection that all requests use.
    #expect(wait(.latest, .none)?.code == nil)
    let other = try SQLiteConnection(
      file: store.opened("watch").database.file, options: store.options, role: .writer, registration: nil)
    try other.begin(.exclusive)
    for kind in [ReadViewKind.latest, .consistent, .snapshot] {
      let late = wait(kind, RequestOptions(deadline: .now + .milliseconds(20)))
      #expect(late?.code == .timedOut && late?.isRetryable == true && late?.path == folder.file(), "\(kind): \(String(describing: late))")
      let cancellation = RequestCancellation()
      startThread(after: 0.02) { cancellation.cancel() }
      let cancelled = wait(kind, RequestOptions(cancellation: cancellation))
      #expect(cancelled?.code == .cancelled, "\(kind): \(String(describing: cancelled))")
    }
    other.rollback()
    other.close()
    for kind in [ReadViewKind.latest, .consistent, .snapshot] { #expect(wait(kind, .none)?.code == nil) }
    try store.close()
  }

  @Test func aLockThatIsHeldTooLongIsNamedAfterAnEarlierRequestWasCancelled() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(journalMode: .delete, busyTimeout: .milliseconds(1)))
    let other = try SQLiteConnection(file: database.file, options: database.options, role: .writer, registration: nil)
    try database.readers.withConnection(to: "count") { (connection: SQLiteConnection) throws -> Void in
      let sql = "SELECT count(*) FROM item", cancellation = RequestCancellation()
      #expect(try answer(sql, connection, seconds: nil) == 0)
      try other.begin(.exclusive)
      cancellation.cancel()
      let cancelled = #expect(throws: StoreError.self) {
        try answer(sql, connection, seconds: nil, RequestOptions(cancellation: cancellation))
      }
      #expect(cancelled?.code == .cancelled, "\(String(describing: cancelled))")
      let locked = #expect(throws: StoreError.self) { try answer(sql, connection, seconds: nil) }
      #expect(locked?.code == .locked, "\(String(describing: locked))")
    }
    other.rollback()
    other.close()
  }

  @Test func aSaveThatWaitsForAnotherProcessEndsAtItsDeadline() throws {
    let store = SQLiteStore(path: folder.file(), options: SQLiteStoreOptions(busyTimeout: .seconds(1000)))
    _ = try store.open(model: Self.model)
    let other = try SQLiteConnection(
      file: store.opened("watch").database.file, options: store.options, role: .writer, registration: nil)
    try other.begin(.immediate)
    let options = RequestOptions(deadline: .now + .milliseconds(50))
    let error = #expect(throws: StoreError.self) { try store.reserveKeys([KeyDemand(entity: 0, count: 1)], options: options) }
    #expect(error?.code == .timedOut, "\(String(describing: error))")
    try other.commit()
    other.close()
    #expect(try store.reserveKeys([KeyDemand(entity: 0, count: 1)], options: .none) == [[1]])
    try store.close()
  }

  /// The lock of a reader prevents the conversion of a file with a rollback journal.
  @Test func aSaveThatWaitsToConvertTheFileEndsAtItsDeadlineAndWhenItIsCancelled() throws {
    let first = SQLiteStore(path: folder.file(), options: SQLiteStoreOptions(journalMode: .delete))
    _ = try first.open(model: Self.model)
    try first.close()
    let store = SQLiteStore(path: folder.file(), options: SQLiteStoreOptions(journalMode: .wal, busyTimeout: .seconds(1000)))
    _ = try store.open(model: Self.model)
    let other = try SQLiteConnection(
      file: store.opened("watch").database.file, options: store.options, role: .reader, registration: nil)
    try other.begin(.deferred)
    _ = try other.int64("SELECT count(*) FROM sqlite_master")
    func reserve(_ options: RequestOptions) -> StoreError.Code? {
      do {
        _ = try store.reserveKeys([KeyDemand(entity: 0, count: 1)], options: options)
        return nil
      } catch { return (error as? StoreError)?.code }
    }
    #expect(reserve(RequestOptions(deadline: .now + .milliseconds(50))) == .timedOut)
    let cancellation = RequestCancellation()
    startThread(after: 0.02) { cancellation.cancel() }
    #expect(reserve(RequestOptions(cancellation: cancellation)) == .cancelled)
    other.rollback()
    other.close()
    #expect(reserve(.none) == nil)
    try store.close()
  }

  @Test func aFetchTakesNoMoreMemoryThanItMay() throws {
    try makeItems()
    let small = try context(SQLiteStoreOptions(maximumFetchByteCount: 100_000))
    let request = FetchRequest<ManagedObject>(entityName: "Item")
    expectTooLarge { try small.fetch(request) }
    #expect(try small.count(for: request) == 5000)
    var few = request
    few.fetchLimit = 100
    #expect(try small.fetch(few).count == 100)
    try insert(1, small)
    try small.save()
  }
}
