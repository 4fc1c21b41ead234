import HoldfastStore
import Synchronization

/// The content of a predicate, as operators build it. Chains of AND and OR stay flat, and extending them at either end doesn't copy them.
enum PredicateTerms: Sendable {
  case single(QueryExpression, nesting: Int)
  case chain(PredicateChain)

  init(_ expression: QueryExpression) { self = .single(expression, nesting: expression.nesting) }

  var expression: QueryExpression {
    switch self {
    case .single(let expression, _): expression
    case .chain(let chain): chain.joiner.joined(chain.terms)
    }
  }

  var isLiteralTrue: Bool {
    if case .single(.literal(true), _) = self { true } else { false }
  }

  private var nesting: Int {
    switch self {
    case .single(_, let nesting): nesting
    case .chain(let chain): chain.termNesting + 1
    }
  }

  // MARK: Operators

  func joined(by joiner: PredicateJoiner, _ other: PredicateTerms) -> PredicateTerms {
    let right = other.flatChain(of: joiner)
    if let left = flatChain(of: joiner), right.map({ $0.count <= left.count }) ?? true {
      let (added, nesting) = other.terms(of: joiner)
      return PredicateTerms.chain(left.appending(added, nesting: nesting)).limited
    }
    let (terms, nesting) = terms(of: joiner)
    if let right { return PredicateTerms.chain(right.prepending(terms, nesting: nesting)).limited }
    let (added, addedNesting) = other.terms(of: joiner)
    return PredicateTerms.chain(PredicateChain(joiner, terms, nesting: nesting).appending(added, nesting: addedNesting)).limited
  }

  var negated: PredicateTerms {
    if case .single(.not(let part), _) = self { return PredicateTerms(part) }
    return enclosed { .not($0) }
  }

  /// Wraps the expression, which adds one level of nesting.
  func enclosed(_ make: (QueryExpression) -> QueryExpression) -> PredicateTerms {
    if nesting >= QueryExpression.maximumNesting { return PredicateTerms.tooDeep }
    return .single(make(expression), nesting: nesting + 1)
  }

  /// The chain, if this is one of the given kind; otherwise nil.
  private func flatChain(of joiner: PredicateJoiner) -> PredicateChain? {
    if case .chain(let chain) = self, chain.joiner == joiner { chain } else { nil }
  }

  /// The terms in a chain of the given kind, and their nesting.
  private func terms(of joiner: PredicateJoiner) -> ([QueryExpression], Int) {
    switch self {
    case .chain(let chain) where chain.joiner == joiner: (chain.terms, chain.termNesting)
    // An expression made by hand may be a chain itself. Its terms then have one level less.
    case .single(let expression, let nesting): (joiner.parts(expression), nesting)
    case .chain: ([expression], nesting)
    }
  }

  // MARK: Depth

  private var limited: PredicateTerms { nesting > QueryExpression.maximumNesting ? PredicateTerms.tooDeep : self }

  /// Replaces a predicate that is nested too deeply to be released safely. Requests refuse it.
  private static let tooDeep: PredicateTerms = {
    var expression = QueryExpression.literal(true)
    for _ in 0...QueryExpression.maximumNesting / 2 { expression = .not(.and([expression, .literal(true)])) }
    return PredicateTerms(expression)
  }()
}

extension PredicateTerms: Hashable {
  static func == (a: PredicateTerms, b: PredicateTerms) -> Bool { a.expression == b.expression }
  func hash(into hasher: inout Hasher) { hasher.combine(expression) }
}

/// How the terms of a chain are joined.
enum PredicateJoiner {
  case and, or

  func joined(_ terms: [QueryExpression]) -> QueryExpression {
    switch self {
    case .and: .and(terms)
    case .or: .or(terms)
    }
  }

  func parts(_ expression: QueryExpression) -> [QueryExpression] {
    switch self {
    case .and: expression.conjuncts
    case .or: expression.disjuncts
    }
  }
}

/// Terms joined by AND or OR. Chains that extend one another at either end share the terms; each uses a range of them.
struct PredicateChain: Sendable {
  let joiner: PredicateJoiner
  /// The nesting of the terms.
  let termNesting: Int
  let shared: SharedTerms
  /// The positions of the terms among the shared ones.
  private let range: Range<Int>

  init(_ joiner: PredicateJoiner, _ terms: [QueryExpression], nesting: Int) {
    self.init(joiner, SharedTerms(terms), 0..<terms.count, nesting)
  }

  private init(_ joiner: PredicateJoiner, _ shared: SharedTerms, _ range: Range<Int>, _ nesting: Int) {
    self.joiner = joiner
    self.shared = shared
    self.range = range
    termNesting = nesting
  }

  var count: Int { range.count }

  var terms: [QueryExpression] { shared.terms(range) }

  func appending(_ added: [QueryExpression], nesting: Int) -> PredicateChain {
    let nesting = max(termNesting, nesting), (start, end) = (range.lowerBound, range.upperBound)
    if shared.append(added, at: end) { return PredicateChain(joiner, shared, start..<end + added.count, nesting) }
    return PredicateChain(joiner, terms + added, nesting: nesting)
  }

  func prepending(_ added: [QueryExpression], nesting: Int) -> PredicateChain {
    let nesting = max(termNesting, nesting), (start, end) = (range.lowerBound, range.upperBound)
    if shared.prepend(added, at: start) { return PredicateChain(joiner, shared, start - added.count..<end, nesting) }
    return PredicateChain(joiner, added + terms, nesting: nesting)
  }
}

/// An array that only grows, at either end. The positions of its first terms are 0 and above, those of prepended terms are negative.
final class SharedTerms: Sendable {
  private struct Terms {
    /// The prepended terms, the latest one last.
    var front: [QueryExpression] = []
    var back: [QueryExpression]
  }

  /// Guards the arrays.
  private let terms: Mutex<Terms>

  init(_ terms: [QueryExpression]) { self.terms = Mutex(Terms(back: terms)) }

  /// - Parameter range: Positions that begin at or below 0, and end at or above 0.
  func terms(_ range: Range<Int>) -> [QueryExpression] {
    terms.withLock { terms in
      let back = terms.back.count == range.upperBound ? terms.back : Array(terms.back.prefix(range.upperBound))
      return range.lowerBound == 0 ? back : Array(terms.front.prefix(-range.lowerBound).reversed()) + back
    }
  }

  /// Appends terms if the array ends at a position. Returns false if another chain appended first.
  func append(_ added: [QueryExpression], at end: Int) -> Bool {
    terms.withLock { terms in
      guard terms.back.count == end else { return false }
      terms.back += added
      return true
    }
  }

  /// Prepends terms if the array begins at a position. Returns false if another chain prepended first.
  func prepend(_ added: [QueryExpression], at start: Int) -> Bool {
    terms.withLock { terms in
      guard terms.front.count == -start else { return false }
      terms.front += added.reversed()
      return true
    }
  }
}
