/// A property path found in a model: the to-one relationships on the way, and the property at its end.
public struct ResolvedPath: Sendable, Hashable {
  /// The to-one relationships that are followed first.
  public let hops: [ManagedObjectModel.Relationship]
  /// What is at the end.
  public let property: ManagedObjectModel.Property
  /// The index of the entity that has the property.
  public let entity: Int

  /// Finds a path.
  ///
  /// - Throws: ``QueryError`` when a name is unknown or stands where only a to-one relationship may.
  public init(_ path: PropertyPath, from start: ManagedObjectModel.Entity, in model: ManagedObjectModel) throws(QueryError) {
    var entity = start
    var hops: [ManagedObjectModel.Relationship] = []
    var name = path.first
    for next in path.rest {
      guard case .relationship(let relationship)? = entity.property(named: name), !relationship.isToMany else {
        throw QueryError(
          entity: start.name, part: path.description, reason: "\(entity.name).\(name) is not a to-one relationship, so nothing follows it.")
      }
      hops.append(relationship)
      entity = model.destination(of: relationship)
      name = next
    }
    guard let property = entity.property(named: name) else {
      throw QueryError(entity: start.name, part: path.description, reason: "\(entity.name) has no property \(name).")
    }
    self.hops = hops
    self.property = property
    self.entity = entity.index
  }

  /// The slot at the end, or nil for a to-many relationship.
  public var slot: Int? { property.slot }

  /// What the slot holds, or nil for a to-many relationship.
  public func column(in model: ManagedObjectModel) -> ColumnType? {
    slot.map { model.entities[entity].layout.columns[$0] }
  }
}
