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

  /// The same with rows whose keys lie in a range, in time in proportion to the rows of that range.
  public func forEachRow(of entity: Int, keys: ClosedRange<Int64>, _ body: (RowPointer) throws -> Void) rethrows {
    let table = table(of: entity)
    if table.rowCounts[entity] > 0 { try table.forEachRow(of: entity, keys: keys, body) }
  }

  /// Calls `body` with the rows of an entity, without those of sub-entities, that have changed since an older generation: as they were,
  /// nil for new ones, and as they are, nil for those that are gone. Some that have not changed may be among them.
  /// They come ascending by key, unless keys of the family lie far beyond all others. Takes time in proportion to the pages of the family,
  /// to its keys divided by 1,024, and to the keys beside changed ones.
  public func forEachChange(
    since old: TableGeneration, of entity: Int, keys: ClosedRange<Int64>, _ body: (_ old: RowPointer?, _ new: RowPointer?) throws -> Void
  ) rethrows {
    try table(of: entity).forEachChange(since: old.table(of: entity), of: entity, keys: keys, body)
  }

  /// Calls `body` with the keys in a range from which links of a many-to-many relationship lead, from the side of that relationship,
  /// ascending, and with the keys to which they lead, ascending.
  public func forEachTargets(
    of relationship: ManagedObjectModel.Relationship, sources: ClosedRange<Int64>,
    _ body: (Int64, UnsafeBufferPointer<Int64>) throws -> Void
  ) rethrows {
    if case .links(let forward, _) = schema.storage(of: relationship) { try adjacencies[forward].forEachSource(in: sources, body) }
  }

  /// Reads the links of a to-many relationship, object by object.
  public func links(of relationship: ManagedObjectModel.Relationship) -> LinkReader {
    LinkReader(adjacency: adjacencies[forwardIndex(of: relationship)], order: schema.order(of: relationship).map { orders[$0] })
  }

  /// Calls `body` with the keys of the objects that have targets of a to-many relationship, those in a range, ascending.
  public func forEachSource(
    of relationship: ManagedObjectModel.Relationship, sources: ClosedRange<Int64>, _ body: (Int64) throws -> Void
  ) rethrows {
    try adjacencies[forwardIndex(of: relationship)].forEachSource(in: sources) { source, _ in
      if hasRow(entity: relationship.entityIndex, key: source) { try body(source) }
    }
  }

  /// Whether a to-many relationship that is one end of links has targets that are not there: left behind by a deletion whose rule
  /// does nothing.
  public func hasMissingTargets(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    guard case .links(_, let backward) = schema.storage(of: relationship) else { return false }
    let table = table(of: relationship.destinationIndex)
    var isMissing = false
    adjacencies[backward].forEachSource { if table.location($0).isNone { isMissing = true } }
    return isMissing
  }
}
