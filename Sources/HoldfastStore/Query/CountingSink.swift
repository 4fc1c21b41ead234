/// Counts rows.
public final class CountingSink: RowSink {
  /// The number of rows so far.
  public private(set) var count = 0

  /// Creates a sink that has received no rows.
  public init() {}

  /// Counts the selected rows.
  public func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
    count += rows.count(in: batch)
    return .more
  }
}
