/// What happens to the objects at the other end of a relationship when an object is deleted.
public enum DeleteRule: String, Sendable, Hashable, Codable, CaseIterable {
  /// Nothing: the other objects keep pointing to an object that no longer exists.
  case noAction
  /// The other objects no longer point to the deleted one.
  case nullify
  /// The other objects are deleted too.
  case cascade
  /// The object cannot be deleted while there are other objects.
  case deny
}

/// Declares a relationship of an entity.
///
/// ```swift
/// let employer = RelationshipDescription.toOne("employer", to: "Company", inverse: "employees", isOptional: true)
/// let employees = RelationshipDescription.toMany("employees", to: "Person", inverse: "employer", deleteRule: .deny)
/// ```
public struct RelationshipDescription: Sendable, Hashable {
  /// The name, unique among the entity's properties.
  public var name: String
  /// The name of the entity at the other end.
  public var destination: String
  /// The name of the relationship that leads back, which may be this one itself; nil for none.
  ///
  /// Without an inverse nobody tells the object that it points to something that was deleted: a to-one relationship then
  /// leads to an object without a row. A to-many relationship without an inverse has its objects to itself, as in Core
  /// Data's files: an object that is saved in one object's relationship leaves the relationship of another.
  public var inverse: String?
  /// Whether it leads to any number of objects instead of at most one.
  public var isToMany: Bool
  /// Whether an object may be saved while the relationship leads nowhere.
  public var isOptional: Bool
  /// Whether the relationship lives in memory only. Defaults to false.
  ///
  /// No store has a transient relationship, no query can follow it, and it isn't part of the version hash. Its inverse must be transient,
  /// too.
  public var isTransient: Bool
  /// What happens to the other objects when one is deleted.
  public var deleteRule: DeleteRule
  /// The least number of objects of a to-many relationship that is not empty; 0 for no bound. Models of old have 1 for a to-one
  /// relationship, which demands nothing and enters the version hash.
  public var minCount: Int
  /// The largest number of objects of a to-many relationship; 0 for no bound. Some of Core Data's models have -1 for no bound, which is
  /// another version of the model.
  public var maxCount: Int
  /// Whether the objects of a to-many relationship have an order of their own, which is kept.
  public var isOrdered: Bool
  /// Text that enters the version hash, to tell two versions apart that look alike.
  public var versionHashModifier: String?
  /// The name in the previous version of the model, when it was another.
  public var renamingIdentifier: String? = nil
  /// Text of the model's author, by key.
  public var userInfo: [String: String] = [:]

  /// Declares a relationship to at most one object.
  public static func toOne(
    _ name: String, to destination: String, inverse: String?, isOptional: Bool = true, isTransient: Bool = false,
    deleteRule: DeleteRule = .nullify, versionHashModifier: String? = nil
  ) -> RelationshipDescription {
    RelationshipDescription(
      name: name, destination: destination, inverse: inverse, isToMany: false, isOptional: isOptional, isTransient: isTransient,
      deleteRule: deleteRule,
      minCount: 0, maxCount: 1, isOrdered: false, versionHashModifier: versionHashModifier)
  }

  /// Declares a relationship to any number of objects, which have an order of their own when it is ordered.
  public static func toMany(
    _ name: String, to destination: String, inverse: String?, isOptional: Bool = true, isTransient: Bool = false,
    deleteRule: DeleteRule = .nullify, minCount: Int = 0, maxCount: Int = 0, isOrdered: Bool = false, versionHashModifier: String? = nil
  ) -> RelationshipDescription {
    RelationshipDescription(
      name: name, destination: destination, inverse: inverse, isToMany: true, isOptional: isOptional, isTransient: isTransient,
      deleteRule: deleteRule,
      minCount: minCount, maxCount: maxCount, isOrdered: isOrdered, versionHashModifier: versionHashModifier)
  }
}

extension RelationshipDescription: Codable {
  private enum CodingKeys: String, CodingKey {
    case name, destination, inverse, isToMany, isOptional, deleteRule, minCount, maxCount, isOrdered, versionHashModifier
    case renamingIdentifier, userInfo, isTransient
  }

  /// Decodes a declaration; what is not there has its default.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    name = try values.decode(String.self, forKey: .name)
    destination = try values.decode(String.self, forKey: .destination)
    inverse = try values.decodeIfPresent(String.self, forKey: .inverse)
    isToMany = try values.decode(Bool.self, forKey: .isToMany)
    isOptional = try values.decode(Bool.self, forKey: .isOptional)
    isTransient = try values.decode(.isTransient, default: false)
    deleteRule = try values.decode(DeleteRule.self, forKey: .deleteRule)
    minCount = try values.decode(Int.self, forKey: .minCount)
    maxCount = try values.decode(Int.self, forKey: .maxCount)
    isOrdered = try values.decode(Bool.self, forKey: .isOrdered)
    versionHashModifier = try values.decodeIfPresent(String.self, forKey: .versionHashModifier)
    renamingIdentifier = try values.decodeIfPresent(String.self, forKey: .renamingIdentifier)
    userInfo = try values.decode(.userInfo, default: [:])
  }

  /// Encodes the declaration.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(name, forKey: .name)
    try values.encode(destination, forKey: .destination)
    try values.encodeIfPresent(inverse, forKey: .inverse)
    try values.encode(isToMany, forKey: .isToMany)
    try values.encode(isOptional, forKey: .isOptional)
    try values.encode(isTransient, ifNot: false, forKey: .isTransient)
    try values.encode(deleteRule, forKey: .deleteRule)
    try values.encode(minCount, forKey: .minCount)
    try values.encode(maxCount, forKey: .maxCount)
    try values.encode(isOrdered, forKey: .isOrdered)
    try values.encodeIfPresent(versionHashModifier, forKey: .versionHashModifier)
    try values.encodeIfPresent(renamingIdentifier, forKey: .renamingIdentifier)
    try values.encode(userInfo, ifNot: [:], forKey: .userInfo)
  }
}
