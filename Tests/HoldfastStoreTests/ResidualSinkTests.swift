import HoldfastStore
import Testing

/// What a sorted fetch keeps in memory while rows arrive.
@Suite struct ResidualSinkTests {
  private static let model: ManagedObjectModel = {
    let attributes = [AttributeDescription("number", .integer64, isOptional: true)]
    do { return try ManagedObjectModel(entities: [EntityDescription("Thing", attributes: attributes)]) } catch { fatalError("\(error)") }
  }()

  private struct Released {
    weak var batch: RowBatch?
  }

  /// Collects the keys of the result.
  private final class Keys: RowSink {
    private(set) var keys: [ObjectKey] = []

    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
      rows.forEach(in: batch) { keys.append(batch.pointer($0).key) }
      return .more
    }
  }

  private var entity: ManagedObjectModel.Entity { Self.model.entities[0] }

  /// A batch with ten rows, whose values are their keys.
  private func batch(_ number: Int) throws -> RowBatch {
    let builder = RowBatchBuilder(entity: entity, identity: StoreIdentity.intern(storeUUID: "RESIDUAL", model: Self.model))
    for key in 10 * number..<10 * number + 10 {
      try builder.append(key: ObjectKey(key + 1), version: 1, values: [.int64(Int64(key + 1))])
    }
    return builder.seal()
  }

  private func sink(isAscending: Bool, offset: Int = 0, limit: Int?, _ next: any RowSink) throws -> ResidualSink {
    let order = try RowOrder([SortTerm("number", isAscending: isAscending)], entity: entity, model: Self.model)
    return ResidualSink(predicate: nil, order: order, source: nil, offset: offset, limit: limit, next: next)
  }

  /// Passes batches to a sink, and returns the maximum number of batches that were in memory between two of them.
  private func mostKept(_ sink: ResidualSink, _ numbers: some Sequence<Int>, _ rows: [UInt32]? = nil) throws -> Int {
    var (passed, most): ([Released], Int) = ([], 0)
    for number in numbers {
      let new = try batch(number)
      passed.append(Released(batch: new))
      #expect(try sink.take(new, rows.map { RowSelection.rows($0) } ?? .all) == .more)
      withExtendedLifetime(new) {}
      most = max(most, passed.dropLast().count { $0.batch != nil })
    }
    return most
  }

  @Test(arguments: [true, false]) func aLimitedSortKeepsNoMoreBatchesThanRows(isAscending: Bool) throws {
    let result = Keys(), sink = try sink(isAscending: isAscending, offset: 2, limit: 3, result)
    // In each batch, rows precede all rows before it, so all of them are kept for a while.
    let numbers = isAscending ? Array((0..<200).reversed()) : Array(0..<200)
    #expect(try mostKept(sink, numbers) <= 5)
    try sink.finish()
    #expect(result.keys == (isAscending ? [3, 4, 5] : [1998, 1997, 1996]))
  }

  @Test func aLimitedSortOfOneRowOfEachBatchKeepsOneBatchForEachRow() throws {
    let result = Keys(), sink = try sink(isAscending: false, limit: 7, result)
    #expect(try mostKept(sink, 0..<200, [4]) <= 7)
    try sink.finish()
    #expect(result.keys == (0..<7).map { ObjectKey(1995 - 10 * $0) })
  }

  @Test func aLimitedSortOfRowsInAnyOrderReturnsTheFirstRows() throws {
    let numbers = (0..<97).map { $0 * 31 % 97 }
    for limit in [0, 1, 9, 10, 11, 500, 970, 2_000] {
      let result = Keys(), sink = try sink(isAscending: true, offset: 5, limit: limit, result)
      #expect(try mostKept(sink, numbers) <= limit + 5)
      try sink.finish()
      #expect(result.keys == (5..<max(5, min(970, limit + 5))).map { ObjectKey($0 + 1) })
    }
  }

  @Test func aSortWithoutALimitReturnsAllRows() throws {
    let result = Keys(), sink = try sink(isAscending: false, limit: nil, result)
    #expect(try mostKept(sink, (0..<50).map { $0 * 7 % 50 }) == 49)
    try sink.finish()
    #expect(result.keys == (0..<500).reversed().map { ObjectKey($0 + 1) })
  }
}
