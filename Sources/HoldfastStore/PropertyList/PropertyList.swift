/// A property list as a tree of values: what Apple's platforms keep beside models and stores, read and written in the binary
/// and in the XML format.
///
/// ```swift
/// let list = try PropertyList(bytes)                    // the first bytes tell the format
/// let version = list["NSManagedObjectModel_CurrentVersionName"]?.string
/// let changed = PropertyList.dictionary(["name": .string("Rex")]).binary
/// ```
///
/// Reading is bounded by ``PropertyListLimits`` and throws ``PropertyListError``; it never traps, whatever the bytes are. A
/// keyed archive is a property list too: ``KeyedArchive`` follows its references.
public enum PropertyList: Sendable, Hashable {
  /// Nothing. The binary format has a mark for it, the XML format has none.
  case null
  /// True or false.
  case bool(Bool)
  /// A whole number.
  case integer(Int64)
  /// A whole number above `Int64.max`. Smaller ones are always ``integer(_:)``.
  case unsigned(UInt64)
  /// A floating-point number.
  case real(Double)
  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  /// Bytes.
  case data([UInt8])
  /// Text.
  case string(String)
  /// A keyed archive's reference: the place of an object.
  case uid(UInt64)
  /// Values in order.
  case array([PropertyList])
  /// Values by name.
  case dictionary([String: PropertyList])

  /// The truth value, if it is one.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The whole number, if it is one that 64 bits with a sign can hold.
  public var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
  /// The floating-point number, if it is one. Whole numbers are not.
  public var real: Double? { if case .real(let number) = self { number } else { nil } }
  /// The point in time as seconds since 2001-01-01T00:00:00Z, if it is one.
  public var date: Double? { if case .date(let seconds) = self { seconds } else { nil } }
  /// The bytes, if they are.
  public var data: [UInt8]? { if case .data(let bytes) = self { bytes } else { nil } }
  /// The text, if it is one.
  public var string: String? { if case .string(let text) = self { text } else { nil } }
  /// A keyed archive's reference, if it is one.
  public var uid: UInt64? { if case .uid(let number) = self { number } else { nil } }
  /// The values in order, if it is an array.
  public var array: [PropertyList]? { if case .array(let values) = self { values } else { nil } }
  /// The dictionary, if it is one.
  public var dictionary: [String: PropertyList]? { if case .dictionary(let entries) = self { entries } else { nil } }

  /// The value of a key; nil when there is none, or when it is no dictionary.
  public subscript(key: String) -> PropertyList? { dictionary?[key] }

  /// Reads a property list in either format, which the first bytes tell.
  ///
  /// - Throws: ``PropertyListError``.
  public init(_ bytes: [UInt8], limits: PropertyListLimits = PropertyListLimits()) throws(PropertyListError) {
    if bytes.starts(with: BinaryPropertyListLayout.mark) {
      try self.init(binary: bytes, limits: limits)
    } else {
      try self.init(xml: bytes, limits: limits)
    }
  }
}
