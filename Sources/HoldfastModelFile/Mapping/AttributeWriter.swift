import HoldfastStore

/// Writes `attribute` elements of declarations.
enum AttributeWriter {
  static func element(_ attribute: AttributeDescription, of owner: String) throws(ModelFileError) -> ModelElement {
    let what = "attribute \(attribute.name.quoted) of \(owner)"
    var element = ModelElement("attribute", ["name": attribute.name])
    element.mark("optional", attribute.isOptional)
    element.mark("transient", attribute.isTransient)
    element["attributeType"] = AttributeTypeText.text(attribute.type)
    element["composite"] = attribute.compositeName
    element.mark("allowsExternalBinaryDataStorage", attribute.allowsExternalBinaryDataStorage)
    element.mark("allowsCloudEncryption", attribute.allowsCloudEncryption)
    element.mark("derived", attribute.isDerived)
    element["derivationExpression"] = attribute.derivationExpression
    try writeValues(of: attribute, what, to: &element)
    try writeRules(attribute.validation, of: what, to: &element)
    element["usesScalarValueType"] = usesScalar(attribute.type).map { $0 ? "YES" : "NO" }
    try element.say("elementID", attribute.renamingIdentifier, "renaming identifier", of: what)
    try element.say("versionHashModifier", attribute.versionHashModifier, "hash modifier", of: what)
    element.mark("preserveAfterDeletion", attribute.preservesValueInHistoryOnDeletion)
    try element.say("valueTransformerName", attribute.valueTransformerName, "transformer name", of: what)
    try element.say("customClassName", attribute.valueClassName, "value class name", of: what)
    element.add(userInfo: attribute.userInfo)
    return element
  }

  /// Writes lengths and patterns.
  private static func writeRules(_ rule: AttributeValidation, of what: String, to element: inout ModelElement) throws(ModelFileError) {
    try element.say("regularExpressionString", rule.regularExpression, "pattern", of: what)
    if let length = rule.minimumLength { try element.say("minValueString", length, "minimum length", of: what) }
    if let length = rule.maximumLength { try element.say("maxValueString", length, "maximum length", of: what) }
  }

  private static func writeValues(
    of attribute: AttributeDescription, _ what: String, to element: inout ModelElement
  ) throws(ModelFileError) {
    let rule = attribute.validation
    for (name, value) in [("min", rule.minimum), ("max", rule.maximum), ("default", attribute.defaultValue)] {
      guard let value else { continue }
      guard let text = ValueText.text(value), !text.isEmpty || attribute.type == .string else {
        throw ModelFileError(unwritable: what, unsayable(value, attribute.type, isDefault: name == "default"))
      }
      if case .date(let seconds) = value {
        element["\(name)DateTimeInterval"] = text
        element["\(name)ValueString"] = DateText.text(seconds)
      } else {
        element["\(name)ValueString"] = text
      }
    }
  }

  /// Why a model file can't represent a value.
  private static func unsayable(_ value: StoreValue, _ type: AttributeType, isDefault: Bool) -> String {
    let kind = isDefault ? "default value" : "bound"
    return switch value {
    case .null: "A model file can't contain nil as a \(kind). Declare the attribute without one."
    case .uri: "A model file can't contain an empty \(kind). Declare the attribute without one."
    default: "A model file can't contain a \(kind) of type \(type.rawValue)."
    }
  }

  /// Whether generated code uses a scalar instead of an object, for types where Xcode has this option.
  private static func usesScalar(_ type: AttributeType) -> Bool? {
    switch type {
    case .integer16, .integer32, .integer64, .double, .float, .boolean: true
    case .date, .uuid: false
    default: nil
    }
  }
}

/// The text that Xcode writes beside a date's seconds. It is never read.
enum DateText {
  /// Nil for dates outside of the years 1 to 9999.
  static func text(_ secondsSince2001: Double) -> String? {
    guard (-63_113_904_000..<252_455_616_000).contains(secondsSince2001) else { return nil }
    let seconds = Int(secondsSince2001.rounded(.down))
    // Days since 0000-03-01 in the Gregorian calendar: 2001-01-01 is the 730,791st. Years then end with their leap day.
    let dayOfAll = floorDivided(seconds, by: 86_400) + 730_791
    let second = seconds - floorDivided(seconds, by: 86_400) * 86_400
    let era = floorDivided(dayOfAll, by: 146_097), day = dayOfAll - era * 146_097
    let yearOfEra = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
    let dayOfYear = day - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let dayOfMonth = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2)) "
      + "\(padded(second / 3600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2)) +0000"
  }

  private static func floorDivided(_ a: Int, by b: Int) -> Int { (a - ((a % b) + b) % b) / b }

  private static func padded(_ number: Int, _ count: Int) -> String {
    let text = "\(number)"
    return String(repeating: "0", count: max(0, count - text.count)) + text
  }
}

extension ModelElement {
  /// Writes a boolean like Xcode, which omits false.
  mutating func mark(_ name: String, _ isSo: Bool) { if isSo { self[name] = "YES" } }

  /// Writes a text. In model files an empty text is the same as a missing one, so it is refused.
  ///
  /// - Parameters:
  ///   - kind: The term for the text, for the error: "hash modifier".
  ///   - what: The element that has the text, for the error.
  mutating func say(_ name: String, _ text: String?, _ kind: String, of what: String) throws(ModelFileError) {
    if text?.isEmpty == true { throw ModelFileError(unwritable: what, "A model file can't contain an empty \(kind). Omit it.") }
    self[name] = text
  }

  /// Writes a number that can't be negative in model files.
  mutating func say(_ name: String, _ count: Int, _ kind: String, of what: String) throws(ModelFileError) {
    if count < 0 { throw ModelFileError(unwritable: what, "A model file can't contain a \(kind) of \(count), which is below zero.") }
    self[name] = "\(count)"
  }

  /// Adds `userInfo`, sorted by key like Xcode's.
  mutating func add(userInfo: [String: String]) {
    if userInfo.isEmpty { return }
    let entries = userInfo.sorted { $0.key < $1.key }.map { ModelElement("entry", ["key": $0.key, "value": $0.value]) }
    children.append(ModelElement("userInfo", children: entries))
  }

  /// Adds a list of lists of names: constraints.
  mutating func add(_ groups: [[String]], as list: String, _ group: String, _ member: String) {
    if groups.isEmpty { return }
    let elements = groups.map { names in ModelElement(group, children: names.map { ModelElement(member, ["value": $0]) }) }
    children.append(ModelElement(list, children: elements))
  }
}

extension ModelFileError {
  /// The error for something in a model that a model file can't represent.
  init(unwritable what: String?, _ reason: String) {
    self.init(.unwritable, operation: "write the model", element: what, reason: reason)
  }
}
