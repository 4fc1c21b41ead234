import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct SQLiteStatementTests {
  private let folder = TemporaryFolder()

  @Test func valuesComeBackAsTheyWereBound() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    let insert = try writer.statement("INSERT INTO item (id, name, weight, photo) VALUES (?, ?, ?, ?)")
    insert.bind(Int64.min, at: 1)
    try insert.bind("a\0ü", at: 2)
    insert.bind(-0.1, at: 3)
    try insert.bind([0, 255, 7] as [UInt8], at: 4)
    try insert.run()
    #expect(writer.changes == 1)

    let select = try writer.statement("SELECT id, name, weight, photo, NULL FROM item")
    #expect(try select.step())
    #expect((0..<5).map { select.type($0) } == [.integer, .text, .float, .blob, .null])
    #expect(select.int64(0) == .min)
    #expect(Array(select.text(1)) == Array("a\0ü".utf8))
    #expect(select.double(2) == -0.1)
    #expect(Array(select.blob(3)) == [0, 255, 7])
    #expect(select.isNull(4) && select.text(4).isEmpty && select.blob(4).baseAddress == nil)
    #expect(select.columnCount == 5 && select.columnName(1) == "name")
    #expect(try !select.step())
  }

  @Test func emptyTextAndEmptyDataAreNotNull() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    let empty = UnsafeRawBufferPointer(start: nil, count: 0)
    let select = try writer.statement("SELECT ?1, ?2, ?3, ?4, ?5, length(?1)")
    try select.bindText(empty, .borrowed, at: 1)
    try select.bindText(empty, .copied, at: 2)
    try select.bindBlob(empty, .borrowed, at: 3)
    try select.bindBlob(empty, .copied, at: 4)
    select.bindNull(at: 5)
    #expect(try select.step())
    #expect((0..<6).map { select.type($0) } == [.text, .text, .blob, .blob, .null, .integer])
    #expect(select.text(0).isEmpty)
    select.reset()
  }

  @Test func borrowedBytesAreReadWhenTheStatementRuns() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 3, alignment: 1)
    defer { bytes.deallocate() }
    bytes.copyBytes(from: "abc".utf8)
    let select = try writer.statement("SELECT ?1 || ?2")
    try select.bindText(UnsafeRawBufferPointer(bytes), .borrowed, at: 1)
    try select.bindText(UnsafeRawBufferPointer(bytes), .copied, at: 2)
    bytes.copyBytes(from: "xyz".utf8)
    #expect(try select.step())
    #expect(select.string(0) == "xyzabc")
    select.reset()
    select.clearBindings()
    #expect(try select.step() && select.isNull(0))
    select.reset()
  }

  @Test func aStatementIsReadyAgainAfterItsLastRowAndAfterAFailure() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    let insert = try writer.statement("INSERT INTO item (id) VALUES (?)")
    insert.bind(1, at: 1)
    try insert.run()
    #expect(!insert.isRunning)
    let error = storeError { () throws(StoreError) in try insert.run() }
    #expect(error?.code == .general)
    #expect(error?.description.contains("INSERT INTO item (id) VALUES (?)") == true)
    insert.bind(2, at: 1)
    try insert.run()
    #expect(try writer.int64("SELECT count(*) FROM item") == 2)
  }

  @Test func statementsAreCountedWhenTheyBegin() throws {
    let database = try SQLiteDatabase.opened(path: folder.file(), options: SQLiteStoreOptions())
    let writer = database.writer
    #expect(writer.statementsRun == 0)
    try writer.runScript("CREATE TABLE t (a); INSERT INTO t VALUES (1); ; INSERT INTO t VALUES (2); -- done\n")
    #expect(writer.statementsRun == 3)
    let select = try writer.statement("SELECT a FROM t")
    #expect(writer.statementsRun == 3)
    try select.run()
    #expect(writer.statementsRun == 4)
    writer.statementsRun = 0
    #expect(try select.step())
    select.reset()
    #expect(writer.statementsRun == 1)
  }

  @Test func aFailingScriptNamesTheStatementThatFailed() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    let error = storeError { () throws(StoreError) in try writer.runScript("SELECT 1; SELECT nothing; SELECT 2") }
    #expect((error?.cause as? SQLiteFailure)?.sql?.contains("SELECT nothing") == true)
    #expect((error?.cause as? SQLiteFailure)?.sql?.contains("SELECT 2") == false)
  }

  @Test func aStatementIsCompiledOncePerText() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    let first = try writer.statement("SELECT 1")
    #expect(try writer.statement("SELECT 1") === first)
    #expect(try first.step())
    let second = try writer.statement("SELECT 1")
    #expect(second !== first)
    first.reset()
    #expect(try writer.statement("SELECT 1") === first)
  }

  @Test func theCacheIsBoundedAndHeldStatementsOutliveIt() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    let held = try writer.statement("SELECT 'held'")
    for number in 0..<(2 * StatementCache.capacity) { _ = try writer.int64("SELECT \(number)") }
    #expect(writer.cachedStatementCount <= StatementCache.capacity)
    #expect(try held.step() && held.string(0) == "held")
    held.reset()
  }

  @Test func aStatementOfAClosedConnectionThrows() throws {
    let database = try SQLiteDatabase.make(folder.file())
    let held = try database.writer.statement("SELECT id FROM item")
    try database.insert()
    try database.writer.begin(.immediate)
    #expect(try held.step())
    database.close()
    held.reset()
    #expect(storeError { () throws(StoreError) in try held.step() }?.code == .notOpen)
    #expect(storeError { () throws(StoreError) in try database.openedWriter().run("SELECT 1") }?.code == .notOpen)
  }

  @Test func aLockIsGoneWhenAConnectionIsClosedWithAStatementStillHeld() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(busyTimeout: .seconds(0)))
    try database.insert()
    let other = try SQLiteConnection(file: database.file, options: database.options, role: .writer, registration: nil)
    let held = try other.prepare("SELECT id FROM item")
    try other.begin(.immediate)
    #expect(try held.step())
    other.close()
    try database.insert()
    #expect(try database.count() == 2)
    withExtendedLifetime(held) {}
  }

  @Test(.ownThreads) func bindingToARunningStatementTraps() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let folder = TemporaryFolder()
        // A released database closes its statements.
        let database = try SQLiteDatabase.make(folder.file()), statement = try database.writer.statement("SELECT ?")
        _ = try statement.step()
        statement.bind(1, at: 1)
        withExtendedLifetime(database) {}
      }
    }
  }
}
