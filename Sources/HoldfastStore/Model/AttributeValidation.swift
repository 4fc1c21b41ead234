/// What a model demands of an attribute's values beyond their type; a save checks it, unset bounds demand nothing.
///
/// ```swift
/// let rating = AttributeDescription("rating", .double, validation: .range(.double(0), .double(5)))
/// let code = AttributeDescription("code", .string, validation: .length(3, 3))
/// ```
///
/// Bounds are inclusive. They do not enter version hashes, so a model may change them without a migration.
public struct AttributeValidation: Sendable, Hashable, Codable {
  /// The smallest number or the earliest date, as a value of the attribute's type; nil for no bound.
  public var minimum: StoreValue?
  /// The largest number or the latest date, as a value of the attribute's type; nil for no bound.
  public var maximum: StoreValue?
  /// The least length of a text in UTF-16 code units, which is what Core Data counts; nil for no bound.
  public var minimumLength: Int?
  /// The largest length of a text in UTF-16 code units; nil for no bound.
  public var maximumLength: Int?
  /// A regular expression that a whole text must match, in the syntax of Swift's `Regex`, which covers what is common in ICU's. At most 10,000
  /// bytes, with 24 character classes inside each other. A pattern is code: some run for any time on a short text.
  public var regularExpression: String?

  /// Makes a rule; without arguments it demands nothing.
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

  /// Demands nothing.
  public static let none = AttributeValidation()

  /// Numbers or dates from the first to the second; nil for no bound.
  public static func range(_ minimum: StoreValue?, _ maximum: StoreValue?) -> AttributeValidation {
    AttributeValidation(minimum: minimum, maximum: maximum)
  }

  /// Texts of at least the first and at most the second number of UTF-16 code units; nil for no bound.
  public static func length(_ minimum: Int?, _ maximum: Int?) -> AttributeValidation {
    AttributeValidation(minimumLength: minimum, maximumLength: maximum)
  }

  /// Texts that match a regular expression as a whole.
  public static func pattern(_ regularExpression: String) -> AttributeValidation {
    AttributeValidation(regularExpression: regularExpression)
  }
}
