/// A path from an object to a property, through to-one relationships.
public struct PropertyPath: Sendable, Hashable, Codable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The first name.
  public var first: String
  /// The names after the first. Empty for a property of the object itself.
  public var rest: [String]

  /// Creates a path from its names.
  public init(_ first: String, _ rest: [String] = []) {
    self.first = first
    self.rest = rest
  }

  /// Creates a path from names separated by full stops: `"employer.name"`.
  public init(stringLiteral value: String) { self.init(dotted: value) }

  /// Creates a path from names separated by full stops.
  public init(dotted: String) {
    var names = dotted.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    first = names.removeFirst()
    rest = names
  }

  /// All names, in order.
  public var names: [String] { [first] + rest }

  /// The names separated by full stops.
  public var description: String { rest.isEmpty ? first : names.joined(separator: ".") }

  /// Returns this path followed by another.
  public func appending(_ path: PropertyPath) -> PropertyPath { PropertyPath(first, rest + path.names) }
}

/// A comparison of two values, with the numbers of Core Data's `NSComparisonPredicate.Operator`.
@nonexhaustive public enum ComparisonOperator: Int, Sendable, Hashable, Codable, CaseIterable {
  /// Less than.
  case lessThan = 0
  /// Less than or equal.
  case lessThanOrEqualTo = 1
  /// Greater than.
  case greaterThan = 2
  /// Greater than or equal.
  case greaterThanOrEqualTo = 3
  /// Equal. nil equals nil.
  case equalTo = 4
  /// Not equal. nil differs from every value.
  case notEqualTo = 5
  /// Text that begins with other text.
  case beginsWith = 8
  /// Text that ends with other text.
  case endsWith = 9
  /// Text that contains other text.
  case contains = 99

  /// Whether the comparison depends on the order of values.
  public var isOrder: Bool { rawValue <= 3 }

  /// Whether the comparison searches for text in other text.
  public var isSubstring: Bool { rawValue >= 8 }

  /// The operator with the same meaning when the operands are exchanged, or nil.
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

/// A condition on objects, or a value, that stores translate.
///
/// All forms of predicates are converted to query expressions. The reference evaluator, ``RowPredicate``, defines their meaning; see
/// <doc:QuerySemantics>:
///
/// - Logic is two-valued.
/// - nil equals nil and differs from every value. Ordered comparisons and text searches with nil are false.
/// - Text is compared by its UTF-8 bytes, unless folded.
/// - NaN equals nothing.
/// - ALL of no objects is true, ANY of no objects is false.
/// - A path through a to-one relationship without a destination is nil.
///
/// A query can be nested up to ``maximumNesting`` levels; a request with deeper nesting throws a ``QueryError``.
///
/// Swift releases an expression recursively, as it does every indirect enum. Releasing one that is nested tens of thousands of levels deep
/// exhausts the stack, before a request can refuse it. Build long chains as one ``and(_:)`` or ``or(_:)`` with many operands, as the
/// predicate operators do.
@nonexhaustive public indirect enum QueryExpression: Sendable, Hashable, Codable {
  // Values

  /// A constant.
  case constant(StoreValue)
  /// The value of an attribute, or the ID of a to-one destination.
  case property(PropertyPath)
  /// The object itself.
  case object
  /// The number of objects in a to-many relationship.
  case count(PropertyPath)
  /// The remainder of dividing a whole number by a positive one.
  ///
  /// It has the sign of the dividend, as in Swift, C and SQL. The remainder of nil is nil.
  case remainder(QueryExpression, Int64)

  // Conditions

  /// True or false.
  case literal(Bool)
  /// A comparison of two values, after folding text.
  case comparison(QueryExpression, ComparisonOperator, QueryExpression, TextFolding)
  /// Whether a value is between two bounds, inclusive.
  case between(QueryExpression, StoreValue, StoreValue)
  /// Whether a value equals one in a list.
  case membership(QueryExpression, [StoreValue])
  /// Whether all conditions hold. True if there are none.
  case and([QueryExpression])
  /// Whether at least one condition holds. False if there are none.
  case or([QueryExpression])
  /// Whether a condition doesn't hold.
  case not(QueryExpression)
  /// Whether a condition holds for at least one object in a to-many relationship.
  case any(PropertyPath, QueryExpression)
  /// Whether a condition holds for all objects in a to-many relationship.
  case all(PropertyPath, QueryExpression)

  /// The conjuncts of a top-level AND, flattened. For another expression, the expression itself.
  public var conjuncts: [QueryExpression] { operands { if case .and(let parts) = $0 { parts } else { nil } } }

  /// The disjuncts of a top-level OR, flattened. For another expression, the expression itself.
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

  /// All paths in the expression. Those inside ANY and ALL begin with the path to their objects.
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

  /// Returns the AND of conjuncts: nil for none, the conjunct itself for one.
  public static func conjunction(_ conjuncts: [QueryExpression]) -> QueryExpression? {
    conjuncts.count > 1 ? .and(conjuncts) : conjuncts.first
  }
}

/// An element of a sort order, as stores receive it, with names of properties.
///
/// Programs write `FetchSortDescriptor` of Holdfast, whose key paths the compiler checks.
public struct SortTerm: Sendable, Hashable, Codable {
  /// The attribute or to-one relationship to sort by, optionally through to-one relationships.
  public var path: PropertyPath
  /// Whether the order is ascending. nil sorts before all values, NaN after all numbers; a descending order reverses both.
  public var isAscending: Bool
  /// How text is folded before it is compared. Unfolded text is sorted by its UTF-8 bytes. Has no effect on other values.
  public var folding: TextFolding

  /// Creates a term.
  public init(_ path: PropertyPath, isAscending: Bool = true, folding: TextFolding = []) {
    self.path = path
    self.isAscending = isAscending
    self.folding = folding
  }
}

/// An error in a query: an unknown name, or types that can't be compared.
public struct QueryError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The entity that was queried.
  public let entity: String
  /// The part of the query with the error, such as a path or an operator.
  public let part: String
  /// What is wrong and how to correct it, in sentences.
  public let reason: String

  /// Creates an error.
  public init(entity: String, part: String, reason: String) {
    self.entity = entity
    self.part = part
    self.reason = reason
  }

  /// The error in one line. Control characters are escaped, because a name in the query may contain them.
  public var description: String { "The query on \(entity) is invalid at \(part): \(reason)".escapingControlCharacters() }
}
