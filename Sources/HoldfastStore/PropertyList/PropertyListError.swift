/// Why bytes are not a property list or keyed archive that can be read, or why values cannot be written as one.
///
/// It never holds values of the list, but for names of keys and classes of keyed archives.
public struct PropertyListError: Error, Sendable, Hashable {
  /// What kind of failure it is.
  public enum Code: String, Sendable, Hashable {
    /// The bytes are something else.
    case notAPropertyList
    /// The bytes contradict the format.
    case damaged
    /// The bytes are well formed and say something that is not read here, or a value has no form in the format to write.
    case unsupported
    /// There is more than ``PropertyListLimits/bytes`` or ``PropertyListLimits/objects`` allow.
    case tooLarge
    /// Lists lie in lists more than ``PropertyListLimits/depth`` allows.
    case tooDeep
    /// A list contains itself.
    case cyclic
    /// A keyed archive has an object of a class that has no value; ``PropertyListError/className`` names it.
    case unsupportedClass
  }

  /// Where in the bytes it is.
  public enum Place: Sendable, Hashable {
    /// The byte of a binary property list, counted from 0.
    case byte(Int)
    /// The line of an XML property list, counted from 1.
    case line(Int)
    /// The object of a keyed archive, counted from 0.
    case object(Int)
  }

  /// What kind of failure it is.
  public let code: Code
  /// Where in the bytes it is; nil when it concerns them as a whole.
  public let place: Place?
  /// Why it failed, as sentences.
  public let reason: String
  /// The class that has no value, with code ``Code/unsupportedClass``.
  public let className: String?

  /// Makes an error.
  public init(_ code: Code, at place: Place? = nil, _ reason: String, className: String? = nil) {
    self.code = code
    self.place = place
    self.reason = reason
    self.className = className
  }
}

extension PropertyListError: CustomStringConvertible {
  /// One line that tells where and why.
  public var description: String { "\(sentence) [\(code.rawValue)]" }

  /// Where it failed and why.
  var sentence: String {
    let beginning =
      switch place {
      case .byte(let number): "At byte \(number): "
      case .line(let number): "In line \(number): "
      case .object(let number): "In object \(number) of the archive: "
      case nil: ""
      }
    return beginning + reason
  }
}
