import HoldfastStore

/// Collects the rows that a store delivers, as runs.
final class RowCollector: ReceivingSink {
  private(set) var runs: [RowRun] = []
  private(set) var count = 0
  var hasReceived: Bool { count > 0 }

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

/// Ends a fetch when its task is cancelled.
///
/// It checks before the fetch begins, whenever the store delivers a batch, and whenever the store calls ``checkWanted()``.
///
/// Only a program's fetches are cancelled. Faults are read nevertheless, because an object without its row would appear to have no values.
/// Reads during a save aren't cancelled either.
final class CancellableSink: RowSink {
  private let next: any RowSink

  private init(_ next: any RowSink) { self.next = next }

  /// Wraps a sink if the query can be cancelled.
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
