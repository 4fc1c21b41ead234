import HoldfastStore

/// Tests rules F1–F3 and F6 of the store contract: combinations of output, predicate, sort terms, window and subentities, compared with
/// the reference evaluator.
enum CombinationCases {
  static let all =
    [false, true].flatMap { hasPredicate in
      [0, 1, 2].flatMap { sortCount in
        [false, true].flatMap { isWindowed in
          [FetchOutput.rows, .keys].map { output in
            let shape = Shape(output: output, hasPredicate: hasPredicate, sortCount: sortCount, isWindowed: isWindowed)
            return StoreConformanceCase(shape.rule, shape.title, requires: shape.requires) { try compare(shape, $0) }
          }
        }
      }
    } + [
      StoreConformanceCase("F6", "counts with predicates, with and without subentities", requires: needs(counting: true), counts),
      StoreConformanceCase("F6", "aggregates with predicates, with and without subentities", requires: needs(aggregates: true), aggregates),
    ]

  /// A combination of an output, a predicate, sort terms and a window.
  private struct Shape: Sendable {
    let output: FetchOutput
    let hasPredicate: Bool
    let sortCount: Int
    let isWindowed: Bool

    var rule: String { isWindowed ? "F3" : sortCount > 0 ? "F2" : output == .keys ? "F6" : "F1" }

    var title: String {
      let parts = [
        hasPredicate ? "a predicate" : nil, sortCount == 0 ? nil : sortCount == 1 ? "a sort term" : "\(sortCount) sort terms",
        isWindowed ? "offset and limit" : nil,
      ].compactMap { $0 }
      return "\(output == .keys ? "keys" : "rows") with \(parts.isEmpty ? "nothing else" : parts.joined(separator: ", "))"
    }

    var requires: StoreCapabilities {
      needs(predicate: hasPredicate, sorting: sortCount > 0, windowing: isWindowed)
    }
  }

  private static func needs(
    predicate: Bool = false, sorting: Bool = false, windowing: Bool = false, counting: Bool = false, aggregates: Bool = false
  ) -> StoreCapabilities {
    .with { needed in
      if predicate || counting || aggregates {
        needed.comparisons = [.equality, .order]
        needed.booleanOperators = true
      }
      if predicate || sorting || counting || aggregates { needed.comparedTypes = [.string, .integer64] }
      needed.sorting = sorting
      needed.windowing = windowing
      needed.counting = counting
      needed.aggregates = aggregates
    }
  }

  // MARK: Requests

  /// An entity to fetch, without or with subentities, and the properties to compare.
  private struct Subject {
    let store: TestedStore
    let graph: ExpectedGraph
    let entity: ManagedObjectModel.Entity
    let concrete: [EntityIndex]
    let text: String
    let number: String

    var rows: [RowView] { concrete.flatMap { graph.rows[$0].values } }
    var plan: FetchPlan { FetchPlan(entity: entity.index, concreteEntities: concrete) }

    var predicates: [QueryExpression] {
      let isNamed = QueryExpression.comparison(.property(PropertyPath(text)), .greaterThan, .constant(.string("B")), [])
      let isSmall = QueryExpression.comparison(.property(PropertyPath(number)), .lessThan, .constant(.int64(100)), [])
      let isMissing = QueryExpression.comparison(.property(PropertyPath(number)), .equalTo, .constant(.null), [])
      return [isNamed, .and([isNamed, isSmall]), .or([isSmall, isMissing]), .not(.and([isNamed, isSmall]))]
    }

    func sorts(_ count: Int) -> [[SortTerm]] {
      let names = PropertyPath(text), numbers = PropertyPath(number)
      switch count {
      case 0: return [[]]
      case 1: return [[SortTerm(names)], [SortTerm(numbers, isAscending: false)]]
      default:
        return [[SortTerm(names), SortTerm(numbers)], [SortTerm(numbers, isAscending: false), SortTerm(names, isAscending: false)]]
      }
    }
  }

  private static func forEachSubject(_ run: CaseRun, _ body: (Subject) throws -> Void) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store), person = store.entity("Person")
    try body(Subject(store: store, graph: graph, entity: person, concrete: [person.index], text: "name", number: "number"))
    let families = try run.openNew(ConformanceFamilies.model)
    let (zoo, _) = try ConformanceFamilies.zoo(families)
    let animal = families.entity("Animal"), bird = families.entity("Bird")
    for (entity, concrete) in [(animal, animal.concreteIndexes), (bird, bird.concreteIndexes), (bird, [bird.index])] {
      try body(Subject(store: families, graph: zoo, entity: entity, concrete: concrete, text: "name", number: "chip"))
    }
  }

  private static func compare(_ shape: Shape, _ run: CaseRun) throws {
    try forEachSubject(run) { subject in
      for predicate in shape.hasPredicate ? subject.predicates.map(Optional.some) : [nil] {
        let matching = try rows(subject, predicate)
        for sorts in subject.sorts(shape.sortCount) {
          let order = try RowOrder(sorts, entity: subject.entity, model: subject.store.model)
          let all = matching.sorted { order.precedes($0.pointer, $1.pointer, subject.graph) }
          let windows: [(Int, Int?)] = shape.isWindowed ? [(0, 1), (0, 5), (2, nil), (3, 4), (100, 1), (1, .max), (0, 0)] : [(0, nil)]
          for (offset, limit) in windows {
            var plan = subject.plan
            (plan.predicate, plan.sorts, plan.offset, plan.limit, plan.output) = (predicate, sorts, offset, limit, shape.output)
            let expected = all.dropFirst(offset).prefix(limit ?? .max), got = try subject.store.fetch(plan)
            let isOrdered = !sorts.isEmpty || shape.isWindowed
            run.expectEqual(
              isOrdered ? got.map(\.key) : got.map(\.key).sorted(), isOrdered ? expected.map(\.key) : expected.map(\.key).sorted(),
              "the keys of \(plan)")
            if shape.output == .rows { subject.store.expectRows(got, Array(expected), "the rows of \(plan)") }
          }
        }
      }
    }
  }

  private static func rows(_ subject: Subject, _ predicate: QueryExpression?) throws -> [RowView] {
    guard let predicate else { return subject.rows }
    let test = try RowPredicate(predicate, entity: subject.entity, model: subject.store.model)
    return subject.rows.filter { test.matches($0.pointer, subject.graph) }
  }

  private static func counts(_ run: CaseRun) throws {
    try forEachSubject(run) { subject in
      for predicate in [nil] + subject.predicates.map(Optional.some) {
        var plan = subject.plan
        (plan.predicate, plan.output) = (predicate, .count)
        let expected = try rows(subject, predicate).count
        run.expectEqual(try subject.store.fetch(plan).map { $0[0].integer }, [Int64(expected)], "the count of \(plan)")
      }
    }
  }

  private static func aggregates(_ run: CaseRun) throws {
    try forEachSubject(run) { subject in
      guard let text = subject.entity.slot(named: subject.text), let number = subject.entity.slot(named: subject.number) else { return }
      let columns: [AggregateColumn] = [.count(slot: nil), .count(slot: number), .sum(slot: number), .maximum(slot: text)]
      for aggregates in [
        AggregatePlan(groupBy: [], columns: columns), AggregatePlan(groupBy: [text], columns: [.group(slot: text)] + columns),
      ] {
        for predicate in [nil] + subject.predicates.map(Optional.some) {
          let reference = RowAggregator(aggregates, entity: subject.entity)
          for row in try rows(subject, predicate) {
            reference.add(row.pointer, idPrefix: subject.store.identity.prefix(for: subject.entity))
          }
          let result = try reference.result()
          var plan = subject.plan
          (plan.predicate, plan.output) = (predicate, .aggregates(aggregates))
          let got = try subject.store.fetch(plan).map { "\($0.values)" }.sorted()
          run.expectEqual(got, (0..<result.count).map { "\(result[$0].values)" }.sorted(), "the groups of \(plan)")
        }
      }
    }
  }
}
