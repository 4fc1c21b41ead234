#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A value that crosses the boundary between stack and store: a closed list.
///
/// Whatever else an application keeps in an attribute becomes one of these above the boundary, once for all stores.
/// On hot paths values stay in rows (``RowBatch``) and no `StoreValue` is made.
public enum StoreValue: Sendable, Hashable, Codable {
  /// No value.
  case null
  /// A truth value.
  case bool(Bool)
  /// A whole number of 16 bits.
  case int16(Int16)
  /// A whole number of 32 bits.
  case int32(Int32)
  /// A whole number of 64 bits.
  case int64(Int64)
  /// A floating-point number of 32 bits.
  case float(Float)
  /// A floating-point number of 64 bits.
  case double(Double)
  /// A decimal number.
  case decimal(Decimal)
  /// Text.
  case string(String)
  /// A point in time in seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  /// A UUID.
  case uuid(UUID)
  /// A URI, as text.
  case uri(String)
  /// Bytes.
  case data(Data)
  /// Bytes that lie in a file of their own, beside the store's, by the file's name: the value of an attribute that allows it
  /// (``ManagedObjectModel/Attribute/allowsExternalBinaryDataStorage``), as rows have it. It belongs to one store, which alone makes
  /// it, and is the value of one attribute of one object; ``IncrementalStore/externalData(_:)`` gives the bytes.
  case externalData(UUID)
  /// The object that a to-one relationship leads to.
  case objectID(ManagedObjectID)

  /// Whether the value may stand in an attribute of that type. ``null`` fits every type.
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

  /// Whether the value is a floating-point number, a date or a decimal that is not a number. NaN equals nothing, not even itself.
  public var isNaN: Bool {
    switch self {
    case .float(let value): value.isNaN
    case .double(let value), .date(let value): value.isNaN
    case .decimal(let value): value.isNaN
    default: false
    }
  }

  /// Whether the value is the name of a file.
  public var isExternal: Bool {
    if case .externalData = self { true } else { false }
  }

  /// The same number in the type of an attribute, when it can be said there exactly: whole numbers of any width and
  /// floating-point numbers are exchanged freely as long as nothing is lost. Nil when it cannot.
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

  /// The value as a floating-point number, when it is a number and that loses nothing.
  private var number: Double? {
    if case .date = self { nil } else { real }
  }

  /// The value as a whole number, when it is one.
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

  /// The value as a floating-point number, when that loses nothing.
  public var real: Double? {
    switch self {
    case .float(let value): Double(value)
    case .double(let value), .date(let value): value
    case .bool, .int16, .int32, .int64: integer.flatMap { Double(exactly: $0) }
    default: nil
    }
  }
}

/// The text form of decimal numbers in rows: the shortest digits, a full stop, no grouping; independent of locale.
enum DecimalText {
  static func bytes(_ value: Decimal) -> [UInt8] { Array(value.description.utf8) }

  /// The number, or nil for text that is none, which only a damaged store can hold.
  static func value(_ bytes: UnsafeRawBufferPointer) -> Decimal? {
    let text = String(decoding: bytes, as: UTF8.self)
    return text == Decimal.nan.description ? .nan : Decimal(string: text)
  }
}
