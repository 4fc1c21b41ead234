import HoldfastStore

/// Separates the components of a query that determine its SQL from the values to bind. Builds no SQL.
///
/// ``QueryTranslator`` traverses the query in the same order. Tests compare the two with each other and with the reference evaluator, with
/// thousands of random queries.
struct QueryShape {
  let model: ManagedObjectModel
  var shape: StatementShape
  var bindings: [SQLBinding] = []
  /// The depth of the traversal.
  private var nesting = 0

  init(model: ManagedObjectModel, shape: StatementShape) {
    self.model = model
    self.shape = shape
  }

  /// The kind of the next component in the shape.
  private enum Tag: UInt8 {
    case literal = 1, and, or, not, any, all, membership, between, comparison, constants, property, object, count, constant, sort, remainder
  }

  private mutating func append(_ tag: Tag) { shape.append(tag.rawValue) }

  private mutating func append(_ path: PropertyPath) {
    shape.append(path.rest.count)
    shape.append(path.first)
    for name in path.rest { shape.append(name) }
  }

  private mutating func bind(_ form: ConstantForm) {
    shape.append(form.tag)
    switch form {
    case .exact(let binding), .above(let binding): bindings.append(binding)
    case .null, .never: break
    }
  }

  // MARK: Truth

  mutating func append(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) throws {
    nesting += 1
    defer { nesting -= 1 }
    guard nesting <= QueryExpression.maximumNesting else { throw QueryPaths.unsupported("A predicate with this depth") }
    switch expression {
    case .literal(let value):
      append(.literal)
      shape.append(value ? 1 : 0)
    case .and(let parts): try append(.and, parts, entity)
    case .or(let parts): try append(.or, parts, entity)
    case .not(let part): try append(.not, [part], entity)
    case .any(let path, let part): try append(.any, path, part, entity)
    case .all(let path, let part): try append(.all, path, part, entity)
    case .comparison(let left, let op, let right, let folding): try append(left, op, right, folding, entity)
    case .between(let value, let lower, let upper):
      append(.between)
      let kind = try append(operand: value, entity)
      bind(ConstantForm(lower, for: kind))
      bind(ConstantForm(upper, for: kind))
    case .membership(let value, let list): try append(membership: value, list, entity)
    case .constant, .property, .object, .count, .remainder: _ = try append(operand: expression, entity)
    }
  }

  private mutating func append(_ tag: Tag, _ parts: [QueryExpression], _ entity: ManagedObjectModel.Entity) throws {
    append(tag)
    shape.append(parts.count)
    for part in parts { try append(part, entity) }
  }

  private mutating func append(_ tag: Tag, _ path: PropertyPath, _ part: QueryExpression, _ entity: ManagedObjectModel.Entity) throws {
    append(tag)
    append(path)
    let (_, relationship) = try QueryPaths.toMany(path, entity, model)
    try append(part, model.entities[relationship.destinationIndex])
  }

  private mutating func append(
    membership value: QueryExpression, _ list: [StoreValue], _ entity: ManagedObjectModel.Entity
  ) throws {
    append(.membership)
    let kind = try append(operand: value, entity)
    let members = MembershipList(list, kind)
    shape.append(members.hasNull ? 1 : 0)
    shape.append(members.isTable ? -1 : members.bindings.count)
    bindings += members.bindings
  }

  private mutating func append(
    _ left: QueryExpression, _ op: ComparisonOperator, _ right: QueryExpression, _ folding: TextFolding,
    _ entity: ManagedObjectModel.Entity
  ) throws {
    switch ComparisonSides(left, op, right) {
    case .constants(let a, let b):
      append(.constants)
      shape.append(ValueComparison.holds(a, op, b, folding) ? 1 : 0)
    case .operand(let operand, let op, let constant):
      append(.comparison)
      shape.append(UInt8(truncatingIfNeeded: op.rawValue))
      shape.append(folding.rawValue)
      let kind = try append(operand: operand, entity)
      bind(op, ConstantForm(constant, for: kind), kind == .text ? folding : [])
    case .operands:
      append(.comparison)
      shape.append(UInt8(truncatingIfNeeded: op.rawValue))
      shape.append(folding.rawValue)
      _ = try append(operand: left, entity)
      _ = try append(operand: right, entity)
    }
  }

  private mutating func bind(_ op: ComparisonOperator, _ form: ConstantForm, _ folding: TextFolding) {
    guard case .exact(.text(let text)) = form, op.isSubstring || !folding.isEmpty else {
      bind(form)
      return
    }
    if text.isEmpty && op.isSubstring {  // every text begins with, ends with and contains the empty text
      shape.append(9)
      return
    }
    shape.append(form.tag)
    if !folding.isEmpty {
      bindings.append(.blob(folding.fold(text)))
    } else if op == .beginsWith {
      bindings.append(.text(text))
      bindings.append(TextRange.upperBound(ofPrefix: text))
    } else {
      bindings.append(.blob(Array(text.utf8)))
    }
  }

  // MARK: Operands

  private mutating func append(operand: QueryExpression, _ entity: ManagedObjectModel.Entity) throws -> OperandKind {
    switch operand {
    case .property(let path):
      append(.property)
      append(path)
      return try QueryPaths.property(path, entity, model).kind
    case .object:
      append(.object)
      return .key
    case .count(let path):
      append(.count)
      append(path)
      return .integer
    case .remainder(let part, let divisor):
      append(.remainder)
      _ = try append(operand: part, entity)
      bindings.append(.integer(divisor))
      return .integer
    case .constant(let value):
      append(.constant)
      let (kind, form) = ConstantOperand.form(value)
      shape.append(kind.rawValue)
      bind(form)
      return kind
    default: throw QueryPaths.unsupported("A comparison of conditions")
    }
  }

  // MARK: Order and window

  mutating func append(_ sorts: [SortTerm]) {
    for term in sorts {
      append(.sort)
      append(term.path)
      shape.append(term.isAscending ? 1 : 0)
      shape.append(term.folding.rawValue)
    }
  }

  mutating func append(limit: Int?, offset: Int) {
    shape.append(limit == nil ? 0 : 1)
    shape.append(offset == 0 ? 0 : 1)
    if limit != nil || offset != 0 { bindings.append(.integer(limit.map { Int64($0) } ?? -1)) }
    if offset != 0 { bindings.append(.integer(Int64(offset))) }
  }
}
