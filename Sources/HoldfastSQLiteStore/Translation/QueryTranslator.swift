import HoldfastStore

/// Translates a query to SQL. Placeholders are numbered in the order in which ``QueryShape`` collects the values to bind.
///
/// A condition may be NULL where the reference evaluator returns false. AND, OR and WHERE treat both alike, and so does NOT, which is
/// written as `IS NOT TRUE`.
struct QueryTranslator {
  let schema: StoreSchema
  private var model: ManagedObjectModel { schema.model }
  private var placeholderCount = 0
  private var aliases = 0

  init(schema: StoreSchema) { self.schema = schema }

  /// The tables that a SELECT reads: the first one, and those joined by to-one relationships.
  struct Scope {
    let entity: ManagedObjectModel.Entity
    let alias: String
    fileprivate var joined: [[String]: String] = [:]
    fileprivate(set) var joins = ""
  }

  mutating func scope(_ entity: ManagedObjectModel.Entity) -> Scope { Scope(entity: entity, alias: alias()) }

  private mutating func alias() -> String {
    defer { aliases += 1 }
    return "t\(aliases)"
  }

  mutating func placeholder() -> String {
    placeholderCount += 1
    return "?\(placeholderCount)"
  }

  /// The next placeholders. Only the first has a number; SQLite numbers the others. SQLite looks up the name of each numbered placeholder
  /// in a list of all names, which took half of the time of compiling a statement with a thousand.
  private mutating func placeholders(_ count: Int) -> String {
    if count == 0 { return "" }
    let first = placeholder()
    placeholderCount += count - 1
    return first + String(repeating: ", ?", count: count - 1)
  }

  private func table(_ entity: EntityIndex) -> String { SQLName.quoted(schema.tables[entity].name) }

  func column(_ alias: String, _ entity: EntityIndex, _ slot: SlotIndex) -> String {
    "\(alias).\(SQLName.quoted(schema.tables[entity].columns[slot]))"
  }

  /// The text after FROM.
  func from(_ scope: Scope) -> String { "\(table(scope.entity.index)) AS \(scope.alias)\(scope.joins)" }

  /// A condition that the row of a destination is one of its entity, beginning with AND; empty if the table has no other rows.
  ///
  /// Only a damaged file references an object of another entity, which counts as missing. The plus sign keeps SQLite from using the index
  /// of `Z_ENT`.
  private func ofEntity(_ entity: EntityIndex, _ alias: String) -> String {
    guard model.entities[entity].rootIndex != entity else { return "" }
    let numbers = model.entities[entity].concreteIndexes.map { String(schema.tables[$0].number) }
    return " AND +\(alias).Z_ENT IN (\(SQLName.list(numbers[...], separator: ", ")))"
  }

  /// The alias of the table at the end of to-one relationships.
  private mutating func follow(_ hops: [ManagedObjectModel.Relationship], _ scope: inout Scope) -> String {
    var alias = scope.alias
    var names: [String] = []
    for hop in hops {
      names.append(hop.name)
      if let known = scope.joined[names] {
        alias = known
        continue
      }
      let next = self.alias()
      scope.joins +=
        " LEFT JOIN \(table(hop.destinationIndex)) AS \(next) ON \(next).Z_PK = \(column(alias, hop.entityIndex, hop.slot))"
        + ofEntity(hop.destinationIndex, next)
      scope.joined[names] = next
      alias = next
    }
    return alias
  }

  // MARK: Truth

  mutating func condition(_ expression: QueryExpression, _ scope: inout Scope) throws -> String {
    switch expression {
    case .literal(let value): return value ? "1" : "0"
    case .and(let parts): return QueryTranslator.joined(try conditions(parts, &scope), "AND", none: "1")
    case .or(let parts): return QueryTranslator.joined(try conditions(parts, &scope), "OR", none: "0")
    case .not(let part): return "(\(try condition(part, &scope)) IS NOT TRUE)"
    case .any(let path, let part): return "EXISTS (\(try quantified(path, part, &scope)))"
    case .all(let path, let part): return "NOT EXISTS (\(try quantified(path, .not(part), &scope)))"
    case .comparison(let left, let op, let right, let folding): return try comparison(left, op, right, folding, &scope)
    case .between(let value, let lower, let upper):
      let operand = try operand(value, &scope)
      let least = ConstantForm(lower, for: operand.kind), greatest = ConstantForm(upper, for: operand.kind)
      // For each row, SQLite evaluates the operand of BETWEEN once, and that of two comparisons twice.
      if case .exact = least, case .exact = greatest { return "(\(operand.sql) BETWEEN \(placeholder()) AND \(placeholder()))" }
      let above = comparison(operand.sql, .greaterThanOrEqualTo, least, [])
      return "(\(above) AND \(comparison(operand.sql, .lessThanOrEqualTo, greatest, [])))"
    case .membership(let value, let list): return try membership(value, list, &scope)
    case .property:
      let operand = try operand(expression, &scope)
      return "(\(operand.sql) = 1)"
    case .constant, .object, .count, .remainder: throw QueryPaths.unsupported("A value used as a condition")
    }
  }

  private mutating func conditions(_ parts: [QueryExpression], _ scope: inout Scope) throws -> [String] {
    var out: [String] = []
    for part in parts { out.append(try condition(part, &scope)) }
    return out
  }

  /// Joins conditions as a tree of groups of eight. SQLite limits the depth of an expression, to which a group adds its length. It also
  /// limits its parser's stack, in which each level of parentheses takes three entries.
  private static func joined(_ parts: [String], _ word: String, none: String) -> String {
    if parts.isEmpty { return none }
    var parts = parts
    while parts.count > 1 {
      parts = stride(from: 0, to: parts.count, by: 8).map { start in
        let group = parts[start..<min(start + 8, parts.count)]
        return group.count == 1 ? group[start] : "(\(SQLName.list(group, separator: " \(word) ")))"
      }
    }
    return parts[0]
  }

  /// A SELECT of the destination objects that fulfil a condition.
  private mutating func quantified(_ path: PropertyPath, _ part: QueryExpression, _ scope: inout Scope) throws -> String {
    let (hops, relationship) = try QueryPaths.toMany(path, scope.entity, model)
    let owner = follow(hops, &scope)
    var inner = self.scope(model.entities[relationship.destinationIndex])
    let condition = try condition(part, &inner), entities = ofEntity(inner.entity.index, inner.alias)
    if let inverse = model.inverse(of: relationship), !relationship.isManyToMany {
      let key = column(inner.alias, inverse.entityIndex, inverse.slot)
      return "SELECT 1 FROM \(from(inner)) WHERE \(key) = \(owner).Z_PK\(entities) AND \(condition)"
    }
    let side = schema.link(relationship)
    let link = alias()
    let links = "\(SQLName.quoted(side.table)) AS \(link) JOIN \(table(inner.entity.index)) AS \(inner.alias)"
    let on = "\(inner.alias).Z_PK = \(link).\(SQLName.quoted(side.far))\(entities)"
    return "SELECT 1 FROM \(links) ON \(on)\(inner.joins) WHERE \(link).\(SQLName.quoted(side.near)) = \(owner).Z_PK AND \(condition)"
  }

  private mutating func membership(_ value: QueryExpression, _ list: [StoreValue], _ scope: inout Scope) throws -> String {
    let operand = try operand(value, &scope)
    let members = MembershipList(list, operand.kind)
    let isNull = members.hasNull ? "\(operand.sql) IS NULL" : ""
    if members.bindings.isEmpty { return members.hasNull ? "(\(isNull))" : QueryTranslator.constant(false, operand.sql) }
    let list = members.isTable ? "\(ListTable.name)(\(placeholder()))" : "(\(placeholders(members.bindings.count)))"
    let isMember = "\(operand.sql) IN \(list)"
    return members.hasNull ? "(\(isMember) OR \(isNull))" : "(\(isMember))"
  }

  // MARK: Comparisons

  private mutating func comparison(
    _ left: QueryExpression, _ op: ComparisonOperator, _ right: QueryExpression, _ folding: TextFolding, _ scope: inout Scope
  ) throws -> String {
    switch ComparisonSides(left, op, right) {
    case .constants(let a, let b): return ValueComparison.holds(a, op, b, folding) ? "1" : "0"
    case .operand(let value, let op, let constant):
      let operand = try operand(value, &scope)
      return comparison(operand.sql, op, ConstantForm(constant, for: operand.kind), operand.kind == .text ? folding : [])
    case .operands:
      let first = try operand(left, &scope)
      return try comparison(first, op, try operand(right, &scope), folding)
    }
  }

  private mutating func comparison(_ operand: String, _ op: ComparisonOperator, _ form: ConstantForm, _ folding: TextFolding) -> String {
    switch form {
    case .null:
      if op != .equalTo && op != .notEqualTo { return QueryTranslator.constant(false, operand) }
      return op == .equalTo ? "(\(operand) IS NULL)" : "(\(operand) IS NOT NULL)"
    case .never: return QueryTranslator.constant(op == .notEqualTo, operand)
    case .exact(.text(let text)) where op.isSubstring || !folding.isEmpty: return textComparison(operand, op, text, folding)
    case .exact:
      switch op {
      case .equalTo: return "(\(operand) = \(placeholder()))"
      case .notEqualTo: return "(\(operand) IS NOT \(placeholder()))"
      default:
        let place = placeholder()
        return op.isOrder ? "(\(operand) \(QueryTranslator.sign(op)) \(place))" : QueryTranslator.constant(false, "\(operand) = \(place)")
      }
    case .above:
      let place = placeholder()
      switch op {
      case .lessThan, .lessThanOrEqualTo: return "(\(operand) <= \(place))"
      case .greaterThan, .greaterThanOrEqualTo: return "(\(operand) > \(place))"
      case .notEqualTo: return "(\(place) IS NOT NULL)"
      default: return "(\(place) IS NULL)"
      }
    }
  }

  /// A condition with the same result for every row. It contains the placeholders of its operand, because their values are bound.
  private static func constant(_ holds: Bool, _ operand: String) -> String {
    let result = holds ? "1" : "0"
    if !operand.utf8.contains(UInt8(ascii: "?")) { return result }
    return holds ? "(1 OR \(operand))" : "(0 AND \(operand))"
  }

  private static func sign(_ op: ComparisonOperator) -> String {
    switch op {
    case .lessThan: "<"
    case .lessThanOrEqualTo: "<="
    case .greaterThan: ">"
    default: ">="
    }
  }

  private mutating func textComparison(_ operand: String, _ op: ComparisonOperator, _ text: String, _ folding: TextFolding) -> String {
    if text.isEmpty && op.isSubstring { return "(\(operand) IS NOT NULL)" }
    if !folding.isEmpty {
      if op.isOrder { return "(\(SQLFunctions.fold)(\(operand), \(folding.rawValue)) \(QueryTranslator.sign(op)) \(placeholder()))" }
      return "\(SQLFunctions.match)(\(operand), \(placeholder()), \(op.rawValue), \(folding.rawValue))"
    }
    let place = placeholder()
    switch op {
    case .beginsWith: return "(\(operand) >= \(place) AND \(operand) < \(placeholder()))"
    case .endsWith: return "(substr(CAST(\(operand) AS BLOB), -length(\(place))) = \(place))"
    default: return "(instr(CAST(\(operand) AS BLOB), \(place)) > 0)"
    }
  }

  // MARK: Two operands

  private func comparison(
    _ a: Operand, _ op: ComparisonOperator, _ b: Operand, _ folding: TextFolding
  ) throws -> String {
    if a.kind == .decimal || b.kind == .decimal { throw QueryPaths.unsupported("A comparison of decimals") }
    if op.isSubstring {
      guard a.kind == .text, b.kind == .text else { return QueryTranslator.constant(false, "\(a.sql) = \(b.sql)") }
      return "\(SQLFunctions.compare)(\(a.sql), \(b.sql), \(op.rawValue), \(folding.rawValue))"
    }
    let areComparable = a.kind == b.kind || (a.kind.isNumber && b.kind.isNumber)
    guard areComparable else {
      switch op {
      case .equalTo: return "(\(a.sql) IS NULL AND \(b.sql) IS NULL)"
      case .notEqualTo: return "(\(a.sql) IS NOT NULL OR \(b.sql) IS NOT NULL)"
      default: return QueryTranslator.constant(false, "\(a.sql) = \(b.sql)")
      }
    }
    // Equal IDs can have different URIs.
    if a.kind == .objectID { return "\(SQLFunctions.compareIDs)(\(a.sql), \(b.sql), \(op.rawValue))" }
    if a.kind == .text, !folding.isEmpty { return "\(SQLFunctions.compare)(\(a.sql), \(b.sql), \(op.rawValue), \(folding.rawValue))" }
    switch op {
    case .equalTo: return "(\(a.sql) IS \(b.sql))"
    case .notEqualTo: return "(\(a.sql) IS NOT \(b.sql))"
    default: return "(\(a.sql) \(QueryTranslator.sign(op)) \(b.sql))"
    }
  }

  struct Operand {
    let sql: String
    let kind: OperandKind
  }

  private mutating func operand(_ expression: QueryExpression, _ scope: inout Scope) throws -> Operand {
    switch expression {
    case .property(let path):
      let property = try QueryPaths.property(path, scope.entity, model)
      let alias = follow(property.hops, &scope)
      return Operand(sql: value(column(alias, property.entity, property.slot), property.kind), kind: property.kind)
    case .object: return Operand(sql: "\(scope.alias).Z_PK", kind: .key)
    case .count(let path): return Operand(sql: try count(path, &scope), kind: .integer)
    case .remainder(let part, _): return Operand(sql: "(\(try operand(part, &scope).sql) % \(placeholder()))", kind: .integer)
    case .constant(let value):
      let (kind, form) = ConstantOperand.form(value)
      switch form {
      case .exact, .above: return Operand(sql: placeholder(), kind: kind)
      case .null, .never: return Operand(sql: "NULL", kind: kind)
      }
    default: throw QueryPaths.unsupported("A comparison of conditions")
    }
  }

  /// A column as an operand. Casts a data column, because other programs may have stored text in it.
  private func value(_ column: String, _ kind: OperandKind) -> String { kind == .data ? "CAST(\(column) AS BLOB)" : column }

  private mutating func count(_ path: PropertyPath, _ scope: inout Scope) throws -> String {
    let (hops, relationship) = try QueryPaths.toMany(path, scope.entity, model)
    let owner = follow(hops, &scope)
    let counted = alias()
    if let inverse = model.inverse(of: relationship), !relationship.isManyToMany {
      let key = column(counted, inverse.entityIndex, inverse.slot)
      return "(SELECT COUNT(*) FROM \(table(inverse.entityIndex)) AS \(counted) WHERE \(key) = \(owner).Z_PK)"
    }
    let side = schema.link(relationship)
    let key = "\(counted).\(SQLName.quoted(side.near))"
    return "(SELECT COUNT(*) FROM \(SQLName.quoted(side.table)) AS \(counted) WHERE \(key) = \(owner).Z_PK)"
  }

  // MARK: Order

  /// The text after ORDER BY. The key makes the order total.
  mutating func order(_ sorts: [SortTerm], _ scope: inout Scope) throws -> String {
    var terms: [String] = []
    for term in sorts {
      let operand = try operand(.property(term.path), &scope)
      let key =
        term.folding.isEmpty || operand.kind != .text ? operand.sql : "\(SQLFunctions.fold)(\(operand.sql), \(term.folding.rawValue))"
      terms.append("\(key) \(term.isAscending ? "ASC" : "DESC")")
    }
    terms.append("\(scope.alias).Z_PK")
    return SQLName.list(terms[...], separator: ", ")
  }
}
