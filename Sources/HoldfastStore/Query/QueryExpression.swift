/// A path from an object to a property: names of to-one relationships, then the property's name.
public struct PropertyPath: Sendable, Hashable, Codable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The first name.
  public var first: String
  /// The names after the first; empty for a property of the object itself.
  public var rest: [String]

  /// Makes a path from its names.
  public init(_ first: String, _ rest: [String] = []) {
    self.first = first
    self.rest = rest
  }

  /// Makes a path from names joined by full stops: `"employer.name"`.
  public init(stringLiteral value: String) { self.init(dotted: value) }

  /// Makes a path from names joined by full stops.
  public init(dotted: String) {
    var names = dotted.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    first = names.removeFirst()
    rest = names
  }

  /// The names in order.
  public var names: [String] { [first] + rest }

  /// The names joined by full stops.
  public var description: String { rest.isEmpty ? first : names.joined(separator: ".") }

  /// The path that goes on from where this one ends.
  public func appending(_ path: PropertyPath) -> PropertyPath { PropertyPath(first, rest + path.names) }
}

/// How two values are compared. The numbers are those of Core Data's `NSComparisonPredicate.Operator`.
public enum ComparisonOperator: Int, Sendable, Hashable, Codable, CaseIterable {
  /// Smaller.
  case lessThan = 0
  /// Smaller or equal.
  case lessThanOrEqualTo = 1
  /// Larger.
  case greaterThan = 2
  /// Larger or equal.
  case greaterThanOrEqualTo = 3
  /// Equal; nil equals nil.
  case equalTo = 4
  /// Not equal; nil differs from every value.
  case notEqualTo = 5
  /// Text that begins with another.
  case beginsWith = 8
  /// Text that ends with another.
  case endsWith = 9
  /// Text that contains another.
  case contains = 99

  /// Whether it is about the order of values.
  public var isOrder: Bool { rawValue <= 3 }

  /// Whether it is about parts of text.
  public var isSubstring: Bool { rawValue >= 8 }

  /// The operator that says the same with the sides exchanged, or nil.
  public var mirrored: ComparisonOperator? {
    switch self {
    case .lessThan: .greaterThan
    case .lessThanOrEqualTo: .greaterThanOrEqualTo
    case .greaterThan: .lessThan
    case .greaterThanOrEqualTo: .lessThanOrEqualTo
    case .equalTo, .notEqualTo: self
    case .beginsWith, .endsWith, .contains: nil
    }
  }
}

/// What is asked of objects, as one value: all spellings of predicates become it, stores translate it, and one
/// reference evaluator (``RowPredicate``) says what it means.
///
/// **What it means** (see the article *Query semantics*): logic is two-valued. nil equals nil and differs from every
/// value; ordered comparisons with nil are false, and so is every comparison of text parts with nil. Text is compared by
/// its UTF-8 bytes unless folded. NaN equals nothing. ALL of nothing is true, ANY of nothing is false. A path that
/// leads nowhere on its way is nil.
///
/// A query may be nested up to ``maximumNesting`` levels; a request that is nested deeper throws a ``QueryError``. An expression is
/// released level by level, as every indirect enum is. One that is nested tens of thousands of levels deep exhausts the stack when it
/// is released, before any request can refuse it. So build long chains as one ``and(_:)`` or ``or(_:)`` of many parts; the operators
/// of predicates do.
public indirect enum QueryExpression: Sendable, Hashable, Codable {
  // Values

  /// A value.
  case constant(StoreValue)
  /// The value of an attribute, or the ID of a to-one target.
  case property(PropertyPath)
  /// The object itself.
  case object
  /// The number of objects that a to-many relationship leads to.
  case count(PropertyPath)
  /// What is left when a whole number is divided by a positive one; it has the sign of the divided number, as in Swift, C
  /// and SQL. nil of nil.
  case remainder(QueryExpression, Int64)

  // Truth

  /// True or false.
  case literal(Bool)
  /// Two values compared, text after folding.
  case comparison(QueryExpression, ComparisonOperator, QueryExpression, TextFolding)
  /// At least the first bound and at most the second.
  case between(QueryExpression, StoreValue, StoreValue)
  /// Equal to one of the values.
  case membership(QueryExpression, [StoreValue])
  /// All of them hold; true for none.
  case and([QueryExpression])
  /// One of them holds; false for none.
  case or([QueryExpression])
  /// It does not hold.
  case not(QueryExpression)
  /// It holds for at least one of the objects that a to-many relationship leads to.
  case any(PropertyPath, QueryExpression)
  /// It holds for all of the objects that a to-many relationship leads to.
  case all(PropertyPath, QueryExpression)

  /// The conjuncts of a topmost AND, flattened; the expression itself when it isn't an AND.
  public var conjuncts: [QueryExpression] { operands { if case .and(let parts) = $0 { parts } else { nil } } }

  /// The disjuncts of a topmost OR, flattened; the expression itself when it isn't an OR.
  public var disjuncts: [QueryExpression] { operands { if case .or(let parts) = $0 { parts } else { nil } } }

  private func operands(_ parts: (QueryExpression) -> [QueryExpression]?) -> [QueryExpression] {
    guard let own = parts(self) else { return [self] }
    if !own.contains(where: { parts($0) != nil }) { return own }
    var flat: [QueryExpression] = []
    var pending = Array(own.reversed())
    while let next = pending.popLast() {
      if let inner = parts(next) { pending += inner.reversed() } else { flat.append(next) }
    }
    return flat
  }

  /// Every path that the expression names, those inside ANY and ALL prefixed with the path to their objects.
  public var paths: [PropertyPath] {
    var paths: [PropertyPath] = []
    var pending: [(expression: QueryExpression, prefix: PropertyPath?)] = [(self, nil)]
    while let (next, prefix) = pending.popLast() {
      var inner = prefix
      switch next {
      case .property(let path), .count(let path): paths.append(prefix?.appending(path) ?? path)
      case .any(let path, _), .all(let path, _):
        let whole = prefix?.appending(path) ?? path
        paths.append(whole)
        inner = whole
      default: break
      }
      next.forEachOperand { pending.append(($0, inner)) }
    }
    return paths
  }

  /// The AND of conjuncts: nil for none, the conjunct itself for one.
  public static func conjunction(_ conjuncts: [QueryExpression]) -> QueryExpression? {
    conjuncts.count > 1 ? .and(conjuncts) : conjuncts.first
  }
}

/// One key of an order.
public struct SortTerm: Sendable, Hashable, Codable {
  /// The attribute, possibly through to-one relationships.
  public var path: PropertyPath
  /// Whether small values come first. nil comes before all values, NaN after all numbers; descending reverses both.
  public var isAscending: Bool
  /// How text is folded before it is compared; unfolded text is ordered by its UTF-8 bytes.
  public var folding: TextFolding

  /// Makes a term.
  public init(_ path: PropertyPath, isAscending: Bool = true, folding: TextFolding = []) {
    self.path = path
    self.isAscending = isAscending
    self.folding = folding
  }
}

/// What is wrong with a query: a name that the model does not have, or types that cannot be compared.
public struct QueryError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The entity that was asked.
  public let entity: String
  /// The part of the query at fault: a path, an operator.
  public let part: String
  /// What is wrong and what would be right, as a sentence.
  public let reason: String

  /// Makes an error.
  public init(entity: String, part: String, reason: String) {
    self.entity = entity
    self.part = part
    self.reason = reason
  }

  /// The error in a line.
  public var description: String { "The query on \(entity) cannot be understood at \(part): \(reason)" }
}
