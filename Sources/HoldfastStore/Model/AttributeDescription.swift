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
  /// Whether an object may be saved without a value. False unless said.
  public var isOptional: Bool
  /// Whether the value lives in memory only: no store keeps it.
  public var isTransient: Bool
  /// The value that a new object starts with, or nil for none. Its case must fit ``type``.
  public var defaultValue: StoreValue?
  /// What a save demands of values.
  public var validation: AttributeValidation
  /// The name of the ``CompositeDescription`` whose elements the attribute has; for type ``AttributeType/composite`` alone.
  public var compositeName: String?
  /// The expression that a *derived* attribute is worked out by at each save; nil for attributes that are set. See
  /// ``Derivation`` for what may be said.
  public var derivationExpression: String?
  /// The name of the transformer of a ``AttributeType/transformable`` attribute; nil for the default one.
  public var valueTransformerName: String?
  /// The name of the Swift or Objective-C class of the values of a transformable attribute, for generated code.
  public var valueClassName: String?
  /// Whether a store may keep large values in files of their own. Enters the version hash.
  public var allowsExternalBinaryDataStorage: Bool
  /// Whether history keeps the last value of deleted objects. Enters the version hash.
  public var preservesValueInHistoryOnDeletion: Bool
  /// Whether a cloud mirror may encrypt the value.
  public var allowsCloudEncryption: Bool
  /// Text that enters the version hash, to tell two versions apart that look alike.
  public var versionHashModifier: String?
  /// The name in the previous version of the model, when it was another.
  public var renamingIdentifier: String?
  /// Text of the model's author, by key.
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

  /// Declares an attribute whose values a transformer turns into bytes and back.
  ///
  /// - Parameters:
  ///   - name: the name.
  ///   - transformer: the name under which the transformer is registered; nil for the default one.
  ///   - isOptional: whether an object may be saved without a value.
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

  /// Declares an attribute that is worked out from others at each save. It is optional: a new object has no value before its
  /// first save. What somebody sets is overwritten by the next save that changes the object.
  public static func derived(_ name: String, _ type: AttributeType, _ expression: String) -> AttributeDescription {
    var attribute = AttributeDescription(name, type, isOptional: true)
    attribute.derivationExpression = expression
    return attribute
  }

  /// Whether the value is worked out from others.
  public var isDerived: Bool { derivationExpression != nil }
}

extension AttributeDescription: Codable {
  private enum CodingKeys: String, CodingKey {
    case name, type, isOptional, isTransient, defaultValue, validation, compositeName, derivationExpression, valueTransformerName
    case valueClassName, allowsExternalBinaryDataStorage, preservesValueInHistoryOnDeletion, allowsCloudEncryption
    case versionHashModifier, renamingIdentifier, userInfo
  }

  /// Decodes a declaration; what is not there has its default.
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

  /// Encodes the declaration without what has its default.
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

/// Declares a group of attributes that entities can have as one: a *composite* attribute has the elements of one.
///
/// ```swift
/// let place = CompositeDescription("Place", [AttributeDescription("latitude", .double), AttributeDescription("longitude", .double)])
/// ```
///
/// An element may be composite itself. Stores keep each element that is no group as a value of its own, named by the path to it
/// (`home.latitude`); queries name it so.
public struct CompositeDescription: Sendable, Hashable, Codable {
  /// The name, unique in the model.
  public var name: String
  /// The elements, in any order.
  public var elements: [AttributeDescription]

  /// Declares a group.
  public init(_ name: String, _ elements: [AttributeDescription]) {
    self.name = name
    self.elements = elements
  }
}
