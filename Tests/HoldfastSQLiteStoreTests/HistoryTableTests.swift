import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Persistent history in Core Data's tables.
@Suite struct HistoryTableTests {
  private let folder = TemporaryFolder()
  private var path: String { folder.url.appendingPathComponent("Kennel.sqlite").path }

  private func coordinator(
    keepsValues: Bool = false, tracking: HistoryTracking = .always, limit: Int? = nil
  ) throws -> PersistentStoreCoordinator {
    var options = SQLiteStoreOptions()
    options.historyTracking = tracking
    options.maximumHistoryChangeCount = limit
    return try PersistentStoreCoordinator(model: HistoryModel.model(keepsValues: keepsValues), store: .sqlite(at: path, options: options))
  }

  @Test func theNumberOfChangesIsBounded() throws {
    let coordinator = try coordinator(limit: 20), context = try HistoryModel.context(coordinator)
    for round in 0..<30 {
      for number in 0..<3 { _ = try HistoryModel.insert("Dog", "\(round) \(number)", context) }
      try context.save()
      let count = try coordinator.fetchHistory().changes.count
      #expect(count <= 20 && count >= min(3 * (round + 1), 15))
    }
    // The last transaction is kept, even if it is larger than the limit.
    for number in 0..<50 { _ = try HistoryModel.insert("Dog", "\(number)", context) }
    try context.save()
    #expect(try coordinator.fetchHistory().changes.count == 50)
  }

  // MARK: Authors and names

  /// The authors and names in the file, which isn't open.
  private func texts() throws -> [String] { try SQL.rows(path, "SELECT ZNAME FROM ATRANSACTIONSTRING ORDER BY Z_PK").map { $0[0] } }

  /// Saves a dog in a context with an author and a name.
  private func save(_ author: String, _ name: String, _ coordinator: PersistentStoreCoordinator) throws {
    let context = try HistoryModel.context(coordinator, author: author)
    context.name = name
    _ = try HistoryModel.insert("Dog", author, context)
    try context.save()
  }

  @Test func aDeletionOfHistoryDeletesTheAuthorsAndNamesThatNoTransactionHas() throws {
    let coordinator = try coordinator()
    for number in 0..<4 { try save("author \(number)", "context \(number % 2)", coordinator) }
    let token = try coordinator.currentPersistentHistoryToken()
    try save("author 4", "context 0", coordinator)
    #expect(try coordinator.deleteHistory(upTo: token) == 4)
    // An author that was deleted can return.
    try save("author 1", "context 0", coordinator)
    let transactions = try coordinator.fetchHistory().transactions
    #expect(transactions.map(\.author) == ["author 4", "author 1"] && transactions.allSatisfy { $0.contextName == "context 0" })
    #expect(transactions.allSatisfy { $0.processID != nil } && transactions.map(\.transactionNumber) == [5, 6])
    #expect(try coordinator.fetchHistory(author: "author 1").transactions.count == 1)
    try coordinator.close()
    let texts = try texts()
    #expect(texts.count == 4 && Set(texts).isSuperset(of: ["author 4", "author 1", "context 0"]), "\(texts)")
  }

  /// A program may use a new author for each of its saves.
  @Test func theNumberOfAuthorsAndNamesIsBounded() throws {
    let coordinator = try coordinator(limit: 20)
    for number in 0..<100 {
      try save("author \(number)", "context \(number)", coordinator)
      let transactions = try coordinator.fetchHistory().transactions, first = number + 1 - transactions.count
      #expect(transactions.map(\.author) == (first...number).map { "author \($0)" })
      #expect(transactions.map(\.contextName) == (first...number).map { "context \($0)" })
    }
    let count = try coordinator.fetchHistory().transactions.count
    #expect(count <= 20)
    try coordinator.close()
    // The name of the process is the only one that all of them share.
    #expect(try texts().count == 2 * count + 1)
  }

  /// Versions of Holdfast before this one didn't delete them.
  @Test func authorsAndNamesWithoutTransactionsAreDeletedAsWell() throws {
    let first = try coordinator(), before = Date.now.addingTimeInterval(-60)
    try save("author", "context", first)
    try first.close()
    _ = try SQL.rows(path, "INSERT INTO ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (90, 16003, 'left'), (91, 16003, NULL)")
    let second = try coordinator()
    #expect(try second.deleteHistory(upTo: nil, before: before) == 0)
    #expect(try second.fetchHistory(author: "author").transactions.count == 1)
    try second.close()
    let texts = try texts()
    #expect(texts.count == 3 && !texts.contains("left"), "\(texts)")
  }

  @Test func theTablesAreThoseOfCoreData() throws {
    let coordinator = try coordinator()
    _ = try HistoryModel.fill(coordinator, 1)
    try coordinator.close()

    let numbers = try SQL.rows(path, "SELECT Z_ENT, Z_NAME, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT > 16000 ORDER BY 1")
    #expect(numbers == [["16001", "CHANGE", "1"], ["16002", "TRANSACTION", "1"], ["16003", "TRANSACTIONSTRING", "1"]])
    let columns = try SQL.rows(path, "SELECT name FROM pragma_table_info('ACHANGE')").map { $0[0] }
    #expect(
      columns == [
        "Z_PK", "Z_ENT", "Z_OPT", "ZCHANGETYPE", "ZENTITY", "ZENTITYPK", "ZTRANSACTIONID", "ZCOLUMNS", "ZTOMBSTONE0", "ZTOMBSTONE1",
      ])
    #expect(
      try SQL.rows(path, "SELECT Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID FROM ACHANGE") == [["16001", "0", "2", "1", "1"]])
  }

  /// Deletes objects, and returns the number of statements that the history adds.
  private func historyStatements(_ entity: String, deleting count: Int) throws -> Int {
    let numbers = try [HistoryTracking.always, .never].map { tracking -> Int in
      var options = SQLiteStoreOptions()
      options.historyTracking = tracking
      let name = "\(entity) \(count) \(tracking).sqlite"
      let tested = try StoreUnderTest(folder, HistoryModel.model(), name: name, options: options)
      let values: [[String: StoreValue]] = (0..<2 * count).map { number in
        entity == "Dog" ? ["name": .string("\(number)"), "age": .int16(1)] : ["name": .string("\(number)")]
      }
      let keys = try tested.insert(entity, values), deleted = keys.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
      let before = tested.store.statementCount
      try tested.save(try tested.deletion(entity, deleted))
      let number = tested.store.statementCount - before
      try tested.store.close()
      if tracking == .never { return number }
      let rows = try SQL.rows(
        folder.file(name), "SELECT Z_PK, ZENTITYPK, ZTOMBSTONE0 FROM ACHANGE WHERE ZCHANGETYPE = 2 AND ZTRANSACTIONID = 2 ORDER BY Z_PK")
      let expected = deleted.enumerated().map { place, key in
        ["\(2 * count + place + 1)", "\(key.rawValue)", entity == "Dog" ? "\(2 * place)" : "NULL"]
      }
      #expect(rows == expected)
      return number
    }
    return numbers[0] - numbers[1]
  }

  /// A person keeps no values. Of a dog, the row is read, and its values are written together with the change.
  @Test func deletingManyObjectsTakesFewStatementsOfTheHistory() throws {
    #expect(try historyStatements("Person", deleting: 20) == historyStatements("Person", deleting: 200))
    #expect(try historyStatements("Dog", deleting: 200) - historyStatements("Dog", deleting: 20) == 2 * 180)
  }

  /// Saves of people with consecutive keys.
  enum Shape: CaseIterable, Sendable { case insertion, update, updateOfEveryOther, deletion }

  /// The number of statements for a save of people.
  private func statements(_ shape: Shape, of count: Int, _ tracking: HistoryTracking) throws -> Int {
    var options = SQLiteStoreOptions()
    options.historyTracking = tracking
    let tested = try StoreUnderTest(folder, HistoryModel.model(), name: "\(shape) \(count) \(tracking).sqlite", options: options)
    // The first saves look for the tables of the history, and add the name of the process.
    for _ in 0..<3 { try tested.insert("Person", [["name": .string("Ann")]]) }
    func people() throws -> [ObjectKey] { try tested.insert("Person", (0..<count).map { ["name": .string("\($0)")] }) }
    func counting(_ save: () throws -> Void) rethrows -> Int {
      let before = tested.store.statementCount
      try save()
      return tested.store.statementCount - before
    }
    func update(_ keys: [ObjectKey]) throws {
      try tested.update("Person", keys.map { (key: $0, expected: 1, values: ["name": .string("new")], changed: ["name"]) })
    }
    if shape == .insertion { return try counting { _ = try people() } }
    let keys = try people()
    switch shape {
    case .insertion, .update: return try counting { try update(keys) }
    case .updateOfEveryOther: return try counting { try update(keys.filter { $0.rawValue % 2 == 0 }) }
    case .deletion:
      let deletion = try tested.deletion("Person", keys)
      return try counting { try tested.save(deletion) }
    }
  }

  /// Two statements each reserve the number of the transaction and the keys of its changes. Then the name of the process is looked up, the
  /// transaction is inserted, and two statements find out whether the history is too long. One more writes the changes of each range of
  /// consecutive keys, or all deletions. A deletion also looks for references to the deleted objects, once for each relationship.
  @Test(arguments: Shape.allCases, [20, 200]) func aHistoryAddsAKnownNumberOfStatementsToASave(_ shape: Shape, _ count: Int) throws {
    let added = try statements(shape, of: count, .always) - statements(shape, of: count, .never)
    let expected = [Shape.insertion: 9, .update: 9, .updateOfEveryOther: 8 + count / 2, .deletion: 10]
    #expect(added == expected[shape])
  }

  /// A table of one entity contains only objects of this entity, so requests read them whatever `Z_ENT` contains.
  @Test(arguments: ["NULL", "77"]) func aHistoryHasChangesOfRowsToWhichAnotherProgramGaveNoEntity(number: String) throws {
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    let tested = try StoreUnderTest(folder, HistoryModel.model(), options: options)
    let key = try tested.insert("Person", [["name": .string("Ann")]])[0]
    try SQL.run(folder.file("store.sqlite"), "UPDATE ZPERSON SET Z_ENT = \(number)")
    try tested.update("Person", [(key: key, expected: 1, values: ["name": .string("Eve")], changed: ["name"])])
    let changes = try SQL.rows(folder.file("store.sqlite"), "SELECT ZENTITY, ZENTITYPK FROM ACHANGE ORDER BY Z_PK")
    #expect(changes.count == 2 && changes[0] == changes[1], "\(changes)")
    try tested.store.close()
  }

  /// Gives the file, which isn't open, the form of a history that early versions of Core Data wrote: without a table of texts.
  private func useEarlyForm() throws {
    func text(_ column: String) -> String { "(SELECT ZNAME FROM ATRANSACTIONSTRING WHERE Z_PK = \(column)TS)" }
    let texts = ["ZAUTHOR", "ZBUNDLEID", "ZCONTEXTNAME", "ZPROCESSID"].map(text).joined(separator: ", ")
    for sql in [
      "ALTER TABLE ATRANSACTION RENAME TO later",
      "CREATE TABLE ATRANSACTION ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTIMESTAMP FLOAT, ZAUTHOR VARCHAR, "
        + "ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR )",
      "INSERT INTO ATRANSACTION SELECT Z_PK, Z_ENT, Z_OPT, ZTIMESTAMP, \(texts) FROM later", "DROP TABLE later",
      "DROP TABLE ATRANSACTIONSTRING", "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 16003",
    ] { _ = try SQL.rows(path, sql) }
  }

  @Test(arguments: [HistoryTracking.ifPresent, .always])
  func aHistoryWithoutATableOfTextsIsReadAndContinued(_ tracking: HistoryTracking) throws {
    let first = try coordinator()
    for number in 0..<2 { try save("author \(number)", "context", first) }
    try first.close()
    try useEarlyForm()
    let second = try coordinator(tracking: tracking), history = try second.fetchHistory()
    #expect(history.transactions.map(\.author) == ["author 0", "author 1"])
    #expect(history.transactions.allSatisfy { $0.contextName == "context" && $0.processID != nil && $0.bundleID == nil })
    try save("author 2", "other", second)
    let new = try second.fetchHistory(after: history.token).transactions
    #expect(new.map(\.transactionNumber) == [3] && new[0].author == "author 2" && new[0].contextName == "other")
    #expect(new[0].processID == history.transactions[0].processID && new[0].changes.count == 1)
    #expect(try second.fetchHistory(author: "author 1").transactions.map(\.transactionNumber) == [2])
    #expect(try second.deleteHistory(upTo: history.token) == 2)
    try second.close()
    #expect(try SQL.rows(path, "SELECT Z_PK, ZAUTHOR, ZCONTEXTNAME FROM ATRANSACTION") == [["3", "author 2", "other"]])
    #expect(try SQL.rows(path, "SELECT name FROM sqlite_master WHERE name = 'ATRANSACTIONSTRING'").isEmpty)
  }

  @Test func aDamagedHistoryIsReported() throws {
    let coordinator = try coordinator()
    _ = try HistoryModel.fill(coordinator, 2)
    try coordinator.close()
    for damage in [
      "UPDATE ACHANGE SET ZCHANGETYPE = 9", "UPDATE ACHANGE SET ZCHANGETYPE = 0, ZENTITYPK = -4",
      "UPDATE ATRANSACTION SET ZTIMESTAMP = 'x'",
    ] {
      _ = try SQL.rows(path, damage)
      let again = try self.coordinator()
      let error = try #require(throws: StoreError.self) { try again.fetchHistory() }
      #expect(error.code == .damaged)
      #expect(try again.deleteHistory(upTo: nil) >= 0)
      _ = try HistoryModel.fill(again, 1)
      #expect(try again.fetchHistory().transactions.count == 1)
      try again.close()
    }
  }

  /// Repairs the file. Returns what was found, and the new store.
  private func repaired(_ name: String) throws -> (report: RepairReport, store: PersistentStoreCoordinator) {
    let model = try HistoryModel.model(), store = StoreDescription.sqlite(at: folder.file(name))
    let report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: path), to: store, model: model)
    return (report, try PersistentStoreCoordinator(model: model, store: store))
  }

  /// A page with changes or with the last keys is lost, but no object.
  ///
  /// The bug: readers got the transactions without these changes. Without the last keys of the history, all saves of the new file failed.
  @Test(arguments: ["ACHANGE", "Z_PRIMARYKEY"]) func aRepairedFileHasNoTransactionsThatLackChanges(lost: String) throws {
    let first = try coordinator(), start = try first.currentPersistentHistoryToken(), tokens = try [start] + HistoryModel.fill(first, 3)
    let keys = try first.fetchHistory().changes.map(\.changedObjectID.key)
    try first.close()
    // An intact file keeps its history.
    let intact = try repaired("intact.sqlite").store
    #expect(try intact.fetchHistory(after: start).changes.map(\.changedObjectID.key) == keys)
    #expect(try intact.currentPersistentHistoryToken() == tokens[3])
    try intact.close()
    let root = try #require(Int(SQL.rows(path, "SELECT rootpage FROM sqlite_master WHERE name = '\(lost)'")[0][0]))
    let pageSize = try #require(Int(SQL.rows(path, "PRAGMA page_size")[0][0]))
    var bytes = try TemporaryFolder.read(path)
    for place in (root - 1) * pageSize..<root * pageSize { bytes[place] = 0 }
    try TemporaryFolder.write(bytes, to: path)
    let (report, mended) = try repaired("mended.sqlite")
    #expect(report.objectCounts["Dog"] == 3 && report.notes.contains { $0.hasPrefix("The history of saves is empty") }, "\(report)")
    #expect(try mended.fetchHistory().transactions.isEmpty)
    for token in tokens {
      let error = #expect(throws: StoreError.self) { try mended.fetchHistory(after: token) }
      #expect(error?.code == .stateUnavailable)
    }
    let new = try mended.currentPersistentHistoryToken()
    try HistoryModel.save("new", mended)
    let history = try mended.fetchHistory(after: new)
    #expect(history.transactions.map(\.transactionNumber) == [5] && history.changes.map(\.changeType) == [.insert])
    try mended.close()
  }

  @Test func transactionsOfOneStoreStayInTheirOrder() throws {
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    let model = try ManagedObjectModel(
      entities: ["A", "B"].map { EntityDescription($0, attributes: [AttributeDescription("name", .string, isOptional: true)]) },
      configurations: [ConfigurationDescription("a", ["A"]), ConfigurationDescription("b", ["B"])])
    let stores = [
      StoreDescription.sqlite(at: path, options: options).with(configuration: "a"),
      .sqlite(at: folder.file("b.sqlite"), options: options).with(configuration: "b"),
    ]
    let first = try PersistentStoreCoordinator(model: model, stores: stores), context = try HistoryModel.context(first)
    for number in 0..<6 {
      _ = try context.insert(entityNamed: number % 2 == 0 ? "A" : "B")
      try context.save()
    }
    let identifier = first.persistentStores[0].identifier
    try first.close()
    // The clock was set back.
    _ = try SQL.rows(path, "UPDATE ATRANSACTION SET ZTIMESTAMP = ZTIMESTAMP - 1000 WHERE Z_PK = 3")
    let second = try PersistentStoreCoordinator(model: model, stores: stores), transactions = try second.fetchHistory().transactions
    #expect(transactions.count == 6)
    #expect(transactions.filter { $0.storeIdentifier == identifier }.map(\.transactionNumber) == [1, 2, 3])
    let copy = try second.fetchHistory(after: second.fetchHistory(limit: 2).token)
    #expect(copy.transactions.map(\.transactionNumber) == [3, 3])
  }

  @Test func invalidNumbersOfTransactionsAreReported() throws {
    let first = try coordinator()
    let token = try HistoryModel.fill(first, 1)[0]
    try first.close()
    for damage in [
      "UPDATE ATRANSACTION SET Z_PK = -9223372036854775807 - 1", "UPDATE ATRANSACTION SET Z_PK = 9223372036854775807",
      "DELETE FROM ATRANSACTION; UPDATE Z_PRIMARYKEY SET Z_MAX = 9223372036854775807 WHERE Z_ENT = 16002",
    ] {
      for part in damage.split(separator: ";") { _ = try SQL.rows(path, String(part)) }
      let coordinator = try coordinator()
      #expect(try #require(throws: StoreError.self) { try coordinator.currentPersistentHistoryToken() }.code == .damaged)
      #expect(try #require(throws: StoreError.self) { try coordinator.fetchHistory(after: token) }.code == .damaged)
      try coordinator.close()
    }
  }

  @Test func invalidKeysOfADamagedFileAreReported() throws {
    let first = try coordinator()
    _ = try HistoryModel.fill(first, 1)
    try first.close()
    // Too small a key is corrected.
    _ = try SQL.rows(path, "UPDATE Z_PRIMARYKEY SET Z_MAX = 'x' WHERE Z_ENT > 16000")
    let second = try coordinator()
    _ = try HistoryModel.fill(second, 1)
    #expect(try second.fetchHistory().transactions.map(\.transactionNumber) == [1, 2])
    try second.close()
    for (damage, repair) in [
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = 9223372036854775807 WHERE Z_ENT = 16001", "UPDATE Z_PRIMARYKEY SET Z_MAX = 50 WHERE Z_ENT = 16001"),
      ("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 16001", "INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, 50)"),
    ] {
      _ = try SQL.rows(path, damage)
      let coordinator = try coordinator()
      let error = try #require(throws: StoreError.self) { try HistoryModel.fill(coordinator, 1) }
      #expect(error.code == .damaged)
      try coordinator.close()
      _ = try SQL.rows(path, repair)
      let again = try self.coordinator()
      _ = try HistoryModel.fill(again, 1)
      try again.close()
    }
  }

  /// Another program doesn't know the table of values before and after changes.
  @Test(arguments: [
    ["DELETE FROM ACHANGE WHERE ZTRANSACTIONID < 3", "DELETE FROM ATRANSACTION WHERE Z_PK < 3"],
    ["DELETE FROM ACHANGE", "DELETE FROM ATRANSACTION", "UPDATE Z_PRIMARYKEY SET Z_MAX = 0 WHERE Z_ENT > 16000"],
    [
      "DROP TABLE ACHANGE", "DROP TABLE ATRANSACTION", "DROP TABLE ATRANSACTIONSTRING", "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT > 16000",
    ],
  ])
  func valuesOfChangesThatAnotherProgramDeletedAreDeleted(_ statements: [String]) throws {
    let first = try coordinator(keepsValues: true)
    _ = try HistoryModel.fill(first, 3)
    try first.close()
    for sql in statements { _ = try SQL.rows(path, sql) }
    let second = try coordinator(keepsValues: true), count = try second.fetchHistory().transactions.count
    try HistoryModel.save("Rex", second)
    let changes = try second.fetchHistory().changes
    #expect(changes.count == count + 1 && changes.last?.valuesAfter?["name"] == .string("Rex"))
    #expect(changes.allSatisfy { $0.valuesBefore == nil })
    #expect(try second.deleteHistory(upTo: nil) == count + 1)
    try second.close()
    #expect(try SQL.rows(path, "SELECT Z_PK FROM HOLDFASTHISTORYVALUES").isEmpty)
  }

  /// The bug: the maximum of the former history stayed in the file, and a program that only continues the new one applied it.
  @Test func aHistoryThatBeginsAgainHasTheMaximumOfTheProgramThatBeginsIt() throws {
    let first = try coordinator(limit: 20)
    try HistoryModel.save("Rex", first)
    try first.close()
    for sql in [
      "DROP TABLE ACHANGE", "DROP TABLE ATRANSACTION", "DROP TABLE ATRANSACTIONSTRING", "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT > 16000",
    ] { _ = try SQL.rows(path, sql) }
    try coordinator(limit: nil).close()
    let second = try coordinator(tracking: .ifPresent)
    for number in 0..<40 { try HistoryModel.save("\(number)", second) }
    #expect(try second.fetchHistory().transactions.count == 40)
    try second.close()
  }

  // MARK: Files without a history

  private func statements(
    of tracking: HistoryTracking, _ name: String, _ journal: SQLiteStoreOptions.JournalMode
  ) throws -> [Int] {
    var options = SQLiteStoreOptions()
    (options.historyTracking, options.journalMode) = (tracking, journal)
    let store = SQLiteStore(path: folder.file(name), options: options)
    let description = StoreDescription(type: "SQLite", at: .file(folder.file(name))) { store }
    let coordinator = try PersistentStoreCoordinator(model: HistoryModel.model(), store: description)
    let context = try HistoryModel.context(coordinator)
    var counts = [store.statementCount]
    for _ in 0..<3 {
      _ = try HistoryModel.insert("Dog", "Rex", context)
      try context.save()
      counts.append(store.statementCount)
    }
    try coordinator.close()
    return counts
  }

  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func aFileWithoutAHistoryCostsNoStatement(_ journal: SQLiteStoreOptions.JournalMode) throws {
    // In the second round, the files exist.
    for round in 0..<2 {
      let with = try statements(of: .ifPresent, "new.sqlite", journal), without = try statements(of: .never, "other.sqlite", journal)
      #expect(with == without, "round \(round)")
    }
  }

  @Test(.ownThreads) func aHistoryThatAnotherProgramRemovesIsNotMissed() async throws {
    let path = path, first = try coordinator()
    try HistoryModel.save("Rex", first)
    await #expect(processExitsWith: .success) { [path = path as String] in
      for table in ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"] { _ = try SQL.rows(path, "DROP TABLE \(table)") }
    }
    try HistoryModel.save("Fido", first)
    #expect(throws: StoreError.self) { try first.fetchHistory() }
    try first.close()
    let context = try HistoryModel.context(coordinator(tracking: .ifPresent))
    #expect(try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog")).count == 2)
  }

  /// Another process adds a history before the first save, after a save, or before a commit that isn't a save.
  @Test(.ownThreads, arguments: [SQLiteStoreOptions.JournalMode.wal, .delete], 0..<3)
  func aHistoryThatAnotherProcessAddsIsWrittenFromTheNextSaveOn(_ journal: SQLiteStoreOptions.JournalMode, _ way: Int) async throws {
    var options = SQLiteStoreOptions()
    options.journalMode = journal
    let path = path
    if way == 0 {
      try PersistentStoreCoordinator(model: HistoryModel.model(), store: .sqlite(at: path, options: options)).close()
    }
    let coordinator = try PersistentStoreCoordinator(model: HistoryModel.model(), store: .sqlite(at: path, options: options))
    if way > 0 { try HistoryModel.save("Rex", coordinator) }
    await #expect(processExitsWith: .success) { [path = path as String, isLogged = (journal == .wal) as Bool] in
      var options = SQLiteStoreOptions()
      (options.historyTracking, options.journalMode) = (.always, isLogged ? .wal : .delete)
      let coordinator = try PersistentStoreCoordinator(model: HistoryModel.model(), store: .sqlite(at: path, options: options))
      try HistoryModel.save("Fido", coordinator)
      try coordinator.close()
    }
    if way == 2 { try coordinator.setMetadata(["note": .string("a commit that isn't a save")]) }
    for name in ["Bello", "Spot"] { try HistoryModel.save(name, coordinator) }
    #expect(try coordinator.fetchHistory().transactions.map(\.transactionNumber) == [1, 2, 3])
    try coordinator.close()
  }
}
