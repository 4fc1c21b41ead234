/// The type of an attribute's values, named as Core Data names them.
public enum AttributeType: String, Sendable, Hashable, Codable, CaseIterable {
  /// A whole number from -32,768 to 32,767.
  case integer16
  /// A whole number of 32 bits.
  case integer32
  /// A whole number of 64 bits.
  case integer64
  /// A decimal number of up to 38 digits.
  case decimal
  /// A binary floating-point number of 64 bits.
  case double
  /// A binary floating-point number of 32 bits.
  case float
  /// Unicode text.
  case string
  /// True or false.
  case boolean
  /// A point in time, kept as seconds since 2001-01-01T00:00:00Z.
  case date
  /// Bytes.
  case binaryData
  /// A UUID, kept as 16 bytes in the order of RFC 4122.
  case uuid
  /// An absolute or relative URI, kept as text.
  case uri
  /// Values of any type that a transformer turns into bytes and back; stores keep the bytes.
  case transformable
  /// The ID of an object of any store, kept as the text of its URI.
  case objectID
  /// A group of attributes; see ``CompositeDescription``. No value has this type: the elements have values.
  case composite
  /// Anything at all, for transient attributes alone.
  case undefined

  /// Core Data's number for the type (`NSAttributeType`), which enters version hashes. On disk: do not change.
  public var coreDataCode: UInt32 {
    switch self {
    case .integer16: 100
    case .integer32: 200
    case .integer64: 300
    case .decimal: 400
    case .double: 500
    case .float: 600
    case .string: 700
    case .boolean: 800
    case .date: 900
    case .binaryData: 1000
    case .uuid: 1100
    case .uri: 1200
    case .transformable: 1800
    case .objectID: 2000
    case .composite: 2100
    case .undefined: 0
    }
  }

  /// The types of which stores keep values.
  public static let storedCases = allCases.filter(\.isStored)

  /// Whether stores keep values of this type.
  public var isStored: Bool { self != .composite && self != .undefined }

  /// How a value of this type lies in a row; see ``RowLayout``.
  public var cellKind: CellKind {
    switch self {
    case .integer16, .integer32, .integer64, .boolean: .integer
    case .double, .float, .date: .real
    case .string, .uri, .decimal, .binaryData, .uuid, .transformable, .objectID, .composite, .undefined: .bytes
    }
  }

  /// The whole numbers that the type can hold, or nil when it is not a whole-number type.
  public var integerRange: ClosedRange<Int64>? {
    switch self {
    case .integer16: Int64(Int16.min)...Int64(Int16.max)
    case .integer32: Int64(Int32.min)...Int64(Int32.max)
    case .integer64: Int64.min...Int64.max
    case .boolean: 0...1
    default: nil
    }
  }
}

/// How the 8 bytes of a cell are to be read.
@frozen public enum CellKind: UInt8, Sendable, Hashable, Codable {
  /// A signed whole number; truth values are 0 and 1.
  case integer
  /// A 64-bit floating-point number.
  case real
  /// Offset and length of bytes that lie behind the row's cells.
  case bytes
  /// The key of the object that a to-one relationship points to.
  case key
}
