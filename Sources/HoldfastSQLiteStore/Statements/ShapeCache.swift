import HoldfastStore

/// The compiled statements of one connection, by their shape, so that finding one costs no SQL text.
///
/// When it is full it forgets all of them. Statements that somebody still holds stay valid.
struct ShapeCache {
  static let capacity = 256

  private var statements: [StatementShape: SQLiteStatement] = [:]

  /// The statement for the shape, ready to be bound. If the known one is running, because its user is in the middle of
  /// its rows, a second one is compiled for the caller alone.
  mutating func statement(_ shape: StatementShape, state: ConnectionState, _ sql: () throws -> String) throws -> SQLiteStatement {
    if let known = statements[shape] {
      return known.isRunning ? try SQLiteStatement(known.sql, state: state) : known
    }
    let made = try SQLiteStatement(try sql(), state: state)
    if statements.count >= Self.capacity { statements.removeAll(keepingCapacity: true) }
    statements[shape] = made
    return made
  }

  /// Makes every statement ready again, so that none holds a lock.
  func resetAll() {
    for statement in statements.values where statement.isRunning { statement.reset() }
  }

  mutating func removeAll() { statements.removeAll() }
}
