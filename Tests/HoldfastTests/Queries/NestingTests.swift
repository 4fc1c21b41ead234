import Foundation
import TestSupport
import Testing

@testable import Holdfast

/// The maximum nesting of predicates, and predicates with more, on threads with a small stack.
@Suite struct NestingTests {
  private static let limit = QueryExpression.maximumNesting

  private static func isAge(_ age: Int) -> QueryExpression { .comparison(.property("age"), .equalTo, .constant(.int64(Int64(age))), []) }

  /// Ways to add a level to an expression.
  enum Shape: String, CaseIterable, Sendable {
    case alternatingChains, quantifiers, all, comparedTruths

    /// An expression with the given number of levels, which is true either for dogs that are one year old or for none.
    func expression(levels: Int) -> QueryExpression {
      var expression = isAge(1)
      // A comparison with a Boolean counts twice. A NOT fills the remaining level.
      if self == .comparedTruths && levels % 2 == 0 { expression = .not(expression) }
      for level in 1..<(self == .comparedTruths ? (levels + 1) / 2 : levels) {
        switch self {
        case .alternatingChains where level % 2 == 0: expression = .and([.literal(true), expression])
        case .alternatingChains: expression = .or([.literal(false), expression])
        case .quantifiers: expression = .any("friends", expression)
        case .all: expression = .all("friends", expression)
        case .comparedTruths: expression = .comparison(expression, .equalTo, .constant(.bool(true)), [])
        }
      }
      return expression
    }
  }

  @Test(arguments: TestStore.allCases, Shape.allCases)
  func `a predicate with the maximum nesting is evaluated on a small stack, and one more level is refused`(
    _ store: TestStore, _ shape: Shape
  ) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let dogs = [context.dog("Ann", age: 1), context.dog("Bo", age: 2)]
    dogs[0].friends.insert(dogs[0])
    dogs[0].friends.insert(dogs[1])
    dogs[1].friends.insert(dogs[1])
    try context.save()
    let limit = NestingTests.limit, smaller = limit % 2 == 0 ? 4 : 3
    let expected = try place.context().count(for: FetchRequest<Dog>(where: FetchPredicate(shape.expression(levels: smaller))))
    let (counts, stackBytes) = try onStack(byteCount: 512 << 10) {
      let context = try place.context()
      let request = FetchRequest<Dog>(where: FetchPredicate(shape.expression(levels: limit)))
      return [try context.count(for: request), try context.fetch(request).count]
    }
    #expect(counts == [expected, expected])
    // The caller's own use, and the additional use of a debug build.
    #expect(stackBytes < 320 << 10)
    let part = try onSmallStack { () -> String in
      do {
        _ = try place.context().fetch(FetchRequest<Dog>(where: FetchPredicate(shape.expression(levels: limit + 1))))
        return "nothing"
      } catch let error as QueryError {
        return error.part
      }
    }
    #expect(part == "nesting")
  }

  @Test func `operators that nest too deeply are refused by every store at any depth`() throws {
    for levels in [NestingTests.limit * 2, 100_000] {
      let parts = try onSmallStack { () -> [String] in
        var predicate = FetchPredicate<Dog>(NestingTests.isAge(1))
        let isOld = FetchPredicate<Dog> { $0.age > 0 }
        for _ in 0..<levels / 2 { predicate = !(predicate && isOld) }
        return try TestStore.allCases.map { store in
          do {
            return "\(try store.makePlace().context().count(for: FetchRequest(where: predicate)))"
          } catch let error as QueryError {
            return error.part
          }
        }
      }
      #expect(parts == TestStore.allCases.map { _ in "nesting" })
    }
  }

  /// 100,000 terms with `HOLDFAST_TESTS=full`. Twenty thousand nested terms would take more than the small stack.
  @Test func `chains of very many terms are flat on every store`() throws {
    let count = TestTier.count(20_000, full: 100_000)
    let counts = try onSmallStack { () -> [[Int]] in
      var either = FetchPredicate<Dog>.none, neither = FetchPredicate<Dog>.all, ranges = FetchPredicate<Dog>.none
      var right = FetchPredicate<Dog>(NestingTests.isAge(3))
      for age in 5..<5 + count {
        let term = NestingTests.isAge(age)
        either = either || FetchPredicate(term)
        neither = neither && !FetchPredicate(term)
        ranges = ranges || FetchPredicate(.between(.property("age"), .int64(Int64(-age)), .int64(Int64(1 - age))))
        right = FetchPredicate(term) || right
      }
      return try TestStore.allCases.map { store in
        let place = try store.makePlace(), context = try place.context()
        for age in 4..<7 { context.dog("Dog", age: age) }
        try context.save()
        let fresh = try place.context()
        return try [either, neither, !(!(!either)), right, ranges].map { try fresh.count(for: FetchRequest(where: $0)) }
      }
    }
    #expect(counts == TestStore.allCases.map { _ in [2, 1, 1, 2, 0] })
  }

  @Test(arguments: TestStore.allCases)
  func `manually nested chains are flat as well`(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    for age in 0..<10 { context.dog("Dog", age: age) }
    try context.save()
    let counts = try onSmallStack { () -> [Int] in
      let context = try place.context()
      var left = NestingTests.isAge(0), right = NestingTests.isAge(0), negated = NestingTests.isAge(0)
      for age in 1..<800 {
        left = .or([left, NestingTests.isAge(age % 3)])
        right = .or([NestingTests.isAge(age % 3), .and([right])])
        negated = .not(negated)
      }
      return try [left, right, negated].map { try context.count(for: FetchRequest<Dog>(where: FetchPredicate($0))) }
    }
    #expect(counts == [3, 3, 9])
  }

  @Test func `a single comparison has one level, and a search visits both of its operands`() {
    let age = QueryExpression.property("age"), one = QueryExpression.constant(.int64(1))
    let comparison = QueryExpression.comparison(age, .equalTo, one, [])
    let others: [QueryExpression] = [.between(age, .int64(1), .int64(2)), .membership(age, [.int64(1)]), .remainder(age, 2), age, one]
    for expression in [comparison, .comparison(one, .lessThan, age, [])] {
      #expect(expression.nesting == 1)
      for part in [expression, age, one] { #expect(expression.contains { $0 == part }) }
      #expect(!expression.contains { $0 == .object })
    }
    for expression in others {
      #expect(expression.nesting == 1, "\(expression)")
      #expect(expression.contains { $0 == expression }, "\(expression)")
    }
    let computed = QueryExpression.comparison(.remainder(age, 2), .equalTo, one, [])
    #expect(computed.nesting == 3)
    for part in [computed, .remainder(age, 2), age, one] { #expect(computed.contains { $0 == part }, "\(part)") }
  }

  @Test func `extending a predicate doesn't change the original`() {
    func isAge(_ age: Int) -> FetchPredicate<Dog> { FetchPredicate { $0.age == age } }
    let base = isAge(1) || isAge(2), first = base || isAge(3), second = base || isAge(4), both = first || second
    func ages(_ predicate: FetchPredicate<Dog>) -> [QueryExpression] { predicate.expression.disjuncts }
    #expect(ages(base) == [1, 2].map { NestingTests.isAge16($0) })
    #expect(ages(first) == [1, 2, 3].map { NestingTests.isAge16($0) })
    #expect(ages(second) == [1, 2, 4].map { NestingTests.isAge16($0) })
    #expect(ages(both) == [1, 2, 3, 1, 2, 4].map { NestingTests.isAge16($0) })
    #expect(first != second)
    let again = base || isAge(3)
    #expect(first == again)
    #expect((!(!base)).expression == base.expression)
  }

  @Test func `extending a predicate at its beginning doesn't change the original`() {
    func isAge(_ age: Int) -> FetchPredicate<Dog> { FetchPredicate { $0.age == age } }
    func ages(_ predicate: FetchPredicate<Dog>) -> [QueryExpression] { predicate.expression.disjuncts }
    let base = isAge(1) || isAge(2), behind = base || isAge(3), first = isAge(4) || base, second = isAge(5) || base
    let both = first || second, around = isAge(6) || (isAge(7) || first || isAge(8))
    #expect(ages(base) == [1, 2].map { NestingTests.isAge16($0) })
    #expect(ages(behind) == [1, 2, 3].map { NestingTests.isAge16($0) })
    #expect(ages(first) == [4, 1, 2].map { NestingTests.isAge16($0) })
    #expect(ages(second) == [5, 1, 2].map { NestingTests.isAge16($0) })
    #expect(ages(both) == [4, 1, 2, 5, 1, 2].map { NestingTests.isAge16($0) })
    #expect(ages(around) == [6, 7, 4, 1, 2, 8].map { NestingTests.isAge16($0) })
    #expect(ages((isAge(6) || isAge(7)) || first) == [6, 7, 4, 1, 2].map { NestingTests.isAge16($0) })
  }

  /// The bug: each term before a chain copied the chain.
  @Test func `a loop that extends a chain at either end doesn't copy it`() {
    func copies(_ join: (PredicateTerms, PredicateTerms) -> PredicateTerms) -> Int {
      var terms = PredicateTerms(NestingTests.isAge(0)), shared: [SharedTerms] = []
      for age in 1...1_000 {
        terms = join(terms, PredicateTerms(NestingTests.isAge(age)))
        if case .chain(let chain) = terms, chain.shared !== shared.last { shared.append(chain.shared) }
      }
      return shared.count
    }
    for joiner in [PredicateJoiner.and, .or] {
      #expect(copies({ $0.joined(by: joiner, $1) }) == 1)
      #expect(copies({ $1.joined(by: joiner, $0) }) == 1)
    }
  }

  private static func isAge16(_ age: Int) -> QueryExpression {
    FetchPredicate<Dog> { $0.age == age }.expression
  }

  @Test func `a malicious encoded query is refused on a small stack`() throws {
    for (open, close) in [(#"{"not":{"_0":"#, "}}"), (#"{"and":{"_0":["#, "]}}"), (#"{"any":{"_0":{"first":"a","rest":[]},"_1":"#, "}}")] {
      for levels in [90, 400, 100_000] {
        let refused = try onSmallStack {
          let text = String(repeating: open, count: levels) + #"{"literal":{"_0":true}}"# + String(repeating: close, count: levels)
          do {
            _ = try JSONDecoder().decode(QueryExpression.self, from: Data(text.utf8))
            return false
          } catch is DecodingError {
            return true
          }
        }
        #expect(refused, "\(levels) of \(open)")
      }
    }
  }

  @Test func `a query with the maximum nesting is encoded and decoded on a small stack`() throws {
    for shape in Shape.allCases {
      let (isSame, stackBytes) = try onStack(byteCount: 512 << 10) {
        let expression = shape.expression(levels: NestingTests.limit)
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        let decoded = try PropertyListDecoder().decode(QueryExpression.self, from: try encoder.encode(expression))
        return decoded == expression && decoded.hashValue == expression.hashValue && !"\(decoded)".isEmpty
      }
      #expect(isSame, "\(shape)")
      #expect(stackBytes < 320 << 10, "\(shape)")
    }
  }
}
