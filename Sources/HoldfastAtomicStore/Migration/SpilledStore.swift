import HoldfastFiles
import HoldfastStore
import HoldfastSupport

/// The rows of an open store that are in a temporary file, for ``WholeFileOptions/defersWrites``.
///
/// Receivers of rows get copies, so that pages can be evicted after each request. Requests of other threads wait, because pages are loaded
/// and evicted on one thread at a time. A receiver may send further requests.
final class SpilledStore: @unchecked Sendable {  // because the lock guards the temporary file and all its pages
  private let lock = RecursiveLock()
  private let spill: RowSpill

  init(beside file: DurableFile) { spill = RowSpill(beside: file, recordsLoaded: true) }

  /// Calls a closure that loads a file.
  func loading<Result>(_ body: (RowSpill) throws -> Result) throws -> Result { try using { try body(spill) } }

  /// Calls a closure that reads or changes rows, and evicts them afterwards.
  func using<Result>(_ body: () throws -> Result) throws -> Result {
    try lock.withLock {
      defer { spill.evictLoaded() }
      return try spill.verifying(body)
    }
  }

  /// Throws if rows couldn't be read, so that something lacks them. Called while the rows are used.
  func verify() throws { try spill.verifying {} }

  /// Calls a closure that passes rows to a sink.
  func reading(into sink: any RowSink, _ body: (any RowSink) throws -> Void) throws { try using { try body(CopyingSink(sink)) } }

  /// The generation with the pages that a save added in the temporary file.
  func keeping(_ next: TableGeneration, after base: TableGeneration) -> TableGeneration { next.spilled(to: spill, after: base) }
}

/// Passes copies of rows on if they are in a file. Keeps the latest pages in memory until the request ends; see ``RowTable/keptPageCount``.
final class CopyingSink: RowSink {
  private let base: any RowSink
  private var latest: [RowBatch] = []

  init(_ base: any RowSink) { self.base = base }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    if !batch.isEvictable { return try base.take(batch, rows) }
    // A request of the receiver may have evicted it.
    batch.load()
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    rows.forEach(in: batch) { builder.append(batch.pointer($0)) }
    keep(batch)
    return builder.count == 0 ? .more : try base.take(builder.seal(), .all)
  }

  private func keep(_ batch: RowBatch) {
    if latest.contains(where: { $0 === batch }) { return }
    latest.append(batch)
    if latest.count > RowTable.keptPageCount { latest.removeFirst().evict() }
  }
}

extension RowView {
  /// The row, or a copy of it if it is in a file, from which it may be evicted.
  var inMemory: RowView {
    if !batch.isEvictable { return self }
    batch.load()
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    builder.append(pointer)
    return builder.seal()[0]
  }
}

extension TableGeneration {
  /// The same rows, with those of pages that an earlier generation hasn't in a file.
  fileprivate func spilled(to spill: RowSpill, after base: TableGeneration) -> TableGeneration {
    var tables = tables
    for place in tables.indices { tables[place].spill(to: spill, after: base.tables[place]) }
    return TableGeneration(schema: schema, number: number, tables: tables, adjacencies: adjacencies, orders: orders)
  }
}
