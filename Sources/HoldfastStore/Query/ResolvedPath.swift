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
      switch entity.property(named: name) {
      case .relationship(let relationship)? where !relationship.isToMany:
        hops.append(relationship)
        entity = model.destination(of: relationship)
        name = next
      case .composite?: name += "." + next
      case .transientRelationship?:
        throw QueryError(
          entity: start.name, part: path.description, reason: ResolvedPath.transientReason("\(entity.name).\(name)"))
      default:
        throw QueryError(
          entity: start.name, part: path.description, reason: "\(entity.name).\(name) is not a to-one relationship, so nothing follows it.")
      }
    }
    property = try ResolvedPath.property(name, of: entity) { QueryError(entity: start.name, part: path.description, reason: $0) }
    self.hops = hops
    self.entity = entity.index
  }

  /// What a store keeps under a name.
  private static func property(
    _ name: String, of entity: ManagedObjectModel.Entity, _ error: (String) -> QueryError
  ) throws(QueryError) -> ManagedObjectModel.Property {
    switch entity.property(named: name) {
    case nil: throw error("\(entity.name) has no property \(name).")
    case .composite?: throw error("\(entity.name).\(name) is a group of attributes; name one of its elements behind it.")
    case .transient?, .transientRelationship?: throw error(transientReason("\(entity.name).\(name)"))
    case .fetched?: throw error("\(entity.name).\(name) is a fetched property, which queries cannot follow.")
    case .attribute(let attribute)?: return .attribute(attribute)
    case .relationship(let relationship)?: return .relationship(relationship)
    }
  }

  private static func transientReason(_ property: String) -> String { "\(property) is transient, so no store has values of it." }

  /// Whether the value at the end may lie in a file of its own, which no query reads.
  public var mayBeExternal: Bool {
    if case .attribute(let attribute) = property { attribute.allowsExternalBinaryDataStorage } else { false }
  }

  /// Refuses a value that may lie in a file of its own, where a query would have to read it.
  func checkIsInRow(_ start: ManagedObjectModel.Entity, _ path: PropertyPath) throws(QueryError) {
    guard mayBeExternal else { return }
    throw QueryError(
      entity: start.name, part: path.description,
      reason: "The value may lie in a file of its own, which queries do not read; it can be compared with nil alone.")
  }

  /// The slot at the end, or nil for a to-many relationship.
  public var slot: Int? { property.slot }

  /// What the slot holds, or nil for a to-many relationship.
  public func column(in model: ManagedObjectModel) -> ColumnType? {
    slot.map { model.entities[entity].layout.columns[$0] }
  }
}
