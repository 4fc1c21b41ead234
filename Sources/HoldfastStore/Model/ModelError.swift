/// All that contradicts itself in a model's declarations.
public struct ModelError: Error, Sendable, Hashable, CustomStringConvertible {
  /// One contradiction.
  public struct Problem: Sendable, Hashable, CustomStringConvertible {
    /// Where it is: "Person", "Person.age".
    public let path: String
    /// What is wrong and what would be right, as a sentence.
    public let reason: String

    /// The path and the reason in a line.
    public var description: String { "\(path): \(reason)" }
  }

  /// Every contradiction that was found, in the order of the entities.
  public let problems: [Problem]

  /// All problems, a line each.
  public var description: String {
    "The model contradicts itself in \(problems.count) \(problems.count == 1 ? "place" : "places"):\n"
      + problems.map { "  \("\($0)".escapingControlCharacters())" }.joined(separator: "\n")
  }
}
