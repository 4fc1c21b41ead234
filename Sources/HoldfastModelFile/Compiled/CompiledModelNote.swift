/// Something that a compiled model says and that is not in the ``/HoldfastStore/ManagedObjectModel`` that was read from it.
///
/// None of it keeps the model from being used: it is about rules that are not checked and settings that have no place.
public struct CompiledModelNote: Sendable, Hashable {
  /// The part of the model: `attribute "title" of entity "Book"`.
  public let element: String
  /// What was left out and what that means, as sentences.
  public let reason: String

  /// Makes a note.
  public init(element: String, reason: String) {
    self.element = element
    self.reason = reason
  }
}

extension CompiledModelNote: CustomStringConvertible {
  /// The part and the reason in a line.
  public var description: String { "\(element): \(reason)" }
}
