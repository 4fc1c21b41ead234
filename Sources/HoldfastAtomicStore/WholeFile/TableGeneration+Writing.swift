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

  /// Reads the links of a to-many relationship, object by object.
  public func links(of relationship: ManagedObjectModel.Relationship) -> LinkReader {
    LinkReader(adjacency: adjacencies[forwardIndex(of: relationship)], order: schema.order(of: relationship).map { orders[$0] })
  }

  /// Calls `body` with the keys of the objects that have targets of a to-many relationship, ascending.
  public func forEachSource(of relationship: ManagedObjectModel.Relationship, _ body: (Int64) throws -> Void) rethrows {
    try adjacencies[forwardIndex(of: relationship)].forEachSource { if hasRow(entity: relationship.entityIndex, key: $0) { try body($0) } }
  }

  /// Calls `body` with the targets of a to-many relationship of one object, ascending.
  func withTargets<Result>(
    of key: Int64, _ relationship: ManagedObjectModel.Relationship, _ body: (UnsafeBufferPointer<Int64>) throws -> Result
  ) rethrows -> Result {
    try adjacencies[forwardIndex(of: relationship)].withTargets(of: key, body)
  }
}

/// The links of one to-many relationship of a ``TableGeneration``.
public struct LinkReader: Sendable {
  private let adjacency: AdjacencyIndex
  private let order: OrderIndex?

  init(adjacency: AdjacencyIndex, order: OrderIndex?) {
    self.adjacency = adjacency
    self.order = order
  }

  /// Calls `body` with the targets of one object, ascending.
  public func withTargets<Result>(of key: Int64, _ body: (UnsafeBufferPointer<Int64>) throws -> Result) rethrows -> Result {
    try adjacency.withTargets(of: key, body)
  }

  /// The targets of one object in their order, with the key by which each stands; ascending for an unordered relationship. A
  /// target without a key stands last, with the largest key there is.
  public func orderedTargets(of key: Int64) -> [(target: Int64, order: Int64)] {
    adjacency.withTargets(of: key) { targets in
      if targets.isEmpty { return [] }
      guard let order else { return targets.map { (target: $0, order: .max) } }
      return zip(targets, order.keys(of: targets, source: key)).map { (target: $0.0, order: $0.1) }
        .sorted { $0.order != $1.order ? $0.order < $1.order : $0.target < $1.target }
    }
  }
}
