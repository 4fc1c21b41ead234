import HoldfastStore

/// Measures queries and compares them with the limits that a store declares.
struct QueryExtent {
  private let capabilities: StoreCapabilities
  private var conditions = 0
  /// The paths of to-one relationships that a query follows from its entity.
  private var joins: Set<[String]> = []

  init(_ capabilities: StoreCapabilities) { self.capabilities = capabilities }

  /// Adds a predicate or a conjunct. Returns false and adds nothing when it would exceed the limits.
  mutating func add(_ predicate: QueryExpression, isConjunct: Bool = false) -> Bool {
    if !isLimited { return true }
    var enlarged = self
    guard enlarged.count(predicate, [], nesting: isConjunct ? 2 : 1, quantifiers: 0), enlarged.isWithinLimits else { return false }
    self = enlarged
    return true
  }

  /// Adds sort terms. Returns false and adds nothing when they would exceed the limits.
  mutating func add(_ sorts: [SortTerm]) -> Bool {
    guard sorts.count <= capabilities.maximumSortTerms else { return false }
    if capabilities.maximumJoins == .max { return true }
    var enlarged = self
    guard sorts.allSatisfy({ enlarged.follow($0.path.names.dropLast(), []) }), enlarged.isWithinLimits else { return false }
    self = enlarged
    return true
  }

  private var isLimited: Bool {
    capabilities.maximumConditions != .max || capabilities.maximumNesting != .max || capabilities.maximumQuantifierNesting != .max
      || capabilities.maximumJoins != .max
  }

  private var isWithinLimits: Bool { conditions <= capabilities.maximumConditions && joins.count <= capabilities.maximumJoins }

  /// Counts an expression and its operands. Returns false when it is nested too deeply or a path is too long.
  private mutating func count(_ expression: QueryExpression, _ prefix: [String], nesting: Int, quantifiers: Int) -> Bool {
    guard nesting <= capabilities.maximumNesting, quantifiers <= capabilities.maximumQuantifierNesting else { return false }
    switch expression {
    case .and(let parts), .or(let parts):
      conditions += parts.isEmpty ? 1 : 0
      return parts.allSatisfy { count($0, prefix, nesting: nesting + 1, quantifiers: quantifiers) }
    case .not(let part): return count(part, prefix, nesting: nesting + 1, quantifiers: quantifiers)
    case .any(let path, let part), .all(let path, let part):
      guard follow(path.names.dropLast(), prefix) else { return false }
      return count(part, prefix + path.names, nesting: nesting + 1, quantifiers: quantifiers + 1)
    case .comparison(let left, _, let right, _):
      conditions += 1
      return follow(left, prefix) && follow(right, prefix)
    case .between(let operand, _, _), .membership(let operand, _):
      conditions += 1
      return follow(operand, prefix)
    case .constant, .property, .object, .count, .remainder, .literal:
      conditions += 1
      return follow(expression, prefix)
    }
  }

  private mutating func follow(_ operand: QueryExpression, _ prefix: [String]) -> Bool {
    switch operand {
    case .property(let path), .count(let path): follow(path.names.dropLast(), prefix)
    case .remainder(let part, _): follow(part, prefix)
    default: true
    }
  }

  /// Adds the joins of a path. Returns false when the path alone has too many.
  private mutating func follow(_ names: ArraySlice<String>, _ prefix: [String]) -> Bool {
    guard names.count <= capabilities.maximumJoins else { return false }
    for end in names.indices { joins.insert(prefix + names[...end]) }
    return true
  }
}
