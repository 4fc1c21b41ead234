import HoldfastStore

/// Executes fetches on one connection.
struct FetchRunner {
  let store: OpenStore
  let connection: SQLiteConnection
  private var budget: FetchBudget { FetchBudget(store.database.options) }

  /// The result of a SELECT; the first component of its shape.
  private enum Selection {
    case rows, keys, count
    /// Rows or keys of several entities.
    case familyRows, familyKeys
    /// Entire rows, in which only some slots have their values. The others are nil.
    case slots([SlotIndex])
    /// The values of some slots, without keys and versions.
    case values([SlotIndex])

    /// Whether rows are read to be aggregated.
    var isScan: Bool {
      switch self {
      case .rows, .keys, .count, .familyRows, .familyKeys: false
      case .slots, .values: true
      }
    }

    func append(to shape: inout StatementShape) {
      switch self {
      case .rows: shape.append(1)
      case .keys: shape.append(2)
      case .count: shape.append(3)
      case .familyRows: shape.append(6)
      case .familyKeys: shape.append(7)
      case .slots(let slots):
        shape.append(4)
        shape.append(slots.count)
        for slot in slots { shape.append(slot.rawValue) }
      case .values(let slots):
        shape.append(5)
        shape.append(slots.count)
        for slot in slots { shape.append(slot.rawValue) }
      }
    }
  }

  func run(_ plan: FetchPlan, into sink: any RowSink) throws {
    let entity = try store.modelEntity(plan.entity)
    if store.schema.missingEntities.isEmpty { return try run(plan, entity, into: sink) }
    try run(withoutMissingEntities(plan), entity, into: sink)
  }

  /// The plan without the entities that the file lacks. It has no objects of these.
  private func withoutMissingEntities(_ plan: FetchPlan) -> FetchPlan {
    var plan = plan
    plan.concreteEntities.removeAll { store.schema.missingEntities.contains($0) }
    return plan
  }

  private func run(_ plan: FetchPlan, _ entity: ManagedObjectModel.Entity, into sink: any RowSink) throws {
    let concrete = plan.concreteEntities, isEmpty = concrete.isEmpty
    switch plan.output {
    case .rows:
      if isEmpty { return }
      if concrete.count > 1 { return try runFamily(plan, entity, into: sink) }
      let statement = try lookUp(plan, entity) ?? self.statement(plan, .rows, entity)
      try store.withBuilder(try store.entity(concrete[0]), of: connection) { builder in
        let stream = RowStream(builder, sink)
        if try stream.run(statement, store.decoders[concrete[0]]) { try stream.finish() }
      }
    case .keys:
      if isEmpty { return }
      if concrete.count > 1 { return try runFamily(plan, entity, into: sink) }
      let builder = RowBatchBuilder(layout: .keysOnly, idPrefix: store.prefixes[try store.entity(concrete[0]).index])
      try RowStream(builder, sink).runKeys(try statement(plan, .keys, entity), store.decoders[concrete[0]])
    case .count: _ = try sink.take(.count(isEmpty ? 0 : Int(count(plan, entity))), .all)
    case .aggregates(let aggregates): try aggregate(plan, aggregates, entity, isEmpty, sink)
    }
  }

  private func runFamily(_ plan: FetchPlan, _ entity: ManagedObjectModel.Entity, into sink: any RowSink) throws {
    guard let family = store.family(entity.index) else {
      throw StoreError(
        .unsupportedRequest, operation: "execute a request", path: store.path,
        reason: "The request has several entities for \(entity.name), which has no subentities.")
    }
    let keysOnly = plan.output == .keys
    let stream = FamilyStream(store, family, keysOnly: keysOnly, sink)
    if try stream.run(try statement(plan, keysOnly ? .familyKeys : .familyRows, entity)) { try stream.finish() }
  }

  // MARK: Statements

  /// The statement that executes a plan, with the values of its predicate bound; nil if the plan has no entities.
  func statement(for plan: FetchPlan) throws -> SQLiteStatement? {
    let entity = try store.modelEntity(plan.entity), plan = withoutMissingEntities(plan)
    return plan.concreteEntities.isEmpty ? nil : try statement(plan, try selection(plan, entity), entity)
  }

  private func selection(_ plan: FetchPlan, _ entity: ManagedObjectModel.Entity) throws -> Selection {
    let isFamily = plan.concreteEntities.count > 1
    switch plan.output {
    case .rows: return isFamily ? .familyRows : .rows
    case .keys: return isFamily ? .familyKeys : .keys
    case .count: return .count
    case .aggregates(let aggregates):
      return ScanAggregator(aggregates, entity: entity).map { .values($0.slots) } ?? .slots(aggregates.slots(of: entity))
    }
  }

  private func statement(_ plan: FetchPlan, _ selection: Selection, _ entity: ManagedObjectModel.Entity) throws -> SQLiteStatement {
    let sorts: [SortTerm]
    let isWindowed: Bool
    switch selection {
    case .rows, .keys, .familyRows, .familyKeys:
      sorts = plan.sorts
      isWindowed = plan.limit != nil || plan.offset != 0
    case .count, .slots, .values:
      sorts = []
      isWindowed = false
    }
    var shape = StatementShape(.fetch)
    shape.append(entity.index.rawValue)
    if store.schema.tables[entity.index].isShared {
      shape.append(plan.concreteEntities.count)
      for concrete in plan.concreteEntities { shape.append(concrete.rawValue) }
    }
    selection.append(to: &shape)
    var query = QueryShape(model: store.model, shape: shape)
    if let predicate = plan.predicate { try query.append(predicate, entity) }
    query.append(sorts)
    query.append(limit: isWindowed ? plan.limit : nil, offset: isWindowed ? plan.offset : 0)
    let statement = try connection.statement(query.shape) { try sql(plan, selection, entity, sorts, isWindowed) }
    try statement.bind(query.bindings)
    return statement
  }

  /// The statement for the rows of a plan whose only condition is that a property equals a constant; nil for other plans.
  ///
  /// Its shape is a number, so finding it needs no list of the query's components.
  private func lookUp(_ plan: FetchPlan, _ entity: ManagedObjectModel.Entity) throws -> SQLiteStatement? {
    guard case .comparison(.property(let path), .equalTo, .constant(let value), [])? = plan.predicate, path.rest.isEmpty,
      plan.sorts.isEmpty, plan.limit == nil, plan.offset == 0, plan.concreteEntities[0] == entity.index,
      !store.schema.tables[entity.index].isShared, let slot = entity.slot(named: path.first),
      case .exact(let binding) = ConstantForm(value, for: OperandKind(entity.layout.columns[slot]))
    else { return nil }
    let statement = try connection.statement(StatementShape(.lookUp, entity: entity.index, slot: slot)) {
      try sql(plan, .rows, entity, [], false)
    }
    try statement.bind(binding, at: 1)
    return statement
  }

  private func sql(
    _ plan: FetchPlan, _ selection: Selection, _ entity: ManagedObjectModel.Entity, _ sorts: [SortTerm], _ isWindowed: Bool
  ) throws -> String {
    var translator = QueryTranslator(schema: store.schema)
    var scope = translator.scope(entity)
    let condition = try plan.predicate.map { try translator.condition($0, &scope) }
    // Sums of decimals depend on the order of the rows, because each addition rounds.
    let order = sorts.isEmpty && !isWindowed && !(selection.isScan && condition != nil) ? nil : try translator.order(sorts, &scope)
    // Without a condition every row is needed anyway, and following an index would read them in random order.
    let hint = selection.isScan && condition == nil ? " NOT INDEXED" : ""
    var sql = "SELECT \(columns(selection, plan, entity, scope.alias)) FROM \(translator.from(scope))\(hint)"
    let entities = store.ofEntities(plan.concreteEntities, alias: scope.alias)
    if condition != nil || !entities.isEmpty { sql += " WHERE \(condition ?? "1")\(entities)" }
    if let order { sql += " ORDER BY \(order)" }
    if isWindowed { sql += " LIMIT \(translator.placeholder())" }
    if isWindowed && plan.offset != 0 { sql += " OFFSET \(translator.placeholder())" }
    return sql
  }

  private func columns(_ selection: Selection, _ plan: FetchPlan, _ entity: ManagedObjectModel.Entity, _ alias: String) -> String {
    switch selection {
    case .rows: return store.columns(plan.concreteEntities[0], alias: alias)
    case .familyRows: return store.family(entity.index)?.columns ?? ""
    case .familyKeys: return FamilyColumns.keyColumns
    case .keys: return "\(alias).Z_PK, \(alias).Z_OPT"
    case .count: return "COUNT(*)"
    case .values(let slots):
      if slots.isEmpty { return "1" }
      return slots.map { "\(alias).\(store.column(entity.index, $0))" }.joined(separator: ", ")
    case .slots(let slots):
      let values = entity.slotIndexes.map { slots.contains($0) ? ", \(alias).\(store.column(entity.index, $0))" : ", NULL" }
      return "\(alias).Z_PK, \(alias).Z_OPT\(values.joined())"
    }
  }

  // MARK: Numbers

  private func count(_ plan: FetchPlan, _ entity: ManagedObjectModel.Entity) throws -> Int64 {
    let statement = try statement(plan, .count, entity)
    defer { statement.reset() }
    let all = try statement.step() ? statement.int64(0) : 0
    let rest = max(0, all - Int64(plan.offset))
    return plan.limit.map { min(rest, Int64($0)) } ?? rest
  }

  /// Reads the rows in table order and groups them in memory. GROUP BY would follow the index of the grouping key and look up every row at
  /// random (five times slower at 100,000 rows).
  private func aggregate(
    _ plan: FetchPlan, _ aggregates: AggregatePlan, _ entity: ManagedObjectModel.Entity, _ isEmpty: Bool, _ sink: any RowSink
  ) throws {
    if var scan = ScanAggregator(aggregates, entity: entity) {
      if !isEmpty { try fill(&scan, plan, entity) }
      _ = try sink.take(try scan.result(), .all)
      return
    }
    let aggregator = RowAggregator(aggregates, entity: entity)
    let prefix = store.prefixes[entity.index]
    if !isEmpty {
      let statement = try statement(plan, .slots(aggregates.slots(of: entity)), entity)
      defer { statement.reset() }
      let builder = store.builder(entity), decoder = store.decoders[entity.index]
      while try statement.step() {
        try decoder.append(statement, to: builder)
        if builder.isFull {
          FetchRunner.add(builder.seal(), prefix, to: aggregator)
          try budget.check(aggregator.byteCount)
        }
      }
      FetchRunner.add(builder.seal(), prefix, to: aggregator)
    }
    _ = try sink.take(try aggregator.result(), .all)
  }

  private func fill(_ scan: inout ScanAggregator, _ plan: FetchPlan, _ entity: ManagedObjectModel.Entity) throws {
    let statement = try statement(plan, .values(scan.slots), entity)
    defer { statement.reset() }
    guard let slot = try scan.add(statement, budget) else { return }
    let table = store.schema.tables[entity.index]
    throw StoreError(
      .wrongType, operation: "aggregate rows of \(entity.name)", path: store.path,
      reason: "\(table.name).\(table.columns[slot]) contains a value that isn't valid for \(entity.name).\(entity.slots[slot].name). "
        + "Another program or a fault has changed the file.")
  }

  private static func add(_ batch: RowBatch, _ prefix: ManagedObjectID, to aggregator: RowAggregator) {
    for row in 0..<batch.count { aggregator.add(batch.pointer(row), idPrefix: prefix) }
  }
}

extension SQLiteStatement {
  /// Binds values to the parameters, starting with the first.
  func bind(_ bindings: [SQLBinding]) throws {
    assert(bindings.count == parameterCount, "\(bindings.count) values for \(parameterCount) parameters of: \(sql)")
    for (place, binding) in bindings.enumerated() { try bind(binding, at: place + 1) }
  }

  fileprivate func bind(_ binding: SQLBinding, at index: Int) throws {
    switch binding {
    case .null: bindNull(at: index)
    case .integer(let value): bind(value, at: index)
    case .real(let value): bind(value, at: index)
    case .text(let text): try bind(text, at: index)
    case .blob(let bytes): try bind(bytes, at: index)
    case .rawText(let bytes): try bytes.withUnsafeBytes { try bindText($0, .copied, at: index) }
    case .list(let list): bind(list, at: index)
    }
  }
}
