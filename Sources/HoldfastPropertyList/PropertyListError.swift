import HoldfastStore

/// An error in reading a property list or keyed archive, or in writing one.
///
/// It contains no values of the list, except names of keys and of classes in keyed archives.
public struct PropertyListError: Error, Sendable, Hashable {
  /// The kind of failure.
  public enum Code: String, Sendable, Hashable {
    /// The bytes aren't a property list.
    case notAPropertyList
    /// The bytes violate the format.
    case damaged
    /// The bytes contain a feature that isn't supported, or the format can't represent a value.
    case unsupported
    /// The size exceeds ``PropertyListLimits/bytes`` or ``PropertyListLimits/objects``.
    case tooLarge
    /// The nesting of lists exceeds ``PropertyListLimits/depth``.
    case tooDeep
    /// A list contains itself.
    case cyclic
    /// A keyed archive contains an object of a class without a plain value; see ``PropertyListError/className``.
    case unsupportedClass
  }

  /// A position in a property list.
  public enum Place: Sendable, Hashable {
    /// The offset in a binary property list, from 0.
    case byte(Int)
    /// The line of an XML property list, from 1.
    case line(Int)
    /// The index of an object in a keyed archive, from 0.
    case object(Int)
  }

  /// The kind of failure.
  public let code: Code
  /// The position of the failure, or nil if it concerns the entire list.
  public let place: Place?
  /// Why it failed, in sentences.
  public let reason: String
  /// The class without a plain value, with code ``Code/unsupportedClass``.
  public let className: String?

  /// Creates an error.
  public init(_ code: Code, at place: Place? = nil, _ reason: String, className: String? = nil) {
    self.code = code
    self.place = place
    self.reason = reason
    self.className = className
  }
}

extension PropertyListError: CustomStringConvertible {
  /// Where and why it failed, in one line.
  public var description: String { "\(sentence) [\(code.rawValue)]" }

  /// Where and why it failed.
  var sentence: String {
    let beginning =
      switch place {
      case .byte(let number): "At byte \(number): "
      case .line(let number): "On line \(number): "
      case .object(let number): "In object \(number) of the archive: "
      case nil: ""
      }
    // Names in the list may contain control characters.
    return (beginning + reason).escapingControlCharacters()
  }
}
