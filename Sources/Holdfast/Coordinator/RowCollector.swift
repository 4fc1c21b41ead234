import HoldfastStore

/// Collects the rows that a store delivers, as runs.
final class RowCollector: ReceivingSink {
  /// The first run. Most results have no other runs, so they need no array.
  @exclusivity(unchecked) private(set) var first: RowRun?
  @exclusivity(unchecked) private(set) var rest: [RowRun] = []
  @exclusivity(unchecked) private(set) var count = 0
  var hasReceived: Bool { count > 0 }
  var runs: [RowRun] { first.map { [$0] + rest } ?? [] }

  func append(_ batch: RowBatch, _ rows: RowSelection) {
    let run = RowRun(batch: batch, rows: rows)
    let size = run.count
    if size == 0 { return }
    if first == nil { first = run } else { rest.append(run) }
    count += size
  }

  /// Calls a closure with every run, in order.
  func forEachRun(_ body: (RowRun) throws -> Void) rethrows {
    guard let first else { return }
    try body(first)
    for run in rest { try body(run) }
  }

  func append(_ rows: RowCollector) { rows.forEachRun { append($0.batch, $0.rows) } }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    append(batch, rows)
    return .more
  }

  /// Calls a closure with every row in order.
  func forEach(_ body: (RowBatch, Int) throws -> Void) rethrows {
    try forEachRun { run in
      switch run.rows {
      case .all: for index in 0..<run.batch.count { try body(run.batch, index) }
      case .one(let index): try body(run.batch, index)
      case .rows(let rows): for index in rows { try body(run.batch, Int(index)) }
      }
    }
  }
}

/// Refuses rows of other entities than the fetched one and its subentities, before their slots are read as those of the entity.
final class CheckedRows: RowSink {
  private let next: any RowSink
  private let coordinator: PersistentStoreCoordinator
  private let entity: ManagedObjectModel.Entity

  init(_ next: any RowSink, _ coordinator: PersistentStoreCoordinator, _ entity: ManagedObjectModel.Entity) {
    (self.next, self.coordinator, self.entity) = (next, coordinator, entity)
  }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    _ = try coordinator.checkedEntityIndex(of: batch, in: entity)
    return try next.take(batch, rows)
  }
}

/// Ends a fetch of a store that ignores its options.
private final class LimitedSink: RowSink {
  private let next: any RowSink
  private let options: RequestOptions

  init(_ next: any RowSink, _ options: RequestOptions) { (self.next, self.options) = (next, options) }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    try options.check("read rows")
    return try next.take(batch, rows)
  }
}

extension FetchQuery {
  /// Wraps a sink if the query has a deadline or a cancellation.
  func limiting(_ sink: any RowSink) -> any RowSink { options.isUnlimited ? sink : LimitedSink(sink, options) }
}
