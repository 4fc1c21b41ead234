import HoldfastStore
import TestSupport
import Testing

/// Operations on entire batches have the same results as row by row.
@Suite struct BatchTests {
  private static let model: ManagedObjectModel = {
    let attributes = [
      AttributeDescription("number", .integer64, isOptional: true), AttributeDescription("real", .double, isOptional: true),
      AttributeDescription("text", .string, isOptional: true),
    ]
    do { return try ManagedObjectModel(entities: [EntityDescription("Thing", attributes: attributes)]) } catch { fatalError("\(error)") }
  }()

  private final class Nowhere: EvaluationSource {
    func row(entity: EntityIndex, key: ObjectKey) -> RowPointer? { nil }
    func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] { [] }
  }

  private var entity: ManagedObjectModel.Entity { Self.model.entities[0] }

  private func batch() throws -> RowBatch {
    let builder = RowBatchBuilder(entity: entity, identity: StoreIdentity.intern(storeUUID: "BATCH", model: Self.model))
    let numbers: [StoreValue] = [.null, .int64(.min), .int64(-7), .int64(-1), .int64(0), .int64(5), .int64(12), .int64(.max)]
    for (key, number) in (numbers + numbers.reversed()).enumerated() {
      let text: StoreValue = key % 3 == 0 ? .null : .string(key % 2 == 0 ? "even" : "odd")
      try builder.append(key: ObjectKey(key + 1), version: 1, values: [number, .double(Double(key)), text])
    }
    return builder.seal()
  }

  private func indexes(_ selection: RowSelection, _ batch: RowBatch) -> [Int] {
    switch selection {
    case .all: Array(0..<batch.count)
    case .one(let index): [index]
    case .rows(let rows): rows.map(Int.init)
    }
  }

  @Test func selectingFromABatchIsTestingEachRow() throws {
    let batch = try batch()
    let constants: [StoreValue] = [.int64(.min), .int64(-1), .int64(0), .int64(5), .int64(.max), .double(5), .double(5.5), .null]
    let values: [QueryExpression] = [.property("number"), .remainder(.property("number"), 6), .remainder(.property("number"), .max)]
    var expressions: [QueryExpression] = []
    for value in values {
      for op in [ComparisonOperator.equalTo, .notEqualTo, .lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo] {
        expressions += constants.map { .comparison(value, op, .constant($0), []) }
      }
      expressions += [.between(value, .int64(-1), .int64(5)), .between(value, .int64(5), .int64(-1))]
    }
    let text = QueryExpression.comparison(.property("text"), .equalTo, .constant(.string("odd")), [])
    for expression in expressions.flatMap({ [$0, .and([$0, text]), .and([text, $0, expressions[0]]), .not($0), .or([$0, text])] }) {
      let predicate = try RowPredicate(expression, entity: entity, model: Self.model)
      for rows in [RowSelection.all, .one(3), .rows([1, 4, 6, 9, 15]), .rows([])] {
        let expected = indexes(rows, batch).filter { predicate.matches(batch.pointer($0), Nowhere()) }
        #expect(indexes(predicate.select(batch, rows, Nowhere()), batch) == expected, "\(expression)")
      }
    }
  }

  @Test func aggregatingABatchIsAggregatingEachRow() throws {
    let batch = try batch()
    let columns: [AggregateColumn] = [
      .group(slot: 2), .count(slot: nil), .count(slot: 0), .average(slot: 0), .sum(slot: 1), .minimum(slot: 0), .maximum(slot: 2),
    ]
    for groupBy in [[2], [0], [0, 2], []] as [[SlotIndex]] {
      let plan = AggregatePlan(groupBy: groupBy, columns: groupBy.contains(2) ? columns : Array(columns.dropFirst()))
      let whole = RowAggregator(plan, entity: entity), single = RowAggregator(plan, entity: entity)
      whole.add(batch, .all)
      whole.add(batch, .rows([2, 5, 11]))
      whole.add(batch, .one(7))
      for index in Array(0..<batch.count) + [2, 5, 11, 7] { single.add(batch.pointer(index), idPrefix: batch.idPrefix) }
      let (a, b) = (try whole.result(), try single.result())
      #expect((0..<a.count).map { a[$0].values } == (0..<b.count).map { b[$0].values } && a.count > 0)
    }
  }

  /// A batch of one row whose text has an offset and a length.
  private static func filled(offset: Int, length: Int) throws -> RowBatch? {
    let layout = RowLayout([.attribute(.string)]), text = "text"
    return RowBatch.filled(layout: layout, idPrefix: nil, count: 1, bytesCount: 4) { base in
      base.storeBytes(of: 7, as: Int64.self)
      base.storeBytes(of: 1, toByteOffset: RowLayout.presenceOffset(0), as: UInt64.self)
      base.storeBytes(of: UInt64(offset) | UInt64(length) << 32, toByteOffset: RowLayout.cellOffset(0), as: UInt64.self)
      text.utf8.withContiguousStorageIfAvailable { (base + layout.fixedByteCount).copyMemory(from: $0.baseAddress!, byteCount: 4) }
    }
  }

  @Test func aBatchCanBeFilledDirectly() throws {
    let start = RowLayout([.attribute(.string)]).fixedByteCount
    let batch = try #require(try Self.filled(offset: start, length: 4))
    #expect(batch[0].key == 7 && batch[0].values == [.string("text")])
    #expect(try Self.filled(offset: start + 2, length: 2)?[0].values == [.string("xt")])
    let large = RowBatch.filled(layout: .keysOnly, idPrefix: nil, count: .max, bytesCount: 1) { _ in Issue.record("Too large a batch.") }
    #expect(large == nil)
  }

  @Test(.ownThreads, arguments: [(1, 4), (0, 5)]) func aFilledBatchWithBytesBeyondItsEndTrapsInDebugBuilds(shift: Int, length: Int) async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [shift, length] in
      _ = try BatchTests.filled(offset: RowLayout([.attribute(.string)]).fixedByteCount + shift, length: length)
    }
    let message = String(decoding: child?.standardErrorContent ?? [], as: UTF8.self)
    #expect(message.contains("aren't within the batch"), "\(message)")
  }
}
