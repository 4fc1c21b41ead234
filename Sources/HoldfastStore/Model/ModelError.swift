/// The problems found in a model's declarations.
public struct ModelError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A problem in a model.
  public struct Problem: Sendable, Hashable, CustomStringConvertible {
    /// The declaration with the problem: "Person", "Person.age".
    public let path: String
    /// What is wrong and how to correct it, in sentences.
    public let reason: String

    /// The path and the reason, in one line.
    public var description: String { "\(path): \(reason)" }
  }

  /// All problems found, in entity order.
  public let problems: [Problem]

  /// All problems, one per line.
  public var description: String {
    "The model is invalid in \(problems.count) \(problems.count == 1 ? "place" : "places"):\n"
      + problems.map { "  \("\($0)".escapingControlCharacters())" }.joined(separator: "\n")
  }
}
