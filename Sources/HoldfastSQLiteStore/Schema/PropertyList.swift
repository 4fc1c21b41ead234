/// A property list as a tree of values, enough to read Core Data's metadata, change some of it and keep the rest.
indirect enum PropertyList: Sendable, Hashable {
  case bool(Bool)
  case integer(Int64)
  case real(Double)
  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  case data([UInt8])
  case string(String)
  /// A keyed archiver's reference.
  case uid(UInt64)
  case array([PropertyList])
  case dictionary([String: PropertyList])

  /// The text, if it is one.
  var string: String? { if case .string(let text) = self { text } else { nil } }
  /// The whole number, if it is one.
  var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
  /// The bytes, if they are.
  var data: [UInt8]? { if case .data(let bytes) = self { bytes } else { nil } }
  /// The dictionary, if it is one.
  var dictionary: [String: PropertyList]? { if case .dictionary(let entries) = self { entries } else { nil } }
}

/// Why bytes are not a binary property list.
struct PropertyListError: Error, Hashable, CustomStringConvertible {
  let description: String
}
