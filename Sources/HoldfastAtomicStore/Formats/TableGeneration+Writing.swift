public import HoldfastStore

extension TableGeneration {
  /// Calls `body` with the rows of an entity, without subentities, in ascending key order.
  ///
  /// Takes time proportional to the number of rows with the same root entity.
  public func forEachRow(of entity: EntityIndex, _ body: (RowPointer) throws -> Void) rethrows {
    let table = table(of: entity)
    if table.rowCounts[entity] > 0 { try table.forEachRow(of: entity, body) }
  }

  /// Calls `body` with the rows of an entity in a key range, ascending.
  ///
  /// Takes time proportional to the number of rows in the range. `body` returns whether it doesn't need the rows before this one anymore. Those
  /// that it needs stay in memory, also after the last row.
  public func forEachRow(of entity: EntityIndex, keys: ClosedRange<ObjectKey>, _ body: (RowPointer) throws -> Bool) rethrows {
    let table = table(of: entity)
    if table.rowCounts[entity] > 0 { try table.forEachRow(of: entity, keys: keys, body) }
  }

  /// Calls `body` with the rows of an entity that changed since an older generation.
  ///
  /// Rows of subentities aren't included. `old` is nil for an inserted row, and `new` is nil for a deleted row. Some unchanged rows may be
  /// included. Keys ascend, unless the table contains keys far beyond all others. The table contains the rows of all entities with the same
  /// root.
  ///
  /// Takes time proportional to the number of pages of the table, its keys divided by 1,024, and the keys near changed ones.
  public func forEachChange(
    since old: TableGeneration, of entity: EntityIndex, keys: ClosedRange<ObjectKey>,
    _ body: (_ old: RowPointer?, _ new: RowPointer?) throws -> Void
  ) rethrows {
    try table(of: entity).forEachChange(since: old.table(of: entity), of: entity, keys: keys, body)
  }

  /// Calls `body` with each owner in a key range and its destinations.
  ///
  /// Includes only owners that have destinations, also those that don't exist. Owners and destinations are in ascending order. The
  /// relationship must be to-many.
  public func forEachTargets(
    of relationship: ManagedObjectModel.Relationship, sources: ClosedRange<ObjectKey>,
    _ body: (ObjectKey, UnsafeBufferPointer<ObjectKey>) throws -> Void
  ) rethrows {
    try adjacencies[forwardIndex(of: relationship)].forEachSource(in: sources, body)
  }

  /// Calls `body` with the owners in a key range and their destinations, up to 256 owners at a time.
  ///
  /// Like ``forEachTargets(of:sources:_:)``, but faster for many owners.
  public func forEachBlock(
    of relationship: ManagedObjectModel.Relationship, sources: ClosedRange<ObjectKey>, _ body: (LinkBlock) throws -> Void
  ) rethrows {
    try adjacencies[forwardIndex(of: relationship)].forEachBlock(in: sources, body)
  }

  /// The number of links of a to-many relationship, also of owners that don't exist.
  public func linkCount(of relationship: ManagedObjectModel.Relationship) -> Int { adjacencies[forwardIndex(of: relationship)].count }

  /// Returns a reader for the links of a to-many relationship.
  public func links(of relationship: ManagedObjectModel.Relationship) -> LinkReader {
    LinkReader(adjacency: adjacencies[forwardIndex(of: relationship)], order: schema.order(of: relationship).map { orders[$0] })
  }

  /// Calls `body` with the keys of existing objects in a range that have destinations, ascending.
  public func forEachSource(
    of relationship: ManagedObjectModel.Relationship, sources: ClosedRange<ObjectKey>, _ body: (ObjectKey) throws -> Void
  ) rethrows {
    try adjacencies[forwardIndex(of: relationship)].forEachSource(in: sources) { source, _ in
      if hasRow(entity: relationship.entityIndex, key: source) { try body(source) }
    }
  }

  /// Whether a many-to-many relationship refers to missing objects.
  ///
  /// Deleting an object leaves such links behind if the delete rule is "no action".
  public func hasMissingTargets(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    guard case .links(_, let backward) = schema.storage(of: relationship) else { return false }
    let table = table(of: relationship.destinationIndex)
    var isMissing = false
    adjacencies[backward].forEachSource { if table.location($0).isNone { isMissing = true } }
    return isMissing
  }
}

/// The links of some owners, valid during a call.
///
/// The destinations of owner *i* are `targets[starts[i] ..< starts[i + 1]]`, in ascending order. An owner can be without destinations.
public struct LinkBlock {
  /// The owners, ascending.
  public let owners: UnsafeBufferPointer<ObjectKey>
  /// Offsets into ``targets``. There is one more offset than there are owners.
  public let starts: UnsafeBufferPointer<UInt32>
  /// The destinations of these owners, and possibly of others.
  public let targets: UnsafeBufferPointer<ObjectKey>
}
