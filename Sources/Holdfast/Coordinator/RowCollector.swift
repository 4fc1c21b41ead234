import HoldfastStore

/// Keeps what a store delivers, as runs of rows.
final class RowCollector: RowSink {
  private(set) var runs: [RowRun] = []
  private(set) var count = 0

  init() {}

  func append(_ batch: RowBatch, _ rows: RowSelection) {
    let run = RowRun(batch: batch, rows: rows)
    let size = run.count
    if size > 0 {
      runs.append(run)
      count += size
    }
  }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    append(batch, rows)
    try Cancellation.check()
    return .more
  }

  /// Calls a closure with every row in order.
  func forEach(_ body: (RowBatch, Int) throws -> Void) rethrows {
    for run in runs {
      switch run.rows {
      case .all: for index in 0..<run.batch.count { try body(run.batch, index) }
      case .one(let index): try body(run.batch, index)
      case .rows(let rows): for index in rows { try body(run.batch, Int(index)) }
      }
    }
  }
}

/// Ends a request of a cancelled task.
enum Cancellation {
  static func check() throws {
    if Task.isCancelled {
      throw StoreError(.cancelled, operation: "read rows", reason: "The task was cancelled.", cause: CancellationError())
    }
  }
}
