import HoldfastStore

/// Counts rows.
final class CountingSink: RowSink {
  private(set) var count = 0
  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    count += RowRun(batch: batch, rows: rows).count
    return .more
  }
}

/// Feeds rows to an aggregator.
final class AggregatingSink: ReceivingSink {
  let aggregator: RowAggregator
  private(set) var hasReceived = false
  init(_ aggregator: RowAggregator) { self.aggregator = aggregator }
  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    hasReceived = true
    aggregator.add(batch, rows)
    return .more
  }
}
