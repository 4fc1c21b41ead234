#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A value that crosses the boundary between the framework and a store: one value of a row.
///
/// Reading a property by name returns a `PropertyValue` of Holdfast, which can also contain objects.
///
/// The set of cases is fixed. The framework converts all other attribute types to these values, in the same way for every store. Hot paths
/// keep values in rows (``RowBatch``) and create no `StoreValue`.
public enum StoreValue: Sendable, Hashable {
  /// No value.
  case null
  /// A Boolean value.
  case bool(Bool)
  /// A 16-bit whole number.
  case int16(Int16)
  /// A 32-bit whole number.
  case int32(Int32)
  /// A 64-bit whole number.
  case int64(Int64)
  /// A 32-bit floating-point number.
  case float(Float)
  /// A 64-bit floating-point number.
  case double(Double)
  /// A decimal number.
  case decimal(Decimal)
  /// Text.
  case string(String)
  /// A date, in seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  /// A UUID.
  case uuid(UUID)
  /// A URI, as text.
  case uri(String)
  /// Bytes.
  case data(Data)
  /// The name of an external file beside the store's file, which contains the bytes of the value.
  ///
  /// It occurs in rows, for attributes that allow it (``ManagedObjectModel/Attribute/allowsExternalBinaryDataStorage``). Only its store
  /// creates it, and it belongs to one attribute of one object. ``ExternalDataRequest`` reads the bytes.
  case externalData(UUID)
  /// The destination object of a to-one relationship.
  case objectID(ManagedObjectID)

  /// A date.
  public static func date(_ date: Date) -> StoreValue { .date(date.timeIntervalSinceReferenceDate) }

  /// The date; nil for another kind of value.
  public var date: Date? { if case .date(let seconds) = self { Date(timeIntervalSinceReferenceDate: seconds) } else { nil } }

  /// Whether an attribute of this type may have the value. ``null`` fits every type.
  public func fits(_ type: AttributeType) -> Bool {
    switch (self, type) {
    case (.null, _), (.bool, .boolean), (.int16, .integer16), (.int32, .integer32), (.int64, .integer64), (.float, .float),
      (.double, .double), (.decimal, .decimal), (.string, .string), (.date, .date), (.uuid, .uuid), (.uri, .uri),
      (.data, .binaryData), (.data, .transformable), (.externalData, .binaryData), (.externalData, .transformable):
      true
    case (.objectID(let id), .objectID): !id.isTemporaryID
    default: false
    }
  }

  /// Whether the value is a floating-point number, date or decimal that is NaN. In queries and uniqueness constraints, NaN equals nothing,
  /// not even itself.
  public var isNaN: Bool {
    switch self {
    case .float(let value): value.isNaN
    case .double(let value), .date(let value): value.isNaN
    case .decimal(let value): value.isNaN
    default: false
    }
  }

  /// Whether the value is the name of an external file.
  public var isExternal: Bool {
    if case .externalData = self { true } else { false }
  }

  /// The value converted to an attribute type, or nil if that isn't possible exactly.
  ///
  /// Whole numbers of any width, floating-point numbers, and Boolean values as 0 and 1, are converted into each other if nothing is lost.
  /// Whole numbers also become decimals. Decimals, dates and text keep their types.
  public func converted(to type: AttributeType) -> StoreValue? {
    if fits(type) { return self }
    switch type {
    case .integer16: return integer.flatMap { Int16(exactly: $0) }.map { .int16($0) }
    case .integer32: return integer.flatMap { Int32(exactly: $0) }.map { .int32($0) }
    case .integer64: return integer.map { .int64($0) }
    case .boolean: return integer.flatMap { $0 == 0 || $0 == 1 ? .bool($0 == 1) : nil }
    case .double: return number.map { .double($0) }
    case .float:
      return number.flatMap { number in
        number.isNaN ? .float(.nan) : Float(exactly: number).map { .float($0) }
      }
    case .decimal: return integer.map { .decimal(Decimal($0)) }
    case .string, .date, .binaryData, .uuid, .uri, .transformable, .objectID, .composite, .undefined: return nil
    }
  }

  /// The value as a floating-point number, or nil if it isn't a number or would lose precision.
  private var number: Double? {
    if case .date = self { nil } else { real }
  }

  /// The value as a whole number, or nil if it isn't one.
  public var integer: Int64? {
    switch self {
    case .bool(let value): value ? 1 : 0
    case .int16(let value): Int64(value)
    case .int32(let value): Int64(value)
    case .int64(let value): value
    case .float(let value): Int64(exactly: value)
    case .double(let value): Int64(exactly: value)
    default: nil
    }
  }

  /// The value as a floating-point number, or nil if it would lose precision.
  public var real: Double? {
    switch self {
    case .float(let value): Double(value)
    case .double(let value), .date(let value): value
    case .bool, .int16, .int32, .int64: integer.flatMap { Double(exactly: $0) }
    default: nil
    }
  }
}

/// The text of decimal numbers in rows: the shortest digits, a full stop, no grouping. Independent of the locale.
package enum DecimalText {
  static func bytes(_ value: Decimal) -> [UInt8] { Array(digits(value).utf8) }

  /// The text of a number. Equal numbers have equal texts.
  ///
  /// `Decimal.description` has zeros at the end of a fraction if the number was normalized with another one, for example.
  package static func digits(_ value: Decimal) -> String {
    let text = value.description
    guard text.utf8.last == UInt8(ascii: "0"), text.utf8.contains(UInt8(ascii: ".")) else { return text }
    var digits = Array(text.utf8)
    while digits.last == UInt8(ascii: "0") { digits.removeLast() }
    if digits.last == UInt8(ascii: ".") { digits.removeLast() }
    return String(decoding: digits, as: UTF8.self)
  }

  /// The number, or nil for text that isn't a number. Only a damaged store contains such text.
  static func value(_ bytes: UnsafeRawBufferPointer) -> Decimal? { value(String(decoding: bytes, as: UTF8.self)) }

  static func value(_ text: String) -> Decimal? { text == Decimal.nan.description ? .nan : Decimal(string: text) }

  /// The number of an entire text, which may have an exponent; nil for any other text. Foundation's parser ignores characters behind a
  /// number.
  package static func number(_ text: String) -> Decimal? {
    let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
    guard isPlain, Double(text) != nil, let value = Decimal(string: text), !value.isNaN else { return nil }
    return value
  }
}
