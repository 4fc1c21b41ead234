import HoldfastStore

/// Divides a fetch into the part that the store declared and a residual that the framework does with the reference
/// evaluator, so that the weakest store answers every query and a better one answers faster.
struct Planner {
  let capabilities: StoreCapabilities
  let model: ManagedObjectModel

  /// A divided fetch.
  struct Division {
    var plan: FetchPlan
    /// What the store's rows still have to meet; nil for nothing.
    var predicate: QueryExpression?
    /// Whether the framework has to put the rows in order.
    var sorts = false
    /// Whether the framework has to count off offset and limit.
    var windows = false
    /// Whether the store's predicate is one equality with a unique value, which the planner has checked already.
    var isLookup = false
    /// Whether the framework has to count or aggregate.
    var reduces = false

    var isWholly: Bool { predicate == nil && !sorts && !windows && !reduces }
  }

  func divide(_ query: FetchQuery) -> Division {
    var extent = QueryExtent(capabilities)
    let (pushed, residual, isLookup) = predicates(query, &extent)
    var plan = FetchPlan(entity: query.entity.index, concreteEntities: query.concreteEntities, predicate: pushed)
    var (windows, reduces) = (false, false)
    let reducing = query.output != .rows && query.output != .keys
    let sorts = reducing ? [] : query.sorts
    let sortsPushed =
      sorts.isEmpty
      ? !query.isWindowed || capabilities.sorting
      : capabilities.sorting && sorts.allSatisfy { supports($0, query.entity) } && extent.add(sorts)
    if sortsPushed { plan.sorts = sorts }
    // A look-up by a unique value answers one row at the most: nothing to order.
    let sortsHere = !sortsPushed && !(isLookup && residual == nil)
    if query.isWindowed && !reducing {
      if residual == nil && sortsPushed && capabilities.windowing {
        plan.offset = query.offset
        plan.limit = query.limit
      } else {
        windows = true
      }
    }
    let wholly = residual == nil && !windows && !sortsHere
    switch query.output {
    case .rows: break
    case .keys: if wholly { plan.output = .keys }
    case .count: if wholly && capabilities.counting && !isLookup { plan.output = .count } else { reduces = true }
    case .aggregates: if wholly && capabilities.aggregates { plan.output = query.output } else { reduces = true }
    }
    return Division(plan: plan, predicate: residual, sorts: sortsHere, windows: windows, isLookup: isLookup, reduces: reduces)
  }

  private func predicates(
    _ query: FetchQuery, _ extent: inout QueryExtent
  ) -> (pushed: QueryExpression?, residual: QueryExpression?, isLookup: Bool) {
    guard let predicate = query.predicate else { return (nil, nil, false) }
    if capabilities.uniqueLookups, isUniqueLookup(predicate, query.entity) { return (predicate, nil, true) }
    if supports(predicate, query.entity), extent.add(predicate) { return (predicate, nil, false) }
    var pushed: [QueryExpression] = []
    var residual: [QueryExpression] = []
    let conjuncts = predicate.conjuncts
    if capabilities.uniqueLookups, let place = conjuncts.firstIndex(where: { isUniqueLookup($0, query.entity) }) {
      residual = conjuncts
      return (residual.remove(at: place), QueryExpression.conjunction(residual), true)
    }
    if capabilities.uniqueLookups, let (wanted, others) = uniqueLookup(conjuncts, query.entity) {
      return (.and(wanted), QueryExpression.conjunction(others), true)
    }
    for conjunct in conjuncts {
      if supports(conjunct, query.entity), extent.add(conjunct, isConjunct: true) {
        pushed.append(conjunct)
      } else {
        residual.append(conjunct)
      }
    }
    return (QueryExpression.conjunction(pushed), QueryExpression.conjunction(residual), false)
  }

  /// The conjuncts that name all values of a constraint of several properties, and the others.
  private func uniqueLookup(
    _ conjuncts: [QueryExpression], _ entity: ManagedObjectModel.Entity
  ) -> (wanted: [QueryExpression], others: [QueryExpression])? {
    for slots in entity.uniqueSlots where slots.count > 1 && slots.count <= conjuncts.count {
      let places = slots.compactMap { slot in conjuncts.firstIndex { equality($0, entity) == slot } }
      guard places.count == slots.count else { continue }
      return (places.map { conjuncts[$0] }, conjuncts.indices.filter { !places.contains($0) }.map { conjuncts[$0] })
    }
    return nil
  }

  /// The slot that an expression says to equal a value that can be looked up, or nil.
  private func equality(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> Int? {
    guard case .comparison(.property(let path), .equalTo, .constant(let value), []) = expression, path.rest.isEmpty, value != .null,
      let slot = entity.slot(named: path.first), builds(value, entity.layout.columns[slot])
    else { return nil }
    return slot
  }

  private func isUniqueLookup(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> Bool {
    guard let slot = equality(expression, entity) else { return false }
    return entity.uniqueSlots.contains { $0.count == 1 && $0[0] == slot }
  }

  /// Whether a constant can be looked up as it is; others are compared by the evaluator, which knows more pairs of types.
  private func builds(_ value: StoreValue, _ column: ColumnType) -> Bool {
    switch (column, value) {
    case (.attribute(let type), _): value.converted(to: type) != nil
    case (.toOne, .objectID): true
    default: false
    }
  }

  private func supports(_ term: SortTerm, _ entity: ManagedObjectModel.Entity) -> Bool {
    guard let path = try? ResolvedPath(term.path, from: entity, in: model), let column = path.column(in: model) else { return false }
    if !path.hops.isEmpty && !capabilities.traversal.contains(.toOne) || path.mayBeExternal { return false }
    return compares(column) && (term.folding.isEmpty || capabilities.comparisons.contains(.folding))
  }

  private func compares(_ column: ColumnType) -> Bool {
    switch column {
    case .attribute(let type): capabilities.comparedTypes.contains(type)
    case .toOne: capabilities.comparisons.contains(.equality)
    }
  }

  // MARK: Predicates

  func supports(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> Bool {
    switch expression {
    case .literal: return capabilities.booleanOperators
    case .and(let parts), .or(let parts): return capabilities.booleanOperators && parts.allSatisfy { supports($0, entity) }
    case .not(let part): return capabilities.booleanOperators && supports(part, entity)
    case .comparison(let left, let op, let right, let folding):
      return supports(op, folding) && isInRow(left, right, entity) && isValue(left, entity) && isValue(right, entity)
        && areComparable(left, op, right, entity)
    case .between(let value, let lower, let upper):
      return capabilities.comparisons.contains(.order) && isValue(value, entity) && isInRow(value, .constant(lower), entity)
        && areComparable(value, .lessThan, .constant(lower), entity) && areComparable(value, .lessThan, .constant(upper), entity)
    case .membership(let value, let list):
      return capabilities.comparisons.contains(.membership) && list.count <= capabilities.largestList
        && isInRow(value, .constant(list.first { $0 != .null } ?? .null), entity) && isValue(value, entity)
        && areComparable(value, list, entity)
    case .any(let path, let part), .all(let path, let part):
      guard capabilities.traversal.contains(.quantifiers), let relationship = toMany(path, entity) else { return false }
      return supports(part, model.destination(of: relationship))
    case .property(let path):
      return capabilities.booleanOperators && column(path, entity) == .attribute(.boolean) && capabilities.comparedTypes.contains(.boolean)
    case .constant, .object, .count, .remainder: return false
    }
  }

  /// Whether no value that may lie in a file of its own is compared, but with nil. The evaluator refuses it.
  private func isInRow(_ left: QueryExpression, _ right: QueryExpression, _ entity: ManagedObjectModel.Entity) -> Bool {
    func mayBeExternal(_ expression: QueryExpression) -> Bool {
      if case .property(let path) = expression { resolve(path, entity)?.mayBeExternal ?? false } else { false }
    }
    if left == .constant(.null) || right == .constant(.null) { return true }
    return !mayBeExternal(left) && !mayBeExternal(right)
  }

  /// Whether a property and a constant have types with a common order. What has not is left to the evaluator, which refuses
  /// it; so the store never sees it.
  private func areComparable(
    _ left: QueryExpression, _ op: ComparisonOperator, _ right: QueryExpression, _ entity: ManagedObjectModel.Entity
  ) -> Bool {
    switch (left, right) {
    case (.property(let path), .constant(let constant)):
      return column(path, entity).map { ComparisonCheck.isComparable($0, op, constant) } ?? false
    case (.constant(let constant), .property(let path)):
      return column(path, entity).map { ComparisonCheck.isComparable($0, op.mirrored ?? op, constant) } ?? false
    case (.object, .constant(let constant)), (.constant(let constant), .object):
      if case .objectID = constant { return op == .equalTo || op == .notEqualTo }
      return false
    default: return true
    }
  }

  /// The same for each value of a list, which may be long.
  private func areComparable(_ value: QueryExpression, _ list: [StoreValue], _ entity: ManagedObjectModel.Entity) -> Bool {
    guard case .property(let path) = value else { return list.allSatisfy { areComparable(value, .equalTo, .constant($0), entity) } }
    guard let column = column(path, entity) else { return false }
    return list.allSatisfy { ComparisonCheck.isComparable(column, .equalTo, $0) }
  }

  private func supports(_ op: ComparisonOperator, _ folding: TextFolding) -> Bool {
    let needed: ComparisonCapabilities = op.isSubstring ? .substrings : op.isOrder ? .order : .equality
    return capabilities.comparisons.contains(needed) && (folding.isEmpty || capabilities.comparisons.contains(.folding))
  }

  private func isValue(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> Bool {
    switch expression {
    case .constant(let value):
      if case .decimal = value { return capabilities.comparedTypes.contains(.decimal) }
      return true
    case .object: return capabilities.comparisons.contains(.equality)
    case .property(let path): return column(path, entity).map(compares) ?? false
    case .count(let path): return capabilities.traversal.contains(.counts) && toMany(path, entity) != nil
    case .remainder(let part, let divisor) where divisor > 0:
      return isWholeNumber(part, entity) && capabilities.comparisons.contains(.remainders) && isValue(part, entity)
    default: return false
    }
  }

  private func isWholeNumber(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> Bool {
    guard case .property(let path) = expression else { if case .count = expression { return true } else { return false } }
    switch column(path, entity) {
    case .attribute(.integer16), .attribute(.integer32), .attribute(.integer64): return true
    default: return false
    }
  }

  private func resolve(_ path: PropertyPath, _ entity: ManagedObjectModel.Entity) -> ResolvedPath? {
    guard let resolved = try? ResolvedPath(path, from: entity, in: model) else { return nil }
    return resolved.hops.isEmpty || capabilities.traversal.contains(.toOne) ? resolved : nil
  }

  private func column(_ path: PropertyPath, _ entity: ManagedObjectModel.Entity) -> ColumnType? {
    resolve(path, entity)?.column(in: model)
  }

  private func toMany(_ path: PropertyPath, _ entity: ManagedObjectModel.Entity) -> ManagedObjectModel.Relationship? {
    guard let resolved = resolve(path, entity), case .relationship(let relationship) = resolved.property, relationship.isToMany else {
      return nil
    }
    return relationship
  }
}
