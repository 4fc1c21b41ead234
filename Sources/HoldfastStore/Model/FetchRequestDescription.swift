/// Declares a fetch request in a model: a *template* that programs ask for by name, or what a fetched property asks for.
///
/// The predicate is kept as the text that the model's author wrote, with its `$variables`.
public struct FetchRequestDescription: Sendable, Hashable {
  /// What a request answers with; the numbers are those of Core Data's `NSFetchRequestResultType`.
  public enum ResultType: Int, Sendable, Hashable, Codable {
    /// Objects.
    case managedObjects = 0
    /// The IDs of objects.
    case managedObjectIDs = 1
    /// Dictionaries of values.
    case dictionaries = 2
    /// The number of objects.
    case count = 4
  }

  /// The name, unique among the model's templates.
  public var name: String
  /// The name of the entity that is asked.
  public var entity: String
  /// The text of the predicate; nil for all objects.
  public var predicateFormat: String?
  /// What the request answers with.
  public var resultType: ResultType
  /// The largest number of objects; 0 for no limit.
  public var fetchLimit: Int
  /// How many objects are read at once; 0 for all.
  public var fetchBatchSize: Int
  /// Whether objects of sub-entities are asked, too.
  public var includesSubentities: Bool
  /// Whether rows come with the objects.
  public var includesPropertyValues: Bool
  /// Whether unsaved changes are seen.
  public var includesPendingChanges: Bool
  /// Whether objects may be faults.
  public var returnsObjectsAsFaults: Bool
  /// Whether each dictionary comes once.
  public var returnsDistinctResults: Bool

  /// Declares a request with the standard settings.
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

/// Declares a fetched property: what an object has by asking for it, not by links.
///
/// The predicate of its request may name the object itself, as `$FETCH_SOURCE`, and the property, as `$FETCHED_PROPERTY`.
public struct FetchedPropertyDescription: Sendable, Hashable {
  /// The name, unique among the entity's properties.
  public var name: String
  /// What is asked for.
  public var fetchRequest: FetchRequestDescription
  /// Kept for Core Data's sake, where it enters the version hash; a fetched property is never checked.
  public var isOptional: Bool
  /// Kept for Core Data's sake, where a transient one does not enter the version hash, as it is in models that programs make; no
  /// store keeps a fetched property in any case.
  public var isTransient: Bool
  /// Text that enters the version hash, to tell two versions apart that look alike.
  public var versionHashModifier: String?
  /// The name in the previous version of the model, when it was another.
  public var renamingIdentifier: String?
  /// Text of the model's author, by key.
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

  /// Decodes a declaration; what is not there has its default.
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

  /// Encodes the declaration without what has its default.
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

  /// Decodes a declaration; what is not there has its default.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      try values.decode(String.self, forKey: .name), try values.decode(FetchRequestDescription.self, forKey: .fetchRequest),
      isOptional: try values.decode(.isOptional, default: true), isTransient: try values.decode(.isTransient, default: false),
      versionHashModifier: try values.decodeIfPresent(String.self, forKey: .versionHashModifier),
      renamingIdentifier: try values.decodeIfPresent(String.self, forKey: .renamingIdentifier),
      userInfo: try values.decode(.userInfo, default: [:]))
  }

  /// Encodes the declaration without what has its default.
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
