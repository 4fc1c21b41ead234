public import HoldfastStore

/// A rule or setting of an attribute in a class's declaration, such as ``unique`` or ``range(_:)-(ClosedRange<Bound>)``.
public struct AttributeOption: Sendable {
  /// Changes the attribute's description.
  let apply: @Sendable (inout DeclaredAttribute) -> Void

  /// No two objects have the same value. Objects without a value are exempt.
  public static var unique: AttributeOption { AttributeOption { $0.isUnique = true } }

  /// The attribute type in stores. By default it is the widest that the Swift type can represent, such as Integer 64 for `Int`.
  public static func type(_ type: AttributeType) -> AttributeOption { AttributeOption { $0.description.type = type } }

  /// Numbers or dates in a range.
  public static func range<Bound: AttributeValue & Comparable>(_ range: ClosedRange<Bound>) -> AttributeOption {
    bounds(range.lowerBound, range.upperBound)
  }

  /// Numbers or dates from a minimum on. Another option can set the maximum.
  public static func range<Bound: AttributeValue & Comparable>(_ range: PartialRangeFrom<Bound>) -> AttributeOption {
    bounds(range.lowerBound, nil)
  }

  /// Numbers or dates up to a maximum. Another option can set the minimum.
  public static func range<Bound: AttributeValue & Comparable>(_ range: PartialRangeThrough<Bound>) -> AttributeOption {
    bounds(nil, range.upperBound)
  }

  /// Text with a number of UTF-16 code units in a range, as in Core Data.
  public static func length(_ range: ClosedRange<Int>) -> AttributeOption { lengths(range.lowerBound, range.upperBound) }

  /// Text with at least a number of UTF-16 code units. Another option can set the maximum.
  public static func length(_ range: PartialRangeFrom<Int>) -> AttributeOption { lengths(range.lowerBound, nil) }

  /// Text with at most a number of UTF-16 code units. Another option can set the minimum.
  public static func length(_ range: PartialRangeThrough<Int>) -> AttributeOption { lengths(nil, range.upperBound) }

  /// Text that entirely matches a regular expression; see ``/HoldfastStore/AttributeValidation/regularExpression``.
  public static func pattern(_ expression: String) -> AttributeOption {
    AttributeOption { $0.description.validation.regularExpression = expression }
  }

  /// Bytes that stores may keep in separate files. Has no effect on elements of composite attributes.
  public static var external: AttributeOption { AttributeOption { $0.description.allowsExternalBinaryDataStorage = true } }

  /// A value that each save computes from an expression, such as `"now()"`. Those with names can be written as key paths instead, such as
  /// `.derived(countOf: \Dog.walks)`.
  public static func derived(_ expression: String) -> AttributeOption {
    AttributeOption {
      $0.description.derivationExpression = expression
      $0.description.isOptional = true
    }
  }

  /// The name in the previous version of the model.
  public static func renamed(from name: String) -> AttributeOption { AttributeOption { $0.description.renamingIdentifier = name } }

  /// Text added to the version hash, to distinguish versions that are otherwise equal.
  public static func versionHashModifier(_ text: String) -> AttributeOption {
    AttributeOption { $0.description.versionHashModifier = text }
  }

  /// Whether the history keeps the last value of deleted objects; see
  /// ``/HoldfastStore/AttributeDescription/preservesValueInHistoryOnDeletion``.
  public static var preservedInHistory: AttributeOption { AttributeOption { $0.description.preservesValueInHistoryOnDeletion = true } }

  /// An attribute that is kept in memory only, for ``PropertyDeclaration/transient(_:_:_:)``. It may have any type.
  public static var transient: AttributeOption { AttributeOption { $0.description.isTransient = true } }

  /// Values of any `Codable` type, stored as JSON, for `PropertyDeclaration.codable`.
  public static var codable: AttributeOption { AttributeOption { $0.description.type = .transformable } }

  /// Values that the default transformer converts to bytes and back, for ``PropertyDeclaration/transformable(_:_:_:)``.
  public static var transformable: AttributeOption { AttributeOption { $0.description.type = .transformable } }

  /// Values that a registered transformer converts to bytes and back, for ``PropertyDeclaration/transformable(_:_:_:)``.
  public static func transformable(by transformer: String) -> AttributeOption {
    AttributeOption {
      $0.description.type = .transformable
      $0.description.valueTransformerName = transformer
    }
  }

  /// Values that a transformer converts to bytes and back, for ``PropertyDeclaration/transformable(_:_:_:)``.
  ///
  /// In the model, the transformer has the name of its type. The container registers it, unless another one has this name. So two
  /// transformers of one type must have the same settings: register others under names of their own, and use
  /// ``transformable(by:)-(String)``.
  public static func transformable(by transformer: some AttributeTransformer) -> AttributeOption {
    let name = String(describing: Swift.type(of: transformer))
    return AttributeOption {
      $0.description.type = .transformable
      $0.description.valueTransformerName = name
      $0.transformer = (name, transformer)
    }
  }

  /// Custom text by key.
  public static func userInfo(_ userInfo: [String: String]) -> AttributeOption { AttributeOption { $0.description.userInfo = userInfo } }

  /// Any setting of the attribute's description, such as `.setting(\.allowsCloudEncryption, true)`.
  public static func setting<Value: Sendable>(
    _ keyPath: any WritableKeyPath<AttributeDescription, Value> & Sendable, _ value: Value
  ) -> AttributeOption {
    AttributeOption { $0.description[keyPath: keyPath] = value }
  }

  private static func bounds(_ minimum: (any AttributeValue)?, _ maximum: (any AttributeValue)?) -> AttributeOption {
    let (minimum, maximum) = (minimum?.storeValue, maximum?.storeValue)
    return AttributeOption {
      if let minimum { $0.description.validation.minimum = minimum }
      if let maximum { $0.description.validation.maximum = maximum }
    }
  }

  private static func lengths(_ minimum: Int?, _ maximum: Int?) -> AttributeOption {
    AttributeOption {
      if let minimum { $0.description.validation.minimumLength = minimum }
      if let maximum { $0.description.validation.maximumLength = maximum }
    }
  }
}

/// An attribute while its options are applied.
struct DeclaredAttribute {
  var description: AttributeDescription
  var isUnique = false
  /// The key paths of a derived attribute; nil if its expression is text.
  var derivation: DerivedKeyPaths?
  /// The transformer that the container registers, and its name.
  var transformer: (name: String, transformer: any AttributeTransformer)?

  /// The attribute with the given options. Bounds and the default value get the attribute's type, if they can be represented in it.
  init(_ name: String, _ type: AttributeType, isOptional: Bool, default value: StoreValue?, _ options: [AttributeOption]) {
    description = AttributeDescription(name, type, isOptional: isOptional, default: value)
    for option in options { option.apply(&self) }
    let type = description.type
    func converted(_ value: StoreValue?) -> StoreValue? { value.map { $0.ofProperty(in: type) ?? $0 } }
    description.defaultValue = converted(description.defaultValue)
    description.validation.minimum = converted(description.validation.minimum)
    description.validation.maximum = converted(description.validation.maximum)
  }

  /// The description for a model, with the names of key paths.
  var modelDescription: AttributeDescription {
    guard let derivation else { return description }
    var result = description
    result.derivationExpression = derivation.expression
    return result
  }
}

extension AttributeTypeSet {
  /// The type of an attribute whose declaration names none: the widest type of numbers, and text rather than URIs.
  var declaredType: AttributeType {
    for type in [AttributeType.integer64, .integer32, .string, .binaryData] where contains(type) { return type }
    return types.first ?? .undefined
  }
}
