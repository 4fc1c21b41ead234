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
  private let plan: HistoryPlan

  init(store: OpenStore, connection: SQLiteConnection) {
    self.store = store
    self.connection = connection
    plan = store.history.plan
  }

  // MARK: Requests

  func transactions(_ request: HistoryRequest) throws -> HistoryTransactions {
    let tokens = try tokens(), columns = try Columns(store, connection)
    let after = try request.after.map { try tokens.number(of: $0) } ?? tokens.first - 1
    let texts = try HistoryTexts(connection)
    let names = [HistoryTexts.Name.author, .contextName, .processID, .bundleID].map(texts.expression).joined(separator: ", ")
    let select = try connection.prepare(
      """
      SELECT t.Z_PK, t.ZTIMESTAMP, \(names) FROM ATRANSACTION t
      WHERE t.Z_PK > ?1 AND ifnull(t.ZTIMESTAMP < ?2, 0) = 0 AND (?3 IS NULL OR \(texts.expression(.author)) = ?3)
      ORDER BY t.Z_PK LIMIT ?4
      """)
    select.bind(after, at: 1)
    select.bind(request.since?.timeIntervalSinceReferenceDate ?? -.infinity, at: 2)
    try select.bind(request.author, at: 3)
    select.bind(Int64(request.limit ?? -1), at: 4)
    var transactions: [HistoryTransaction] = []
    while try select.step() {
      let number = select.int64(0)
      guard select.type(1) == .float || select.type(1) == .integer else {
        throw damaged("The time of transaction \(number) isn't a number.")
      }
      let time = Date(timeIntervalSinceReferenceDate: select.double(1))
      transactions.append(
        HistoryTransaction(
          state: tokens.token(number, time), number: number, time: time, author: text(select, 2), contextName: text(select, 3),
          processID: text(select, 4), bundleID: text(select, 5), changes: try changes(of: number, columns)))
    }
    if let limit = request.limit, transactions.count >= limit {
      return HistoryTransactions(transactions: transactions, state: try transactions.last?.state ?? request.after ?? tokens.token(after))
    }
    return HistoryTransactions(transactions: transactions, state: try tokens.current(after: request.after))
  }

  func state() throws -> StateToken { try tokens().current() }

  func delete(_ request: HistoryDeletionRequest) throws -> Int {
    try requireHistory()
    let last = try request.upTo.map { try tokens().numberForDeletion(of: $0) } ?? .max
    let time = request.earlierThan?.timeIntervalSinceReferenceDate ?? .infinity
    return try HistoryDeletion(connection).delete(upTo: last, earlierThan: time)
  }

  private func text(_ statement: SQLiteStatement, _ column: Int) -> String? {
    statement.isNull(column) ? nil : statement.string(column)
  }

  // MARK: Changes

  /// Which optional columns and tables a file has.
  private struct Columns {
    let tombstoneCount: Int
    let hasValues: Bool
    /// What the columns for values of deleted objects contain.
    let plan: HistoryPlan

    init(_ store: OpenStore, _ connection: SQLiteConnection) throws {
      tombstoneCount = try HistoryTables.tombstoneCount(connection)
      hasValues = try HistoryTables.hasValues(connection)
      plan = try store.history.keptPlan(connection, store, count: tombstoneCount)
    }
  }

  private func changes(of transaction: Int64, _ columns: Columns) throws -> [HistoryTransaction.Change] {
    let select = try connection.statement(
      "SELECT Z_PK, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZCOLUMNS FROM ACHANGE WHERE ZTRANSACTIONID = ?1 ORDER BY Z_PK")
    select.bind(transaction, at: 1)
    defer { select.reset() }
    var changes: [HistoryTransaction.Change] = []
    while try select.step() {
      // Changes of entities that the model doesn't contain are left out.
      guard let (entity, kind, id) = try object(select, 1) else { continue }
      var change = HistoryTransaction.Change(objectID: id, kind: kind)
      if kind == .updated && !select.isNull(4) { change.updatedProperties = plan.entities[entity.rawValue].names(Array(select.blob(4))) }
      if kind == .deleted { change.tombstone = try tombstone(select.int64(0), entity, columns) }
      if columns.hasValues { try addValues(select.int64(0), to: &change) }
      changes.append(change)
    }
    return changes
  }

  /// The object of a change whose type, entity and key are in three columns; nil if the model doesn't contain the entity.
  private func object(
    _ select: SQLiteStatement, _ column: Int
  ) throws -> (entity: EntityIndex, kind: HistoryTransaction.Change.Kind, id: ManagedObjectID)? {
    let number = select.int64(column + 1), key = select.key(column + 2)
    guard let entity = store.schema.entity(numbered: number) else { return nil }
    guard let kind = HistoryReader.kinds[select.int64(column)], key >= 0 else {
      throw damaged("A change has an unknown type or an invalid key.")
    }
    return (entity, kind, store.prefixes[entity].withKey(key))
  }

  private static let kinds: [Int64: HistoryTransaction.Change.Kind] = [0: .inserted, 1: .updated, 2: .deleted]

  /// The kept values of a deleted object. They are read like a row whose other columns are null.
  ///
  /// Empty if another program has written them in a form that isn't known.
  private func tombstone(_ change: Int64, _ index: EntityIndex, _ known: Columns) throws -> [String: StoreValue] {
    let preserved = known.plan.entities[index.rawValue].preserved, entity = store.model.entities[index]
    if preserved.isEmpty || known.tombstoneCount < preserved.count { return [:] }
    let columns = entity.slotIndexes.map { slot in preserved.firstIndex(of: slot).map { "ZTOMBSTONE\($0)" } ?? "NULL" }
    let select = try connection.statement("SELECT 0, 1, \(columns.joined(separator: ", ")) FROM ACHANGE WHERE Z_PK = ?1")
    select.bind(change, at: 1)
    defer { select.reset() }
    guard try select.step() else { return [:] }
    let builder = store.builder(entity)
    do { try store.decoders[index].append(select, to: builder) } catch { return [:] }
    let row = builder.seal()[0]
    var values: [String: StoreValue] = [:]
    for slot in preserved {
      let value = withExtendedLifetime(row) { row.pointer.value(slot, entity.layout.columns[slot]) }
      if value != .null && !value.isExternal { values[entity.slots[slot].name] = value }
    }
    return values
  }

  private func addValues(_ key: Int64, to change: inout HistoryTransaction.Change) throws {
    let select = try connection.statement("SELECT ZFORMER, ZNEW, ZLINKS FROM \(HistoryTables.values) WHERE Z_PK = ?1")
    select.bind(key, at: 1)
    defer { select.reset() }
    guard try select.step() else { return }
    func decoded<Kept: Decodable>(_ column: Int, _ type: Kept.Type) throws -> Kept? {
      if select.isNull(column) { return nil }
      do { return try HistoryCoding.decode(type, from: select.blob(column)) } catch {
        throw damaged("The values of change \(key) can't be decoded.", cause: error)
      }
    }
    change.formerValues = try decoded(0, [String: StoreValue].self)
    change.newValues = try decoded(1, [String: StoreValue].self)
    let links = try decoded(2, HistoryLinks.Kept.self) ?? HistoryLinks.Kept()
    (change.addedLinks, change.removedLinks, change.placedLinks) = (links.added, links.removed, links.placed)
  }

  // MARK: Saves of other processes

  /// Whether no transaction after one was deleted, through another one, except for the given ones.
  func hasAll(after number: Int64, through last: Int64, except own: Set<Int64>) throws -> Bool {
    let first = try connection.int64("SELECT min(Z_PK) FROM ATRANSACTION") ?? .max
    return first <= number || (number..<min(first - 1, last)).allSatisfy { own.contains($0 + 1) }
  }

  /// The number of changes of the transactions after one, through another one, without those of the given transactions.
  func changeCount(after number: Int64, through last: Int64, except own: Set<Int64>) throws -> Int {
    let select = try connection.statement(
      "SELECT COUNT(*) FROM ACHANGE WHERE ZTRANSACTIONID > ?1 AND ZTRANSACTIONID <= ?2 "
        + "AND ZTRANSACTIONID NOT IN (SELECT value FROM \(ListTable.name)(?3))")
    select.bind(number, at: 1)
    select.bind(last, at: 2)
    select.bind(BoundList(own.map { .integer($0) }), at: 3)
    defer { select.reset() }
    return try select.step() ? Int(select.int64(0)) : 0
  }

  /// The objects that transactions after one have changed, through another one, except for the given transactions. Each object once,
  /// without those that one of the given transactions deleted later.
  func changedObjects(after number: Int64, through last: Int64, except own: Set<Int64>) throws -> StoreChange {
    let select = try connection.statement(
      "SELECT ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID FROM ACHANGE WHERE ZTRANSACTIONID > ?1 AND ZTRANSACTIONID <= ?2 "
        + "ORDER BY ZTRANSACTIONID, Z_PK")
    select.bind(number, at: 1)
    select.bind(last, at: 2)
    defer { select.reset() }
    var kinds: [ManagedObjectID: HistoryTransaction.Change.Kind] = [:], order: [ManagedObjectID] = []
    while try select.step() {
      guard let (_, kind, id) = try object(select, 0) else { continue }
      if own.contains(select.int64(3)) {
        // An own update doesn't name the objects whose lists a former change of another process has changed, so that one is reported, too.
        if kind == .deleted { kinds[id] = nil }
      } else if let former = kinds[id] {
        // An object that was inserted and then updated is new.
        kinds[id] = former == .inserted && kind == .updated ? .inserted : kind
      } else {
        kinds[id] = kind
        order.append(id)
      }
    }
    var change = StoreChange(), seen: Set<ManagedObjectID> = []
    for id in order where seen.insert(id).inserted {
      switch kinds[id] {
      case .inserted: change.inserted.append(id)
      case .updated: change.updated.append(id)
      case .deleted: change.deleted.append(id)
      case nil: break
      }
    }
    return change
  }

  // MARK: Tokens

  /// Whether the file has a history.
  func exists() throws -> Bool { try HistoryTables.exist(connection) }

  /// The number of the last transaction, also if it was deleted.
  func last() throws -> Int64 {
    try requireHistory()
    if let last = try connection.int64("SELECT max(Z_PK) FROM ATRANSACTION") { return last }
    return try connection.int64("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(HistoryTables.transactionNumber)") ?? 0
  }

  private func tokens() throws -> HistoryTokens {
    let last = try last(), first = try connection.int64("SELECT min(Z_PK) FROM ATRANSACTION")
    guard (0...(1 << 62)).contains(last), (1...last + 1).contains(first ?? 1) else {
      throw damaged("The number of a transaction is invalid.")
    }
    return HistoryTokens(
      storeUUID: store.identity.storeUUID, first: first ?? last + 1, last: last,
      error: { StoreError($0, operation: connection.operation, path: store.path, reason: $1) }, time: { try time(of: $0) })
  }

  /// The time of a transaction; nil if it was deleted.
  private func time(of number: Int64) throws -> Date? {
    let select = try connection.statement("SELECT ZTIMESTAMP FROM ATRANSACTION WHERE Z_PK = ?1")
    select.bind(number, at: 1)
    defer { select.reset() }
    return try select.step() ? Date(timeIntervalSinceReferenceDate: select.double(0)) : nil
  }

  // MARK: Errors

  private func requireHistory() throws {
    if try exists() { return }
    throw StoreError(
      .unsupportedRequest, operation: connection.operation, path: store.path,
      reason: "The file has no history. Open it with the option historyTracking: .always.")
  }

  private func damaged(_ reason: String, cause: (any Error)? = nil) -> StoreError {
    StoreError(
      .damaged, operation: connection.operation, path: store.path, reason: "\(reason) Delete the history, or repair the file.",
      cause: cause)
  }
}

extension OpenStore {
  /// Runs a closure with a reader of the history, in one read transaction.
  func readingHistory<Result>(
    _ operation: String, _ options: RequestOptions, _ body: (HistoryReader) throws -> Result
  ) throws -> Result {
    try reading(operation, needsTransaction: true, options) { try body(HistoryReader(store: self, connection: $0)) }
  }
}
