/// What happens to the destination objects of a relationship when its object is deleted.
public enum DeleteRule: String, Sendable, Hashable, Codable, CaseIterable {
  /// Nothing: the destination objects still point to an object that no longer exists.
  case noAction
  /// The destination objects no longer point to the deleted object.
  case nullify
  /// The destination objects are deleted too.
  case cascade
  /// The object can't be deleted while the relationship has destination objects.
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
  /// The name of the destination entity.
  public var destination: String
  /// The name of the inverse relationship, which may be this one itself. Nil for none.
  ///
  /// Without an inverse, an object isn't updated when a destination object is deleted: a to-one relationship then points to an object
  /// without a row. As in Core Data's files, a destination object of a to-many relationship without an inverse has only one owner. If it
  /// is saved in another owner's relationship, it is removed from the previous owner's relationship.
  public var inverse: String?
  /// Whether the relationship can have any number of destination objects. If false, it has at most one.
  public var isToMany: Bool
  /// Whether an object can be saved without a destination object.
  ///
  /// As in Core Data, a to-many relationship that isn't optional can be empty too, unless it has a ``minCount``.
  public var isOptional: Bool
  /// Whether the relationship is kept in memory only. Defaults to false.
  ///
  /// Stores don't keep transient relationships, queries can't follow them, and they aren't part of version hashes. The inverse of a
  /// transient relationship is transient too.
  public var isTransient: Bool
  /// What happens to destination objects when the object is deleted.
  public var deleteRule: DeleteRule
  /// The minimum number of objects in a to-many relationship, or 0 for no minimum. An optional relationship can also be empty.
  ///
  /// Old models have 1 for a to-one relationship, which has no effect except on the version hash.
  public var minCount: Int
  /// The maximum number of objects in a to-many relationship, or 0 for no bound. 1 for every to-one relationship.
  ///
  /// Some Core Data models use -1 for no bound. They have a different version hash than models with 0.
  public var maxCount: Int
  /// Whether the objects of a to-many relationship have an order, which stores keep.
  ///
  /// For a to-one relationship, it has no effect except on the version hash.
  public var isOrdered: Bool
  /// Text added to the version hash, to distinguish versions that are otherwise equal.
  public var versionHashModifier: String?
  /// The name in the previous version of the model, if it was different.
  public var renamingIdentifier: String? = nil
  /// Custom text by key.
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

  /// Declares a relationship to any number of objects, optionally ordered.
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

  /// Decodes a declaration. Missing keys have their default values.
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
