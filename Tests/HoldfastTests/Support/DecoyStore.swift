import Holdfast
import HoldfastStore

/// Delivers each row in a batch with others that aren't selected. They have the keys of delivered rows, and no values.
///
/// A store may deliver parts of its pages, in which the other rows are former versions of rows, or rows of deleted objects.
final class DecoyStore: ForwardingStore {
  let base: any IncrementalStore
  var capabilities: StoreCapabilities {
    var capabilities = base.capabilities
    // So that rows are cached and read ahead.
    capabilities.residentRows = false
    return capabilities
  }

  init(_ base: any IncrementalStore) { self.base = base }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try base.fetch(plan, in: view, options: options, into: DecoySink(sink))
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try base.rows(request, in: view, options: options, into: DecoySink(sink))
  }
}

private final class DecoySink: RowSink {
  private let next: any RowSink

  init(_ next: any RowSink) { self.next = next }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    // Counts and groups aren't rows of objects.
    guard let prefix = batch.idPrefix else { return try next.take(batch, rows) }
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: prefix)
    var places: [UInt32] = []
    rows.forEach(in: batch) { place in
      let row = batch.pointer(place)
      builder.beginRow(key: row.key, version: row.version)
      for _ in batch.layout.slots { builder.appendNull() }
      builder.endRow()
      places.append(UInt32(builder.count))
      builder.append(row)
    }
    return try next.take(builder.seal(), places.count == 1 ? .one(Int(places[0])) : .rows(places))
  }
}
