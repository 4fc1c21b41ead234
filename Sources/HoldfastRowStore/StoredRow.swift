/// An object as a row store keeps it: its entity, key, version and values.
public struct StoredRow: Sendable, Hashable, Codable {
  /// The name of the concrete entity.
  public var entity: String
  /// The key, positive and unique among all entities with the same root.
  public var key: ObjectKey
  /// The version. A save raises it.
  public var version: RowVersion
  /// One value per slot, in the order of ``/HoldfastStore/ManagedObjectModel/Entity/slots``, which also has the names.
  ///
  /// The key of a to-one destination is an `int64`. Missing values are `null`.
  public var values: [StoreValue]

  /// Creates a row.
  public init(entity: String, key: ObjectKey, version: RowVersion, values: [StoreValue]) {
    self.entity = entity
    self.key = key
    self.version = version
    self.values = values
  }
}

/// A link between two objects that no row contains, or the position of an object in an ordered relationship.
///
/// Two links with the same relationship, source and target are equal: a store keeps one of them.
public struct StoredLink: Sendable, Hashable, Codable {
  /// The entity and the name of the relationship: `Person.friends`.
  public var relationship: String
  /// The key of the object that has the relationship.
  public var source: ObjectKey
  /// The key of the destination.
  public var target: ObjectKey
  /// The destination's order key; the largest `Int64` for none.
  public var order: Int64

  /// Creates a link. The order key defaults to none.
  public init(relationship: String, source: ObjectKey, target: ObjectKey, order: Int64 = .max) {
    self.relationship = relationship
    self.source = source
    self.target = target
    self.order = order
  }

  /// Whether two links connect the same objects through the same relationship.
  public static func == (a: StoredLink, b: StoredLink) -> Bool {
    a.source == b.source && a.target == b.target && a.relationship == b.relationship
  }

  /// Hashes the relationship and both keys.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(relationship)
    hasher.combine(source)
    hasher.combine(target)
  }
}

extension ManagedObjectModel {
  /// The name of a relationship in ``StoredLink/relationship``.
  func linkName(_ relationship: Relationship) -> String { "\(entities[relationship.entityIndex].name).\(relationship.name)" }
}
