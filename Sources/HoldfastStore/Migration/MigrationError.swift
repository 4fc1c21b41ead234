/// Why a store can't be migrated to another version of its model. The store is unchanged.
public struct MigrationError: Error, Sendable {
  /// The kind of failure.
  public struct Code: RawRepresentable, Sendable, Hashable {
    /// The name.
    public let rawValue: String

    /// Creates a code.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The task was cancelled.
    public static let cancelled = Code(rawValue: "cancelled")
    /// Existing objects violate a rule of the new model: a uniqueness constraint, or a to-one relationship that would get several objects.
    public static let constraintViolation = Code(rawValue: "constraintViolation")
    /// A failure without a specific code.
    public static let general = Code(rawValue: "general")
    /// The differences between the models need a decision; see ``MigrationError/problems``.
    public static let inferredMappingModel = Code(rawValue: "inferredMappingModel")
    /// A mapping model doesn't fit the versions, the program or the objects; see ``MigrationError/problems``.
    public static let invalidMappingModel = Code(rawValue: "invalidMappingModel")
    /// The new model has no place for values or objects; see ``MigrationError/problems``.
    public static let lossOfData = Code(rawValue: "lossOfData")
    /// The mapping is for other models than that of the store.
    public static let missingMappingModel = Code(rawValue: "missingMappingModel")
    /// The store doesn't contain its model, and none of the given models fits it.
    public static let missingSourceModel = Code(rawValue: "missingSourceModel")
  }

  /// A difference between two models that a migration can't bridge by itself.
  public struct Problem: Sendable, Hashable, CustomStringConvertible {
    /// The entity or property of the new model: "Person", "Person.age".
    public let path: String
    /// What is in the way and what to do, in sentences.
    public let reason: String

    /// Creates a problem.
    public init(_ path: String, _ reason: String) {
      self.path = path
      self.reason = reason
    }

    /// The path and the reason, in one line.
    public var description: String { "\(path): \(reason)" }
  }

  /// The kind of failure.
  public var code: Code
  /// The path of the store, or nil if there is none.
  public var path: String?
  /// Why it failed and what to do, in sentences without values of objects.
  public var reason: String
  /// The problems of the entities and properties, in entity order.
  public var problems: [Problem]
  /// The code of a stage that sets the properties that need a decision, to be completed; nil if there are none, or code can't set them.
  ///
  /// A stage is added to a `MigrationPlan` of Holdfast.
  public var suggestion: String?
  /// The underlying error, if any.
  public var cause: (any Error)?

  /// Creates an error.
  public init(_ code: Code, path: String? = nil, reason: String, problems: [Problem] = [], cause: (any Error)? = nil) {
    self.code = code
    self.path = path
    self.reason = reason
    self.problems = problems
    self.cause = cause
  }

  /// The code that Core Data uses for the same failure.
  public var coreDataCode: Int {
    switch code {
    case .cancelled: 134120
    case .constraintViolation: 134111
    case .inferredMappingModel: 134190
    case .invalidMappingModel: 134170
    case .lossOfData: 134110
    case .missingMappingModel: 134140
    case .missingSourceModel: 134130
    default: 134110
    }
  }
}

extension MigrationError: CustomStringConvertible {
  /// What failed, where and why, all problems, one per line, and the code of a stage that decides them.
  public var description: String {
    "\(sentence) [\(code.rawValue), \(coreDataCode)]" + (cause?.asPrintableCause ?? "")
      + (suggestion.map { "\nA stage of a plan that decides it, to be completed:\n\($0)" } ?? "")
  }

  /// What failed, where and why. Control characters are escaped, because paths and names may contain them.
  var sentence: String {
    let list = problems.map { "\n  \("\($0)".escapingControlCharacters())" }.joined()
    return "Could not migrate the store\(path.map { " at \($0)" } ?? ""): \(reason)".escapingControlCharacters() + list
  }
}
