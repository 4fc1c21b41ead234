/// Does the work that the store didn't do: tests and sorts rows, applies offset and limit, and passes on the remaining rows.
///
/// Without sorting, a limit stops the store early. With sorting, a limit bounds the number of rows kept in memory: a batch is released when
/// none of its rows is among the first ones.
public final class ResidualSink: RowSink {
  private let predicate: RowPredicate?
  private let order: RowOrder?
  private let source: RelatedRows?
  private let nowhere = EmptyEvaluationSource()
  private var skip: Int
  private var remaining: Int?
  private let bound: Int?
  private let next: any RowSink
  private var kept: [(row: RowPointer, batch: Int, index: Int)] = []
  /// The batches of the kept rows, with the number of kept rows of each. A batch without one is released, and its place is used again.
  private var batches: [(batch: RowBatch?, rowCount: Int)] = []
  private var freePlaces: [Int] = []

  /// Creates a sink. Call ``finish()`` after the last row.
  ///
  /// - Parameters:
  ///   - predicate: The condition to test; nil if the store has tested it.
  ///   - order: The order of the rows; nil if they arrive in the right order.
  ///   - source: Reads the rows that the condition or the order reaches through relationships; nil if they follow none.
  ///   - offset: The number of rows to skip.
  ///   - limit: The maximum number of rows; nil for all.
  ///   - next: The sink that receives the resulting rows.
  public init(predicate: RowPredicate?, order: RowOrder?, source: RelatedRows?, offset: Int, limit: Int?, next: any RowSink) {
    self.predicate = predicate
    self.order = order
    self.source = source
    skip = offset
    remaining = limit
    bound = limit.flatMap { limit in
      let (sum, overflow) = limit.addingReportingOverflow(offset)
      return overflow ? nil : sum
    }
    self.next = next
  }

  /// Tests, keeps or passes on rows.
  ///
  /// - Throws: The errors of ``RelatedRows/prepare(_:)`` and of the next sink.
  public func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let matching = try matching(batch, rows)
    guard let order else { return try pass(batch, matching) }
    keep(batch, matching, order)
    return .more
  }

  /// Passes on the sorted rows, after the last row has arrived.
  ///
  /// - Throws: The errors of the next sink.
  public func finish() throws {
    guard let order else { return }
    let evaluation: any EvaluationSource = source ?? nowhere
    kept.sort { order.precedes($0.row, $1.row, evaluation) }
    for entry in kept {
      if skip > 0 {
        skip -= 1
        continue
      }
      if let left = remaining {
        if left == 0 { return }
        remaining = left - 1
      }
      guard let batch = batches[entry.batch].batch else { continue }
      if try next.take(batch, .one(entry.index)) == .enough { return }
    }
  }

  // MARK: Testing

  private func matching(_ batch: RowBatch, _ rows: RowSelection) throws -> RowSelection {
    if let source { try source.prepare(pointers(batch, rows)) }
    guard let predicate else { return rows }
    return predicate.select(batch, rows, source ?? nowhere)
  }

  private func pointers(_ batch: RowBatch, _ rows: RowSelection) -> [RowPointer] {
    switch rows {
    case .all: (0..<batch.count).map { batch.pointer($0) }
    case .one(let index): [batch.pointer(index)]
    case .rows(let indexes): indexes.map { batch.pointer(Int($0)) }
    }
  }

  // MARK: Rows in the right order

  private func pass(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    var indexes = ResidualSink.indexes(batch, rows)
    if skip > 0 {
      let left = min(skip, indexes.count)
      indexes.removeFirst(left)
      skip -= left
    }
    if let left = remaining {
      if indexes.count > left { indexes.removeLast(indexes.count - left) }
      remaining = left - indexes.count
    }
    let demand = indexes.isEmpty ? .more : try next.take(batch, .rows(Array(indexes)))
    return remaining == 0 ? .enough : demand
  }

  private static func indexes(_ batch: RowBatch, _ rows: RowSelection) -> ArraySlice<UInt32> {
    switch rows {
    case .all: (0..<UInt32(batch.count)).map { $0 }[...]
    case .one(let index): [UInt32(index)]
    case .rows(let indexes): indexes[...]
    }
  }

  // MARK: Rows in another order

  private func keep(_ batch: RowBatch, _ rows: RowSelection, _ order: RowOrder) {
    let place = freePlaces.popLast() ?? batches.count
    if place == batches.count { batches.append((nil, 0)) }
    // One more than its kept rows, so that the batch stays while its rows are offered.
    batches[place] = (batch, 1)
    rows.forEach(in: batch) { keep((batch.pointer($0), place, $0), order) }
    release(place)
  }

  /// Keeps a row, unless there are enough rows that precede it.
  ///
  /// With a bound, only the first rows of the order are kept, in a heap whose top is the last of them.
  private func keep(_ entry: (row: RowPointer, batch: Int, index: Int), _ order: RowOrder) {
    let evaluation: any EvaluationSource = source ?? nowhere
    guard let bound, kept.count >= bound else {
      kept.append(entry)
      batches[entry.batch].rowCount += 1
      if bound != nil { siftUp(order, evaluation) }
      return
    }
    guard bound > 0, order.precedes(entry.row, kept[0].row, evaluation) else { return }
    let replaced = kept[0].batch
    kept[0] = entry
    batches[entry.batch].rowCount += 1
    siftDown(order, evaluation)
    release(replaced)
  }

  /// Releases a batch unless it has other rows that are kept.
  private func release(_ place: Int) {
    batches[place].rowCount -= 1
    guard batches[place].rowCount == 0 else { return }
    batches[place].batch = nil
    freePlaces.append(place)
  }

  private func siftUp(_ order: RowOrder, _ evaluation: any EvaluationSource) {
    var child = kept.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      if !order.precedes(kept[parent].row, kept[child].row, evaluation) { return }
      kept.swapAt(parent, child)
      child = parent
    }
  }

  private func siftDown(_ order: RowOrder, _ evaluation: any EvaluationSource) {
    var parent = 0
    while true {
      var largest = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < kept.count {
        if order.precedes(kept[largest].row, kept[child].row, evaluation) { largest = child }
      }
      if largest == parent { return }
      kept.swapAt(parent, largest)
      parent = largest
    }
  }
}
