// Comparing, hashing and describing don't recurse for each level, because callers and files can contain queries of any depth.

extension QueryExpression {
  /// An expression without its operands.
  private enum Head: Hashable {
    case constant(StoreValue), property(PropertyPath), object, count(PropertyPath), remainder(Int64), literal(Bool)
    case comparison(ComparisonOperator, TextFolding), between(StoreValue, StoreValue), membership([StoreValue])
    case and(Int), or(Int), not, any(PropertyPath), all(PropertyPath)
  }

  private var head: Head {
    switch self {
    case .constant(let value): .constant(value)
    case .property(let path): .property(path)
    case .object: .object
    case .count(let path): .count(path)
    case .remainder(_, let divisor): .remainder(divisor)
    case .literal(let value): .literal(value)
    case .comparison(_, let op, _, let folding): .comparison(op, folding)
    case .between(_, let lower, let upper): .between(lower, upper)
    case .membership(_, let list): .membership(list)
    case .and(let parts): .and(parts.count)
    case .or(let parts): .or(parts.count)
    case .not: .not
    case .any(let path, _): .any(path)
    case .all(let path, _): .all(path)
    }
  }

  /// Whether both have the same structure. A query with a floating-point NaN differs from itself, because NaN does.
  public static func == (a: QueryExpression, b: QueryExpression) -> Bool {
    var first = [a], second = [b]
    while let x = first.popLast(), let y = second.popLast() {
      guard x.head == y.head else { return false }
      x.forEachOperand { first.append($0) }
      y.forEachOperand { second.append($0) }
    }
    return true
  }

  /// Hashes the structure.
  public func hash(into hasher: inout Hasher) {
    var pending = [self]
    while let next = pending.popLast() {
      hasher.combine(next.head)
      next.forEachOperand { pending.append($0) }
    }
  }
}

extension QueryExpression: CustomStringConvertible {
  /// The query as text, for errors and logs. Abbreviates long lists and deep nesting.
  ///
  /// For example, `age > 3 AND NOT (name == "Anna")`.
  public var description: String { text(levels: 12) }

  private func text(levels: Int) -> String {
    if levels == 0 { return "…" }
    func inner(_ part: QueryExpression) -> String { part.text(levels: levels - 1) }
    func joined(_ parts: [QueryExpression], _ word: String, none: String) -> String {
      if parts.isEmpty { return none }
      let shown =
        parts.prefix(QueryExpression.shownElements).map { "(\(inner($0)))" } + (parts.count > QueryExpression.shownElements ? ["…"] : [])
      return shown.joined(separator: " \(word) ")
    }
    switch self {
    case .constant(let value): return value.queryText
    case .property(let path): return path.description
    case .object: return "SELF"
    case .count(let path): return "\(path).@count"
    case .remainder(let part, let divisor): return "\(inner(part)) % \(divisor)"
    case .literal(let value): return value ? "TRUEPREDICATE" : "FALSEPREDICATE"
    case .comparison(let left, let op, let right, let folding):
      return "\(inner(left)) \(op.symbol)\(folding.symbol) \(inner(right))"
    case .between(let part, let lower, let upper): return "\(inner(part)) BETWEEN {\(lower.queryText), \(upper.queryText)}"
    case .membership(let part, let list):
      let shown = list.prefix(QueryExpression.shownElements).map(\.queryText) + (list.count > QueryExpression.shownElements ? ["…"] : [])
      return "\(inner(part)) IN {\(shown.joined(separator: ", "))}"
    case .and(let parts): return joined(parts, "AND", none: "TRUEPREDICATE")
    case .or(let parts): return joined(parts, "OR", none: "FALSEPREDICATE")
    case .not(let part): return "NOT (\(inner(part)))"
    case .any(let path, let part): return "ANY \(path) (\(inner(part)))"
    case .all(let path, let part): return "ALL \(path) (\(inner(part)))"
    }
  }

  private static let shownElements = 16
}

extension ComparisonOperator {
  fileprivate var symbol: String {
    switch self {
    case .lessThan: "<"
    case .lessThanOrEqualTo: "<="
    case .greaterThan: ">"
    case .greaterThanOrEqualTo: ">="
    case .equalTo: "=="
    case .notEqualTo: "!="
    case .beginsWith: "BEGINSWITH"
    case .endsWith: "ENDSWITH"
    case .contains: "CONTAINS"
    }
  }
}

extension TextFolding {
  fileprivate var symbol: String {
    isEmpty ? "" : "[\(contains(.caseInsensitive) ? "c" : "")\(contains(.diacriticInsensitive) ? "d" : "")]"
  }
}

extension StoreValue {
  fileprivate var queryText: String {
    switch self {
    case .null: "nil"
    case .bool(let value): "\(value)"
    case .int16(let value): "\(value)"
    case .int32(let value): "\(value)"
    case .int64(let value): "\(value)"
    case .float(let value): "\(value)"
    case .double(let value): "\(value)"
    case .decimal(let value): "\(value)"
    case .date(let value): "date \(value)"
    case .string(let text), .uri(let text): "\"\(text.prefix(64))\(text.utf8.count > 256 ? "…" : "")\""
    case .uuid(let value): "\(value)"
    case .data(let data): "\(data.count) bytes"
    case .externalData: "external data"
    case .objectID(let id): "\(id)"
    }
  }
}
