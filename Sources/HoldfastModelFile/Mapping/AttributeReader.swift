import HoldfastStore

/// Reads declarations from `attribute` elements.
enum AttributeReader {
  static func attribute(_ element: ModelElement, of owner: String) throws(ModelFileError) -> AttributeDescription {
    let reader = ElementReader(element, "attribute", of: owner)
    let type = try type(reader)
    var attribute = AttributeDescription(
      try reader.required("name"), type, isOptional: try reader.flag("optional"), isTransient: try reader.flag("transient"),
      allowsExternalBinaryDataStorage: try reader.flag("allowsExternalBinaryDataStorage"),
      versionHashModifier: reader.text("versionHashModifier"), renamingIdentifier: reader.text("elementID"),
      userInfo: try reader.userInfo())
    if try reader.flag("derived") { attribute.derivationExpression = try reader.required("derivationExpression") }
    // Xcode gives a number the default 0 before it becomes derived.
    if !attribute.isDerived { attribute.defaultValue = try defaultValue(reader, type) }
    attribute.validation = try validation(reader, type)
    attribute.preservesValueInHistoryOnDeletion = try reader.flag("preserveAfterDeletion")
    attribute.allowsCloudEncryption = try reader.flag("allowsCloudEncryption")
    if type == .composite { attribute.compositeName = try reader.required("composite") }
    // Xcode keeps both when a transformable attribute gets another type. They have no effect then, but the model keeps them, too.
    attribute.valueTransformerName = reader.text("valueTransformerName")
    attribute.valueClassName = reader.text("customClassName")
    return attribute
  }

  static func type(_ reader: ElementReader) throws(ModelFileError) -> AttributeType {
    guard let text = reader.text("attributeType") else { return .undefined }
    guard let type = AttributeTypeText.types[text] else { throw reader.invalid("attributeType", "not a known type") }
    return type
  }

  private static func defaultValue(_ reader: ElementReader, _ type: AttributeType) throws(ModelFileError) -> StoreValue? {
    if let converted = ConvertedDefault.value(reader, type) { return converted }
    return switch type {
    // `defaultValueString` isn't read: it contains the date in the language in which it was entered.
    case .date: try reader.value("defaultDateTimeInterval", .date)
    case .binaryData, .transformable, .objectID, .composite, .undefined: nil
    default: try reader.value("defaultValueString", type)
    }
  }

  private static func validation(_ reader: ElementReader, _ type: AttributeType) throws(ModelFileError) -> AttributeValidation {
    switch type {
    case .string, .uri:
      AttributeValidation(
        minimumLength: try length(reader, "minValueString"), maximumLength: try length(reader, "maxValueString"),
        regularExpression: reader.text("regularExpressionString"))
    case .date:
      .range(try reader.value("minDateTimeInterval", .date), try reader.value("maxDateTimeInterval", .date))
    case _ where type.isNumber:
      .range(try reader.value("minValueString", type), try reader.value("maxValueString", type))
    // Rules in the file remain from an earlier type of the attribute.
    default: .none
    }
  }

  /// A length. Like an integer, it may have a fraction of zero from an earlier type of the attribute.
  private static func length(_ reader: ElementReader, _ name: String) throws(ModelFileError) -> Int? {
    guard case .int64(let length)? = try reader.value(name, .integer64) else { return nil }
    guard length >= 0 else { throw reader.invalid(name, "negative") }
    return Int(length)
  }
}

/// The spelling of types in model files.
enum AttributeTypeText {
  static let types: [String: AttributeType] = {
    var types = Dictionary(uniqueKeysWithValues: AttributeType.allCases.compactMap { type in text(type).map { ($0, type) } })
    types["Undefined"] = .undefined
    types["Objectid"] = .objectID
    types["Object ID"] = .objectID
    return types
  }()

  /// The text of a type; nil for a type that is written by omitting the XML attribute.
  static func text(_ type: AttributeType) -> String? {
    switch type {
    case .integer16: "Integer 16"
    case .integer32: "Integer 32"
    case .integer64: "Integer 64"
    case .decimal: "Decimal"
    case .double: "Double"
    case .float: "Float"
    case .string: "String"
    case .boolean: "Boolean"
    case .date: "Date"
    case .binaryData: "Binary"
    case .uuid: "UUID"
    case .uri: "URI"
    case .transformable: "Transformable"
    case .objectID: "ObjectID"
    case .composite: "Composite"
    case .undefined: nil
    }
  }
}
