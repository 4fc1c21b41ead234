/// Declares an entity: a kind of object, with attributes and relationships.
///
/// A *subentity* inherits everything from its superentity:
///
/// ```swift
/// let animal = EntityDescription("Animal", isAbstract: true, attributes: [AttributeDescription("name", .string)])
/// let dog = EntityDescription("Dog", superentity: "Animal", attributes: [AttributeDescription("breed", .string)])
/// ```
///
/// Declarations are plain values. ``ManagedObjectModel`` checks and freezes all of them together.
public struct EntityDescription: Sendable, Hashable {
  /// The name, unique in the model.
  public var name: String
  /// The entity whose properties, constraints and indexes this one inherits, or nil for none.
  public var superentity: String?
  /// Whether only subentities have objects.
  public var isAbstract: Bool
  /// The attributes in any order, without inherited ones.
  public var attributes: [AttributeDescription]
  /// The relationships in any order, without inherited ones.
  public var relationships: [RelationshipDescription]
  /// The fetched properties in any order, without inherited ones.
  public var fetchedProperties: [FetchedPropertyDescription]
  /// The uniqueness constraints: lists of properties whose values together are unique in the entity and its subentities.
  ///
  /// A constraint contains names of attributes and to-one relationships, own or inherited. As in SQL, an object is exempt if one of its
  /// values is nil.
  public var uniquenessConstraints: [[String]]
  /// The indexes to create, in stores that support them.
  public var indexes: [FetchIndexDescription]
  /// Text added to the version hash, to distinguish versions that are otherwise equal.
  public var versionHashModifier: String?
  /// The name in the previous version of the model, if it was different.
  public var renamingIdentifier: String?
  /// The class name of the entity's objects for generated code, or nil for none.
  ///
  /// As in Xcode, `.Name` is a class of the current Swift module.
  public var managedObjectClassName: String?
  /// Custom text by key.
  public var userInfo: [String: String]

  /// Declares an entity.
  public init(
    _ name: String, superentity: String? = nil, isAbstract: Bool = false, attributes: [AttributeDescription] = [],
    relationships: [RelationshipDescription] = [], fetchedProperties: [FetchedPropertyDescription] = [],
    uniquenessConstraints: [[String]] = [], indexes: [FetchIndexDescription] = [], versionHashModifier: String? = nil,
    renamingIdentifier: String? = nil, managedObjectClassName: String? = nil, userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.superentity = superentity
    self.isAbstract = isAbstract
    self.attributes = attributes
    self.relationships = relationships
    self.uniquenessConstraints = uniquenessConstraints
    self.indexes = indexes
    self.versionHashModifier = versionHashModifier
    self.fetchedProperties = fetchedProperties
    self.renamingIdentifier = renamingIdentifier
    self.managedObjectClassName = managedObjectClassName
    self.userInfo = userInfo
  }
}

extension EntityDescription: Codable {
  private enum CodingKeys: String, CodingKey {
    case name, superentity, isAbstract, attributes, relationships, fetchedProperties, uniquenessConstraints, indexes, versionHashModifier
    case renamingIdentifier, managedObjectClassName, userInfo
  }

  /// Decodes a declaration. Missing keys have their default values.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      try values.decode(String.self, forKey: .name), superentity: try values.decodeIfPresent(String.self, forKey: .superentity),
      isAbstract: try values.decode(.isAbstract, default: false), attributes: try values.decode(.attributes, default: []),
      relationships: try values.decode(.relationships, default: []), fetchedProperties: try values.decode(.fetchedProperties, default: []),
      uniquenessConstraints: try values.decode(.uniquenessConstraints, default: []), indexes: try values.decode(.indexes, default: []),
      versionHashModifier: try values.decodeIfPresent(String.self, forKey: .versionHashModifier),
      renamingIdentifier: try values.decodeIfPresent(String.self, forKey: .renamingIdentifier),
      managedObjectClassName: try values.decodeIfPresent(String.self, forKey: .managedObjectClassName),
      userInfo: try values.decode(.userInfo, default: [:]))
  }

  /// Encodes the declaration.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(name, forKey: .name)
    try values.encodeIfPresent(superentity, forKey: .superentity)
    try values.encode(isAbstract, forKey: .isAbstract)
    try values.encode(attributes, forKey: .attributes)
    try values.encode(relationships, forKey: .relationships)
    try values.encode(fetchedProperties, ifNot: [], forKey: .fetchedProperties)
    try values.encode(uniquenessConstraints, forKey: .uniquenessConstraints)
    try values.encode(indexes, forKey: .indexes)
    try values.encodeIfPresent(versionHashModifier, forKey: .versionHashModifier)
    try values.encodeIfPresent(renamingIdentifier, forKey: .renamingIdentifier)
    try values.encodeIfPresent(managedObjectClassName, forKey: .managedObjectClassName)
    try values.encode(userInfo, ifNot: [:], forKey: .userInfo)
  }
}
