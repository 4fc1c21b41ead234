extension QueryExpression {
  /// The maximum nesting of a query.
  ///
  /// A comparison of attributes and constants is one level. Each AND, OR, NOT, ANY or ALL around it adds one level. A comparison of a
  /// computed value or a condition adds two levels. Chains count once: an AND directly inside an AND, an OR inside an OR, or a NOT inside a
  /// NOT.
  ///
  /// A request with deeper nesting throws a ``QueryError`` before it queries a store. This limit is safe on a thread with a stack of 512
  /// KiB: such a query takes at most 300 KiB in a debug build.
  public static let maximumNesting = 50

  /// Calls a closure with each direct operand, in order.
  func forEachOperand(_ body: (QueryExpression) -> Void) {
    switch self {
    case .constant, .property, .object, .count, .literal: break
    case .remainder(let part, _), .between(let part, _, _), .membership(let part, _): body(part)
    case .not(let part), .any(_, let part), .all(_, let part): body(part)
    case .comparison(let left, _, let right, _):
      body(left)
      body(right)
    case .and(let parts), .or(let parts): parts.forEach(body)
    }
  }

  private var isLeaf: Bool {
    switch self {
    case .constant, .property, .object, .count, .literal: true
    default: false
    }
  }

  /// Whether the operands are leaves, if there are any. Most queries are one comparison of an attribute and a constant.
  private var isFlat: Bool {
    switch self {
    case .constant, .property, .object, .count, .literal: true
    case .comparison(let left, _, let right, _): left.isLeaf && right.isLeaf
    case .remainder(let part, _), .between(let part, _, _), .membership(let part, _): part.isLeaf
    case .and, .or, .not, .any, .all: false
    }
  }

  /// Whether a test succeeds for the expression or a nested one, at any depth.
  public func contains(where test: (QueryExpression) -> Bool) -> Bool {
    if test(self) { return true }
    // Without a list of the operands, which would be allocated.
    if case .comparison(let left, _, let right, _) = self, left.isLeaf, right.isLeaf { return test(left) || test(right) }
    var pending: [QueryExpression] = []
    forEachOperand { pending.append($0) }
    while let next = pending.popLast() {
      if test(next) { return true }
      next.forEachOperand { pending.append($0) }
    }
    return false
  }

  // MARK: Chains

  /// Returns an equivalent query with flat chains of AND, OR and NOT. Long chains of equalities of one operand become lists.
  ///
  /// - Parameter entity: The name of the queried entity, for the error.
  /// - Throws: ``QueryError`` if the query is nested deeper than ``maximumNesting``.
  public func normalized(entity: String) throws(QueryError) -> QueryExpression {
    let (levels, isNormal) = measured()
    guard levels <= QueryExpression.maximumNesting else {
      throw QueryError(
        entity: entity, part: "nesting",
        reason: "The predicate is nested more than \(QueryExpression.maximumNesting) levels deep. "
          + "Combine conditions in one AND or OR instead of nesting them.")
    }
    return isNormal ? self : normalTruth()
  }

  /// The levels of nesting, at most one more than ``maximumNesting``.
  public var nesting: Int { measured().levels }

  /// The levels of nesting, and whether normalisation changes nothing. Uses the same amount of stack for every depth.
  private func measured() -> (levels: Int, isNormal: Bool) {
    if isFlat { return (1, true) }
    var levels = 1
    var isNormal = true
    var pending: [(expression: QueryExpression, level: Int, isTruth: Bool)] = [(self, 1, true)]
    while let (expression, level, isTruth) = pending.popLast() {
      guard level <= QueryExpression.maximumNesting else { return (level, isNormal) }
      levels = max(levels, level)
      // Operands of a comparison stay unchanged: there, nil isn't the same as false.
      let bare = isTruth ? expression.unwrapped() : (expression: expression, isChanged: false)
      if bare.isChanged { isNormal = false }
      let chain = isTruth ? bare.expression.chain : nil
      if let chain, chain.parts.count > QueryExpression.shortestList { isNormal = false }
      bare.expression.forEachOperand { operand in
        if operand.isLeaf { return }
        // Comparing the result of a condition takes twice the stack.
        var below = bare.expression.hasTruthOperands ? level + 1 : level + 2
        if let chain, let inner = operand.unwrapped().expression.chain, inner.isAnd == chain.isAnd {
          below = level
          isNormal = false
        }
        pending.append((operand, below, isTruth && bare.expression.hasTruthOperands))
      }
    }
    return (levels, isNormal)
  }

  /// Whether the operands are conditions, not values.
  private var hasTruthOperands: Bool {
    switch self {
    case .and, .or, .not, .any, .all: true
    default: false
    }
  }

  /// The operands of an AND or OR.
  private var chain: (parts: [QueryExpression], isAnd: Bool)? {
    switch self {
    case .and(let parts): (parts, true)
    case .or(let parts): (parts, false)
    default: nil
    }
  }

  /// The expression without layers that don't change a condition: double NOTs, and an AND or OR with one operand.
  private func unwrapped() -> (expression: QueryExpression, isChanged: Bool) {
    var current = self
    var (negations, layers) = (0, 0)
    while true {
      if case .not(let part) = current {
        negations += 1
        current = part
      } else if let chain = current.chain, chain.parts.count == 1 {
        layers += 1
        current = chain.parts[0]
      } else if negations % 2 == 0 {
        return (current, negations + layers > 0)
      } else {
        return (.not(current), negations + layers > 1)
      }
    }
  }

  private func normalTruth() -> QueryExpression {
    let bare = unwrapped().expression
    switch bare {
    case .and(let parts):
      let parts = QueryExpression.lists(of: .notEqualTo, in: QueryExpression.flattened(parts, isAnd: true)) { .not(.membership($0, $1)) }
      return parts.count == 1 ? parts[0] : .and(parts)
    case .or(let parts):
      let parts = QueryExpression.lists(of: .equalTo, in: QueryExpression.flattened(parts, isAnd: false)) { .membership($0, $1) }
      return parts.count == 1 ? parts[0] : .or(parts)
    case .not(let part): return .not(part.normalTruth())
    case .any(let path, let part): return .any(path, part.normalTruth())
    case .all(let path, let part): return .all(path, part.normalTruth())
    default: return bare
    }
  }

  /// The normalised operands of nested chains of one kind, as one list.
  private static func flattened(_ parts: [QueryExpression], isAnd: Bool) -> [QueryExpression] {
    var flat: [QueryExpression] = []
    flat.reserveCapacity(parts.count)
    var pending = Array(parts.reversed())
    while let part = pending.popLast() {
      if let inner = part.unwrapped().expression.chain, inner.isAnd == isAnd {
        pending += inner.parts.reversed()
      } else {
        flat.append(part.normalTruth())
      }
    }
    return flat
  }

  // MARK: Lists

  /// From this number of equalities on, testing a list is faster than comparing one by one.
  private static let shortestList = 8

  /// Replaces comparisons of an operand with many constants by one list test, at the position of the first comparison.
  private static func lists(
    of op: ComparisonOperator, in parts: [QueryExpression], _ test: (QueryExpression, [StoreValue]) -> QueryExpression
  ) -> [QueryExpression] {
    guard parts.count > shortestList else { return parts }
    var values: [QueryExpression: [StoreValue]] = [:]
    for part in parts {
      if let (operand, value) = part.constantCompared(op) { values[operand, default: []].append(value) }
    }
    var made: Set<QueryExpression> = []
    return parts.compactMap { part in
      guard let (operand, _) = part.constantCompared(op), let list = values[operand], list.count > shortestList else { return part }
      return made.insert(operand).inserted ? test(operand, list) : nil
    }
  }

  /// The operand and constant of an equality, or of its negation, without folding. Nil for other expressions.
  private func constantCompared(_ wanted: ComparisonOperator) -> (QueryExpression, StoreValue)? {
    if case .not(let opposite) = self { return opposite.constantCompared(wanted == .equalTo ? .notEqualTo : .equalTo) }
    guard case .comparison(let left, wanted, let right, []) = self else { return nil }
    switch (left, right) {
    case (.property, .constant(let value)), (.object, .constant(let value)), (.count, .constant(let value)): return (left, value)
    case (.constant(let value), .property), (.constant(let value), .object), (.constant(let value), .count): return (right, value)
    default: return nil
    }
  }
}
