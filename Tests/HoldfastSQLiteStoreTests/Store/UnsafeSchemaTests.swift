import CHoldfastSQLite
import Foundation
import Holdfast
import HoldfastSQLiteStore
import SQLiteTestSupport
import TestSupport
import Testing

/// A file's schema is as untrusted as its rows. Anything that would run code or compute values is refused when the store is opened.
@Suite struct UnsafeSchemaTests {
  private let folder: TemporaryFolder
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Book",
          attributes: [
            AttributeDescription("title", .string, isOptional: true), AttributeDescription("year", .integer64, isOptional: true),
            .derived("pagesCount", .integer64, "pages.@count"),
          ],
          relationships: [.toMany("pages", to: "Page", inverse: "book"), .toMany("readers", to: "Reader", inverse: "books")]),
        EntityDescription(
          "Page", attributes: [AttributeDescription("number", .integer64, isOptional: true)],
          relationships: [.toOne("book", to: "Book", inverse: "pages")]),
        EntityDescription("Reader", relationships: [.toMany("books", to: "Book", inverse: "readers")]),
      ])
    } catch { fatalError("\(error)") }
  }()

  init() throws { folder = TemporaryFolder() }

  private func makeStore() throws {
    let coordinator = try PersistentStoreCoordinator(model: Self.model, store: .sqlite(at: folder.file()))
    let context = try ManagedObjectContext(coordinator: coordinator)
    for number in Int64(0)..<5 { try context.insert(entityNamed: "Book").setValue(.int64(number), forKey: "year") }
    try context.save()
    try coordinator.close()
  }

  /// Runs statements as another program would.
  private func run(_ sql: String) throws {
    var handle: OpaquePointer?
    try #require(sqlite3_open(folder.file(), &handle) == SQLITE_OK)
    defer { sqlite3_close(handle) }
    try #require(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK, "\(String(cString: sqlite3_errmsg(handle)))")
  }

  private func open(isReadOnly: Bool) throws {
    let options = SQLiteStoreOptions(isReadOnly: isReadOnly)
    let coordinator = try PersistentStoreCoordinator(model: Self.model, store: .sqlite(at: folder.file(), options: options))
    #expect(try ManagedObjectContext(coordinator: coordinator).fetch(FetchRequest<ManagedObject>(entityName: "Book")).count == 5)
    try coordinator.close()
  }

  private func expectRefusal(isReadOnly: Bool, _ name: String) throws {
    let error = #expect(throws: StoreError.self) { try open(isReadOnly: isReadOnly) }
    #expect(error?.code == .unsafeSchema && error?.reason.contains(name) == true, "\(String(describing: error))")
  }

  // MARK: Tables

  @Test(
    arguments: [
      "CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGESCOUNT INTEGER, ZYEAR INTEGER, ZTITLE VARCHAR AS (hex(zeroblob(100000))) )",
      "CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGESCOUNT INTEGER, ZYEAR INTEGER, ZTITLE VARCHAR generated always as ('x') stored )",
      "CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGESCOUNT INTEGER, ZYEAR INTEGER, ZTITLE VARCHAR DEFAULT 'long' )",
      "CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGESCOUNT INTEGER, ZYEAR INTEGER, ZTITLE VARCHAR, check (ZYEAR > 0))",
      "CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGESCOUNT INTEGER, ZYEAR INTEGER UNIQUE ON CONFLICT REPLACE, ZTITLE VARCHAR )",
      "CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGESCOUNT INTEGER, ZYEAR INTEGER, ZTITLE VARCHAR NOT NULL on conflict ignore )",
      "CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY ON CONFLICT ROLLBACK, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGESCOUNT INTEGER, ZYEAR INTEGER, ZTITLE VARCHAR )",
      "CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGESCOUNT INTEGER, ZYEAR INTEGER, ZTITLE VARCHAR COLLATE NOCASE )",
      "CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGESCOUNT INTEGER, ZYEAR INTEGER, ZTITLE VARCHAR collate [rtrim] )",
      "CREATE VIRTUAL TABLE ZBOOK USING fts5(Z_PK, Z_ENT, Z_OPT, ZPAGESCOUNT, ZYEAR, ZTITLE)",
      "CREATE VIEW ZBOOK AS SELECT 1 AS Z_PK, 1 AS Z_ENT, 1 AS Z_OPT, 0 AS ZPAGESCOUNT, 0 AS ZYEAR, 'x' AS ZTITLE",
    ], [true, false])
  func aTableThatComputesValuesIsRefused(table: String, isReadOnly: Bool) throws {
    try makeStore()
    try run("DROP TABLE ZBOOK; \(table)")
    try expectRefusal(isReadOnly: isReadOnly, "ZBOOK")
  }

  /// Saves write the history of a file that has one.
  @Test(
    arguments: [
      "CREATE TRIGGER T AFTER INSERT ON ACHANGE BEGIN DELETE FROM ZBOOK; END",
      "ALTER TABLE ATRANSACTION ADD COLUMN extra VARCHAR DEFAULT 'x'",
      "CREATE INDEX I ON ATRANSACTIONSTRING (hex(ZNAME))",
    ])
  func tablesOfAHistoryAreCheckedAsWell(statement: String) throws {
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    try PersistentStoreCoordinator(model: Self.model, store: .sqlite(at: folder.file(), options: options)).close()
    try makeStore()
    try run(statement)
    try expectRefusal(
      isReadOnly: false, statement.split(separator: " ").first { $0.hasPrefix("AT") || $0 == "T" || $0 == "I" }.map(String.init) ?? "")
  }

  @Test(arguments: ["Z_METADATA", "Z_PRIMARYKEY"]) func systemTablesAreCheckedAsWell(table: String) throws {
    try makeStore()
    try run("ALTER TABLE \(table) ADD COLUMN extra VARCHAR DEFAULT 'x'")
    try expectRefusal(isReadOnly: false, table)
    let error = #expect(throws: StoreError.self) { _ = try PersistentStoreCoordinator.metadata(for: .sqlite(at: folder.file())) }
    #expect(error?.code == .unsafeSchema)
  }

  @Test func joinTablesAreCheckedAsWell() throws {
    try makeStore()
    let name = try #require(
      SQL.rows(folder.file(), "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z_[0-9]*'").first?.first)
    try run("ALTER TABLE \(name) ADD COLUMN extra VARCHAR DEFAULT 'x'")
    try expectRefusal(isReadOnly: false, name)
  }

  /// Tables that the framework never uses may contain anything. Words in quotes and comments aren't keywords.
  @Test func otherTablesAreIgnored() throws {
    try makeStore()
    try run(
      """
      CREATE TABLE other (a DEFAULT 'x', b AS (a), CHECK (a > '')); CREATE VIEW v AS SELECT * FROM other;
      CREATE VIRTUAL TABLE search USING fts5(a);
      CREATE TRIGGER t AFTER INSERT ON other BEGIN DELETE FROM ZBOOK; END;
      CREATE TABLE third (a UNIQUE ON CONFLICT REPLACE, b COLLATE NOCASE);
      ALTER TABLE ZBOOK ADD COLUMN "DEFAULT" INTEGER; ALTER TABLE ZBOOK ADD COLUMN [check] INTEGER /* AS DEFAULT */;
      ALTER TABLE ZBOOK ADD COLUMN conflict INTEGER; ALTER TABLE ZBOOK ADD COLUMN extra VARCHAR COLLATE "binary"
      """)
    for isReadOnly in [true, false] { try open(isReadOnly: isReadOnly) }
  }

  // MARK: Indexes

  @Test(
    arguments: [
      "CREATE INDEX i ON ZBOOK (hex(zeroblob(1000)))", "CREATE INDEX i ON ZBOOK (ZYEAR + 1)", "CREATE INDEX i ON ZBOOK (ZYEAR || 'x')",
      "CREATE INDEX i ON ZBOOK (ZYEAR) WHERE length(ZTITLE) > 3", "CREATE INDEX i ON ZBOOK ((ZYEAR))",
      // Words only.
      "CREATE INDEX i ON ZBOOK (ZYEAR, ZTITLE COLLATE NOCASE GLOB ZTITLE DESC)",
      "CREATE INDEX i ON ZBOOK (NOT ZYEAR)", "CREATE INDEX i ON ZBOOK (CASE ZYEAR WHEN ZTITLE THEN ZTITLE END)",
      "CREATE INDEX i ON ZBOOK (ZYEAR) WHERE ZYEAR > 3 AND ZTITLE GLOB ZTITLE",
    ])
  func anIndexThatComputesValuesIsRefusedForWriting(index: String) throws {
    try makeStore()
    try run(index)
    try expectRefusal(isReadOnly: false, "index i")
    try open(isReadOnly: true)
  }

  /// SQLite reads only the first statement of a definition. A large save would run the entire text to create the index again.
  @Test(arguments: ["; DELETE FROM ZPAGE", " WHERE ZYEAR > 3; UPDATE ZBOOK SET ZTITLE = NULL", " /* ; */ ; DROP TABLE ZPAGE"])
  func aDefinitionOfAnIndexWithAnotherStatementIsRefusedForWriting(rest: String) throws {
    try makeStore()
    try run(
      "CREATE INDEX i ON ZBOOK (ZYEAR); PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = sql || '\(rest)' WHERE name = 'i'")
    try expectRefusal(isReadOnly: false, "index i")
    try open(isReadOnly: true)
  }

  /// A semicolon in a name or a comment ends no statement.
  @Test func anIndexWithASemicolonInItsNameStays() throws {
    try makeStore()
    try run("CREATE INDEX \"a;b\" ON ZBOOK (ZYEAR /* ; */)")
    try open(isReadOnly: false)
  }

  @Test(
    arguments: [
      "CREATE INDEX i ON ZBOOK (ZYEAR COLLATE BINARY ASC, \"ZTITLE\" COLLATE BINARY DESC)", "CREATE UNIQUE INDEX i ON ZBOOK (ZYEAR)",
      "CREATE INDEX i ON ZBOOK (\"ZTITLE\" COLLATE \"NOCASE\", ZYEAR DESC)", "CREATE INDEX i ON ZBOOK (ZYEAR) WHERE ZYEAR > -5",
      "CREATE INDEX i ON ZBOOK (ZYEAR) WHERE (ZYEAR > 3 AND (ZTITLE IS NOT NULL OR ZYEAR IN (1, 2)))",
    ])
  func indexesOfOtherProgramsStay(index: String) throws {
    try makeStore()
    try run(index)
    try open(isReadOnly: false)
  }

  /// Several links are inserted by one statement, which ignores those that the table has.
  @Test(arguments: [1, 40]) func aLinkThatAnIndexOfAnotherProgramRefusesIsAnError(count: Int) throws {
    try makeStore()
    let name = try #require(
      SQL.rows(folder.file(), "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z_[0-9]*'").first?.first)
    let column = try #require(
      SQL.rows(folder.file(), "SELECT name FROM pragma_table_info('\(name)') WHERE name LIKE '%BOOKS'").first?.first)
    try run("CREATE UNIQUE INDEX one ON \(name) (\(column))")
    let coordinator = try PersistentStoreCoordinator(model: Self.model, store: .sqlite(at: folder.file()))
    let context = try ManagedObjectContext(coordinator: coordinator)
    let book = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")).first)
    let readers = try (0...count).map { _ in try context.insert(entityNamed: "Reader") }
    try book.setValue(Array(readers.prefix(1)), forKey: "readers")
    try context.save()
    try book.setValue(readers, forKey: "readers")
    let error = #expect(throws: PersistenceError.self) { try context.save() }
    let reason = (error?.cause as? StoreError)?.reason
    #expect(error?.code == .constraintConflict && reason?.contains(name) == true, "\(String(describing: error))")
    try coordinator.close()
    #expect(try SQL.rows(folder.file(), "SELECT count(*) FROM \(name)").first?.first == "1")
  }

  // MARK: Triggers

  @Test(
    arguments: [
      "AFTER UPDATE ON ZBOOK BEGIN UPDATE ZBOOK SET ZTITLE = 'all mine'; END",
      "AFTER INSERT ON ZBOOK BEGIN SELECT (WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n); END",
      "AFTER INSERT ON ZBOOK BEGIN DELETE FROM ZPAGE; END", "BEFORE INSERT ON ZBOOK BEGIN SELECT RAISE(IGNORE); END",
      // Like the triggers of derived attributes, except for one detail.
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZTITLE = 'x' WHERE Z_PK = NEW.ZBOOK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = 1; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = 1 WHERE Z_PK = Z_PK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = 1 WHERE Z_PK = NEW.ZBOOK OR 1; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = 1, ZTITLE = 'x' WHERE Z_PK = NEW.ZBOOK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = (SELECT COUNT(*) FROM ZPAGE, ZBOOK) WHERE Z_PK = NEW.ZBOOK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = (SELECT COUNT(*) FROM ZPAGE p, ZBOOK b WHERE 1) WHERE Z_PK = NEW.ZBOOK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = length(zeroblob(1000000000)) WHERE Z_PK = NEW.ZBOOK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW WHEN length(hex(zeroblob(100))) BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = 1 WHERE Z_PK = NEW.ZBOOK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = 1 WHERE Z_PK = NEW.ZBOOK; DELETE FROM ZBOOK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = 1 WHERE Z_PK = NEW.ZBOOK; SELECT randomblob(1000000000); END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = (SELECT COUNT(*) FROM (SELECT 1 FROM ZPAGE)) WHERE Z_PK = NEW.ZBOOK; END",
      // Operators that are functions.
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = ZTITLE LIKE '%a%a%a%a%b' WHERE Z_PK = NEW.ZBOOK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = 1 WHERE Z_PK = NEW.ZBOOK AND ZTITLE not glob '*a*a*b'; END",
      "AFTER INSERT ON ZBOOK FOR EACH ROW WHEN NEW.ZTITLE REGEXP 'a' BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = 1 WHERE Z_PK = NEW.Z_PK; END",
      "AFTER INSERT ON ZPAGE FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = ZTITLE -> 'a' WHERE Z_PK = NEW.ZBOOK; END",
    ])
  func aTriggerThatIsNoneOfADerivedAttributeIsRefusedForWriting(trigger: String) throws {
    try makeStore()
    try run("CREATE TRIGGER Z_DA_ZPAGE_Book_pagesCount_PARAMETER_INSERT \(trigger)")
    try expectRefusal(isReadOnly: false, "trigger Z_DA_ZPAGE_Book_pagesCount_PARAMETER_INSERT")
    try open(isReadOnly: true)
  }

  /// SQLite takes many keywords for names without quotes.
  @Test(arguments: ["begin", "after", "end"]) func aTriggerWithAKeywordAsItsNameIsRefusedForWriting(name: String) throws {
    try makeStore()
    try run("CREATE TRIGGER \(name) AFTER INSERT ON ZBOOK BEGIN SELECT 1; END")
    try expectRefusal(isReadOnly: false, "trigger \(name)")
    try open(isReadOnly: true)
  }

  @Test(
    arguments: [
      "AFTER INSERT ON ZPAGE FOR EACH ROW WHEN (NEW.ZBOOK NOT NULL) BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = IFNULL(ZPAGESCOUNT, 0) + 1 WHERE Z_PK = NEW.ZBOOK AND 1 <= Z_ENT AND Z_ENT <= 2; SELECT NSCoreDataDATriggerUpdatedAffectedObjectValue('ZBOOK', Z_ENT, Z_PK, 'pagesCount', ZPAGESCOUNT) FROM ZBOOK WHERE Z_PK = NEW.ZBOOK AND 1 <= Z_ENT AND Z_ENT <= 2; END",
      "AFTER UPDATE OF ZBOOK ON ZPAGE FOR EACH ROW WHEN (OLD.ZBOOK NOT NULL) BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = ZPAGESCOUNT - 1 WHERE Z_PK = OLD.ZBOOK; SELECT NSCoreDataDATriggerUpdatedAffectedObjectValue('ZBOOK', Z_ENT, Z_PK, 'pagesCount', ZPAGESCOUNT) FROM ZBOOK WHERE Z_PK = OLD.ZBOOK; END",
      "AFTER INSERT ON ZBOOK FOR EACH ROW WHEN 1 <= NEW.Z_ENT AND NEW.Z_ENT <= 2 BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = (SELECT IFNULL(COUNT(ZBOOK), 0) FROM ZPAGE WHERE ZBOOK = NEW.Z_PK) WHERE Z_PK = NEW.Z_PK; SELECT NSCoreDataDATriggerInsertUpdatedAffectedObjectValue('ZBOOK', Z_ENT, Z_PK, 'pagesCount', ZPAGESCOUNT) FROM ZBOOK WHERE Z_PK = NEW.Z_PK; END",
    ])
  func triggersOfCoreDataAreRun(trigger: String) throws {
    try makeStore()
    try run("CREATE TRIGGER Z_DA_ZPAGE_Book_pagesCount_PARAMETER_INSERT \(trigger)")
    try open(isReadOnly: false)
  }
}
