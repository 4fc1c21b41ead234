import HoldfastStore

/// Keeps what a store delivers, as runs of rows.
final class RowCollector: RowSink {
  private(set) var runs: [RowRun] = []
  private(set) var count = 0

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

/// Ends a fetch of a cancelled task: before it begins, whenever the store delivers a batch, and when it asks in between.
///
/// Only what a program fetches is cancelled. A fault is read all the same, since without its row it would look like an object without
/// values, and so is what a save has to know.
final class CancellableSink: RowSink {
  private let next: any RowSink

  private init(_ next: any RowSink) { self.next = next }

  /// The sink to which a store delivers what a query asks for.
  static func around(_ sink: any RowSink, _ query: FetchQuery) -> any RowSink { query.isCancellable ? CancellableSink(sink) : sink }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    try CancellableSink.check()
    return try next.take(batch, rows)
  }

  func checkWanted() throws { try CancellableSink.check() }

  static func check(_ query: FetchQuery) throws {
    if query.isCancellable { try check() }
  }

  private static func check() throws {
    if !Task.isCancelled { return }
    throw StoreError(.cancelled, operation: "read rows", reason: "The task was cancelled.", cause: CancellationError())
  }
}
