import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

/// Queries around and beyond every declared limit. Each store returns the same as the memory store.
@Suite struct QueryLimitTests {
  private static let limits = SQLiteStore(path: "/nowhere").capabilities

  private static let others = TestStore.allCases.filter { $0 != .memory }

  /// Numbered entries. Most point to one of the entries before them.
  private static func fill(_ context: ManagedObjectContext) throws {
    var entries: [ManagedObject] = []
    for number in 0..<40 {
      let entry = try context.insert(entityNamed: "Entry")
      try entry.setValue(.int32(Int32(number)), forKey: "i32")
      try entry.setValue(number % 4 == 0 ? .null : .int64(Int64(number % 6)), forKey: "i64")
      try entry.setValue(.string(["a", "A", "ab", "b", "é", ""][number % 6]), forKey: "s")
      try entry.setValue(.double([0, 1.5, -2, 1e300, .infinity][number % 5]), forKey: "r")
      if number % 10 != 0 { try entry.setValue(.objectID(entries[number - 1 - number % 3 % (number % 10)].objectID), forKey: "up") }
      entries.append(entry)
    }
    try context.save()
  }

  private struct Request {
    var predicate: QueryExpression?
    var sorts: [SortTerm] = []
    var offset = 0
    var limit = 0

    var fetch: FetchRequest<ManagedObject> {
      FetchRequest<ManagedObject>(
        entityName: "Entry", where: predicate.map { FetchPredicate($0) }, sortedBy: sorts.map { FetchSortDescriptor($0) }, offset: offset,
        limit: limit)
    }

    func answer(_ context: ManagedObjectContext) throws -> [String] {
      let numbers = try context.fetch(fetch).map { "\(String(describing: try $0.value(forKey: "i32").storeValue))" }
      #expect(try context.count(for: fetch) == numbers.count)
      return numbers
    }
  }

  private func expectSameAnswers(_ stores: [TestStore], _ requests: [(String, Request)]) throws {
    let places = try ([.memory] + stores).map { try $0.makePlace(model: Ledger.model, classes: []) }
    let contexts = try places.map { try $0.context() }
    for context in contexts { try QueryLimitTests.fill(context) }
    for (comment, request) in requests {
      var expected: [String]?
      for (place, context) in zip(places, contexts) {
        do {
          var answer = try request.answer(context)
          if request.sorts.isEmpty && request.limit == 0 && request.offset == 0 { answer.sort() }
          if let expected { #expect(answer == expected, "\(comment) on \(place.store)") } else { expected = answer }
        } catch {
          Issue.record("\(comment) on \(place.store): \(error)")
        }
      }
    }
  }

  // MARK: Each limit separately

  private static func leaf(_ number: Int) -> QueryExpression {
    .comparison(.property("i64"), .notEqualTo, .constant(.int64(Int64(number % 7))), [])
  }

  private static func path(steps: Int, _ name: String) -> PropertyPath {
    PropertyPath(dotted: String(repeating: "up.", count: steps) + name)
  }

  private static func around(_ limit: Int) -> [Int] { [max(1, limit - 1), limit, limit + 1, limit * 2] }

  @Test func `no limit of SQLite restricts a query on any store`() throws {
    let limits = QueryLimitTests.limits
    var requests: [(String, Request)] = []
    for count in QueryLimitTests.around(limits.maximumConditions) + [9_000] {
      let ranges = (0..<count).map { QueryExpression.between(.property("i32"), .int64(Int64($0) * 3), .int64(Int64($0) * 3 + 1)) }
      requests.append(("\(count) conditions", Request(predicate: .or(ranges))))
      requests.append(("\(count) conjuncts", Request(predicate: .and(ranges.map { .not($0) }))))
    }
    // The conditions with the most parameters.
    for count in [limits.maximumConditions, limits.maximumConditions + 1] {
      let lists = (0..<count).map { number -> QueryExpression in
        .membership(.remainder(.property("i32"), Int64(number) + 100), (0..<32).map { .int64(Int64(number) + $0) })
      }
      requests.append(("\(count) lists of remainders", Request(predicate: .or(lists), sorts: [SortTerm("s")], offset: 1, limit: 9)))
    }
    for levels in QueryLimitTests.around(limits.maximumNesting) + [QueryExpression.maximumNesting] {
      var nested = QueryLimitTests.leaf(0)
      for level in 1..<levels {
        nested = level % 2 == 0 ? .and([QueryLimitTests.leaf(level), nested]) : .or([QueryLimitTests.leaf(level), nested])
      }
      requests.append(("\(levels) levels", Request(predicate: nested)))
    }
    for levels in QueryLimitTests.around(limits.maximumQuantifierNesting) + [30] {
      var nested = QueryLimitTests.leaf(0)
      for _ in 0..<levels { nested = .any("down", nested) }
      requests.append(("\(levels) quantifiers", Request(predicate: nested)))
      requests.append(
        (
          "\(levels) quantifiers beside each other",
          Request(predicate: .or((0..<levels * 20).map { .any("down", QueryLimitTests.leaf($0)) }))
        ))
    }
    for steps in QueryLimitTests.around(limits.maximumJoins) + [64] {
      let path = QueryLimitTests.path(steps: steps, "i64")
      requests.append(("\(steps) joins", Request(predicate: .comparison(.property(path), .equalTo, .constant(.null), []))))
      requests.append(("\(steps) joins to sort by", Request(predicate: QueryLimitTests.leaf(1), sorts: [SortTerm(path)], limit: 9)))
      let both = Request(
        predicate: .comparison(.property(QueryLimitTests.path(steps: steps / 2, "i64")), .equalTo, .constant(.null), []),
        sorts: [SortTerm(QueryLimitTests.path(steps: steps, "r"), isAscending: false)], offset: 3, limit: 9)
      requests.append(("\(steps) joins in both", both))
    }
    for terms in QueryLimitTests.around(limits.maximumSortTerms) + [63, 64, 2100] {
      requests.append(("\(terms) sort terms", Request(sorts: (0..<terms).map { SortTerm($0 % 2 == 0 ? "i64" : "s") }, limit: 5)))
      requests.append(
        ("\(terms) sort terms over a relationship", Request(sorts: (0..<terms).map { SortTerm($0 % 2 == 0 ? "up.i64" : "s") })))
    }
    try expectSameAnswers(QueryLimitTests.others, requests)
  }

  // MARK: All limits at once

  @Test func `the most expensive query within SQLite's declared limits is within its actual limits`() throws {
    let limits = QueryLimitTests.limits
    var requests: [(String, Request)] = []
    let widths = [2, 9, limits.maximumConditions / limits.maximumNesting]
    for (quantifiers, width) in (0...limits.maximumQuantifierNesting).flatMap({ count in widths.map { (count, $0) } }) {
      for leaf in QueryLimitTests.wideLeaves {
        // Nested parts come last, where the parser's stack already holds the parts before them.
        var nested = leaf
        var left = quantifiers
        for level in 1..<limits.maximumNesting {
          let before = (1..<width).map { QueryLimitTests.leaf($0 + level) }
          if left > 0 {
            left -= 1
            nested = left % 2 == 0 ? .all("down", nested) : .any("down", nested)
          } else {
            nested = level % 2 == 0 ? .and(before + [nested]) : .or(before + [nested])
          }
        }
        requests.append(("\(quantifiers) quantifiers, chains of \(width) around \(leaf)", Request(predicate: nested)))
        requests.append(("NOT of the same", Request(predicate: QueryLimitTests.negated(leaf, levels: limits.maximumNesting, quantifiers))))
      }
    }
    try expectSameAnswers([.sqlite], requests)
  }

  private static let wideLeaves: [QueryExpression] = [
    .comparison(.count("down"), .greaterThan, .constant(.int64(0)), []),
    .comparison(.property(path(steps: 3, "s")), .contains, .constant(.string("A")), .caseInsensitive),
    .comparison(.property("s"), .lessThan, .property("up.s"), .caseInsensitive),
    .membership(.property("s"), (0..<40).map { .string("\($0)") } + [.string("a"), .null]),
    .membership(.property("i64"), (0..<32).map { .int64($0) } + [.null]),
    .between(.remainder(.count("up.down"), 2), .int64(1), .int64(3)),
    .comparison(.property("s"), .endsWith, .constant(.string("b")), []),
  ]

  private static func negated(_ leaf: QueryExpression, levels: Int, _ quantifiers: Int) -> QueryExpression {
    var nested = leaf
    var left = quantifiers
    for level in 1..<levels {
      if level % 2 == 1 {
        nested = .not(nested)
      } else if left > 0 {
        left -= 1
        nested = .all("down", nested)
      } else {
        nested = .and([.literal(true), nested])
      }
    }
    return nested
  }

  // MARK: Random queries

  @Test func `random queries around the limits have the same result on every store`() throws {
    var random = SeededGenerator()
    let limits = QueryLimitTests.limits
    func about(_ limit: Int) -> Int { max(1, [1, limit / 2, limit, limit + 1, limit + 5].randomElement(using: &random) ?? 1) }
    let requests = (0..<TestTier.count(12, full: 48)).map { number -> (String, Request) in
      var request = Request()
      var conditions = min(about(limits.maximumConditions), 1200)
      request.predicate = expression(about(limits.maximumNesting), about(limits.maximumQuantifierNesting), &conditions, &random)
      if Bool.random(using: &random) {
        request.sorts = (0..<about(limits.maximumSortTerms)).map { _ in
          let name = ["i64", "s", "r"].randomElement(using: &random) ?? "s"
          let steps = Int.random(in: 0..<12, using: &random) == 0 ? about(limits.maximumJoins) : Int.random(in: 0..<3, using: &random)
          return SortTerm(QueryLimitTests.path(steps: steps, name), isAscending: Bool.random(using: &random))
        }
        request.limit = Int.random(in: 0..<9, using: &random)
        request.offset = Int.random(in: 0..<4, using: &random)
      }
      return (
        "seed \(random.seed), request \(number): \(String(describing: request.predicate)), \(request.sorts.count) sort terms", request
      )
    }
    try expectSameAnswers(QueryLimitTests.others, requests)
  }

  private func expression(_ levels: Int, _ quantifiers: Int, _ conditions: inout Int, _ random: inout SeededGenerator) -> QueryExpression {
    conditions -= 1
    guard levels > 1, conditions > 0 else { return randomLeaf(&random) }
    switch Int.random(in: 0..<(quantifiers > 0 ? 5 : 3), using: &random) {
    case 0: return .not(expression(levels - 1, quantifiers, &conditions, &random))
    case 1, 2:
      let isAnd = Bool.random(using: &random)
      let count = Int.random(in: 1..<max(2, min(conditions, 250)), using: &random)
      let place = Int.random(in: 0..<count, using: &random)
      let parts = (0..<count).map { number in
        number == place ? expression(levels - 1, quantifiers, &conditions, &random) : randomLeaf(&random)
      }
      conditions -= count - 1
      return isAnd ? .and(parts) : .or(parts)
    case 3: return .any("down", expression(levels - 1, quantifiers - 1, &conditions, &random))
    default: return .all("down", expression(levels - 1, quantifiers - 1, &conditions, &random))
    }
  }

  private func randomLeaf(_ random: inout SeededGenerator) -> QueryExpression {
    let steps =
      Int.random(in: 0..<40, using: &random) == 0 ? Int.random(in: 50..<70, using: &random) : Int.random(in: 0..<3, using: &random)
    let number = QueryExpression.property(QueryLimitTests.path(steps: steps, "i64"))
    let text = QueryExpression.property(QueryLimitTests.path(steps: steps, "s"))
    let constant = Int64.random(in: -1..<7, using: &random)
    switch Int.random(in: 0..<9, using: &random) {
    case 0: return .between(number, .int64(constant), .int64(constant + 2))
    case 1: return .membership(number, (0..<Int64([3, 32, 33, 2000].randomElement(using: &random) ?? 3)).map { .int64($0 * 2 + constant) })
    case 2: return .comparison(text, .contains, .constant(.string(["a", "", "É"].randomElement(using: &random) ?? "")), [.caseInsensitive])
    case 3: return .comparison(text, .beginsWith, .constant(.string("a")), [])
    case 4: return .comparison(.count("down"), .lessThan, .constant(.int64(constant)), [])
    case 5: return .comparison(.remainder(number, 3), .equalTo, .constant(.double(1)), [])
    case 6: return .comparison(number, .equalTo, .constant(.null), [])
    case 7: return .comparison(.property("r"), .greaterThan, .constant(.double(Double(constant))), [])
    default:
      let operators: [ComparisonOperator] = [.equalTo, .notEqualTo, .lessThan, .greaterThanOrEqualTo]
      return .comparison(number, operators.randomElement(using: &random) ?? .equalTo, .constant(.int64(constant)), [])
    }
  }
}
