/// A query expression compiled for rows of an entity: the reference evaluator.
///
/// An expression is compiled once per request, into closures over slots. Testing a row allocates no memory, unless it follows to-many
/// relationships or folds text that isn't ASCII.
public struct RowPredicate {
  typealias Test = (RowPointer, any EvaluationSource) -> Bool

  private let body: Test
  /// The conjuncts that loops over batches test first, and all others combined. The latter is nil if there are none.
  private let ranges: [RangeTest]
  private let rest: Test?
  /// The relationships that the query follows, so that a caller can prefetch rows.
  public let relationshipPaths: [RelationshipPath]

  /// Compiles an expression.
  ///
  /// - Throws: ``QueryError`` if the expression isn't a condition, names unknown properties, compares incomparable values, or is nested
  ///   deeper than ``QueryExpression/maximumNesting``.
  public init(_ expression: QueryExpression, entity: ManagedObjectModel.Entity, model: ManagedObjectModel) throws(QueryError) {
    var compiler = PredicateCompiler(model: model)
    var all: [PredicateCompiler.Part] = []
    var ranges: [RangeTest] = []
    var others: [PredicateCompiler.Part] = []
    for conjunct in try expression.normalized(entity: entity.name).conjuncts {
      let part = PredicateCompiler.Part(test: try compiler.truth(conjunct, entity))
      all.append(part)
      if let range = compiler.rangeTest(conjunct, entity) { ranges.append(range) } else { others.append(part) }
    }
    self.ranges = ranges
    body = PredicateCompiler.conjunction(all)
    rest = others.isEmpty ? nil : PredicateCompiler.conjunction(others)
    relationshipPaths = compiler.relationshipPaths
  }

  /// Whether a row matches the expression.
  @inline(__always) public func matches(_ row: RowPointer, _ source: any EvaluationSource) -> Bool { body(row, source) }

  /// The rows of a selection that match the expression, in order.
  public func select(_ batch: RowBatch, _ rows: RowSelection, _ source: any EvaluationSource) -> RowSelection {
    var rows = rows
    for test in ranges { rows = .rows(test.select(batch, rows)) }
    guard let rest else { return rows }
    var found: [UInt32] = []
    switch rows {
    case .all: for index in 0..<batch.count where rest(batch.pointer(index), source) { found.append(UInt32(index)) }
    case .one(let index): if rest(batch.pointer(index), source) { found.append(UInt32(index)) }
    case .rows(let indexes): for index in indexes where rest(batch.pointer(Int(index)), source) { found.append(index) }
    }
    return .rows(found)
  }
}

struct PredicateCompiler {
  typealias Test = RowPredicate.Test
  let model: ManagedObjectModel
  var relationshipPaths: [RelationshipPath] = []
  /// The relationships followed so far, while compiling a condition on the objects of a to-many relationship.
  var followed: [ManagedObjectModel.Relationship] = []

  init(model: ManagedObjectModel) { self.model = model }

  mutating func truth(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) throws(QueryError) -> Test {
    switch expression {
    case .literal(let value): return { _, _ in value }
    case .and(let parts): return PredicateCompiler.conjunction(try compiled(parts, entity))
    case .or(let parts):
      let parts = try compiled(parts, entity)
      return { row, source in parts.contains { $0.test(row, source) } }
    case .not(let part):
      let test = try truth(part, entity)
      return { row, source in !test(row, source) }
    case .comparison(let left, let op, let right, let folding): return try comparison(left, op, right, folding, entity)
    case .between(let value, let lower, let upper):
      let above = try comparison(value, .greaterThanOrEqualTo, .constant(lower), [], entity)
      let below = try comparison(value, .lessThanOrEqualTo, .constant(upper), [], entity)
      return { row, source in above(row, source) && below(row, source) }
    case .membership(let value, let list): return try membership(value, list, entity)
    case .any(let path, let part): return try quantified(path, part, entity, all: false)
    case .all(let path, let part): return try quantified(path, part, entity, all: true)
    case .constant, .property, .object, .count, .remainder: return try truthOfValue(expression, entity)
    }
  }

  /// A compiled test in a list. Generic code can't call a bare closure directly: an array would wrap each one in another closure.
  struct Part {
    let test: Test
  }

  private mutating func compiled(_ parts: [QueryExpression], _ entity: ManagedObjectModel.Entity) throws(QueryError) -> [Part] {
    var compiled: [Part] = []
    for part in parts { compiled.append(Part(test: try truth(part, entity))) }
    return compiled
  }

  fileprivate static func conjunction(_ parts: [Part]) -> Test {
    switch parts.count {
    case 1: return parts[0].test
    case 2:
      let (first, second) = (parts[0].test, parts[1].test)
      return { row, source in first(row, source) && second(row, source) }
    default: return { row, source in parts.allSatisfy { $0.test(row, source) } }
    }
  }

  /// A Boolean attribute by itself is a condition that holds if its value is true.
  private mutating func truthOfValue(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) throws(QueryError) -> Test {
    if case .property(let path) = expression, try resolve(path, entity).column(in: model) == .attribute(.boolean) {
      return try comparison(expression, .equalTo, .constant(.bool(true)), [], entity)
    }
    // A constant may be personal data.
    let part =
      switch expression {
      case .constant: "constant"
      case .remainder: "remainder"
      default: "\(expression)"
      }
    throw QueryError(entity: entity.name, part: part, reason: "A condition is required, but this is a value. Compare it.")
  }

  // MARK: Paths

  func resolve(_ path: PropertyPath, _ entity: ManagedObjectModel.Entity) throws(QueryError) -> ResolvedPath {
    try ResolvedPath(path, from: entity, in: model)
  }

  /// Resolves a path to a single value.
  func resolveValue(
    _ path: PropertyPath, _ entity: ManagedObjectModel.Entity
  ) throws(QueryError) -> (path: ResolvedPath, slot: SlotIndex, column: ColumnType) {
    let resolved = try resolve(path, entity)
    guard let slot = resolved.slot, let column = resolved.column(in: model) else {
      throw QueryError(
        entity: entity.name, part: path.description, reason: "A to-many relationship isn't a single value. Use ANY, ALL or its count.")
    }
    return (resolved, slot, column)
  }

  mutating func addPath(_ relationships: [ManagedObjectModel.Relationship]) {
    let whole = followed + relationships
    if !whole.isEmpty { relationshipPaths.append(RelationshipPath(relationships: whole)) }
  }

  /// The row at the end of the hops, or nil if one of them has no destination.
  static func follow(_ hops: [ManagedObjectModel.Relationship], _ row: RowPointer, _ source: any EvaluationSource) -> RowPointer? {
    var row = row
    for hop in hops {
      guard row.isPresent(hop.slot), let next = source.row(entity: hop.destinationIndex, key: row.key(hop.slot)) else { return nil }
      row = next
    }
    return row
  }

  // MARK: Comparisons

  mutating func comparison(
    _ left: QueryExpression, _ op: ComparisonOperator, _ right: QueryExpression, _ folding: TextFolding, _ entity: ManagedObjectModel.Entity
  ) throws(QueryError) -> Test {
    if case .constant(let value) = right { return try comparison(left, op, constant: value, folding, entity) }
    if case .constant(let value) = left, let mirrored = op.mirrored {
      return try comparison(right, mirrored, constant: value, folding, entity)
    }
    guard try ComparisonCheck.areComparable(left, op, right, entity, model) else {
      throw QueryError(
        entity: entity.name, part: "\(left) \(op) \(right)",
        reason: "A to-one relationship or SELF can only be compared with one that has the same root entity, for equality.")
    }
    let first = try reader(left, entity), second = try reader(right, entity)
    return { row, source in ValueComparison.holds(first(row, source), op, second(row, source), folding) }
  }

  private mutating func comparison(
    _ left: QueryExpression, _ op: ComparisonOperator, constant: StoreValue, _ folding: TextFolding, _ entity: ManagedObjectModel.Entity
  ) throws(QueryError) -> Test {
    switch left {
    case .property(let path):
      let (resolved, slot, column) = try resolveValue(path, entity)
      try ComparisonCheck.check(column, op, constant, entity: entity.name)
      if constant != .null { try resolved.checkIsInRow(entity, path) }
      let slotTest = SlotTest(slot: slot, column: column, op: op, constant: constant, folding: folding)
      let (test, whenNil) = (slotTest.compiled(), slotTest.whenNil)
      if resolved.hops.isEmpty { return { row, _ in test(row) } }
      addPath(resolved.hops)
      let hops = resolved.hops
      return { row, source in
        guard let end = PredicateCompiler.follow(hops, row, source) else { return whenNil }
        return test(end)
      }
    case .object:
      guard case .objectID(let id) = constant, op == .equalTo || op == .notEqualTo else {
        throw QueryError(entity: entity.name, part: "SELF", reason: "SELF can only be compared with an object ID, for equality.")
      }
      return { row, _ in (row.key == id.key) == (op == .equalTo) }
    case .remainder(.property(let path), let divisor):
      return try remainder(path, divisor, left, op, constant, entity)
    default:
      let read = try reader(left, entity)
      return { row, source in ValueComparison.holds(read(row, source), op, constant, folding) }
    }
  }

  /// The remainder of a slot in the row itself, compared with a whole number, is one division. Other cases use the general path.
  private mutating func remainder(
    _ path: PropertyPath, _ divisor: Int64, _ left: QueryExpression, _ op: ComparisonOperator, _ constant: StoreValue,
    _ entity: ManagedObjectModel.Entity
  ) throws(QueryError) -> Test {
    let read = try reader(left, entity)
    let resolved = try resolve(path, entity)
    guard op == .equalTo, resolved.hops.isEmpty, let slot = resolved.slot, let number = constant.integer else {
      return { row, source in ValueComparison.holds(read(row, source), op, constant) }
    }
    return { row, _ in row.isPresent(slot) && row.integer(slot) % divisor == number }
  }

  private mutating func quantified(
    _ path: PropertyPath, _ part: QueryExpression, _ entity: ManagedObjectModel.Entity, all: Bool
  ) throws(QueryError) -> Test {
    let (hops, relationship) = try toMany(path, entity)
    let before = followed
    followed += hops + [relationship]
    let test = try truth(part, model.entities[relationship.destinationIndex])
    followed = before
    let destination = relationship.destinationIndex
    return { row, source in
      guard let end = PredicateCompiler.follow(hops, row, source) else { return all }
      for key in source.targets(of: end, relationship) {
        guard let target = source.row(entity: destination, key: key) else { continue }
        if test(target, source) != all { return !all }
      }
      return all
    }
  }

  private mutating func toMany(
    _ path: PropertyPath, _ entity: ManagedObjectModel.Entity
  ) throws(QueryError) -> ([ManagedObjectModel.Relationship], ManagedObjectModel.Relationship) {
    let resolved = try resolve(path, entity)
    guard case .relationship(let relationship) = resolved.property, relationship.isToMany else {
      throw QueryError(entity: entity.name, part: path.description, reason: "ANY, ALL and count require a to-many relationship.")
    }
    addPath(resolved.hops + [relationship])
    return (resolved.hops, relationship)
  }

  // MARK: Values

  /// Reads a value as a ``StoreValue``. This is the slow, general path.
  mutating func reader(
    _ expression: QueryExpression, _ entity: ManagedObjectModel.Entity
  ) throws(QueryError) -> (RowPointer, any EvaluationSource) -> StoreValue {
    switch expression {
    case .constant(let value): return { _, _ in value }
    case .object: return { row, _ in .int64(row.key.rawValue) }
    case .property(let path):
      let (resolved, slot, column) = try resolveValue(path, entity)
      try resolved.checkIsInRow(entity, path)
      let hops = resolved.hops
      if !hops.isEmpty { addPath(hops) }
      return { row, source in
        PredicateCompiler.follow(hops, row, source)?.exactValue(slot, column) ?? .null
      }
    case .count(let path):
      let (hops, relationship) = try toMany(path, entity)
      return { row, source in
        guard let end = PredicateCompiler.follow(hops, row, source) else { return .int64(0) }
        return .int64(Int64(source.targets(of: end, relationship).count))
      }
    case .remainder(let part, let divisor):
      try ComparisonCheck.check(remainderOf: part, by: divisor, entity, model)
      let read = try reader(part, entity)
      return { row, source in read(row, source).integer.map { .int64($0 % divisor) } ?? .null }
    default:
      let test = try truth(expression, entity)
      return { row, source in .bool(test(row, source)) }
    }
  }
}
