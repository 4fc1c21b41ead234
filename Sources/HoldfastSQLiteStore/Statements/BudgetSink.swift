import HoldfastStore

/// Ends a fetch whose rows take more memory than it may.
final class BudgetSink: RowSink {
  private let next: any RowSink
  private let limit: Int
  private var taken = 0

  private init(_ next: any RowSink, _ limit: Int) { (self.next, self.limit) = (next, limit) }

  static func around(_ sink: any RowSink, _ options: SQLiteStoreOptions) -> any RowSink {
    options.largestFetchBytes.map { BudgetSink(sink, $0) } ?? sink
  }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    taken += batch.byteCount
    if taken > limit {
      throw StoreError(
        .tooLarge, operation: "fetch rows",
        reason: "The rows take more than \(limit) bytes of memory. Fetch fewer at once, or allow more with largestFetchBytes.")
    }
    return try next.take(batch, rows)
  }

  func checkWanted() throws { try next.checkWanted() }
}
