/// Declares an attribute of an entity.
///
/// ```swift
/// let age = AttributeDescription("age", .integer16, default: .int16(0))
/// let notes = AttributeDescription("notes", .string, isOptional: true)
/// let colour = AttributeDescription.transformable("colour", by: "ColourTransformer", isOptional: true)
/// let place = AttributeDescription.composite("place", "Place", isOptional: true)
/// let count = AttributeDescription.derived("walkCount", .integer64, "walks.@count")
/// ```
public struct AttributeDescription: Sendable, Hashable {
  /// The name, unique among the entity's properties.
  public var name: String
  /// The type of the values.
  public var type: AttributeType
  /// Whether an object can be saved without a value. Defaults to false.
  public var isOptional: Bool
  /// Whether the value is kept in memory only, not in stores.
  public var isTransient: Bool
  /// The value of a new object, or nil for none. Its case matches ``type``.
  public var defaultValue: StoreValue?
  /// The constraints on values, checked at each save.
  public var validation: AttributeValidation
  /// The name of the attribute's ``CompositeDescription``, for type ``AttributeType/composite`` only.
  public var compositeName: String?
  /// The expression of a *derived* attribute, or nil for other attributes.
  ///
  /// Each save computes the value. For the syntax, see ``Derivation``.
  public var derivationExpression: String?
  /// The name of the transformer of a ``AttributeType/transformable`` attribute, or nil for the default one.
  public var valueTransformerName: String?
  /// The Swift or Objective-C class name of a transformable attribute's values, for generated code.
  public var valueClassName: String?
  /// Whether a store may keep large values in external files. Part of the version hash. Has no effect on elements of composites.
  public var allowsExternalBinaryDataStorage: Bool
  /// Whether the history keeps the last value of deleted objects. Part of the version hash.
  public var preservesValueInHistoryOnDeletion: Bool
  /// Whether a cloud mirror may encrypt the value.
  public var allowsCloudEncryption: Bool
  /// Text added to the version hash, to distinguish versions that are otherwise equal.
  public var versionHashModifier: String?
  /// The name in the previous version of the model, if it was different.
  public var renamingIdentifier: String?
  /// Custom text by key.
  public var userInfo: [String: String]

  /// Declares an attribute.
  public init(
    _ name: String, _ type: AttributeType, isOptional: Bool = false, isTransient: Bool = false, default defaultValue: StoreValue? = nil,
    validation: AttributeValidation = .none, allowsExternalBinaryDataStorage: Bool = false, versionHashModifier: String? = nil,
    renamingIdentifier: String? = nil, userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.type = type
    self.isOptional = isOptional
    self.isTransient = isTransient
    self.defaultValue = defaultValue
    self.validation = validation
    self.allowsExternalBinaryDataStorage = allowsExternalBinaryDataStorage
    preservesValueInHistoryOnDeletion = false
    allowsCloudEncryption = false
    self.versionHashModifier = versionHashModifier
    self.renamingIdentifier = renamingIdentifier
    self.userInfo = userInfo
  }

  /// Declares an attribute whose values a transformer converts to bytes and back.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - transformer: The name under which the transformer is registered, or nil for the default one.
  ///   - isOptional: Whether an object can be saved without a value. Defaults to false.
  public static func transformable(_ name: String, by transformer: String?, isOptional: Bool = false) -> AttributeDescription {
    var attribute = AttributeDescription(name, .transformable, isOptional: isOptional)
    attribute.valueTransformerName = transformer
    return attribute
  }

  /// Declares an attribute with the elements of a ``CompositeDescription``.
  public static func composite(_ name: String, _ compositeName: String, isOptional: Bool = false) -> AttributeDescription {
    var attribute = AttributeDescription(name, .composite, isOptional: isOptional)
    attribute.compositeName = compositeName
    return attribute
  }

  /// Declares an attribute that each save computes from others.
  ///
  /// It is optional: a new object has no value before its first save. The next save that changes the object overwrites a value that you
  /// set.
  public static func derived(_ name: String, _ type: AttributeType, _ expression: String) -> AttributeDescription {
    var attribute = AttributeDescription(name, type, isOptional: true)
    attribute.derivationExpression = expression
    return attribute
  }

  /// Whether the value is derived from others.
  public var isDerived: Bool { derivationExpression != nil }
}

extension AttributeDescription: Codable {
  private enum CodingKeys: String, CodingKey {
    case name, type, isOptional, isTransient, defaultValue, validation, compositeName, derivationExpression, valueTransformerName
    case valueClassName, allowsExternalBinaryDataStorage, preservesValueInHistoryOnDeletion, allowsCloudEncryption
    case versionHashModifier, renamingIdentifier, userInfo
  }

  /// Decodes a declaration. Missing keys have their default values.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      try values.decode(String.self, forKey: .name), try values.decode(AttributeType.self, forKey: .type),
      isOptional: try values.decode(.isOptional, default: false), isTransient: try values.decode(.isTransient, default: false),
      default: try values.decodeIfPresent(StoreValue.self, forKey: .defaultValue),
      validation: try values.decode(.validation, default: .none),
      allowsExternalBinaryDataStorage: try values.decode(.allowsExternalBinaryDataStorage, default: false),
      versionHashModifier: try values.decodeIfPresent(String.self, forKey: .versionHashModifier),
      renamingIdentifier: try values.decodeIfPresent(String.self, forKey: .renamingIdentifier),
      userInfo: try values.decode(.userInfo, default: [:]))
    compositeName = try values.decodeIfPresent(String.self, forKey: .compositeName)
    derivationExpression = try values.decodeIfPresent(String.self, forKey: .derivationExpression)
    valueTransformerName = try values.decodeIfPresent(String.self, forKey: .valueTransformerName)
    valueClassName = try values.decodeIfPresent(String.self, forKey: .valueClassName)
    preservesValueInHistoryOnDeletion = try values.decode(.preservesValueInHistoryOnDeletion, default: false)
    allowsCloudEncryption = try values.decode(.allowsCloudEncryption, default: false)
  }

  /// Encodes the declaration, without default values.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(name, forKey: .name)
    try values.encode(type, forKey: .type)
    try values.encode(isOptional, forKey: .isOptional)
    try values.encode(isTransient, ifNot: false, forKey: .isTransient)
    try values.encodeIfPresent(defaultValue, forKey: .defaultValue)
    try values.encode(validation, ifNot: .none, forKey: .validation)
    try values.encodeIfPresent(compositeName, forKey: .compositeName)
    try values.encodeIfPresent(derivationExpression, forKey: .derivationExpression)
    try values.encodeIfPresent(valueTransformerName, forKey: .valueTransformerName)
    try values.encodeIfPresent(valueClassName, forKey: .valueClassName)
    try values.encode(allowsExternalBinaryDataStorage, ifNot: false, forKey: .allowsExternalBinaryDataStorage)
    try values.encode(preservesValueInHistoryOnDeletion, ifNot: false, forKey: .preservesValueInHistoryOnDeletion)
    try values.encode(allowsCloudEncryption, ifNot: false, forKey: .allowsCloudEncryption)
    try values.encodeIfPresent(versionHashModifier, forKey: .versionHashModifier)
    try values.encodeIfPresent(renamingIdentifier, forKey: .renamingIdentifier)
    try values.encode(userInfo, ifNot: [:], forKey: .userInfo)
  }
}

/// Declares a group of attributes, for use by *composite* attributes.
///
/// ```swift
/// let place = CompositeDescription("Place", [AttributeDescription("latitude", .double), AttributeDescription("longitude", .double)])
/// ```
///
/// An element may be composite itself. Stores keep each element that isn't composite as a separate value. Stores and queries name it by its
/// path, such as `home.latitude`.
public struct CompositeDescription: Sendable, Hashable, Codable {
  /// The name, unique in the model.
  public var name: String
  /// The elements, in any order.
  public var elements: [AttributeDescription]

  /// Declares a composite.
  public init(_ name: String, _ elements: [AttributeDescription]) {
    self.name = name
    self.elements = elements
  }
}
