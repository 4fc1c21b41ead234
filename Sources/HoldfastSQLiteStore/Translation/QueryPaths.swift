import HoldfastStore

/// Resolves the property paths of a query.
enum QueryPaths {
  struct Property {
    let hops: [ManagedObjectModel.Relationship]
    let entity: EntityIndex
    let slot: SlotIndex
    let kind: OperandKind
  }

  static func property(_ path: PropertyPath, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel) throws -> Property {
    if path.rest.isEmpty, let slot = entity.slot(named: path.first) {
      return Property(hops: [], entity: entity.index, slot: slot, kind: try kind(entity.layout.columns[slot]))
    }
    let resolved = try ResolvedPath(path, from: entity, in: model)
    guard let slot = resolved.slot, let column = resolved.column(in: model) else {
      throw unsupported("A to-many relationship used as a value")
    }
    return Property(hops: resolved.hops, entity: resolved.entity, slot: slot, kind: try kind(column))
  }

  private static func kind(_ column: ColumnType) throws -> OperandKind {
    let kind = OperandKind(column)
    if kind == .decimal { throw unsupported("A comparison of decimals") }
    return kind
  }

  static func toMany(
    _ path: PropertyPath, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel
  ) throws -> ([ManagedObjectModel.Relationship], ManagedObjectModel.Relationship) {
    let resolved = try ResolvedPath(path, from: entity, in: model)
    guard case .relationship(let relationship) = resolved.property, relationship.isToMany else {
      throw unsupported("A quantifier over a property that isn't a to-many relationship")
    }
    return (resolved.hops, relationship)
  }

  static func unsupported(_ what: String) -> StoreError {
    StoreError(.unsupportedRequest, operation: "translate a query", reason: "\(what) isn't supported by the store.")
  }
}

/// Which sides of a comparison are constants.
enum ComparisonSides {
  case constants(StoreValue, StoreValue)
  /// An operand on the left. The sides were exchanged if necessary.
  case operand(QueryExpression, ComparisonOperator, StoreValue)
  /// Two operands, or a constant on the left that can't be moved to the right.
  case operands

  init(_ left: QueryExpression, _ op: ComparisonOperator, _ right: QueryExpression) {
    switch (left, right) {
    case (.constant(let a), .constant(let b)): self = .constants(a, b)
    case (_, .constant(let value)): self = .operand(left, op, value)
    case (.constant(let value), _):
      if let mirrored = op.mirrored { self = .operand(right, mirrored, value) } else { self = .operands }
    default: self = .operands
    }
  }
}

/// A constant as an operand, as in `"abc" BEGINSWITH name`.
enum ConstantOperand {
  static func form(_ value: StoreValue) -> (OperandKind, ConstantForm) {
    let kind: OperandKind =
      switch value {
      case .null, .string, .uri: .text
      case .bool, .int16, .int32, .int64: .integer
      case .float, .double: .real
      case .date: .date
      case .uuid: .uuid
      case .data, .externalData: .data
      case .objectID: .key
      case .decimal: .decimal
      }
    return (kind, ConstantForm(value, for: kind))
  }
}

/// The values of a list that an operand can equal.
///
/// A short list has placeholders, padded to one of a few lengths so that few statements are needed. A long one is a ``ListTable``.
struct MembershipList {
  /// The maximum length of a list with placeholders. Within ``SQLiteStore/capabilities``, a statement can't exceed SQLite's limit.
  static let maximumPlaceholders = 32

  let hasNull: Bool
  let bindings: [SQLBinding]

  var isTable: Bool { if case .list? = bindings.first { true } else { false } }

  init(_ list: [StoreValue], _ kind: OperandKind) {
    var hasNull = false
    var exact: [SQLBinding] = []
    exact.reserveCapacity(list.count)
    for value in list {
      switch ConstantForm(value, for: kind) {
      case .null: hasNull = true
      case .exact(let binding): exact.append(binding)
      case .never, .above: break
      }
    }
    self.hasNull = hasNull
    bindings = exact.count > MembershipList.maximumPlaceholders ? [.list(BoundList(exact))] : MembershipList.padded(exact)
  }

  private static func padded(_ values: [SQLBinding]) -> [SQLBinding] {
    guard let last = values.last else { return [] }
    var length = 1
    while length < values.count { length *= 2 }
    return values + repeatElement(last, count: length - values.count)
  }
}

/// The range of texts with a prefix.
enum TextRange {
  /// The smallest byte sequence that is larger than every text with the prefix. The last byte of UTF-8 is never 0xFF, so it can be
  /// incremented.
  static func upperBound(ofPrefix text: String) -> SQLBinding {
    var bytes = Array(text.utf8)
    bytes[bytes.count - 1] += 1
    return .rawText(bytes)
  }
}
