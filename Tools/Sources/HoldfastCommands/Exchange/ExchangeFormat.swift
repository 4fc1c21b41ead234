import Foundation
import Holdfast
import HoldfastStore

/// The form of exported objects, which other programs can read, and import reads again.
///
/// Every object has an `id`, its entity's name and a number: `Dog/7`. Objects refer to each other by it. Values are text, except that JSON
/// has its own numbers and truth values; the text of each value is that of ``ExchangeText``. Each link is exported once, at one of its ends.
public enum ExchangeFormat: String, Sendable, CaseIterable {
  /// One file: an object with a list of objects for each entity. A missing member is nil.
  case json
  /// A folder with a file for each entity. An empty field is nil, and `""` an empty text.
  case csv

  /// The name of the column or member with the object's ID.
  static let idName = "id"

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
    case .float: Float(text).map { .float($0) }
    case .double: Double(text).map { .double($0) }
    case .decimal: decimal(text).map { .decimal($0) }
    case .string: .string(text)
    case .uri: .uri(text)
    case .date: seconds(text).map { .date($0) }
    case .uuid: UUID(uuidString: text).map { .uuid($0) }
    case .binaryData, .transformable, .composite, .undefined: Data(base64Encoded: text).map { .data($0) }
    default: nil
    }
  }

  /// Foundation's parser ignores what follows a number.
  private static func decimal(_ text: String) -> Decimal? {
    guard text == "NaN" || text.wholeMatch(of: /[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?/) != nil else { return nil }
    return Decimal(string: text)
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
    if text.hasPrefix(prefix) { return Double(text.dropFirst(prefix.count)) }
    guard let match = text.wholeMatch(of: /([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?(Z|[+-][0-9]{2}:?[0-9]{2})/),
      let whole = try? Date(String(match.output.1 + match.output.3), strategy: .iso8601)
    else { return nil }
    let fraction = match.output.2.flatMap { Double("0\($0)") } ?? 0
    return whole.timeIntervalSinceReferenceDate + fraction
  }
}
