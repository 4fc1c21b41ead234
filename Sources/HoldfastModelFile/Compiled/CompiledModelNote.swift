/// Something in a compiled model that the ``/HoldfastStore/ManagedObjectModel`` read from it doesn't contain.
///
/// The model can be used anyway: notes are about rules that aren't checked and settings that can't be represented.
public struct CompiledModelNote: Sendable, Hashable {
  /// The element of the model: `attribute "title" of entity "Book"`.
  public let element: String
  /// What was omitted and what that means, as sentences.
  public let reason: String

  /// Creates a note.
  public init(element: String, reason: String) {
    self.element = element
    self.reason = reason
  }
}

extension CompiledModelNote: CustomStringConvertible {
  /// The element and the reason in one line.
  public var description: String { "\(element): \(reason)" }
}
