import HoldfastStore

/// Divides a fetch between a store and the framework.
///
/// The store executes what its capabilities declare. The framework does the rest with the reference evaluator. So every store answers every
/// query, and a store with more capabilities answers faster.
struct Planner {
  let capabilities: StoreCapabilities
  let model: ManagedObjectModel
  let incomparable: IncomparableSlots

  /// A divided fetch.
  struct Division {
    var plan: FetchPlan
    /// The predicate that the framework tests on the store's rows; nil for none.
    var predicate: QueryExpression?
    /// Whether the framework sorts the rows.
    var sorts = false
    /// Whether the framework applies offset and limit.
    var windows = false
    /// Whether the store's predicate is an equality with a unique value, which the planner has already checked.
    var isLookup = false
    /// Whether the framework counts or aggregates.
    var reduces = false
  }

  func divide(_ query: FetchQuery) -> Division {
    if let lookup = uniqueLookup(query) { return lookup }
    var extent = QueryExtent(capabilities)
    let (pushed, residual, isLookup) = predicates(query, &extent)
    var plan = FetchPlan(entity: query.entity.index, concreteEntities: query.concreteEntities, predicate: pushed)
    let deliversObjects = query.output == .rows || query.output == .keys
    let sorts = deliversObjects ? query.sorts : []
    let pushesSorts =
      sorts.isEmpty || capabilities.sorting && sorts.allSatisfy { supports($0, query.entity) } && extent.add(sorts)
    if pushesSorts { plan.sorts = sorts }
    var windows = false
    // Without sort terms, the rows of a window are in key order.
    var isInOrder = pushesSorts
    if query.isWindowed && deliversObjects {
      if residual == nil && pushesSorts && capabilities.windowing {
        plan.offset = query.offset
        plan.limit = query.limit
      } else {
        windows = true
        if sorts.isEmpty {
          isInOrder = capabilities.windowing
          // Any limit makes the store deliver the rows in key order (rule F2).
          if isInOrder { plan.limit = .max }
        }
      }
    }
    // A look-up by a unique value returns at most one row, which needs no sorting.
    let sortsHere = !isInOrder && !(isLookup && residual == nil)
    let pushesOutput = residual == nil && !windows && !sortsHere && supports(query.output, query.entity, isLookup: isLookup)
    if pushesOutput { plan.output = query.output }
    let reduces = !pushesOutput && !deliversObjects
    return Division(plan: plan, predicate: residual, sorts: sortsHere, windows: windows, isLookup: isLookup, reduces: reduces)
  }

  /// Whether the store can return an output of a plan that leaves no other work to the framework. Otherwise it returns rows.
  private func supports(_ output: FetchOutput, _ entity: ManagedObjectModel.Entity, isLookup: Bool) -> Bool {
    switch output {
    case .rows, .keys: true
    case .count: capabilities.counting && !isLookup
    case .aggregates(let aggregates): capabilities.aggregates && !incomparable.contains(aggregates, of: entity.index)
    }
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
    if capabilities.uniqueLookups {
      if let place = conjuncts.firstIndex(where: { isUniqueLookup($0, query.entity) }) {
        residual = conjuncts
        return (residual.remove(at: place), QueryExpression.conjunction(residual), true)
      }
      if let (wanted, others) = uniqueLookup(conjuncts, query.entity) { return (.and(wanted), QueryExpression.conjunction(others), true) }
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

  /// The conjuncts that together give all values of a constraint over several properties, and the other conjuncts.
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

  /// The slot that an expression compares with a value that can be looked up; nil for other expressions.
  private func equality(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> SlotIndex? {
    guard case .comparison(.property(let path), .equalTo, .constant(let value), []) = expression, path.rest.isEmpty, value != .null,
      let slot = entity.slot(named: path.first), builds(value, entity.layout.columns[slot]), !incomparable.contains(slot, of: entity.index)
    else { return nil }
    return slot
  }

  /// The division of a fetch whose only condition is an equality with a unique value; nil for other queries.
  ///
  /// The general division has the same result. It takes longer, and such fetches are frequent.
  private func uniqueLookup(_ query: FetchQuery) -> Division? {
    guard capabilities.uniqueLookups, case .rows = query.output, query.sorts.isEmpty, !query.isWindowed, let predicate = query.predicate,
      isUniqueLookup(predicate, query.entity)
    else { return nil }
    let plan = FetchPlan(entity: query.entity.index, concreteEntities: query.concreteEntities, predicate: predicate)
    return Division(plan: plan, isLookup: true)
  }

  private func isUniqueLookup(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> Bool {
    guard case .comparison(.property(let path), .equalTo, .constant(let value), []) = expression, path.rest.isEmpty, value != .null else {
      return false
    }
    // Comparing a few names is faster than hashing one.
    for (place, names) in entity.uniquenessConstraints.enumerated() where names.count == 1 && names[0] == path.first {
      let slot = entity.uniqueSlots[place][0]
      return builds(value, entity.layout.columns[slot]) && !incomparable.contains(slot, of: entity.index)
    }
    return false
  }

  /// Whether a constant can be looked up unchanged. The evaluator compares others, because it supports more pairs of types.
  private func builds(_ value: StoreValue, _ column: ColumnType) -> Bool {
    switch (column, value) {
    case (.attribute(.objectID), .objectID(let id)): !id.isTemporaryID && hasSingleURI(id)
    case (.attribute(let type), _): value.converted(to: type) != nil
    case (.toOne, .objectID): true
    default: false
    }
  }

  /// Whether all IDs of an object have the same URI, by which stores look up IDs in attributes. An equal ID may name a superentity.
  private func hasSingleURI(_ id: ManagedObjectID) -> Bool {
    model.entity(named: id.entityName).map { $0.superentityIndex == nil && $0.familyIndexes.count == 1 } ?? false
  }

  private func supports(_ term: SortTerm, _ entity: ManagedObjectModel.Entity) -> Bool {
    guard let path = try? ResolvedPath(term.path, from: entity, in: model), let column = path.column(in: model) else { return false }
    if !path.hops.isEmpty && !capabilities.traversal.contains(.toOne) || path.mayBeExternal { return false }
    if incomparable.contains(path, model) { return false }
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
      return capabilities.comparisons.contains(.membership) && list.count <= capabilities.maximumListCount
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

  /// Whether a comparison reads no value that may be in an external file. Comparisons with nil are allowed. The evaluator refuses all
  /// others.
  private func isInRow(_ left: QueryExpression, _ right: QueryExpression, _ entity: ManagedObjectModel.Entity) -> Bool {
    func mayBeExternal(_ expression: QueryExpression) -> Bool {
      if case .property(let path) = expression { resolve(path, entity)?.mayBeExternal ?? false } else { false }
    }
    if left == .constant(.null) || right == .constant(.null) { return true }
    return !mayBeExternal(left) && !mayBeExternal(right)
  }

  /// Whether the types of two values can be compared.
  ///
  /// Other comparisons are left to the evaluator, which refuses them, so a store never receives them.
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
    default: return (try? ComparisonCheck.areComparable(left, op, right, entity, model)) ?? false
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

  /// The type of a property that the store can compare.
  private func column(_ path: PropertyPath, _ entity: ManagedObjectModel.Entity) -> ColumnType? {
    resolve(path, entity).flatMap { incomparable.contains($0, model) ? nil : $0.column(in: model) }
  }

  private func toMany(_ path: PropertyPath, _ entity: ManagedObjectModel.Entity) -> ManagedObjectModel.Relationship? {
    guard let resolved = resolve(path, entity), case .relationship(let relationship) = resolved.property, relationship.isToMany else {
      return nil
    }
    return relationship
  }
}
