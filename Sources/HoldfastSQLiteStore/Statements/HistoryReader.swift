import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads the history of a file, in one transaction.
struct HistoryReader {
  let store: OpenStore
  let connection: SQLiteConnection
  private var plan: HistoryPlan { store.history.plan }

  // MARK: Requests

  func transactions(_ request: HistoryRequest) throws -> HistoryTransactions {
    try requireHistory()
    let after = try request.after.map { try number($0) } ?? 0
    let select = try connection.prepare(
      """
      SELECT t.Z_PK, t.ZTIMESTAMP, ifnull(a.ZNAME, t.ZAUTHOR), ifnull(c.ZNAME, t.ZCONTEXTNAME), ifnull(p.ZNAME, t.ZPROCESSID),
      ifnull(b.ZNAME, t.ZBUNDLEID) FROM ATRANSACTION t LEFT JOIN ATRANSACTIONSTRING a ON a.Z_PK = t.ZAUTHORTS
      LEFT JOIN ATRANSACTIONSTRING c ON c.Z_PK = t.ZCONTEXTNAMETS LEFT JOIN ATRANSACTIONSTRING p ON p.Z_PK = t.ZPROCESSIDTS
      LEFT JOIN ATRANSACTIONSTRING b ON b.Z_PK = t.ZBUNDLEIDTS
      WHERE t.Z_PK > ?1 AND t.ZTIMESTAMP >= ?2 AND (?3 IS NULL OR ifnull(a.ZNAME, t.ZAUTHOR) = ?3) ORDER BY t.Z_PK LIMIT ?4
      """)
    select.bind(after, at: 1)
    select.bind(request.since ?? -.infinity, at: 2)
    if let author = request.author { try select.bind(author, at: 3) } else { select.bindNull(at: 3) }
    select.bind(Int64(request.limit ?? -1), at: 4)
    var transactions: [HistoryTransaction] = []
    while try select.step() {
      let number = select.int64(0)
      guard select.type(1) == .float || select.type(1) == .integer else {
        throw damaged("The time of transaction \(number) isn't a number.")
      }
      transactions.append(
        HistoryTransaction(
          state: token(number), number: number, time: select.double(1), author: text(select, 2), contextName: text(select, 3),
          processID: text(select, 4), bundleID: text(select, 5), changes: try changes(of: number)))
    }
    if let limit = request.limit, transactions.count >= limit {
      return HistoryTransactions(transactions: transactions, state: transactions.last?.state ?? token(after))
    }
    return HistoryTransactions(transactions: transactions, state: token(try last()))
  }

  func state() throws -> StateToken {
    try requireHistory()
    return token(try last())
  }

  func delete(_ request: HistoryDeletionRequest) throws -> Int {
    try requireHistory()
    let last = try request.upTo.map { try number($0) } ?? .max
    return try HistoryDeletion(connection).delete(upTo: last, earlierThan: request.earlierThan ?? .infinity)
  }

  private func text(_ statement: SQLiteStatement, _ column: Int) -> String? {
    statement.isNull(column) ? nil : statement.string(column)
  }

  /// The numbers of the transactions after one.
  func numbers(after number: Int64) throws -> [Int64] {
    let select = try connection.statement("SELECT Z_PK FROM ATRANSACTION WHERE Z_PK > ?1 ORDER BY Z_PK")
    select.bind(number, at: 1)
    var numbers: [Int64] = []
    while try select.step() { numbers.append(select.int64(0)) }
    return numbers
  }

  /// The number of changes of a transaction and those after it.
  func changeCount(from number: Int64) throws -> Int {
    let select = try connection.statement("SELECT COUNT(*) FROM ACHANGE WHERE ZTRANSACTIONID >= ?1")
    select.bind(number, at: 1)
    defer { select.reset() }
    return try select.step() ? Int(select.int64(0)) : 0
  }

  // MARK: Changes

  func changes(of transaction: Int64) throws -> [HistoryTransaction.Change] {
    let select = try connection.statement(
      "SELECT Z_PK, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZCOLUMNS FROM ACHANGE WHERE ZTRANSACTIONID = ?1 ORDER BY Z_PK")
    select.bind(transaction, at: 1)
    defer { if select.isRunning { select.reset() } }
    var changes: [HistoryTransaction.Change] = []
    while try select.step() {
      // Changes of entities that the model doesn't contain are left out.
      let number = select.int64(2), key = select.key(3)
      guard let entity = store.schema.tables.firstIndex(where: { $0.number == number }) else { continue }
      guard let kind = HistoryReader.kinds[select.int64(1)], key >= 0 else {
        throw damaged("Change \(select.int64(0)) has an unknown type or an invalid key.")
      }
      var change = HistoryTransaction.Change(objectID: store.prefixes[EntityIndex(entity)].withKey(key), kind: kind)
      if kind == .updated && !select.isNull(4) { change.updatedProperties = plan.entities[entity].names(Array(select.blob(4))) }
      if kind == .deleted { change.tombstone = try tombstone(select.int64(0), EntityIndex(entity)) }
      if plan.keepsValues { try addValues(select.int64(0), to: &change) }
      changes.append(change)
    }
    return changes
  }

  private static let kinds: [Int64: HistoryTransaction.Change.Kind] = [0: .inserted, 1: .updated, 2: .deleted]

  /// The kept values of a deleted object. They are read like a row whose other columns are null.
  private func tombstone(_ change: Int64, _ index: EntityIndex) throws -> [String: StoreValue] {
    let preserved = plan.entities[index.rawValue].preserved, entity = store.model.entities[index]
    if try preserved.isEmpty || HistoryTables.tombstoneCount(connection) < preserved.count { return [:] }
    let columns = entity.slotIndexes.map { slot in preserved.firstIndex(of: slot).map { "ZTOMBSTONE\($0)" } ?? "NULL" }
    let select = try connection.statement("SELECT 0, 1, \(columns.joined(separator: ", ")) FROM ACHANGE WHERE Z_PK = ?1")
    select.bind(change, at: 1)
    defer { select.reset() }
    guard try select.step() else { return [:] }
    let builder = store.builder(entity)
    try store.decoders[index].append(select, to: builder)
    let row = builder.seal()[0]
    var values: [String: StoreValue] = [:]
    for slot in preserved {
      let value = withExtendedLifetime(row) { row.pointer.value(slot, entity.layout.columns[slot], idPrefix: store.prefixes[index]) }
      if value != .null && !value.isExternal { values[entity.slots[slot].name] = value }
    }
    return values
  }

  private func addValues(_ key: Int64, to change: inout HistoryTransaction.Change) throws {
    guard try hasValues() else { return }
    let select = try connection.statement("SELECT ZFORMER, ZNEW FROM \(HistoryTables.values) WHERE Z_PK = ?1")
    select.bind(key, at: 1)
    defer { select.reset() }
    guard try select.step() else { return }
    func values(_ column: Int) throws -> [String: StoreValue]? {
      if select.isNull(column) { return nil }
      do { return try JSONDecoder().decode([String: StoreValue].self, from: Data(select.blob(column))) } catch {
        throw damaged("The values of change \(key) can't be decoded.", cause: error)
      }
    }
    change.formerValues = try values(0)
    change.newValues = try values(1)
  }

  private func hasValues() throws -> Bool {
    try connection.int64("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = '\(HistoryTables.values)'") == 1
  }

  // MARK: Tokens

  /// The number of the last transaction that was ever written.
  func last() throws -> Int64 {
    let reserved = try connection.int64("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(HistoryTables.transactionNumber)") ?? 0
    return max(reserved, try connection.int64("SELECT max(Z_PK) FROM ATRANSACTION") ?? 0)
  }

  private func token(_ number: Int64) -> StateToken {
    StateToken(storeUUID: store.identity.storeUUID, bytes: (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) })
  }

  /// The number of a transaction from its token.
  ///
  /// - Throws: `stateUnavailable` if the token is of another store, or later transactions were deleted.
  private func number(_ token: StateToken) throws -> Int64 {
    guard token.storeUUID == store.identity.storeUUID, token.bytes.count == 8 else {
      throw unavailable("The token is of another store. Read the objects, and continue with the current token of this store.")
    }
    let number = token.bytes.reduce(Int64(0)) { $0 << 8 | Int64($1) }, last = try last()
    if number > last || number < 0 {
      throw unavailable(
        "The token is later than the history: an earlier version of the file has replaced it. Read the objects, and continue with the "
          + "current token.")
    }
    let first = try connection.int64("SELECT min(Z_PK) FROM ATRANSACTION") ?? last + 1
    if number < first - 1 {
      throw unavailable(
        "Transactions after the token were deleted. Read the objects, and continue with the current token; or keep more history.")
    }
    return number
  }

  // MARK: Errors

  private func requireHistory() throws {
    if try HistoryTables.exist(connection) { return }
    throw StoreError(
      .unsupportedRequest, operation: connection.operation, path: store.path,
      reason: "The file has no history. Open it with the option historyTracking: .always.")
  }

  private func unavailable(_ reason: String) -> StoreError {
    StoreError(.stateUnavailable, operation: connection.operation, path: store.path, reason: reason)
  }

  private func damaged(_ reason: String, cause: (any Error)? = nil) -> StoreError {
    StoreError(
      .damaged, operation: connection.operation, path: store.path, reason: "\(reason) Delete the history, or repair the file.",
      cause: cause)
  }
}

extension OpenStore {
  /// Adds the tables of the history to a file that lacks them.
  func createHistory() throws {
    let exist = try reading { try HistoryTables.exist($0) }
    if exist { return }
    try writing("create the tables of the history") { writer in
      try writer.begin(.immediate)
      if try !HistoryTables.exist(writer) {
        for sql in HistoryTables.creation(tombstoneCount: history.plan.tombstoneCount) { try writer.runScript(sql) }
      }
      try writer.commit()
    }
  }

  private func reading<Result>(_ body: (SQLiteConnection) throws -> Result) throws -> Result {
    let lease = try database.readers.lease(.request, to: "look for the history")
    defer { lease.end() }
    return try body(lease.connection)
  }
}
