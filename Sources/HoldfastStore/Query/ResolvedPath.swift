/// A property path resolved in a model, with its to-one relationships and final property.
public struct ResolvedPath: Sendable, Hashable {
  /// The to-one relationships to follow first.
  public let hops: [ManagedObjectModel.Relationship]
  /// The property at the end.
  public let property: ManagedObjectModel.Property
  /// The index of the entity that has the property.
  public let entity: EntityIndex

  /// Resolves a path.
  ///
  /// - Throws: ``QueryError`` if a name is unknown, or a name before the last isn't a to-one relationship.
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
          entity: start.name, part: path.description, reason: "\(entity.name).\(name) isn't a to-one relationship. End the path there.")
      }
    }
    property = try ResolvedPath.property(name, of: entity) { QueryError(entity: start.name, part: path.description, reason: $0) }
    self.hops = hops
    self.entity = entity.index
  }

  /// The stored property with this name.
  private static func property(
    _ name: String, of entity: ManagedObjectModel.Entity, _ error: (String) -> QueryError
  ) throws(QueryError) -> ManagedObjectModel.Property {
    switch entity.property(named: name) {
    case nil: throw error("\(entity.name) has no property \(name).")
    case .composite?: throw error("\(entity.name).\(name) is a composite attribute. Add the name of an element to the path.")
    case .transient?, .transientRelationship?: throw error(transientReason("\(entity.name).\(name)"))
    case .fetched?: throw error("\(entity.name).\(name) is a fetched property, which queries can't follow.")
    case .attribute(let attribute)?: return .attribute(attribute)
    case .relationship(let relationship)?: return .relationship(relationship)
    }
  }

  private static func transientReason(_ property: String) -> String { "\(property) is transient, so stores have no values of it." }

  /// Whether the value may be in an external file, which queries can't read.
  public var mayBeExternal: Bool {
    if case .attribute(let attribute) = property { attribute.allowsExternalBinaryDataStorage } else { false }
  }

  /// Throws if the value may be in an external file but the query needs to read it.
  func checkIsInRow(_ start: ManagedObjectModel.Entity, _ path: PropertyPath) throws(QueryError) {
    guard mayBeExternal else { return }
    throw QueryError(
      entity: start.name, part: path.description,
      reason: "The attribute allows external storage, so a query can only compare it with nil.")
  }

  /// The slot of the property, or nil for a to-many relationship.
  public var slot: SlotIndex? { property.slot }

  /// The type of the slot, or nil for a to-many relationship.
  public func column(in model: ManagedObjectModel) -> ColumnType? {
    slot.map { model.entities[entity].layout.columns[$0] }
  }
}
