// The format is that of the compiler's implementation for enums: `{"not": {"_0": …}}`. This implementation refuses a hostile document
// before its depth exhausts the stack.

extension QueryExpression {
  private enum Kind: String, CodingKey {
    case constant, property, object, count, remainder, literal, comparison, between, membership, and, or, not, any, all
  }

  private enum Position: String, CodingKey {
    case first = "_0"
    case second = "_1"
    case third = "_2"
    case fourth = "_3"
  }

  /// The maximum number of containers around an expression when decoding or encoding. A level of nesting takes two or three.
  private static let maximumContainers = 3 * maximumNesting + 16

  /// Decodes an expression.
  ///
  /// - Throws: `DecodingError` if the document isn't a query, or is nested more deeply than requests accept.
  public init(from decoder: any Decoder) throws {
    guard decoder.codingPath.count <= QueryExpression.maximumContainers else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: Array(decoder.codingPath.prefix(8)),
          debugDescription: "The query is nested more than \(QueryExpression.maximumNesting) levels deep."))
    }
    let kinds = try decoder.container(keyedBy: Kind.self)
    guard kinds.allKeys.count == 1, let kind = kinds.allKeys.first else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "A query needs exactly one kind, such as \"comparison\"."))
    }
    self = try QueryExpression.decode(kind, try kinds.nestedContainer(keyedBy: Position.self, forKey: kind))
  }

  private static func decode(_ kind: Kind, _ parts: KeyedDecodingContainer<Position>) throws -> QueryExpression {
    switch kind {
    case .constant: .constant(try parts.decode(StoreValue.self, forKey: .first))
    case .property: .property(try parts.decode(PropertyPath.self, forKey: .first))
    case .object: .object
    case .count: .count(try parts.decode(PropertyPath.self, forKey: .first))
    case .remainder:
      .remainder(try parts.decode(QueryExpression.self, forKey: .first), try parts.decode(Int64.self, forKey: .second))
    case .literal: .literal(try parts.decode(Bool.self, forKey: .first))
    case .comparison:
      .comparison(
        try parts.decode(QueryExpression.self, forKey: .first), try parts.decode(ComparisonOperator.self, forKey: .second),
        try parts.decode(QueryExpression.self, forKey: .third), try parts.decode(TextFolding.self, forKey: .fourth))
    case .between:
      .between(
        try parts.decode(QueryExpression.self, forKey: .first), try parts.decode(StoreValue.self, forKey: .second),
        try parts.decode(StoreValue.self, forKey: .third))
    case .membership:
      .membership(try parts.decode(QueryExpression.self, forKey: .first), try parts.decode([StoreValue].self, forKey: .second))
    case .and: .and(try parts.decode([QueryExpression].self, forKey: .first))
    case .or: .or(try parts.decode([QueryExpression].self, forKey: .first))
    case .not: .not(try parts.decode(QueryExpression.self, forKey: .first))
    case .any: .any(try parts.decode(PropertyPath.self, forKey: .first), try parts.decode(QueryExpression.self, forKey: .second))
    case .all: .all(try parts.decode(PropertyPath.self, forKey: .first), try parts.decode(QueryExpression.self, forKey: .second))
    }
  }

  /// Encodes an expression.
  ///
  /// - Throws: `EncodingError` if it is nested more deeply than requests accept.
  public func encode(to encoder: any Encoder) throws {
    guard encoder.codingPath.count <= QueryExpression.maximumContainers else {
      throw EncodingError.invalidValue(
        QueryExpression.literal(false),
        EncodingError.Context(
          codingPath: Array(encoder.codingPath.prefix(8)),
          debugDescription: "The query is nested more than \(QueryExpression.maximumNesting) levels deep."))
    }
    var kinds = encoder.container(keyedBy: Kind.self)
    var parts = kinds.nestedContainer(keyedBy: Position.self, forKey: kind)
    switch self {
    case .constant(let value): try parts.encode(value, forKey: .first)
    case .property(let path), .count(let path): try parts.encode(path, forKey: .first)
    case .object: break
    case .remainder(let part, let divisor):
      try parts.encode(part, forKey: .first)
      try parts.encode(divisor, forKey: .second)
    case .literal(let value): try parts.encode(value, forKey: .first)
    case .comparison(let left, let op, let right, let folding):
      try parts.encode(left, forKey: .first)
      try parts.encode(op, forKey: .second)
      try parts.encode(right, forKey: .third)
      try parts.encode(folding, forKey: .fourth)
    case .between(let part, let lower, let upper):
      try parts.encode(part, forKey: .first)
      try parts.encode(lower, forKey: .second)
      try parts.encode(upper, forKey: .third)
    case .membership(let part, let list):
      try parts.encode(part, forKey: .first)
      try parts.encode(list, forKey: .second)
    case .and(let list), .or(let list): try parts.encode(list, forKey: .first)
    case .not(let part): try parts.encode(part, forKey: .first)
    case .any(let path, let part), .all(let path, let part):
      try parts.encode(path, forKey: .first)
      try parts.encode(part, forKey: .second)
    }
  }

  private var kind: Kind {
    switch self {
    case .constant: .constant
    case .property: .property
    case .object: .object
    case .count: .count
    case .remainder: .remainder
    case .literal: .literal
    case .comparison: .comparison
    case .between: .between
    case .membership: .membership
    case .and: .and
    case .or: .or
    case .not: .not
    case .any: .any
    case .all: .all
    }
  }
}
