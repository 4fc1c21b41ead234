/// A set of attribute types that a Swift type can read and write.
public struct AttributeTypeSet: OptionSet, Sendable, Hashable {
  /// A bit for each type.
  public let rawValue: UInt32

  /// Makes a set from its bits.
  @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Makes the set of one type.
  public init(_ type: AttributeType) {
    switch type {
    case .integer16: self = .integer16
    case .integer32: self = .integer32
    case .integer64: self = .integer64
    case .decimal: self = .decimal
    case .double: self = .double
    case .float: self = .float
    case .string: self = .string
    case .boolean: self = .boolean
    case .date: self = .date
    case .binaryData: self = .binaryData
    case .uuid: self = .uuid
    case .uri: self = .uri
    case .transformable: self = .transformable
    case .objectID: self = .objectID
    case .composite, .undefined: self = []
    }
  }

  /// Whole numbers of 16 bits.
  @inlinable public static var integer16: AttributeTypeSet { AttributeTypeSet(rawValue: 1) }
  /// Whole numbers of 32 bits.
  @inlinable public static var integer32: AttributeTypeSet { AttributeTypeSet(rawValue: 2) }
  /// Whole numbers of 64 bits.
  @inlinable public static var integer64: AttributeTypeSet { AttributeTypeSet(rawValue: 4) }
  /// Decimal numbers.
  @inlinable public static var decimal: AttributeTypeSet { AttributeTypeSet(rawValue: 8) }
  /// Floating-point numbers of 64 bits.
  @inlinable public static var double: AttributeTypeSet { AttributeTypeSet(rawValue: 16) }
  /// Floating-point numbers of 32 bits.
  @inlinable public static var float: AttributeTypeSet { AttributeTypeSet(rawValue: 32) }
  /// Text.
  @inlinable public static var string: AttributeTypeSet { AttributeTypeSet(rawValue: 64) }
  /// Booleans.
  @inlinable public static var boolean: AttributeTypeSet { AttributeTypeSet(rawValue: 128) }
  /// Dates.
  @inlinable public static var date: AttributeTypeSet { AttributeTypeSet(rawValue: 256) }
  /// Bytes.
  @inlinable public static var binaryData: AttributeTypeSet { AttributeTypeSet(rawValue: 512) }
  /// UUIDs.
  @inlinable public static var uuid: AttributeTypeSet { AttributeTypeSet(rawValue: 1024) }
  /// URIs.
  @inlinable public static var uri: AttributeTypeSet { AttributeTypeSet(rawValue: 2048) }
  /// The bytes of transformable values.
  @inlinable public static var transformable: AttributeTypeSet { AttributeTypeSet(rawValue: 4096) }
  /// IDs of objects.
  @inlinable public static var objectID: AttributeTypeSet { AttributeTypeSet(rawValue: 8192) }

  /// Every type whose values are numbers in the cells of a row.
  static var inCells: AttributeTypeSet { AttributeTypeSet(rawValue: 1 | 2 | 4 | 16 | 32 | 128 | 256) }
  /// Every type whose values are text or other bytes behind the cells of a row.
  @inlinable static var inBytes: AttributeTypeSet { AttributeTypeSet(rawValue: 8 | 64 | 512 | 1024 | 2048 | 4096 | 8192) }

  /// Whether a type is in the set.
  public func contains(_ type: AttributeType) -> Bool { !isDisjoint(with: AttributeTypeSet(type)) }

  /// The types, in the order of their declaration.
  var types: [AttributeType] { AttributeType.allCases.filter(contains) }
}
