import Foundation
import Holdfast
import HoldfastStore

/// The form of exported objects, which other programs can read, and import reads again.
///
/// Every object has an `id`, its entity's name and a number: `Dog/7`. Objects refer to each other by it. If a property of the entity has this
/// name, it is `_id`. Values are text, except that JSON has its own numbers and truth values; the text of each value is that of
/// ``ExchangeText``. Each link is exported once, at one of its ends.
public enum ExchangeFormat: String, Sendable, CaseIterable {
  /// One file: an object with a list of objects for each entity. A missing member is nil.
  case json
  /// A folder with a file for each entity. An empty field is nil, and `""` an empty text.
  case csv

  /// The format that a path's extension names: JSON for `.json`, otherwise a folder of CSV files.
  public init(path: String) { self = path.lowercased().hasSuffix(".json") ? .json : .csv }
}

extension ManagedObjectModel {
  /// The relationships of an entity that are exported: of two ends, the ordered one, or else the to-one one, or else the first one.
  func exchangedRelationships(of entity: Entity) -> [Relationship] {
    entity.relationships.filter { relationship in
      guard let inverse = inverse(of: relationship) else { return true }
      if relationship.isOrdered || inverse.isOrdered { return relationship.isOrdered }
      if relationship.isToMany != inverse.isToMany { return !relationship.isToMany }
      return (relationship.entityIndex, relationship.index) <= (inverse.entityIndex, inverse.index)
    }
  }

  /// The attributes of an entity that are exported. Values of derived ones follow from others.
  func exchangedAttributes(of entity: Entity) -> [Attribute] { entity.attributes.filter { $0.derivation == nil } }
}

extension ManagedObjectModel.Entity {
  /// The name of the column or member with an object's ID: `id`, after as many underscores as no property has.
  var exchangedIDName: String {
    let names = Set(attributes.map(\.name) + relationships.map(\.name))
    var name = "id"
    while names.contains(name) { name = "_" + name }
    return name
  }
}

/// The text of values in exported files. Reading it returns exactly the same value.
enum ExchangeText {
  /// The text of a value that isn't an object; nil for no value.
  static func text(_ value: StoreValue) -> String? {
    switch value {
    case .null, .objectID, .externalData: nil
    case .bool(let value): value ? "true" : "false"
    case .int16(let number): "\(number)"
    case .int32(let number): "\(number)"
    case .int64(let number): "\(number)"
    case .float(let number): "\(number)"
    case .double(let number): "\(number)"
    case .decimal(let number): "\(number)"
    case .string(let text), .uri(let text): text
    case .date(let seconds): date(seconds)
    case .uuid(let id): id.uuidString
    case .data(let bytes): bytes.base64EncodedString()
    }
  }

  /// The value of a text for an attribute of some type; nil if it has no such form.
  static func value(_ text: String, _ type: AttributeType) -> StoreValue? {
    switch type {
    case .boolean: ["true": .bool(true), "false": .bool(false), "1": .bool(true), "0": .bool(false)][text]
    case .integer16: Int16(text).map { .int16($0) }
    case .integer32: Int32(text).map { .int32($0) }
    case .integer64: Int64(text).map { .int64($0) }
    case .float: number(text).map { .float($0) }
    case .double: number(text).map { .double($0) }
    case .decimal: decimal(text).map { .decimal($0) }
    case .string: .string(text)
    case .uri: .uri(text)
    case .date: seconds(text).map { .date($0) }
    case .uuid: UUID(uuidString: text).map { .uuid($0) }
    case .binaryData, .transformable, .composite, .undefined: Data(base64Encoded: text).map { .data($0) }
    default: nil
    }
  }

  /// Nil for a number that is too large for its type. The standard library returns infinity. The text of a NaN can have digits.
  private static func number<Number: BinaryFloatingPoint & LosslessStringConvertible>(_ text: String) -> Number? {
    guard let number = Number(text), !number.isInfinite || !text.contains(where: \.isNumber) else { return nil }
    return number
  }

  /// Foundation's parser ignores what follows a number, and rounds a number with too many digits.
  private static func decimal(_ text: String) -> Decimal? {
    if text == "NaN" { return .nan }
    guard text.wholeMatch(of: /[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?/) != nil, let number = Decimal(string: text) else {
      return nil
    }
    return digits("\(number)") == digits(text) ? number : nil
  }

  /// The digits of a number from the first to the last one that isn't 0.
  static func digits(_ text: String) -> Substring {
    var digits = Substring(text.prefix { $0 != "e" && $0 != "E" }.filter(\.isNumber)).drop { $0 == "0" }
    while digits.last == "0" { digits.removeLast() }
    return digits
  }

  // MARK: Dates

  private static let prefix = "seconds:"

  /// ISO 8601 in UTC with as many digits as needed, or the seconds since 2001 for dates that it can't represent.
  static func date(_ seconds: Double) -> String {
    let whole = seconds.rounded(.down), fraction = seconds - whole
    // The years 1 to 9999.
    if whole >= -63_114_076_800, whole <= 252_423_993_599 {
      let date = Date(timeIntervalSinceReferenceDate: whole).formatted(.iso8601).dropLast()
      let digits = "\(fraction)", text = date + (fraction == 0 ? "" : digits.dropFirst()) + "Z"
      if Self.seconds(String(text))?.bitPattern == seconds.bitPattern { return String(text) }
    }
    return "\(prefix)\(seconds)"
  }

  static func seconds(_ text: String) -> Double? {
    if text.hasPrefix(prefix) { return number(String(text.dropFirst(prefix.count))) }
    guard let match = text.wholeMatch(of: /([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?(Z|[+-][0-9]{2}:?[0-9]{2})/),
      // Foundation's parser accepts a 30 February, and returns a day in March.
      let local = try? Date("\(match.output.1)Z", strategy: .iso8601), local.formatted(.iso8601).dropLast() == match.output.1,
      let whole = try? Date(String(match.output.1 + match.output.3), strategy: .iso8601)
    else { return nil }
    let fraction = match.output.2.flatMap { Double("0\($0)") } ?? 0
    return whole.timeIntervalSinceReferenceDate + fraction
  }
}
