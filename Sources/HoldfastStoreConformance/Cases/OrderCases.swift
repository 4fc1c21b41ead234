import HoldfastStore

/// Tests rules F2, F3 and F6 of the store contract: sorting, windows, counts and aggregates.
enum OrderCases {
  static let all =
    AttributeType.storedCases.map { type in
      StoreConformanceCase("F2", "sorting by \(type.rawValue), ties by key", requires: sorting(AttributeTypes(type))) {
        try sortedByType(type, $0)
      }
    } + [
      StoreConformanceCase("F2", "sorting by several attributes", requires: sorting([.integer16, .string]), sortedByTwo),
      StoreConformanceCase(
        "F2", "sorting by folded strings",
        requires: .with {
          $0.sorting = true
          $0.comparedTypes = [.string]
          $0.comparisons = .folding
        }, sortedByFoldedText),
      StoreConformanceCase(
        "F2", "sorting through to-one relationships",
        requires: .with {
          $0.sorting = true
          $0.comparedTypes = [.string, .integer32]
          $0.traversal = .toOne
        }, sortedThroughToOne),
      StoreConformanceCase(
        "F3", "offset and limit apply to the sorted rows",
        requires: .with {
          $0.sorting = true
          $0.windowing = true
          $0.comparedTypes = [.integer16, .string]
        }, windows),
      StoreConformanceCase(
        "F3", "offset and limit without sort terms apply to the rows in key order", requires: .with { $0.windowing = true }, unsortedWindows
      ),
      StoreConformanceCase(
        "F2", "sorting by the declared maximum number of terms",
        requires: .with {
          $0.sorting = true
          $0.traversal = .toOne
          $0.comparedTypes = [.integer16, .string]
        }, sortedByMany),
      StoreConformanceCase("F6", "counts of all rows", requires: .with { $0.counting = true }, counts),
      StoreConformanceCase("F6", "sums and averages of numbers are exact", requires: .with { $0.aggregates = true }, exactSums),
      StoreConformanceCase(
        "F6", "aggregates of all rows and of groups",
        requires: .with { $0.aggregates = true }, aggregates),
    ]
    + [AttributeType.double, .float, .decimal].map { type in
      StoreConformanceCase("F6", "sums and averages of unusual values of type \(type.rawValue)", requires: .with { $0.aggregates = true }) {
        try unusualSums(type, $0)
      }
    }
    // Object IDs aren't ordered, so they have no minimum or maximum.
    + AttributeType.storedCases.filter { $0 != .objectID }.map { type in
      StoreConformanceCase("F6", "count, minimum and maximum of \(type.rawValue)", requires: .with { $0.aggregates = true }) {
        try extremes(type, $0)
      }
    }

  private static func sorting(_ types: AttributeTypes) -> StoreCapabilities {
    .with {
      $0.sorting = true
      $0.comparedTypes = types
    }
  }

  private static func expectOrder(_ terms: [SortTerm], _ entity: String, _ store: TestedStore, _ graph: ExpectedGraph) throws {
    let order = try RowOrder(terms, entity: store.entity(entity), model: store.model)
    let expected = graph.rows(entity).values.sorted { order.precedes($0.pointer, $1.pointer, graph) }
    let got = try store.fetch(store.plan(entity, sorts: terms))
    store.run.expectEqual(
      got.map(\.key), expected.map(\.key),
      "the keys of \(entity) sorted by \(terms.map { "\($0.path) \($0.isAscending ? "ascending" : "descending")" })")
    store.expectRows(got, expected, "the sorted rows of \(entity)")
  }

  private static func sortedByType(_ type: AttributeType, _ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.samples(store)
    let path = PropertyPath(ConformanceModel.attributeName(type))
    for isAscending in [true, false] { try expectOrder([SortTerm(path, isAscending: isAscending)], "Sample", store, graph) }
  }

  private static func unsortedWindows(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let keys = graph.rows("Person").keys.sorted()
    for output in [FetchOutput.rows, .keys] {
      for (offset, limit) in [(0, 1), (2, 3), (1, nil), (0, 0), (keys.count, 1), (0, .max), (1, .max)] as [(Int, Int?)] {
        var plan = store.plan("Person")
        (plan.offset, plan.limit, plan.output) = (offset, limit, output)
        let expected = Array(keys.dropFirst(offset).prefix(limit ?? .max))
        run.expectEqual(
          try store.fetch(plan).map(\.key), expected, "the keys with offset \(offset) and limit \(limit.map(String.init) ?? "nil")")
      }
    }
  }

  private static func sortedByTwo(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
      try expectOrder([SortTerm("name", isAscending: first), SortTerm("age", isAscending: second)], "Person", store, graph)
      try expectOrder([SortTerm("age", isAscending: first), SortTerm("city", isAscending: second)], "Person", store, graph)
    }
  }

  private static func sortedByFoldedText(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.samples(store)
    let path = PropertyPath(ConformanceModel.attributeName(.string))
    let foldings: [TextFolding] = [.caseInsensitive, .diacriticInsensitive, [.caseInsensitive, .diacriticInsensitive]]
    for folding in foldings {
      for isAscending in [true, false] {
        try expectOrder([SortTerm(path, isAscending: isAscending, folding: folding)], "Sample", store, graph)
      }
    }
  }

  private static func sortedThroughToOne(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for isAscending in [true, false] {
      try expectOrder([SortTerm("employer.name", isAscending: isAscending), SortTerm("name")], "Person", store, graph)
      try expectOrder([SortTerm("employer.size", isAscending: isAscending)], "Person", store, graph)
      try expectOrder([SortTerm("holder.employer.name", isAscending: isAscending)], "Passport", store, graph)
    }
  }

  private static func sortedByMany(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let names = ["age", "city", "employer.name", "name"]
    let count = min(store.store.capabilities.maximumSortTerms, 200)
    try expectOrder((0..<count).map { SortTerm(PropertyPath(dotted: names[$0 % 4]), isAscending: $0 % 3 != 0) }, "Person", store, graph)
  }

  /// Partial sums overflow, or round, in some orders.
  private static func exactSums(_ run: CaseRun) throws {
    for numbers in [[Int64.max, 1, -5], [-5, .max, 1], [1, -5, .max], [.min, .min, .max, .max, 2]] {
      try expectSums(of: .integer64, numbers.map { .int64($0) }, run)
    }
    for numbers in [[1, 1e16, -1e16], [1e16, 1, -1e16, 1e-300], [1e308, 1e308, -1e308], [0.1, 0.2, 0.3, 1e23, -1e23]] {
      try expectSums(of: .double, numbers.map { .double($0) }, run)
    }
  }

  private static func expectSums(of type: AttributeType, _ numbers: [StoreValue], _ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general), graph = ExpectedGraph(store)
    let keys = try store.keys("Sample", numbers.count), name = ConformanceModel.attributeName(type)
    try store.save(graph) { for (key, number) in zip(keys, numbers) { $0.insert("Sample", key, [name: number]) } }
    guard let slot = store.entity("Sample").slot(named: name),
      let other = store.entity("Sample").slot(named: ConformanceModel.attributeName(.string))
    else { return }
    for groupBy in [[], [other]] {
      try expectAggregates(AggregatePlan(groupBy: groupBy, columns: [.sum(slot: slot), .average(slot: slot)]), "Sample", store, graph)
    }
  }

  private static func windows(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let terms = [SortTerm("age", isAscending: false)]
    let order = try RowOrder(terms, entity: store.entity("Person"), model: store.model)
    let all = graph.rows("Person").values.sorted { order.precedes($0.pointer, $1.pointer, graph) }.map(\.key)
    for offset in [0, 1, 5, 23, 24, 100] {
      for limit in [nil, 0, 1, 3, 24, 100] as [Int?] {
        var plan = store.plan("Person", sorts: terms)
        plan.offset = offset
        plan.limit = limit
        let expected = Array(all.dropFirst(offset).prefix(limit ?? .max))
        run.expectEqual(
          try store.fetch(plan).map(\.key), expected,
          "the keys of people with offset \(offset) and limit \(limit.map(String.init) ?? "none")")
      }
    }
  }

  private static func counts(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    for round in 0..<2 {
      for entity in store.model.entities {
        var plan = store.plan(entity.name)
        plan.output = .count
        let got = try store.fetch(plan)
        run.expectEqual(got.map(\.values), [[.int64(Int64(graph.rows(of: entity).count))]], "the count of \(entity.name)")
      }
      if round == 0 { try store.save(graph) { for key in people.prefix(3) { $0.delete("Person", key) } } }
    }
  }

  private static func expectAggregates(_ plan: AggregatePlan, _ entity: String, _ store: TestedStore, _ graph: ExpectedGraph) throws {
    let described = store.entity(entity)
    let aggregator = RowAggregator(plan, entity: described)
    for row in graph.rows(entity).values { aggregator.add(row.pointer, idPrefix: store.identity.prefix(for: described)) }
    let reference = try aggregator.result()
    var asked = store.plan(entity)
    asked.output = .aggregates(plan)
    let got = try store.fetch(asked)
    let expected = (0..<reference.count).map { reference[$0].values }
    for values in expected where !got.contains(where: { isSame($0.values, values) }) {
      store.run.fail("the aggregates \(plan.columns) by \(plan.groupBy) to have a group \(values)", got: "\(got.map(\.values))")
    }
    store.run.expectEqual(got.count, expected.count, "the number of groups of the aggregates \(plan.columns) by \(plan.groupBy)")
    if let layout = got.first?.batch.layout {
      store.run.expect(layout == plan.layout(in: described), "the rows to have the layout of \(plan)", got: "\(layout.columns)")
    }
  }

  /// Whether two rows of a result are equal. NaN equals NaN here.
  private static func isSame(_ got: [StoreValue], _ expected: [StoreValue]) -> Bool {
    got.count == expected.count && zip(got, expected).allSatisfy { $0 == $1 || $0.isNaN && $1.isNaN }
  }

  /// Sums and averages of numbers that aren't finite, and of decimals with 38 digits.
  private static func unusualSums(_ type: AttributeType, _ run: CaseRun) throws {
    let numbers = ConformanceValues.unusual(of: type)
    let lists = numbers.map { [$0] } + numbers.prefix(3).flatMap { first in numbers.prefix(3).map { [first, $0] } }
    for list in lists {
      let store = try run.openNew(ConformanceModel.general), graph = ExpectedGraph(store)
      let keys = try store.keys("Sample", list.count), name = ConformanceModel.attributeName(type)
      do {
        try store.save(graph) { for (key, value) in zip(keys, list) { $0.insert("Sample", key, [name: value]) } }
      } catch let error as StoreError where error.code == .unstorableValue { continue }
      guard let slot = store.entity("Sample").slot(named: name) else { return }
      let columns: [AggregateColumn] = [.count(slot: slot), .sum(slot: slot), .average(slot: slot)]
      try expectAggregates(AggregatePlan(groupBy: [], columns: columns), "Sample", store, graph)
    }
  }

  private static func aggregates(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let empty = ExpectedGraph(store)
    let person = store.entity("Person")
    guard let age = person.slot(named: "age"), let number = person.slot(named: "number"), let name = person.slot(named: "name") else {
      return
    }
    let columns: [AggregateColumn] = [
      .count(slot: nil), .count(slot: age), .sum(slot: age), .average(slot: age), .minimum(slot: number), .maximum(slot: name),
      .sum(slot: number),
    ]
    try expectAggregates(AggregatePlan(groupBy: [], columns: columns), "Person", store, empty)
    try expectAggregates(AggregatePlan(groupBy: [name], columns: [.group(slot: name)] + columns), "Person", store, empty)
    let graph = try ConformanceRows.people(store)
    try expectAggregates(AggregatePlan(groupBy: [], columns: columns), "Person", store, graph)
    for slot in [name, age] {
      try expectAggregates(AggregatePlan(groupBy: [slot], columns: [.group(slot: slot)] + columns), "Person", store, graph)
    }
    let two: [AggregateColumn] = [.group(slot: age), .count(slot: nil), .group(slot: name)]
    try expectAggregates(AggregatePlan(groupBy: [name, age], columns: two), "Person", store, graph)
  }

  private static func extremes(_ type: AttributeType, _ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.samples(store)
    guard let slot = store.entity("Sample").slot(named: ConformanceModel.attributeName(type)) else { return }
    let columns: [AggregateColumn] = [.count(slot: slot), .minimum(slot: slot), .maximum(slot: slot)]
    try expectAggregates(AggregatePlan(groupBy: [], columns: columns), "Sample", store, graph)
    try expectAggregates(
      AggregatePlan(groupBy: [slot], columns: [.group(slot: slot), .count(slot: nil), .count(slot: slot)]), "Sample", store, graph)
  }
}
