import HoldfastStore
import Synchronization

/// The content of a predicate, as operators build it. Chains of AND and OR stay flat, and appending doesn't copy them.
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
    let (added, nesting) = other.terms(of: joiner)
    let chain: PredicateChain
    if case .chain(let own) = self, own.joiner == joiner {
      chain = own
    } else {
      let (terms, nesting) = terms(of: joiner)
      chain = PredicateChain(joiner, terms, nesting: nesting)
    }
    return PredicateTerms.chain(chain.appending(added, nesting: nesting)).limited
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

/// Terms joined by AND or OR. Chains that extend one another share an array; each uses its first `count` terms.
struct PredicateChain: Sendable {
  let joiner: PredicateJoiner
  /// The nesting of the terms.
  let termNesting: Int
  private let shared: SharedTerms
  private let count: Int

  init(_ joiner: PredicateJoiner, _ terms: [QueryExpression], nesting: Int) {
    self.init(joiner, SharedTerms(terms), terms.count, nesting)
  }

  private init(_ joiner: PredicateJoiner, _ shared: SharedTerms, _ count: Int, _ nesting: Int) {
    self.joiner = joiner
    self.shared = shared
    self.count = count
    termNesting = nesting
  }

  var terms: [QueryExpression] { shared.first(count) }

  func appending(_ added: [QueryExpression], nesting: Int) -> PredicateChain {
    let nesting = max(termNesting, nesting)
    if shared.append(added, behind: count) { return PredicateChain(joiner, shared, count + added.count, nesting) }
    return PredicateChain(joiner, terms + added, nesting: nesting)
  }
}

/// An append-only array.
private final class SharedTerms: Sendable {
  /// Guards the array.
  private let terms: Mutex<[QueryExpression]>

  init(_ terms: [QueryExpression]) { self.terms = Mutex(terms) }

  func first(_ count: Int) -> [QueryExpression] {
    terms.withLock { $0.count == count ? $0 : Array($0.prefix(count)) }
  }

  /// Appends terms when the array has `count` terms. Returns false when another chain appended first.
  func append(_ added: [QueryExpression], behind count: Int) -> Bool {
    terms.withLock { terms in
      guard terms.count == count else { return false }
      terms += added
      return true
    }
  }
}
