extension RowSelection {
  /// The number of selected rows.
  @inlinable public func count(in batch: RowBatch) -> Int {
    switch self {
    case .all: batch.count
    case .one: 1
    case .rows(let indexes): indexes.count
    }
  }

  /// Calls a closure with the index of each selected row, in order.
  @inlinable public func forEach(in batch: RowBatch, _ body: (Int) throws -> Void) rethrows {
    switch self {
    case .all: for index in 0..<batch.count { try body(index) }
    case .one(let index): try body(index)
    case .rows(let indexes): for index in indexes { try body(Int(index)) }
    }
  }
}

extension RowBatch {
  /// The answer to a plan with the output ``FetchOutput/count``: one row with one number.
  ///
  /// ```swift
  /// _ = try sink.take(.count(rows.count), .all)
  /// ```
  public static func count(_ count: Int) -> RowBatch {
    let builder = RowBatchBuilder(layout: countLayout, idPrefix: nil)
    builder.beginRow(key: 0, version: 0)
    builder.append(integer: Int64(count))
    builder.endRow()
    return builder.seal()
  }

  private static let countLayout = RowLayout([.attribute(.integer64)])
}
