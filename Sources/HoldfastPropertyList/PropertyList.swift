#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A property list as a tree of values, in Apple's binary or XML format.
///
/// ```swift
/// let list = try PropertyList(bytes)                    // detects the format
/// let version = list["NSManagedObjectModel_CurrentVersionName"]?.string
/// let changed = PropertyList.dictionary(["name": .string("Rex")]).binary
/// ```
///
/// `PropertyListSerialization` is in Foundation, which makes a statically linked program four times as large as FoundationEssentials does
/// (58 instead of 14 MB). The decoder in FoundationEssentials refuses the UIDs of keyed archives.
///
/// Reading is limited by ``PropertyListLimits`` and throws ``PropertyListError``. It never traps, whatever the bytes are. A keyed archive
/// is also a property list; ``KeyedArchive`` resolves its references.
///
/// Text is compared by Swift's `==`, also in keys: two texts that differ only in their Unicode normalization are equal. Values keep their
/// normalization. A file can contain two such keys in one dictionary, because `NSDictionary` distinguishes them. It is refused with
/// ``PropertyListError/Code/unsupported``, because a Swift dictionary would lose the value of one of them.
public enum PropertyList: Sendable, Hashable {
  /// No value. Only the binary format can represent it.
  case null
  /// A Boolean value.
  case bool(Bool)
  /// A whole number.
  case integer(Int64)
  /// A whole number above `Int64.max`. Smaller numbers are always ``integer(_:)``.
  case unsigned(UInt64)
  /// A floating-point number.
  case real(Double)
  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  /// Bytes.
  case data([UInt8])
  /// Text.
  case string(String)
  /// A reference in a keyed archive: the index of an object.
  case uid(UInt64)
  /// An array of values.
  case array([PropertyList])
  /// Values by key.
  case dictionary([String: PropertyList])

  /// The Boolean value, or nil for another type.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The whole number, or nil for another type or a number above `Int64.max`.
  public var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
  /// The floating-point number, or nil for another type. Whole numbers aren't converted.
  public var real: Double? { if case .real(let number) = self { number } else { nil } }
  /// The date, or nil for another type.
  public var date: Date? { if case .date(let seconds) = self { Date(timeIntervalSinceReferenceDate: seconds) } else { nil } }
  /// The bytes, or nil for another type.
  public var data: [UInt8]? { if case .data(let bytes) = self { bytes } else { nil } }
  /// The text, or nil for another type.
  public var string: String? { if case .string(let text) = self { text } else { nil } }
  /// The reference of a keyed archive, or nil for another type.
  public var uid: UInt64? { if case .uid(let number) = self { number } else { nil } }
  /// The array, or nil for another type.
  public var array: [PropertyList]? { if case .array(let values) = self { values } else { nil } }
  /// The dictionary, or nil for another type.
  public var dictionary: [String: PropertyList]? { if case .dictionary(let entries) = self { entries } else { nil } }

  /// The value for a key. Nil if there is none or this isn't a dictionary.
  public subscript(key: String) -> PropertyList? { dictionary?[key] }

  /// Reads a property list. Detects the format from the first bytes.
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
