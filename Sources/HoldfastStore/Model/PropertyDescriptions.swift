/// Declares an attribute of an entity.
///
/// ```swift
/// let age = AttributeDescription("age", .integer16, default: .int16(0))
/// let notes = AttributeDescription("notes", .string, isOptional: true)
/// ```
public struct AttributeDescription: Sendable, Hashable, Codable {
  /// The name, unique among the entity's properties.
  public var name: String
  /// The type of the values.
  public var type: AttributeType
  /// Whether an object may be saved without a value. False unless said.
  public var isOptional: Bool
  /// The value that a new object starts with, or nil for none. Its case must fit ``type``.
  public var defaultValue: StoreValue?
  /// Text that enters the version hash, to tell two versions apart that look alike.
  public var versionHashModifier: String?

  /// Declares an attribute.
  public init(
    _ name: String, _ type: AttributeType, isOptional: Bool = false, default defaultValue: StoreValue? = nil,
    versionHashModifier: String? = nil
  ) {
    self.name = name
    self.type = type
    self.isOptional = isOptional
    self.defaultValue = defaultValue
    self.versionHashModifier = versionHashModifier
  }
}

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
public struct RelationshipDescription: Sendable, Hashable, Codable {
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
  /// What happens to the other objects when one is deleted.
  public var deleteRule: DeleteRule
  /// The least number of objects of a to-many relationship that is not empty; 0 for no bound.
  public var minCount: Int
  /// The largest number of objects of a to-many relationship; 0 for no bound.
  public var maxCount: Int
  /// Whether the objects of a to-many relationship have an order of their own, which is kept.
  public var isOrdered: Bool
  /// Text that enters the version hash, to tell two versions apart that look alike.
  public var versionHashModifier: String?

  /// Declares a relationship to at most one object.
  public static func toOne(
    _ name: String, to destination: String, inverse: String?, isOptional: Bool = true, deleteRule: DeleteRule = .nullify,
    versionHashModifier: String? = nil
  ) -> RelationshipDescription {
    RelationshipDescription(
      name: name, destination: destination, inverse: inverse, isToMany: false, isOptional: isOptional, deleteRule: deleteRule,
      minCount: 0, maxCount: 1, isOrdered: false, versionHashModifier: versionHashModifier)
  }

  /// Declares a relationship to any number of objects, which have an order of their own when it is ordered.
  public static func toMany(
    _ name: String, to destination: String, inverse: String?, isOptional: Bool = true, deleteRule: DeleteRule = .nullify,
    minCount: Int = 0, maxCount: Int = 0, isOrdered: Bool = false, versionHashModifier: String? = nil
  ) -> RelationshipDescription {
    RelationshipDescription(
      name: name, destination: destination, inverse: inverse, isToMany: true, isOptional: isOptional, deleteRule: deleteRule,
      minCount: minCount, maxCount: maxCount, isOrdered: isOrdered, versionHashModifier: versionHashModifier)
  }
}
