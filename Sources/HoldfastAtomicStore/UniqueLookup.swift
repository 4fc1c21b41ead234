import HoldfastStore

/// A predicate that asks for the rows in which one attribute that has a uniqueness constraint of its own equals a
/// constant: answered by the constraint's index.
struct UniqueLookup {
  /// What was found out about the predicate.
  enum Plan {
    /// The rows in which the constraint's slot equals that of the only row of the batch.
    case index(table: Int, constraint: Int, probe: RowBatch)
    /// The index does not know: nil, or a constant of another kind than the attribute.
    case scan(RowPredicate)
  }

  let plan: Plan

  /// Takes a predicate apart.
  ///
  /// - Throws: ``StoreError`` when the predicate is another one.
  init(_ predicate: QueryExpression, entity: ManagedObjectModel.Entity, schema: TableSchema) throws {
    guard let (path, constant) = UniqueLookup.equality(predicate), path.rest.isEmpty,
      case .attribute(let attribute)? = entity.property(named: path.first),
      let constraint = schema.constraint(onSlot: attribute.slot, of: entity)
    else { throw TableError.undeclared("this predicate") }
    if let probe = try UniqueLookup.probe(constant, attribute, entity) {
      plan = .index(table: schema.tableOfEntity[entity.index], constraint: constraint, probe: probe)
    } else {
      plan = .scan(try RowPredicate(predicate, entity: entity, model: schema.model))
    }
  }

  private static func equality(_ predicate: QueryExpression) -> (PropertyPath, StoreValue)? {
    guard case .comparison(let left, .equalTo, let right, let folding) = predicate, folding.isEmpty else { return nil }
    switch (left, right) {
    case (.property(let path), .constant(let constant)), (.constant(let constant), .property(let path)): return (path, constant)
    default: return nil
    }
  }

  /// A row with the constant in the attribute's slot and nothing else; nil when the index cannot answer. Decimal
  /// numbers can be equal without having the same bytes.
  private static func probe(_ constant: StoreValue, _ attribute: ManagedObjectModel.Attribute, _ entity: ManagedObjectModel.Entity) throws -> RowBatch? {
    guard constant != .null, attribute.type != .decimal else { return nil }
    let builder = RowBatchBuilder(layout: entity.layout, idPrefix: nil)
    builder.beginRow(key: 0, version: 0)
    for slot in entity.slots.indices {
      if slot != attribute.slot { builder.appendNull() } else if !append(constant, attribute.type, to: builder) { return nil }
    }
    builder.endRow()
    return builder.seal()
  }

  private static func append(_ constant: StoreValue, _ type: AttributeType, to builder: RowBatchBuilder) -> Bool {
    switch (type.cellKind, constant) {
    case (.integer, _): constant.integer.map { builder.append(integer: $0) } != nil
    case (.real, _): constant.real.map { builder.append(real: $0) } != nil
    case (_, .string(let text)) where type == .string || type == .uri, (_, .uri(let text)) where type == .string || type == .uri:
      builder.appendValue(type == .string ? .string(text) : .uri(text), .attribute(type))
    default: constant.fits(type) && builder.appendValue(constant, .attribute(type))
    }
  }
}

extension TableGeneration {
  /// The rows that a unique look-up finds, of the plan's entities.
  func rows(matching lookup: UniqueLookup, _ plan: FetchPlan) throws -> [RowView] {
    switch lookup.plan {
    case .index(let table, let place, let probe):
      let constraint = schema.constraints[table][place]
      let wanted = probe.pointer(0)
      guard let hash = Hashing.hash(wanted, constraint.slots, constraint.kinds, seed: Hashing.seed),
        let key = tables[table].key(like: wanted, hash: hash, constraint, at: place)
      else { return [] }
      guard plan.concreteEntities.contains(tables[table].entity(tables[table].location(key))) else { return [] }
      return tables[table].view(key).map { [$0] } ?? []
    case .scan(let predicate):
      var found: [RowView] = []
      let source = NoFurtherRows()
      for entity in plan.concreteEntities {
        forEachBatch(of: entity) { batch, rows in
          rows.forEach(in: batch) { if predicate.matches(batch.pointer($0), source) { found.append(batch[$0]) } }
          return .more
        }
      }
      return found
    }
  }
}

extension RowSelection {
  /// Calls `body` with the places of the selected rows, in order.
  func forEach(in batch: RowBatch, _ body: (Int) throws -> Void) rethrows {
    switch self {
    case .all: for index in 0..<batch.count { try body(index) }
    case .one(let index): try body(index)
    case .rows(let indexes): for index in indexes { try body(Int(index)) }
    }
  }
}
