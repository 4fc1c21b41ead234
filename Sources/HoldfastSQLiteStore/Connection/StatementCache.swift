import HoldfastStore

/// The compiled statements of one connection, by their text.
///
/// A full cache is emptied: only a store that generates its SQL fills it, and then no eviction policy would help. Statements in use stay
/// valid.
struct StatementCache {
  static let capacity = 256

  private var statements: [String: SQLiteStatement] = [:]

  var count: Int { statements.count }

  /// The statement for the text, ready to be bound. Compiled if it isn't cached.
  ///
  /// If the cached statement is running, compiles another one for the caller.
  mutating func statement(_ sql: String, state: ConnectionState) throws(StoreError) -> SQLiteStatement {
    if let known = statements[sql] {
      return known.isRunning ? try SQLiteStatement(sql, state: state) : known
    }
    let made = try SQLiteStatement(sql, state: state)
    if statements.count >= Self.capacity { statements.removeAll(keepingCapacity: true) }
    statements[sql] = made
    return made
  }

  /// Resets every statement, so that none holds a lock.
  func resetAll() {
    for statement in statements.values where statement.isRunning { statement.reset() }
  }

  mutating func removeAll() { statements.removeAll() }
}
