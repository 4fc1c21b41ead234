import HoldfastStore
import Testing

@testable import HoldfastAtomicStore

@Suite struct RowTableTests {
  private let model: ManagedObjectModel
  private let schema: TableSchema

  init() throws {
    model = try ManagedObjectModel(entities: [EntityDescription("Note", attributes: [AttributeDescription("text", .string)])])
    schema = TableSchema(model: model, identity: StoreIdentity.intern(storeUUID: "ROW-TABLE-TESTS", model: model))
  }

  private func batch(_ keys: some Sequence<ObjectKey>, version: RowVersion, text: String) throws -> RowBatch {
    let builder = RowBatchBuilder(entity: model.entities[0], identity: schema.identity)
    for key in keys { try builder.append(key: key, version: version, values: [.string(text)]) }
    return builder.seal()
  }

  private func insert(_ keys: some Sequence<ObjectKey>, into table: inout RowTable, version: RowVersion = 1, text: String = "note") throws {
    table.adopt(try batch(keys, version: version, text: text), entity: 0)
  }

  private func empty() -> RowTable { RowTable(constraintCount: 0, entityCount: 1) }

  private func liveRowCount(_ table: RowTable) -> Int {
    table.pages.indices.reduce(0) { sum, number in
      switch table.liveRows(number) {
      case .all: sum + (table.pages[number]?.batch.count ?? 0)
      case .one: sum + 1
      case .rows(let rows): sum + rows.count
      }
    }
  }

  @Test func anInsertedBatchIsThePage() throws {
    var table = empty()
    let rows = try batch(1...100, version: 1, text: "note")
    table.adopt(rows, entity: 0)
    #expect(table.batch(table.location(7)) === rows)
    #expect(table.count == 100 && table.rowCounts == [100])
  }

  @Test func aPageUnderHalfLiveIsCompactedAndOneAboveIsNot() throws {
    var table = empty()
    try insert(1...100, into: &table, text: String(repeating: "long ", count: 100))
    for key in ObjectKey(1)...50 { table.remove(key) }
    table.compact(schema)
    #expect(table.pages.compactMap(\.self).map(\.batch.count) == [100])
    table.remove(51)
    table.compact(schema)
    #expect(table.pages.compactMap(\.self).map(\.batch.count) == [49])
    #expect(table.count == 49 && liveRowCount(table) == 49)
    #expect(table.row(100)?.string(0) == String(repeating: "long ", count: 100))
  }

  @Test func rowsThatMovedSinceAnOlderCopyAreReported() throws {
    var table = empty()
    try insert(1...3_000, into: &table)
    let before = table
    func told(_ keys: ClosedRange<ObjectKey>) -> [[Int64?]] {
      var told: [[Int64?]] = []
      table.forEachChange(since: before, of: 0, keys: keys) { old, new in
        told.append([old?.key.rawValue, old?.version.rawValue, new?.key.rawValue, new?.version.rawValue])
      }
      return told
    }
    #expect(told(1...5_000).isEmpty)
    try insert([2_000], into: &table, version: 2)
    table.remove(2_500)
    try insert([4_000], into: &table)
    #expect(told(1...5_000) == [[2_000, 1, 2_000, 2], [2_500, 1, nil, nil], [nil, nil, 4_000, 1]])
    #expect(told(2_001...3_999) == [[2_500, 1, nil, nil]] && told(1...1_024).isEmpty)
    table.forEachChange(since: before, of: 1, keys: 1...5_000) { _, _ in Issue.record("A row of another entity") }
  }

  /// A released page's number is reused by another page, so a new row has the location of an old one.
  @Test func aRowAtTheLocationOfAnOldRowInAReusedPageIsReported() throws {
    var table = empty()
    try insert(1...2, into: &table)
    try insert([3], into: &table, text: "before")
    let before = table
    table.remove(3)
    try insert([3], into: &table, text: "after")
    #expect(table.location(3).bits == before.location(3).bits)
    var told: [[String?]] = []
    table.forEachChange(since: before, of: 0, keys: 1...10) { told.append([$0?.string(0), $1?.string(0)]) }
    #expect(told == [["before", "after"]])
  }

  @Test func aPageWithoutLivingRowsIsReleased() throws {
    var table = empty()
    try insert(1...10, into: &table)
    try insert(1...10, into: &table, version: 2)
    #expect(table.pages.compactMap(\.self).count == 1)
    #expect(table.row(5)?.version == 2)
  }

  @Test func manySmallPagesBecomeFew() throws {
    var table = empty()
    for key in ObjectKey(1)...1_000 {
      try insert([key], into: &table)
      table.compact(schema)
    }
    #expect(table.count == 1_000 && liveRowCount(table) == 1_000)
    #expect(table.pages.compactMap(\.self).count < 50)
    for key in ObjectKey(1)...1_000 { #expect(table.row(key)?.key == key) }
  }

  /// The bug: with more than 32 entities, each save copied the small pages of all of them.
  @Test func theOnlySmallPagesOfManyEntitiesStay() throws {
    let names = (1...40).map { "Note\($0)" }, root = EntityDescription("Note", attributes: [AttributeDescription("text", .string)])
    let model = try ManagedObjectModel(entities: [root] + names.map { EntityDescription($0, superentity: "Note") })
    let schema = TableSchema(model: model, identity: StoreIdentity.intern(storeUUID: "ROW-TABLE-TESTS-OF-A-FAMILY", model: model))
    var table = RowTable(constraintCount: 0, entityCount: model.entities.count), next: ObjectKey = 1
    func insert(_ name: String) throws {
      let entity = try #require(model.entity(named: name)), builder = RowBatchBuilder(entity: entity, identity: schema.identity)
      try builder.append(key: next, version: 1, values: [.string("note")])
      table.adopt(builder.seal(), entity: entity.index)
      next = next.advanced(by: 1)
      table.compact(schema)
    }
    for name in names { try insert(name) }
    let pages = table.pages.compactMap(\.self).map(\.batch)
    for _ in 0..<32 { try insert("Note1") }
    #expect(pages.count == 40 && zip(pages, table.pages.compactMap(\.self).map(\.batch)).allSatisfy { $0 === $1 })
    try insert("Note1")
    #expect(table.count == 73 && table.pages.compactMap(\.self).count == 40)
    for key in ObjectKey(1)..<next { #expect(table.row(key)?.key == key) }
  }

  @Test func anOlderCopyAnswersAsBefore() throws {
    var table = empty()
    try insert(1...2_000, into: &table)
    let before = table
    try insert((1...2_000).filter { $0.rawValue % 3 == 0 }, into: &table, version: 2, text: "changed")
    for key in ObjectKey(1)...2_000 where key.rawValue % 3 == 1 { table.remove(key) }
    table.compact(schema)
    #expect(before.count == 2_000 && liveRowCount(before) == 2_000)
    for key in ObjectKey(1)...2_000 { #expect(before.row(key)?.version == 1) }
    #expect(table.count == 1_334 - 1 && liveRowCount(table) == table.count)
    #expect(table.row(3)?.string(0) == "changed" && table.row(4) == nil && table.row(5)?.version == 1)
  }

  // MARK: Rows in a file

  /// After a save that changed every second object, neighboring rows are in two pages, and both are needed until the next two.
  @Test func loopsOverRowsOfAlternatingPagesReadEachPageOnceAndEvictIt() throws {
    let used = UsedMemory()
    var table = empty()
    for page in 0..<100 {
      let keys = (1...100).map { ObjectKey(rawValue: Int64(100 * page + $0)) }
      for remainder in [0, 1] as [Int64] {
        let rows = try batch(keys.filter { $0.rawValue % 2 == remainder }, version: 1, text: "note")
        table.adopt(try #require(rows.copied { UsedMemory.Piece($0, used) }), entity: 0)
      }
    }
    used.forget()
    var count = 0, isInOrder = true
    table.forEachRow(of: 0) { row in
      count += 1
      isInOrder = isInOrder && row.key.rawValue == Int64(count)
    }
    #expect(isInOrder && count == 10_000)
    #expect(used.loads == 200 && used.most <= 10 && used.now == 0, "\(used)")

    used.forget()
    count = 0
    table.forEachRow(of: 0, keys: 1...10_000) { row in
      count += 1
      return row.key.rawValue % 500 == 0
    }
    #expect(count == 10_000)
    #expect(used.loads == 200 && used.most <= 24, "\(used)")
  }

  @Test func requestsForRowsOfAlternatingPagesReadEachPageOnce() throws {
    let used = UsedMemory(), received = Received(), sink = CopyingSink(received)
    let pages = try (0..<20).map { number in
      let rows = try batch((1...100).map { ObjectKey(rawValue: Int64(100 * number + $0)) }, version: 1, text: "note")
      return try #require(rows.copied { UsedMemory.Piece($0, used) })
    }
    for pair in 0..<10 {
      for row in 0..<100 {
        for page in [2 * pair, 2 * pair + 1] { _ = try sink.take(pages[page], .one(row)) }
      }
    }
    #expect(received.keys.sorted() == (1...2_000).map { ObjectKey(rawValue: $0) })
    #expect(used.loads == 20 && used.most <= 9, "\(used)")
  }

  private final class Received: RowSink {
    private(set) var keys: [ObjectKey] = []

    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
      rows.forEach(in: batch) { keys.append(batch.pointer($0).key) }
      return .more
    }
  }

  /// Counts the pages that are in memory.
  private final class UsedMemory: CustomStringConvertible {
    private(set) var loads = 0
    private(set) var now = 0
    private(set) var most = 0

    var description: String { "loads: \(loads), now: \(now), most: \(most)" }

    func forget() { (loads, most) = (0, now) }

    /// Memory that is always there, and can be loaded and evicted like that of a file.
    final class Piece: RowBatchMemory, @unchecked Sendable {  // because a test uses it on one thread
      let base: UnsafeRawPointer
      private let used: UsedMemory
      private var isLoaded = false

      init(_ bytes: UnsafeRawBufferPointer, _ used: UsedMemory) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
        copy.copyMemory(from: bytes)
        base = UnsafeRawPointer(copy.baseAddress!)
        self.used = used
      }

      deinit { base.deallocate() }

      func load() -> Bool {
        if isLoaded { return true }
        isLoaded = true
        used.loads += 1
        used.now += 1
        used.most = max(used.most, used.now)
        return true
      }

      func evict() {
        if isLoaded { used.now -= 1 }
        isLoaded = false
      }
    }
  }
}
