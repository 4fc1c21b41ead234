import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An error in a model file: what failed, where, why, and what to do.
///
/// Every error of this module has this type. Its text contains shortened names and values of the *model*. A model file contains no objects,
/// so the text contains no user data.
///
/// Bridged to `NSError`, the error has a Cocoa code for reading and writing files, in `NSCocoaErrorDomain`. Its `localizedDescription` is
/// ``errorDescription``.
public struct ModelFileError: Error, Sendable {
  /// The kind of a failure.
  public struct Code: RawRepresentable, Hashable, Sendable, Codable {
    /// The name of the code, in lower camel case.
    public let rawValue: String
    /// Creates a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The file or folder doesn't exist.
    public static let notFound = Code(rawValue: "notFound")
    /// The operating system denies access.
    public static let notPermitted = Code(rawValue: "notPermitted")
    /// Reading or writing failed in the operating system.
    public static let inputOutput = Code(rawValue: "inputOutput")
    /// The file or folder isn't a model.
    public static let notAModel = Code(rawValue: "notAModel")
    /// The model was saved by Xcode before 4, in a binary format.
    public static let oldFormat = Code(rawValue: "oldFormat")
    /// The bundle has no version with the name.
    public static let unknownVersion = Code(rawValue: "unknownVersion")
    /// The file isn't XML, is truncated, or has contents that model files don't have.
    public static let malformed = Code(rawValue: "malformed")
    /// The file exceeds a limit of ``ModelFileOptions``.
    public static let tooLarge = Code(rawValue: "tooLarge")
    /// A required attribute is missing.
    public static let missingAttribute = Code(rawValue: "missingAttribute")
    /// The value of an attribute is invalid.
    public static let invalidValue = Code(rawValue: "invalidValue")
    /// The declarations contradict each other; the cause is a ``/HoldfastStore/ModelError``.
    public static let contradictory = Code(rawValue: "contradictory")
    /// The file contains something that Holdfast's models can't represent.
    public static let unsupported = Code(rawValue: "unsupported")
    /// The model has a regular expression, and ``ModelFileOptions/refusesPatterns`` is set.
    public static let refusedPattern = Code(rawValue: "refusedPattern")
    /// The document or model contains something that a file can't represent.
    public static let unwritable = Code(rawValue: "unwritable")
  }

  /// The kind of failure.
  public var code: Code
  /// The operation, as a verb phrase: "read the model".
  public var operation: String
  /// The file or folder, or nil.
  public var path: String?
  /// The line of the file, from 1; nil if the failure isn't at a line.
  public var line: Int?
  /// The element of the model: `attribute "age" of entity "Person"`; nil if unknown.
  public var element: String?
  /// Why it failed and what to do, as sentences.
  public var reason: String
  /// The underlying error, if any.
  public var cause: (any Error)?

  /// Creates an error.
  public init(
    _ code: Code, operation: String = "read the model", path: String? = nil, line: Int? = nil, element: String? = nil, reason: String,
    cause: (any Error)? = nil
  ) {
    self.code = code
    self.operation = operation
    self.path = path
    self.line = line
    self.element = element
    self.reason = reason
    self.cause = cause
  }
}

extension ModelFileError: CustomStringConvertible {
  /// What failed, where and why, in one line, with the causes after it.
  public var description: String { "\(sentence) [\(code.rawValue)]" + (cause?.asPrintableCause ?? "") }

  /// What failed, where and why.
  private var sentence: String {
    var text = "Could not \(operation)"
    if let path { text += " at \(path)" }
    if let line { text += ", line \(line)" }
    if let element { text += ", \(element)" }
    return (text + ": " + reason).escapingControlCharacters(keepsLines: true)
  }
}

extension ModelFileError: LocalizedError {
  /// What failed, where, why, and what to do: the error's `localizedDescription`.
  public var errorDescription: String? { sentence }
  /// Why it failed, and what to do.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { "NSCocoaErrorDomain" }
  /// Cocoa's code for reading or writing a file.
  public var _code: Int {
    switch code {
    case .notFound: 260
    case .notPermitted: 257
    case .inputOutput: 256
    case .tooLarge: 263
    case .unwritable: 512
    default: 259
    }
  }
}

extension ModelFileError {
  /// The same error with the path of the file, unless it already has one.
  func at(_ path: String?) -> ModelFileError {
    var error = self
    error.path = error.path ?? path
    return error
  }
}

extension String {
  /// The text in quotation marks, truncated if long, for messages.
  var quoted: String {
    let shown = String(prefix(60))
    return "\"\(shown)\(shown.endIndex < endIndex ? "…" : "")\""
  }
}
