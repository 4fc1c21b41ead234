public import HoldfastStore

extension TableGeneration {
  /// Calls `body` with the rows of an entity, without those of sub-entities, ascending by key. Takes time in proportion to all
  /// rows with the same root entity.
  public func forEachRow(of entity: Int, _ body: (RowPointer) throws -> Void) rethrows {
    let table = table(of: entity)
    if table.rowCounts[entity] == 0 { return }
    try table.forEachLocation { location in
      if table.entity(location) == entity { try body(table.pointer(location)) }
    }
  }

  /// Calls `body` with the targets of a to-many relationship of one object, ascending.
  public func withTargets<Result>(
    of key: Int64, _ relationship: ManagedObjectModel.Relationship, _ body: (UnsafeBufferPointer<Int64>) throws -> Result
  ) rethrows -> Result {
    try adjacencies[forwardIndex(of: relationship)].withTargets(of: key, body)
  }

  /// The targets of an ordered relationship of one object in their order, with the key by which each stands. A target without
  /// a key stands last, with the largest key there is.
  public func orderedTargets(of key: Int64, _ relationship: ManagedObjectModel.Relationship) -> [(target: Int64, order: Int64)] {
    guard let place = schema.order(of: relationship) else {
      preconditionFailure("The relationship \(relationship.name) is not ordered.")
    }
    return withTargets(of: key, relationship) { targets in
      let keys = orders[place].keys(of: targets, source: key)
      return zip(targets, keys).sorted { $0.1 != $1.1 ? $0.1 < $1.1 : $0.0 < $1.0 }.map { (target: $0.0, order: $0.1) }
    }
  }
}
