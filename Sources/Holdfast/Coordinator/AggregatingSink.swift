import HoldfastStore

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
