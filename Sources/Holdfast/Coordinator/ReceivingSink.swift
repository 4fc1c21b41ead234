import HoldfastStore

/// A sink that knows whether it has received rows.
protocol ReceivingSink: RowSink {
  var hasReceived: Bool { get }
}

/// Passes rows on, and knows whether there were any and whether the receiver has enough.
final class WatchedSink: ReceivingSink {
  private let next: any RowSink
  private(set) var hasReceived = false
  private(set) var hasEnough = false

  init(_ next: any RowSink) { self.next = next }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    hasReceived = true
    let demand = try next.take(batch, rows)
    if demand == .enough { hasEnough = true }
    return demand
  }
}
