public import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PersistenceError {
  /// Returns a message about the failure that can be shown to users of an application.
  ///
  /// Several failures produce one line each. The message never contains the rejected value.
  ///
  /// To translate the message, pass a dictionary with the keys of Core Data's `NSManagedObjectModel.localizationDictionary`:
  ///
  /// | key | value |
  /// |---|---|
  /// | `Property/rating/Entity/BowTie`, `Property/rating` | the property's name |
  /// | `Entity/BowTie` | the entity's name |
  /// | `ErrorString/{property} may be at most {bound}.` | the sentence, with the placeholders in braces |
  ///
  /// ```swift
  /// static let german = [
  ///   "Property/rating": "Die Bewertung",
  ///   "ErrorString/{property} may be at most {bound}.": "{property} darf höchstens {bound} sein.",
  /// ]
  /// static func show(_ error: PersistenceError) -> String { error.userMessage(german) }
  /// ```
  ///
  /// The English sentences are in ``validationSentences``. Other errors, such as those of a class's own validation, use ``reason``.
  ///
  /// - Parameters:
  ///   - dictionary: names and sentences in another language. Defaults to empty, which gives English.
  ///   - text: formats a bound. Defaults to digits with a decimal point, and dates in ISO 8601.
  public func userMessage(_ dictionary: [String: String] = [:], text: ((StoreValue) -> String)? = nil) -> String {
    if !failures.isEmpty { return failures.map { $0.userMessage(dictionary, text: text) }.joined(separator: "\n") }
    let english = PersistenceError.validationSentences[code] ?? reason
    let sentence = dictionary["ErrorString/" + english] ?? english
    let entity = objectID?.entityName ?? ""
    let bound = validation?.bound.map { text?($0) ?? ValidationSentence.text($0) } ?? ""
    return ValidationSentence.filled(
      sentence,
      [
        "property": ValidationSentence.property(property ?? "", entity, dictionary), "entity": dictionary["Entity/" + entity] ?? entity,
        "bound": bound,
      ])
  }

  /// The English sentence for each kind of validation failure.
  ///
  /// The placeholders `{property}`, `{entity}` and `{bound}` are replaced when a message is made.
  public static let validationSentences: [Code: String] = [
    .missingMandatoryValue: "{property} must have a value.",
    .tooFewObjects: "{property} must have at least {bound}.",
    .tooManyObjects: "{property} may have at most {bound}.",
    .deniedDelete: "{entity} cannot be deleted while it has {property}.",
    .numberTooLarge: "{property} may be at most {bound}.",
    .numberTooSmall: "{property} must be at least {bound}.",
    .dateTooLate: "{property} may not be later than {bound}.",
    .dateTooSoon: "{property} may not be earlier than {bound}.",
    .invalidDate: "{property} is not a date.",
    .stringTooLong: "{property} has too many characters: the maximum is {bound}.",
    .stringTooShort: "{property} has too few characters: the minimum is {bound}.",
    .stringPatternMismatch: "{property} does not have the right form.",
    .invalidURI: "{property} is not an address.",
  ]
}

/// Composes messages about validation failures.
enum ValidationSentence {
  /// The sentence with its placeholders replaced. Replacements aren't searched for placeholders.
  static func filled(_ sentence: String, _ parts: [String: String]) -> String {
    var out = "", rest = sentence[...]
    while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
      let name = String(rest[rest.index(after: open)..<close])
      out += rest[..<open] + (parts[name] ?? "{\(name)}")
      rest = rest[rest.index(after: close)...]
    }
    return out + rest
  }

  /// The property's localized name, or its name as words: `timesWorn` becomes "Times worn".
  static func property(_ name: String, _ entity: String, _ dictionary: [String: String]) -> String {
    if let said = dictionary["Property/\(name)/Entity/\(entity)"] ?? dictionary["Property/\(name)"] { return said }
    var words = ""
    var wasLower = false
    for character in name {
      if character == "_" || character == "." {
        words += " "
      } else if character.isUppercase && wasLower {
        words += " " + character.lowercased()
      } else {
        words.append(character)
      }
      wasLower = character.isLowercase || character.isNumber
    }
    return words.prefix(1).uppercased() + words.dropFirst()
  }

  /// A bound as text: digits with a decimal point, dates in ISO 8601 and UTC.
  static func text(_ bound: StoreValue) -> String {
    switch bound {
    case .double(let value):
      if value == value.rounded(), abs(value) < 1e15 { return "\(Int64(value))" }
      return "\(value)"
    case .float(let value): return "\(value)"
    case .decimal(let value): return value.description
    case .date(let seconds): return Date(timeIntervalSinceReferenceDate: seconds).ISO8601Format()
    default: return bound.integer.map { "\($0)" } ?? ""
    }
  }
}
