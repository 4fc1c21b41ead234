/// Declares an entity: a kind of object with its attributes and relationships.
///
/// A *sub-entity* has all that its super entity has and more:
///
/// ```swift
/// let animal = EntityDescription("Animal", isAbstract: true, attributes: [AttributeDescription("name", .string)])
/// let dog = EntityDescription("Dog", superentity: "Animal", attributes: [AttributeDescription("breed", .string)])
/// ```
///
/// Declarations are plain values. ``ManagedObjectModel`` takes them, checks them all together and freezes them.
public struct EntityDescription: Sendable, Hashable, Codable {
  /// The name, unique in the model.
  public var name: String
  /// The name of the entity whose properties, constraints and indexes this one inherits; nil for none.
  public var superentity: String?
  /// Whether only sub-entities have objects.
  public var isAbstract: Bool
  /// The attributes, in any order; not those that are inherited.
  public var attributes: [AttributeDescription]
  /// The relationships, in any order; not those that are inherited.
  public var relationships: [RelationshipDescription]
  /// Groups of attribute or to-one names, own or inherited, whose values no two objects of the entity and its sub-entities
  /// may share. Objects in which one of the values is nil are left out, as in SQL.
  public var uniquenessConstraints: [[String]]
  /// Indexes that stores which have indexes should keep.
  public var indexes: [FetchIndexDescription]
  /// Text that enters the version hash, to tell two versions apart that look alike.
  public var versionHashModifier: String?

  /// Declares an entity.
  public init(
    _ name: String, superentity: String? = nil, isAbstract: Bool = false, attributes: [AttributeDescription] = [],
    relationships: [RelationshipDescription] = [],
    uniquenessConstraints: [[String]] = [], indexes: [FetchIndexDescription] = [], versionHashModifier: String? = nil
  ) {
    self.name = name
    self.superentity = superentity
    self.isAbstract = isAbstract
    self.attributes = attributes
    self.relationships = relationships
    self.uniquenessConstraints = uniquenessConstraints
    self.indexes = indexes
    self.versionHashModifier = versionHashModifier
  }
}

/// Declares an index that helps fetches. It changes what a fetch costs, never what it answers, and does not
/// enter the version hash: a store that lacks one gets it when it is opened for writing.
public struct FetchIndexDescription: Sendable, Hashable, Codable {
  /// The name, unique in the entity.
  public var name: String
  /// The names of attributes and to-one relationships, the most significant first.
  public var properties: [String]

  /// Declares an index.
  public init(_ name: String, _ properties: [String]) {
    self.name = name
    self.properties = properties
  }
}
