/// Constraints on an attribute's values, in addition to their type. They are checked at each save.
///
/// ```swift
/// let rating = AttributeDescription("rating", .double, validation: .range(.double(0), .double(5)))
/// let code = AttributeDescription("code", .string, validation: .length(3, 3))
/// ```
///
/// Bounds are inclusive. They aren't part of version hashes, so you can change them without a migration.
public struct AttributeValidation: Sendable, Hashable, Codable {
  /// The minimum number or date, as a value of the attribute's type. Nil for no bound.
  public var minimum: StoreValue?
  /// The maximum number or date, as a value of the attribute's type. Nil for no bound.
  public var maximum: StoreValue?
  /// The minimum length of text in UTF-16 code units, as in Core Data. Nil for no bound.
  public var minimumLength: Int?
  /// The maximum length of text in UTF-16 code units. Nil for no bound.
  public var maximumLength: Int?
  /// A regular expression that the entire text must match, in the syntax of Swift's `Regex`.
  ///
  /// The syntax includes the common features of ICU. A pattern has at most 10,000 bytes, with character classes nested at most 24 deep, and
  /// at most 24 operators between them. Treat patterns as code: some run indefinitely on short text.
  public var regularExpression: String?

  /// Creates constraints. By default there are none.
  public init(
    minimum: StoreValue? = nil, maximum: StoreValue? = nil, minimumLength: Int? = nil, maximumLength: Int? = nil,
    regularExpression: String? = nil
  ) {
    self.minimum = minimum
    self.maximum = maximum
    self.minimumLength = minimumLength
    self.maximumLength = maximumLength
    self.regularExpression = regularExpression
  }

  /// No constraints.
  public static let none = AttributeValidation()

  /// Numbers or dates from `minimum` to `maximum`. Nil for no bound.
  public static func range(_ minimum: StoreValue?, _ maximum: StoreValue?) -> AttributeValidation {
    AttributeValidation(minimum: minimum, maximum: maximum)
  }

  /// Text of `minimum` to `maximum` UTF-16 code units. Nil for no bound.
  public static func length(_ minimum: Int?, _ maximum: Int?) -> AttributeValidation {
    AttributeValidation(minimumLength: minimum, maximumLength: maximum)
  }

  /// Text that entirely matches a regular expression.
  public static func pattern(_ regularExpression: String) -> AttributeValidation {
    AttributeValidation(regularExpression: regularExpression)
  }
}
