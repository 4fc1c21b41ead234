import Foundation
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// The store's answers compared with those of the reference evaluator.
@Suite struct QueryTests {
  /// Set HOLDFAST_SEED to repeat a run.
  private static let seed = ProcessInfo.processInfo.environment["HOLDFAST_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...1_000_000)

  private struct Graph {
    let folder: TemporaryFolder
    let tested: StoreUnderTest
    var random: RandomGraph
    let source: CollectedRows
  }

  private func graph(seed: UInt64) throws -> Graph {
    let folder = TemporaryFolder()
    let model = try ManagedObjectModel(entities: RandomGraph.entities)
    let tested = try StoreUnderTest(folder, model, options: SQLiteStoreOptions(storesExactDecimals: true))
    var random = RandomGraph(random: SeededGenerator(seed: seed), identity: tested.metadata.identity, model: model)
    for (name, count) in [("Owner", RandomGraph.ownerCount), ("Item", RandomGraph.itemCount)] {
      let entity = try tested.entity(name)
      let rows = (0..<count).map { _ in Dictionary(uniqueKeysWithValues: entity.slots.map { ($0.name, random.value($0.columnType)) }) }
      try tested.insert(name, rows)
    }
    let item = try tested.entity("Item")
    let naming = try #require(item.relationships.first { $0.isManyToMany && $0.namesLinks })
    var links = SaveRequest.LinkChanges(entity: item.index, relationship: naming.index)
    let pairs = (0..<100).map { _ in
      SaveRequest.Link(source: ObjectKey(Int64(random.random.next() % 60) + 1), target: ObjectKey(Int64(random.random.next() % 60) + 1))
    }
    links.added = Set(pairs).sorted()
    try tested.save(SaveRequest(links: [links]))
    return Graph(folder: folder, tested: tested, random: random, source: try CollectedRows(tested))
  }

  @Test func `random predicates return the same rows as the reference evaluator`() throws {
    print("seed \(QueryTests.seed)")
    var graph = try graph(seed: QueryTests.seed)
    let rounds = TestTier.count(500, full: 2000)
    var matching = 0
    for round in 0..<rounds {
      let entity = graph.tested.model.entities[round % 5 == 0 ? 1 : 0]
      let predicate = graph.random.predicate(entity)
      let reference = try RowPredicate(predicate, entity: entity, model: graph.tested.model)
      let expected = graph.source.all(entity.index).filter { reference.matches($0.pointer, graph.source) }.map(\.key)
      let found: [ObjectKey]
      do { found = try graph.tested.fetch(try graph.tested.plan(entity.name, predicate)).map(\.key) } catch {
        Issue.record("seed \(QueryTests.seed), round \(round): \(error) for \(predicate)")
        continue
      }
      #expect(found.sorted() == expected, "seed \(QueryTests.seed), round \(round): \(predicate)")
      matching += expected.count
      var plan = try graph.tested.plan(entity.name, predicate)
      plan.output = .count
      #expect(try graph.tested.fetch(plan).first?[0] == .int64(Int64(expected.count)), "seed \(QueryTests.seed), round \(round)")
    }
    #expect(matching > rounds)
  }

  @Test func `random sorts and windows return the rows in the order of the reference`() throws {
    print("seed \(QueryTests.seed)")
    var graph = try graph(seed: QueryTests.seed)
    for round in 0..<TestTier.count(200, full: 400) {
      let entity = graph.tested.model.entities[round % 4 == 0 ? 1 : 0]
      let sorts = graph.random.sorts(entity)
      let order = try RowOrder(sorts, entity: entity, model: graph.tested.model)
      let predicate: QueryExpression? = graph.random.chance(50) ? graph.random.predicate(entity, depth: 1) : nil
      let test = try predicate.map { try RowPredicate($0, entity: entity, model: graph.tested.model) }
      let all = graph.source.all(entity.index).filter { row in test?.matches(row.pointer, graph.source) ?? true }
        .sorted { order.precedes($0.pointer, $1.pointer, graph.source) }.map(\.key)
      var plan = try graph.tested.plan(entity.name, predicate)
      plan.sorts = sorts
      if graph.random.chance(60) { plan.offset = Int(graph.random.random.next() % 12) }
      if graph.random.chance(60) { plan.limit = Int(graph.random.random.next() % 12) }
      let expected = Array(all.dropFirst(plan.offset).prefix(plan.limit ?? .max))
      plan.output = graph.random.chance(30) ? .keys : .rows
      let found = try graph.tested.fetch(plan).map(\.key)
      if sorts.isEmpty && plan.limit == nil && plan.offset == 0 {
        #expect(found.sorted() == expected)
      } else {
        #expect(found == expected, "seed \(QueryTests.seed), round \(round): \(sorts)")
      }
      plan.output = .count
      #expect(try graph.tested.fetch(plan).first?[0] == .int64(Int64(expected.count)))
    }
  }

  @Test func `aggregates equal those of the reference`() throws {
    print("seed \(QueryTests.seed)")
    var graph = try graph(seed: QueryTests.seed)
    let entity = try graph.tested.entity("Item")
    let numbers = ["i16", "r", "f", "d", "b"].compactMap { entity.slot(named: $0) }
    let others = entity.slotIndexes.filter { entity.slots[$0].columnType != .toOne(destination: 0) }
    for round in 0..<TestTier.count(150, full: 300) {
      let groupBy = (0..<graph.random.random.next() % 3).map { _ in graph.random.pick(Array(entity.slotIndexes)) }
      let columns: [AggregateColumn] =
        groupBy.map { .group(slot: $0) } + [
          .count(slot: nil), .count(slot: graph.random.pick(others)), .sum(slot: graph.random.pick(numbers)),
          .average(slot: graph.random.pick(numbers)), .minimum(slot: graph.random.pick(others)), .maximum(slot: graph.random.pick(others)),
        ]
      let aggregates = AggregatePlan(groupBy: groupBy, columns: columns)
      let predicate: QueryExpression? = graph.random.chance(50) ? graph.random.predicate(entity, depth: 1) : nil
      let test = try predicate.map { try RowPredicate($0, entity: entity, model: graph.tested.model) }
      let reference = RowAggregator(aggregates, entity: entity)
      for row in graph.source.all(entity.index) where test?.matches(row.pointer, graph.source) ?? true {
        reference.add(row.pointer, idPrefix: graph.tested.metadata.identity.prefix(for: entity))
      }
      var plan = try graph.tested.plan("Item", predicate)
      plan.output = .aggregates(aggregates)
      let batch = try reference.result()
      let expected = (0..<batch.count).map { "\(batch[$0].values)" }.sorted()
      let found = try graph.tested.fetch(plan).map { "\($0.values)" }.sorted()
      #expect(found == expected, "seed \(QueryTests.seed), round \(round): \(aggregates)")
    }
  }

  @Test func `a sum that exceeds 64 bits is an error`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Person", [["id": .int64(.max)], ["id": .int64(1)]])
    let slot = try #require(try tested.entity("Person").slot(named: "id"))
    var plan = try tested.plan("Person")
    plan.output = .aggregates(AggregatePlan(groupBy: [], columns: [.sum(slot: slot)]))
    #expect(try thrown { _ = try tested.fetch(plan) }.code == .unstorableValue)
  }

  @Test func `queries that differ only in constants share one statement, and each runs no other`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Person", (1...20).map { ["id": .int64($0), "name": .string("n\($0)")] })
    _ = try tested.fetch(try tested.plan("Person", .comparison(.property("id"), .equalTo, .constant(.int64(1)), [])))
    let before = tested.store.statementCount
    for id in 2...11 {
      let rows = try tested.fetch(try tested.plan("Person", .comparison(.property("id"), .equalTo, .constant(.int64(Int64(id))), [])))
      #expect(rows.map(\.key.rawValue) == [Int64(id)])
    }
    #expect(tested.store.statementCount - before == 10)
  }

  @Test func `a long list and a wide condition are within SQLite's limits`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Person", (1...50).map { ["id": .int64($0)] })
    for count in [32, 33, 32_767, 100_000] as [Int64] {
      let list = (40..<(40 + count)).map { StoreValue.int64($0) }
      #expect(try tested.fetch(try tested.plan("Person", .membership(.property("id"), list))).count == 11)
    }
    let wide = QueryExpression.or((1...2000).map { .comparison(.property("id"), .equalTo, .constant(.int64($0 * 2)), []) })
    #expect(try tested.fetch(try tested.plan("Person", wide)).count == 25)
    #expect(try tested.fetch(try tested.plan("Person", .not(wide))).count == 25)
  }

  @Test func `long lists of every length share one statement, in a snapshot and in a burst of requests too`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Person", (1...50).map { ["id": .int64($0), "name": .string("n\($0)")] })
    let view = try tested.store.beginRead(.snapshot)
    defer { view.end() }
    for count in [33, 40, 100, 5000, 34] as [Int64] {
      let numbers = (0..<count).map { StoreValue.int64($0) }, names = (0..<count).map { StoreValue.string("n\($0)") }
      let both = try tested.plan("Person", .and([.membership(.property("id"), numbers), .not(.membership(.property("name"), names))]))
      let either = try tested.plan("Person", .or([.membership(.property("id"), numbers), .membership(.property("name"), names)]))
      for _ in 0..<6 {
        #expect(try tested.fetch(both).isEmpty)
        #expect(try tested.fetch(either).count == min(49, Int(count) - 1) + (count > 50 ? 1 : 0))
        #expect(try tested.fetch(either, in: view).count == min(49, Int(count) - 1) + (count > 50 ? 1 : 0))
      }
    }
  }

  // MARK: Compiled statements

  /// A compiled statement is found by the shape of a query, which is made without its text.
  @Test func `a compiled statement is used for no other query`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try ManagedObjectModel(entities: RandomGraph.entities))
    let open = try tested.store.opened("test"), connection = try open.database.connectForCompaction()
    defer { connection.close() }
    for plan in try QueryTests.differentPlans(tested) {
      let fresh = try open.database.connectForCompaction()
      defer { fresh.close() }
      let expected = try FetchRunner(store: open, connection: fresh).statement(for: plan)?.sql
      let found = try FetchRunner(store: open, connection: connection).statement(for: plan)?.sql
      #expect(found != nil && found == expected, "\(plan)")
    }
    withExtendedLifetime(tested) {}
  }

  /// Plans whose texts differ by one part. Similar ones follow each other, so that the earlier one is still compiled.
  private static func differentPlans(_ tested: StoreUnderTest) throws -> [FetchPlan] {
    var plans = try similarPredicates().map { try tested.plan("Item", $0) }
    for term in [
      SortTerm("s"), SortTerm("s", isAscending: false), SortTerm("s", folding: .caseInsensitive), SortTerm("s2"), SortTerm("owner.name"),
      SortTerm("owner.boss.name"),
    ] {
      for (limit, offset) in [(nil, 0), (5, 0), (nil, 3), (5, 3)] as [(Int?, Int)] {
        var plan = try tested.plan("Item")
        (plan.sorts, plan.limit, plan.offset) = ([term], limit, offset)
        plans.append(plan)
      }
    }
    let item = try tested.entity("Item"), group = try #require(item.slot(named: "i16"))
    var outputs: [FetchOutput] = [.rows, .keys, .count]
    for name in ["i64", "r", "s"] {
      let slot = try #require(item.slot(named: name))
      outputs.append(.aggregates(AggregatePlan(groupBy: [], columns: [.count(slot: slot)])))
      outputs.append(.aggregates(AggregatePlan(groupBy: [group], columns: [.group(slot: group), .maximum(slot: slot)])))
    }
    for output in outputs {
      var plan = try tested.plan("Item")
      plan.output = output
      plans += [plan, plan]
    }
    return plans
  }

  private static func similarPredicates() -> [QueryExpression] {
    func number(_ value: StoreValue, _ op: ComparisonOperator = .equalTo, _ path: PropertyPath = "i64") -> QueryExpression {
      .comparison(.property(path), op, .constant(value), [])
    }
    let one = number(.int64(1)), two = number(.int64(1), .equalTo, "i16"), half = number(.double(0.5), .equalTo, "r")
    var predicates: [QueryExpression] = [
      .literal(true), .literal(false), .property("b"), .not(.property("b")), .and([]), .or([]),
      .and([.or([one, two]), half]), .and([.or([one]), two, half]), .or([.and([one, two]), half]), .or([.and([one]), two, half]),
      .any("near", one), .all("near", one), .any("far", one), .all("far", one), .any("owner.items", one), .all("owner.items", one),
      .between(.property("i64"), .int64(1), .int64(2)), .between(.property("i64"), .double(0.5), .int64(2)),
      .between(.property("i64"), .int64(1), .double(2.5)), .between(.property("i64"), .null, .int64(2)),
      number(.int64(1), .equalTo, "owner.age"), number(.int64(1), .equalTo, "owner.boss.age"),
    ]
    let orders: [ComparisonOperator] = [.equalTo, .notEqualTo, .lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo]
    // A whole number, one between two, one that no column has, and none.
    let values: [StoreValue] = [.int64(1), .double(1.5), .double(.nan), .null], lists: [PropertyPath] = ["near", "far", "owner.items"]
    for op in orders {
      for value in values { predicates.append(number(value, op)) }
      for path in lists {
        predicates.append(.comparison(.count(path), op, .constant(.int64(1)), []))
        predicates.append(.comparison(.remainder(.count(path), 2), op, .constant(.int64(1)), []))
      }
    }
    let foldings: [TextFolding] = [[], .caseInsensitive, .diacriticInsensitive, [.caseInsensitive, .diacriticInsensitive]]
    let text = QueryExpression.property("s"), others: [QueryExpression] = [.property("s2"), .property("owner.name")]
    for op in orders + [.beginsWith, .endsWith, .contains] {
      for folding in foldings {
        for part in ["a", ""] { predicates.append(.comparison(text, op, .constant(.string(part)), folding)) }
        for other in others { predicates.append(.comparison(text, op, other, folding)) }
      }
    }
    for count in [0, 1, 2, 3, 5, 40] as [Int64] {
      let list = (0..<count).map { StoreValue.int64($0) }
      predicates.append(.membership(.property("i64"), list))
      predicates.append(.membership(.property("i64"), list + [.null]))
    }
    return predicates
  }

  @Test func `a sum of integers is exact in any order of the rows, and so is the average`() throws {
    for numbers in [[Int64.max, 1, -5], [-5, .max, 1], [1, -5, .max]] {
      let folder = TemporaryFolder()
      let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
      try tested.insert("Person", numbers.map { ["id": .int64($0)] })
      let slot = try #require(try tested.entity("Person").slot(named: "id"))
      var plan = try tested.plan("Person")
      plan.output = .aggregates(AggregatePlan(groupBy: [], columns: [.sum(slot: slot), .average(slot: slot)]))
      #expect(try tested.fetch(plan).map(\.values) == [[.int64(.max - 4), .double(Double(Int64.max) / 3)]])
    }
  }
}
