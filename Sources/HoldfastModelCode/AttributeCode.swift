import HoldfastStore

/// The code of one attribute.
struct AttributeCode {
  let attribute: AttributeDescription
  let names: SwiftNames

  /// The name in code.
  var name: String { names.property(attribute.name) }

  /// Whether the row has slots for it.
  var hasSlots: Bool { !attribute.isTransient }

  /// The type of a value.
  var wrappedType: String {
    switch attribute.type {
    case .integer16: "Int16"
    case .integer32: "Int32"
    case .integer64: "Int64"
    case .float: "Float"
    case .double: "Double"
    case .decimal: "Decimal"
    case .string: "String"
    case .boolean: "Bool"
    case .date: "Date"
    case .binaryData: "Data"
    case .uuid: "UUID"
    case .uri: "URL"
    case .objectID: "ManagedObjectID"
    case .composite: names.structName(attribute.compositeName ?? "")
    case .transformable: attribute.isTransient ? "Any" : "Data"
    case .undefined: "Any"
    }
  }

  /// Whether the property can be nil.
  var isOptional: Bool { attribute.isOptional || attribute.isTransient || attribute.isDerived || attribute.type == .composite }

  /// The type of the property.
  var type: String { wrappedType + (isOptional ? "?" : "") }

  /// Whether a new object needs a value that it doesn't get from the model.
  var isRequired: Bool { !isOptional && [nil, .null].contains(attribute.defaultValue) }

  /// One sentence about the attribute.
  var comment: String {
    var parts = [AttributeCode.nouns[attribute.type] ?? "A value"]
    if attribute.isTransient { parts.append("kept in memory only") }
    if let expression = attribute.derivationExpression { parts.append("derived from `\(expression)`") }
    if let name = attribute.valueTransformerName { parts.append("encoded by \(name)") }
    if attribute.allowsExternalBinaryDataStorage { parts.append("perhaps in a file of its own") }
    return SwiftText.comment(parts.joined(separator: ", ")) + "."
  }

  private static let nouns: [AttributeType: String] = [
    .integer16: "A whole number of 16 bits", .integer32: "A whole number of 32 bits", .integer64: "A whole number of 64 bits",
    .float: "A floating-point number of 32 bits", .double: "A floating-point number of 64 bits", .decimal: "A decimal number",
    .string: "Text",
    .boolean: "A truth value", .date: "A point in time", .binaryData: "Bytes", .uuid: "A UUID", .uri: "A URI",
    .objectID: "The ID of an object",
    .composite: "A composite value", .transformable: "The bytes of a transformable value", .undefined: "A value of any type",
  ]

  // MARK: Accessors and slots

  func property(_ access: String) -> String {
    let variable = "/// \(comment)\n\(access)var \(name): \(type) {", place = "self[property: Slots.\(name)]"
    // A derived attribute has no setter.
    if attribute.isDerived { return "\(variable) \(place) }" }
    return "\(variable)\n  get { \(place) }\n  set { \(place) = newValue }\n}"
  }

  /// The number of slots, as an expression.
  var slotCount: String { "slotCount(of: \(type).self)" }

  // MARK: Declaration

  /// The call that declares the attribute.
  func declaration(in className: String) -> String {
    var arguments = [SwiftText.literal(attribute.name), "\\\(className).\(name)"] + options(isOptional: isOptional)
    if let text = defaultLiteral {
      arguments.append("default: \(text)")
    } else if let text = defaultSetting {
      arguments.append(text)
    }
    return SwiftText.call(attribute.isTransient ? ".transient" : ".property", arguments, width: 60)
  }

  /// The call that declares the attribute as an element of a composite attribute. It is optional in Swift.
  var element: String {
    let arguments = [SwiftText.literal(attribute.name), "\\.\(name)"] + options(isOptional: true) + (defaultSetting.map { [$0] } ?? [])
    return SwiftText.call(".element", arguments)
  }

  private func setting(_ path: String, _ value: String) -> String { ".setting(\\.\(path), \(value))" }

  private var defaultSetting: String? { attribute.defaultValue.map { setting("defaultValue", SwiftText.value($0)) } }

  /// The settings of a property that is optional in Swift or isn't, without the default value.
  private func options(isOptional: Bool) -> [String] {
    var options: [String] = []
    if attribute.type == .transformable || (attribute.isTransient && wrappedType == "Any" && attribute.type != .undefined) {
      options.append(".type(.\(attribute.type))")
    }
    if attribute.isTransient, let name = attribute.compositeName {
      options += [".type(.composite)", setting("compositeName", SwiftText.literal(name))]
    }
    if let expression = attribute.derivationExpression { options.append(".derived(\(SwiftText.literal(expression)))") }
    if attribute.isOptional != isOptional { options.append(setting("isOptional", "\(attribute.isOptional)")) }
    if let name = attribute.valueTransformerName { options.append(setting("valueTransformerName", SwiftText.literal(name))) }
    if let name = attribute.valueClassName { options.append(setting("valueClassName", SwiftText.literal(name))) }
    if attribute.allowsExternalBinaryDataStorage { options.append(".external") }
    if attribute.preservesValueInHistoryOnDeletion { options.append(".preservedInHistory") }
    if attribute.allowsCloudEncryption { options.append(setting("allowsCloudEncryption", "true")) }
    options += rules
    if let text = attribute.renamingIdentifier { options.append(".renamed(from: \(SwiftText.literal(text)))") }
    if let text = attribute.versionHashModifier { options.append(".versionHashModifier(\(SwiftText.literal(text)))") }
    if !attribute.userInfo.isEmpty { options.append(".userInfo(\(SwiftText.literal(attribute.userInfo)))") }
    return options
  }

  private var rules: [String] {
    let rules = attribute.validation
    var options: [String] = []
    if let value = rules.minimum { options.append(setting("validation.minimum", SwiftText.value(value))) }
    if let value = rules.maximum { options.append(setting("validation.maximum", SwiftText.value(value))) }
    switch (rules.minimumLength, rules.maximumLength) {
    case (let low?, let high?) where low <= high: options.append(".length(\(low)...\(high))")
    case (let low, let high):
      if let low { options.append(setting("validation.minimumLength", "\(low)")) }
      if let high { options.append(setting("validation.maximumLength", "\(high)")) }
    }
    if let text = rules.regularExpression { options.append(".pattern(\(SwiftText.literal(text)))") }
    return options
  }

  /// The default value as a literal of the property's type; nil if it has none.
  var defaultLiteral: String? {
    if attribute.isTransient || attribute.isDerived { return nil }
    switch attribute.defaultValue {
    case .int16(let value)?: return SwiftText.number(value)
    case .int32(let value)?: return SwiftText.number(value)
    case .int64(let value)?: return SwiftText.number(value)
    case .bool(let value)?: return "\(value)"
    case .double(let value)? where value.isFinite: return "\(value)"
    case .string(let text)?: return SwiftText.literal(text)
    default: return nil
    }
  }
}
