/// A Swift type of text attributes: `String` or `String?`.
public protocol TextAttributeValue: AttributeValue {}
extension String: TextAttributeValue {}
extension Optional: TextAttributeValue where Wrapped == String {}

extension FetchPath where Value: TextAttributeValue {
  /// Matches text that is equal to the given text after folding both.
  public func equals(_ text: String, _ folding: TextFolding) -> FetchPredicate<Scope> { compared(.equalTo, .string(text), folding) }
  /// Matches text that begins with the given text.
  public func beginsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Scope> {
    compared(.beginsWith, .string(text), folding)
  }
  /// Matches text that ends with the given text.
  public func endsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Scope> { compared(.endsWith, .string(text), folding) }
  /// Matches text that contains the given text.
  public func contains(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Scope> { compared(.contains, .string(text), folding) }
}
