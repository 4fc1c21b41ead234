import HoldfastStore

/// The maximum memory for the result of one request.
struct FetchBudget {
  /// In bytes; nil for no limit.
  let limit: Int?

  init(_ options: SQLiteStoreOptions) { limit = options.maximumFetchByteCount }

  @inline(__always)
  func check(_ byteCount: Int) throws {
    if let limit, byteCount > limit { throw FetchBudget.exceeded(limit) }
  }

  /// The maximum number of destination keys: as many as the limit allows, but no more than a result can count.
  var mostTargets: Int { min((limit ?? .max) / MemoryLayout<Int64>.stride, Int(Int32.max)) }

  @inline(never)
  static func exceeded(_ limit: Int) -> StoreError {
    StoreError(
      .tooLarge, operation: "read rows or relationships",
      reason: "The result takes more than \(limit) bytes of memory. Fetch less at once, or raise maximumFetchByteCount.")
  }

  /// A sink that passes rows on until they exceed the budget.
  func limiting(_ sink: any RowSink) -> any RowSink { limit == nil ? sink : BudgetSink(sink, self) }
}

/// Ends a request whose rows exceed the budget.
private final class BudgetSink: RowSink {
  private let next: any RowSink
  private let budget: FetchBudget
  private var taken = 0

  init(_ next: any RowSink, _ budget: FetchBudget) { (self.next, self.budget) = (next, budget) }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    taken += byteCount(rows, of: batch)
    try budget.check(taken)
    return try next.take(batch, rows)
  }

  /// The selected rows' share of a batch. Rows of several entities are passed on in parts of their batches, so a batch comes several times.
  private func byteCount(_ rows: RowSelection, of batch: RowBatch) -> Int {
    if case .all = rows { return batch.byteCount }
    return (batch.byteCount * rows.count(in: batch) + batch.count - 1) / max(batch.count, 1)
  }
}
