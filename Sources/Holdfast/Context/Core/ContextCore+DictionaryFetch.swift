import HoldfastStore

/// Fetches of groups and aggregates.
extension ContextCore {
  /// Returns values that the store computes, as one dictionary for each group.
  func fetch<Root>(_ request: DictionaryFetchRequest<Root>) throws -> [[String: StoreValue]] {
    let names = request.columns.keys.sorted()
    return try groups(request, names.map { request.columns[$0] ?? .count() }).map { row in Dictionary(uniqueKeysWithValues: zip(names, row))
    }
  }

  /// The values of columns, an array for each group, sorted by the values of the groups: first by those of the columns, then by others.
  func groups<Root>(_ request: DictionaryFetchRequest<Root>, _ columns: [DictionaryFetchColumn]) throws -> [[StoreValue]] {
    checkIsolation()
    noticeRemovedStores()
    let entity = try entity(named: request.entityName)
    let groupBy = try request.propertiesToGroupBy.map { try slotInRow($0, entity) }
    let requested = try columns.map { try column($0, entity, groupBy) }
    // Groups are also sorted by values that aren't requested.
    let columns = requested + groupBy.map { AggregateColumn.group(slot: $0) }.filter { !requested.contains($0) }
    let plan = AggregatePlan(groupBy: groupBy, columns: columns)
    let query = FetchQuery(
      entity: entity, predicate: try predicate(request.predicate?.expression, entity),
      output: .aggregates(plan), includesSubentities: request.includesSubentities, options: requests.ofFetch)
    let rows = try persistentStoreCoordinator.aggregate(query, plan, in: pinnedStores())
    let sorted = rows.sorted { a, b in
      for (place, column) in columns.enumerated() {
        guard case .group(let slot) = column else { continue }
        let order = GroupOrder.order(a[place], b[place], entity.layout.columns[slot], places)
        if order != 0 { return order < 0 }
      }
      return false
    }
    return requested.count == columns.count ? sorted : sorted.map { Array($0.prefix(requested.count)) }
  }

  private func slot(_ name: String, _ entity: ManagedObjectModel.Entity) throws -> SlotIndex {
    guard let slot = entity.slot(named: name) else {
      throw PersistenceError(.invalidRequest, property: name, reason: "\(entity.name) has no attribute or to-one relationship \(name).")
    }
    return slot
  }

  /// The slot of a property whose values are compared.
  private func slotInRow(_ name: String, _ entity: ManagedObjectModel.Entity) throws -> SlotIndex {
    let slot = try slot(name, entity)
    guard !entity.externalSlots.contains(slot) else {
      throw PersistenceError(
        .invalidRequest, property: name,
        reason: "Values of \(entity.name).\(name) can be in external files, which queries don't read. Use another attribute.")
    }
    return slot
  }

  private func number(_ name: String, _ entity: ManagedObjectModel.Entity) throws -> SlotIndex {
    let slot = try slot(name, entity)
    let column = entity.layout.columns[slot]
    if case .attribute(let type) = column, type.isNumber { return slot }
    throw PersistenceError(
      .invalidRequest, property: name, reason: "\(entity.name).\(name) isn't a number, so it can't be summed or averaged.")
  }

  private func column(_ column: DictionaryFetchColumn, _ entity: ManagedObjectModel.Entity, _ groupBy: [SlotIndex]) throws
    -> AggregateColumn
  {
    switch column {
    case .property(let name):
      let slot = try slot(name, entity)
      guard groupBy.contains(slot) else {
        throw PersistenceError(.invalidRequest, property: name, reason: "\(name) has many values in a group; group by it or aggregate it.")
      }
      return .group(slot: slot)
    case .count(nil): return .count(slot: nil)
    case .count(let name?): return .count(slot: try slot(name, entity))
    case .sum(let name): return .sum(slot: try number(name, entity))
    case .average(let name): return .average(slot: try number(name, entity))
    case .minimum(let name): return .minimum(slot: try slotInRow(name, entity))
    case .maximum(let name): return .maximum(slot: try slotInRow(name, entity))
    }
  }
}

/// The order of groups' values: nil first, NaN after all numbers, otherwise as in sorted fetches.
enum GroupOrder {
  static func order(_ a: StoreValue, _ b: StoreValue, _ column: ColumnType, _ places: StorePlaces) -> Int {
    if case .attribute = column, case .objectID(let x) = a, case .objectID(let y) = b {
      // Also of equal IDs, whose groups differ if their URIs do.
      return order(Array(x.uriRepresentation.utf8), Array(y.uriRepresentation.utf8))
    }
    if a == b { return 0 }
    if a == .null { return -1 }
    if b == .null { return 1 }
    if a.isNaN || b.isNaN { return a.isNaN == b.isNaN ? 0 : a.isNaN ? 1 : -1 }
    // Destinations are sorted by their keys, attributes by the URIs that they contain.
    if case .objectID(let x) = a, case .objectID(let y) = b {
      return places.key(of: x) ?? 0 < places.key(of: y) ?? 0 ? -1 : 1
    }
    return ValueComparison.holds(a, .lessThan, b) ? -1 : 1
  }

  private static func order(_ a: [UInt8], _ b: [UInt8]) -> Int { a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1 }
}
