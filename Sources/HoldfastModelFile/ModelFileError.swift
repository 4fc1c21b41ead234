import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An error of a model file: what failed, where in it, why, and what to do about it.
///
/// Everything in this module throws this type. Names and values of the *model* stand in its text, shortened; there are no objects in a
/// model file, so there is nothing of a user to hide.
///
/// Bridged to `NSError` the error has a number of Cocoa's for reading and writing files, in `NSCocoaErrorDomain`, and
/// `localizedDescription` is ``errorDescription``.
public struct ModelFileError: Error, Sendable {
  /// What kind of failure it is.
  public struct Code: RawRepresentable, Hashable, Sendable, Codable {
    /// The name of the code, in lower camel case.
    public let rawValue: String
    /// Makes a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// There is no file or folder at the path.
    public static let notFound = Code(rawValue: "notFound")
    /// The operating system refuses access.
    public static let notPermitted = Code(rawValue: "notPermitted")
    /// Reading or writing failed in the operating system.
    public static let inputOutput = Code(rawValue: "inputOutput")
    /// There is something else than a model.
    public static let notAModel = Code(rawValue: "notAModel")
    /// The model was saved by an Xcode before 4, in a binary format of its own.
    public static let oldFormat = Code(rawValue: "oldFormat")
    /// The bundle has no version of that name.
    public static let unknownVersion = Code(rawValue: "unknownVersion")
    /// The file is not XML, ends too soon, or holds what no model file holds.
    public static let malformed = Code(rawValue: "malformed")
    /// The file goes beyond a limit of ``ModelFileOptions``.
    public static let tooLarge = Code(rawValue: "tooLarge")
    /// An attribute that must be there is missing.
    public static let missingAttribute = Code(rawValue: "missingAttribute")
    /// The value of an attribute does not say what it must.
    public static let invalidValue = Code(rawValue: "invalidValue")
    /// The declarations contradict each other; the cause is a ``/HoldfastStore/ModelError``.
    public static let contradictory = Code(rawValue: "contradictory")
    /// The file says something that Holdfast's models cannot say.
    public static let unsupported = Code(rawValue: "unsupported")
    /// The model has a regular expression, and ``ModelFileOptions/refusesPatterns`` is set.
    public static let refusedPattern = Code(rawValue: "refusedPattern")
    /// The document or model holds something that the file cannot say.
    public static let unwritable = Code(rawValue: "unwritable")
  }

  /// What kind of failure it is.
  public var code: Code
  /// What was being done, as a verb phrase: "read the model".
  public var operation: String
  /// The file or folder; nil when there is none.
  public var path: String?
  /// The line of the file, from 1; nil when the failure is not at a line.
  public var line: Int?
  /// The part of the model: `attribute "age" of entity "Person"`; nil when it is not known.
  public var element: String?
  /// Why it failed and what to do, as sentences.
  public var reason: String
  /// The error beneath, when there is one.
  public var cause: (any Error)?

  /// Makes an error.
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
  /// One line that tells what failed, where and why, with the causes beneath.
  public var description: String { "\(sentence) [\(code.rawValue)]" + (cause.map { " Cause: \($0)" } ?? "") }

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
  /// Cocoa's number for reading or writing a file.
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
  /// The same error with the path of the file, unless it has one.
  func at(_ path: String?) -> ModelFileError {
    var error = self
    error.path = error.path ?? path
    return error
  }
}

extension String {
  /// The text between quotation marks, cut when it is long, for messages.
  var quoted: String {
    let shown = String(prefix(60))
    return "\"\(shown)\(shown.endIndex < endIndex ? "…" : "")\""
  }
}
