import HoldfastStore

/// Passes decoded rows to a sink, batch by batch.
struct RowStream {
  private let builder: RowBatchBuilder
  private let sink: any RowSink

  init(_ builder: RowBatchBuilder, _ sink: any RowSink) {
    self.builder = builder
    self.sink = sink
  }

  /// The number of rows after which the pages of a scan are released.
  ///
  /// The rows have been decoded, and a scan of an entire table rarely reads its pages again soon. The next pages reuse the same memory,
  /// which avoids page faults.
  private static let rowsOfALongScan = 4096

  /// Passes on all rows of a statement. Returns false if the sink needs no more rows.
  func run(_ statement: SQLiteStatement, _ decoder: RowDecoder) throws -> Bool {
    var count = 0
    defer {
      statement.reset()
      if count >= RowStream.rowsOfALongScan { statement.releasePages() }
    }
    while try statement.step() {
      count += 1
      if count % RowStream.rowsOfALongScan == 0 { statement.releasePages() }
      try decoder.append(statement, to: builder)
      if builder.isFull, try sink.take(builder.seal(), .all) == .enough { return false }
    }
    return true
  }

  /// Passes on rows of a statement whose keys are in a list. Both are in ascending order. Returns false if the sink needs no more rows.
  func run(_ statement: SQLiteStatement, _ decoder: RowDecoder, only keys: [ObjectKey]) throws -> Bool {
    defer { statement.reset() }
    var place = 0
    while try statement.step() {
      let key = statement.key(0)
      while place < keys.count, keys[place] < key { place += 1 }
      if place == keys.count { return true }
      guard keys[place] == key else { continue }
      try decoder.append(statement, to: builder)
      if builder.isFull, try sink.take(builder.seal(), .all) == .enough { return false }
    }
    return true
  }

  /// Passes on the keys and versions of a statement's rows.
  func runKeys(_ statement: SQLiteStatement, _ decoder: RowDecoder) throws {
    defer { statement.reset() }
    while try statement.step() {
      try decoder.beginRow(statement, in: builder)
      builder.endRow()
      if builder.isFull, try sink.take(builder.seal(), .all) == .enough { return }
    }
    try finish()
  }

  /// Passes on the remaining rows.
  func finish() throws {
    if builder.count > 0 { _ = try sink.take(builder.seal(), .all) }
  }
}
