import HoldfastStore

/// The compiled statements of one connection, by their text.
///
/// When it is full it forgets all of them: a store that fills it makes its SQL up as it goes, and then no order of
/// eviction would help. Statements that somebody still holds stay valid.
struct StatementCache {
  static let capacity = 256

  private var statements: [String: SQLiteStatement] = [:]

  var count: Int { statements.count }

  /// The statement for the text, ready to be bound, compiled if it is not known yet.
  ///
  /// If the known one is running, because its user is in the middle of its rows, a second one is compiled for the
  /// caller alone.
  mutating func statement(_ sql: String, state: ConnectionState) throws(StoreError) -> SQLiteStatement {
    if let known = statements[sql] {
      return known.isRunning ? try SQLiteStatement(sql, state: state) : known
    }
    let made = try SQLiteStatement(sql, state: state)
    if statements.count >= Self.capacity { statements.removeAll(keepingCapacity: true) }
    statements[sql] = made
    return made
  }

  /// Makes every statement ready again, so that none holds a lock.
  func resetAll() {
    for statement in statements.values where statement.isRunning { statement.reset() }
  }

  mutating func removeAll() { statements.removeAll() }
}
