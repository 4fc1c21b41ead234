import HoldfastStore

/// The compiled statements of one connection, by their shape, so that finding one costs no SQL text.
///
/// A few dozen shapes are found by scanning their hashes, which is as fast as a dictionary and spares a process that
/// opens a store for one row the making of a dictionary's type (measured: 0.1 ms).
///
/// When it is full it forgets all of them. Statements that somebody still holds stay valid.
struct ShapeCache {
  static let capacity = 256

  /// Parallel: the hash of each shape, the shape, its statement.
  private var hashes: [UInt64] = []
  private var shapes: [StatementShape] = []
  private var statements: [SQLiteStatement] = []

  /// The statement for the shape, ready to be bound. If the known one is running, because its user is in the middle of
  /// its rows, a second one is compiled for the caller alone.
  mutating func statement(_ shape: StatementShape, state: ConnectionState, _ sql: () throws -> String) throws -> SQLiteStatement {
    let hash = shape.quickHash
    if let known = index(of: shape, hash) {
      let statement = statements[known]
      return statement.isRunning ? try SQLiteStatement(statement.sql, state: state) : statement
    }
    let made = try SQLiteStatement(try sql(), state: state)
    if statements.count >= Self.capacity { removeAll() }
    hashes.append(hash)
    shapes.append(shape)
    statements.append(made)
    return made
  }

  private func index(of shape: StatementShape, _ hash: UInt64) -> Int? {
    for index in hashes.indices where hashes[index] == hash && shapes[index] == shape { return index }
    return nil
  }

  /// Makes every statement ready again, so that none holds a lock.
  func resetAll() {
    for statement in statements where statement.isRunning { statement.reset() }
  }

  mutating func removeAll() {
    hashes.removeAll(keepingCapacity: true)
    shapes.removeAll(keepingCapacity: true)
    statements.removeAll(keepingCapacity: true)
  }
}
