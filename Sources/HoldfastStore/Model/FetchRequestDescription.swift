/// Declares a fetch request: a *template*, or the request of a fetched property.
///
/// It is part of a model, as in Xcode's editor. Programs fetch with `FetchRequest` of Holdfast.
///
/// The predicate is kept as text, including its `$variables`. `holdfast generate` writes a function for each template, and a property for each
/// fetched property. `ManagedObject.fetchedObjects(forProperty:as:)` runs the request of a fetched property.
public struct FetchRequestDescription: Sendable, Hashable {
  /// The result of a request, with the numbers of Core Data's `NSFetchRequestResultType`.
  @nonexhaustive public enum ResultType: Int, Sendable, Hashable, Codable {
    /// Objects.
    case managedObjects = 0
    /// Object IDs.
    case managedObjectIDs = 1
    /// Dictionaries of values.
    case dictionaries = 2
    /// The number of objects.
    case count = 4
  }

  /// The name, unique among the model's templates.
  public var name: String
  /// The name of the entity to fetch.
  public var entity: String
  /// The text of the predicate, or nil for all objects.
  public var predicateFormat: String?
  /// The kind of result.
  public var resultType: ResultType
  /// The maximum number of objects, or 0 for no maximum, as in Core Data's files. In a `FetchRequest`, nil means no maximum.
  public var fetchLimit: Int
  /// The number of objects to read at once, or 0 for all.
  public var fetchBatchSize: Int
  /// Whether the result includes objects of subentities.
  public var includesSubentities: Bool
  /// Whether rows are read together with the objects.
  public var includesPropertyValues: Bool
  /// Whether the result includes unsaved changes.
  public var includesPendingChanges: Bool
  /// Whether the result may contain faults.
  public var returnsObjectsAsFaults: Bool
  /// Whether duplicate dictionaries are removed.
  public var returnsDistinctResults: Bool

  /// Declares a request with default settings.
  public init(_ name: String, entity: String, predicateFormat: String? = nil) {
    self.name = name
    self.entity = entity
    self.predicateFormat = predicateFormat
    resultType = .managedObjects
    fetchLimit = 0
    fetchBatchSize = 0
    includesSubentities = true
    includesPropertyValues = true
    includesPendingChanges = true
    returnsObjectsAsFaults = true
    returnsDistinctResults = false
  }
}

/// Declares a fetched property, whose objects are the result of a fetch request.
///
/// The predicate of the request may contain `$FETCH_SOURCE`, the object itself, and `$FETCHED_PROPERTY`, the property.
public struct FetchedPropertyDescription: Sendable, Hashable {
  /// The name, unique among the entity's properties.
  public var name: String
  /// The request.
  public var fetchRequest: FetchRequestDescription
  /// Kept because it is part of Core Data's version hash. A fetched property is never validated.
  public var isOptional: Bool
  /// Kept for Core Data, whose version hash excludes transient properties. Models created by programs contain them.
  ///
  /// Stores never keep a fetched property.
  public var isTransient: Bool
  /// Text added to the version hash, to distinguish versions that are otherwise equal.
  public var versionHashModifier: String?
  /// The name in the previous version of the model, if it was different.
  public var renamingIdentifier: String?
  /// Custom text by key.
  public var userInfo: [String: String]

  /// Declares a fetched property.
  public init(
    _ name: String, _ fetchRequest: FetchRequestDescription, isOptional: Bool = true, isTransient: Bool = false,
    versionHashModifier: String? = nil, renamingIdentifier: String? = nil, userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.fetchRequest = fetchRequest
    self.isOptional = isOptional
    self.isTransient = isTransient
    self.versionHashModifier = versionHashModifier
    self.renamingIdentifier = renamingIdentifier
    self.userInfo = userInfo
  }
}

extension FetchRequestDescription: Codable {
  private enum CodingKeys: String, CodingKey {
    case name, entity, predicateFormat, resultType, fetchLimit, fetchBatchSize, includesSubentities, includesPropertyValues
    case includesPendingChanges, returnsObjectsAsFaults, returnsDistinctResults
  }

  /// Decodes a declaration. Missing keys have their default values.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      try values.decode(String.self, forKey: .name), entity: try values.decode(String.self, forKey: .entity),
      predicateFormat: try values.decodeIfPresent(String.self, forKey: .predicateFormat))
    resultType = try values.decode(.resultType, default: .managedObjects)
    fetchLimit = try values.decode(.fetchLimit, default: 0)
    fetchBatchSize = try values.decode(.fetchBatchSize, default: 0)
    includesSubentities = try values.decode(.includesSubentities, default: true)
    includesPropertyValues = try values.decode(.includesPropertyValues, default: true)
    includesPendingChanges = try values.decode(.includesPendingChanges, default: true)
    returnsObjectsAsFaults = try values.decode(.returnsObjectsAsFaults, default: true)
    returnsDistinctResults = try values.decode(.returnsDistinctResults, default: false)
  }

  /// Encodes the declaration, without default values.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(name, forKey: .name)
    try values.encode(entity, forKey: .entity)
    try values.encodeIfPresent(predicateFormat, forKey: .predicateFormat)
    try values.encode(resultType, ifNot: .managedObjects, forKey: .resultType)
    try values.encode(fetchLimit, ifNot: 0, forKey: .fetchLimit)
    try values.encode(fetchBatchSize, ifNot: 0, forKey: .fetchBatchSize)
    try values.encode(includesSubentities, ifNot: true, forKey: .includesSubentities)
    try values.encode(includesPropertyValues, ifNot: true, forKey: .includesPropertyValues)
    try values.encode(includesPendingChanges, ifNot: true, forKey: .includesPendingChanges)
    try values.encode(returnsObjectsAsFaults, ifNot: true, forKey: .returnsObjectsAsFaults)
    try values.encode(returnsDistinctResults, ifNot: false, forKey: .returnsDistinctResults)
  }
}

extension FetchedPropertyDescription: Codable {
  private enum CodingKeys: String, CodingKey {
    case name, fetchRequest, isOptional, isTransient, versionHashModifier, renamingIdentifier, userInfo
  }

  /// Decodes a declaration. Missing keys have their default values.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      try values.decode(String.self, forKey: .name), try values.decode(FetchRequestDescription.self, forKey: .fetchRequest),
      isOptional: try values.decode(.isOptional, default: true), isTransient: try values.decode(.isTransient, default: false),
      versionHashModifier: try values.decodeIfPresent(String.self, forKey: .versionHashModifier),
      renamingIdentifier: try values.decodeIfPresent(String.self, forKey: .renamingIdentifier),
      userInfo: try values.decode(.userInfo, default: [:]))
  }

  /// Encodes the declaration, without default values.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(name, forKey: .name)
    try values.encode(fetchRequest, forKey: .fetchRequest)
    try values.encode(isOptional, ifNot: true, forKey: .isOptional)
    try values.encode(isTransient, ifNot: false, forKey: .isTransient)
    try values.encodeIfPresent(versionHashModifier, forKey: .versionHashModifier)
    try values.encodeIfPresent(renamingIdentifier, forKey: .renamingIdentifier)
    try values.encode(userInfo, ifNot: [:], forKey: .userInfo)
  }
}
