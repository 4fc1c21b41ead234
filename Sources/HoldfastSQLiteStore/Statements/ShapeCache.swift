import HoldfastStore

/// The compiled statements of one connection, by their shape. Finding one needs no SQL text.
///
/// A few dozen shapes are found by scanning their hashes. That is as fast as a dictionary, and a process that opens a store for one row
/// doesn't need to create a dictionary's type (measured: 0.1 ms).
///
/// A full cache is emptied. Statements in use stay valid.
struct ShapeCache {
  static let capacity = 256

  /// Parallel arrays: the hash of each shape, the shape, its statement.
  private var hashes: [UInt64] = []
  private var shapes: [StatementShape] = []
  private var statements: [SQLiteStatement] = []

  /// The statement for the shape, ready to be bound. If the cached statement is running, compiles another one for the caller.
  @inline(__always)
  mutating func statement(_ shape: StatementShape, state: ConnectionState, _ sql: () throws -> String) throws -> SQLiteStatement {
    if let known = try known(shape, state) { return known }
    return add(shape, try SQLiteStatement(try sql(), state: state))
  }

  private func known(_ shape: StatementShape, _ state: ConnectionState) throws(StoreError) -> SQLiteStatement? {
    guard let index = index(of: shape, shape.quickHash) else { return nil }
    let statement = statements[index]
    return statement.isRunning ? try SQLiteStatement(statement.sql, state: state) : statement
  }

  private mutating func add(_ shape: StatementShape, _ statement: SQLiteStatement) -> SQLiteStatement {
    if statements.count >= Self.capacity { removeAll() }
    hashes.append(shape.quickHash)
    shapes.append(shape)
    statements.append(statement)
    return statement
  }

  private func index(of shape: StatementShape, _ hash: UInt64) -> Int? {
    for index in hashes.indices where hashes[index] == hash && shapes[index] == shape { return index }
    return nil
  }

  /// Resets every statement, so that none holds a lock.
  func resetAll() {
    for statement in statements where statement.isRunning { statement.reset() }
  }

  mutating func removeAll() {
    hashes.removeAll(keepingCapacity: true)
    shapes.removeAll(keepingCapacity: true)
    statements.removeAll(keepingCapacity: true)
  }
}
