/// The type of an attribute's values, with Core Data's names.
@nonexhaustive public enum AttributeType: String, Sendable, Hashable, Codable, CaseIterable {
  /// A whole number from -32,768 to 32,767.
  case integer16
  /// A 32-bit whole number.
  case integer32
  /// A 64-bit whole number.
  case integer64
  /// A decimal number of up to 38 digits.
  case decimal
  /// A 64-bit binary floating-point number.
  case double
  /// A 32-bit binary floating-point number.
  case float
  /// Unicode text.
  case string
  /// A Boolean value.
  case boolean
  /// A date, stored as seconds since 2001-01-01T00:00:00Z.
  case date
  /// Bytes.
  case binaryData
  /// A UUID, stored as 16 bytes in the order of RFC 4122.
  case uuid
  /// An absolute or relative URI, stored as text.
  case uri
  /// Values of any type that a transformer converts to bytes and back. Stores keep the bytes.
  case transformable
  /// The ID of an object in any store, stored as the text of its URI.
  case objectID
  /// A group of attributes; see ``CompositeDescription``. Only the elements have values.
  case composite
  /// Any value, for transient attributes only.
  case undefined

  /// Core Data's number for the type (`NSAttributeType`), part of version hashes. This is a file format: don't change it.
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

  /// The types that stores keep.
  public static let storedCases = allCases.filter(\.isStored)

  /// Whether stores keep values of this type.
  public var isStored: Bool { self != .composite && self != .undefined }

  /// How a cell contains values of this type; see ``RowLayout``.
  public var cellKind: CellKind {
    switch self {
    case .integer16, .integer32, .integer64, .boolean: .integer
    case .double, .float, .date: .real
    case .string, .uri, .decimal, .binaryData, .uuid, .transformable, .objectID, .composite, .undefined: .bytes
    }
  }

  /// The range of whole numbers in the type, or nil for other types.
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

/// How the 8 bytes of a cell are read.
@frozen public enum CellKind: UInt8, Sendable, Hashable, Codable {
  /// A signed whole number. Boolean values are 0 and 1.
  case integer
  /// A 64-bit floating-point number.
  case real
  /// The offset and length of bytes, which follow the cells.
  case bytes
  /// The key of a to-one destination.
  case key
}
