/// How a derived attribute is computed, as in Core Data's `NSDerivedAttributeDescription`.
///
/// | text | value |
/// |---|---|
/// | `name`, `owner.name` | a copy of an attribute of the object, or of a to-one destination |
/// | `uppercase:(name)` `lowercase:(name)` | the attribute's text in upper or lower case |
/// | `canonical:(name)` | the attribute's text without case and diacritics, as comparisons with `[cd]` use it |
/// | `walks.@count`, `count:(walks)` | the number of objects in a to-many relationship |
/// | `walks.minutes.@sum`, `sum:(walks.minutes)` | the sum of a number over these objects; nil counts as 0 |
/// | `now()` | the date of the save that changed the object |
///
/// A name may have a `#` before it, as in predicates. Core Data writes it before reserved words such as `size` and `first`.
@nonexhaustive public enum Derivation: Sendable, Hashable {
  /// A conversion of text.
  @nonexhaustive public enum TextFunction: String, Sendable, Hashable, Codable, CaseIterable {
    /// Upper case.
    case uppercase
    /// Lower case.
    case lowercase
    /// Without case and diacritics.
    case canonical
  }

  /// The value of an attribute, of this object or through to-one relationships.
  case copy(PropertyPath)
  /// Converted text of an attribute.
  case text(TextFunction, PropertyPath)
  /// The number of objects in a to-many relationship.
  case count(relationship: String)
  /// The sum of an attribute over the objects in a to-many relationship.
  case sum(relationship: String, attribute: String)
  /// The date of the save.
  case now

  /// Parses an expression. A path has at most ``QueryExpression/maximumNesting`` names.
  ///
  /// - Returns: Nil if the text isn't one of these expressions.
  public init?(_ text: String) {
    let text = Derivation.trimmed(text)
    if text == "now()" {
      self = .now
    } else if let call = Derivation.call(text) {
      self.init(function: call.name, of: call.argument)
    } else if let at = text.utf8.firstIndex(of: UInt8(ascii: "@")), text[..<at].hasSuffix(".") {
      // As in Core Data, the operator is the last component.
      self.init(function: String(text[text.index(after: at)...]), of: String(text[..<at].dropLast()))
      if case .text = self { return nil }
    } else if let path = Derivation.path(text) {
      self = .copy(path)
    } else {
      return nil
    }
  }

  /// Whether the value depends on other objects, so that it changes with them.
  public var followsOthers: Bool {
    switch self {
    case .copy(let path), .text(_, let path): !path.rest.isEmpty
    case .count, .sum: true
    case .now: false
    }
  }

  private init?(function: String, of argument: String) {
    guard let path = Derivation.path(argument) else { return nil }
    switch (function, path.rest.count) {
    case ("count", 0): self = .count(relationship: path.first)
    case ("sum", 1): self = .sum(relationship: path.first, attribute: path.rest[0])
    default:
      guard let function = TextFunction(rawValue: function) else { return nil }
      self = .text(function, path)
    }
  }

  /// Splits `name:(argument)` into its parts.
  private static func call(_ text: String) -> (name: String, argument: String)? {
    guard text.hasSuffix(")"), let colon = text.firstIndex(of: ":") else { return nil }
    let rest = trimmed(String(text[text.index(after: colon)...]))
    guard rest.hasPrefix("("), rest.hasSuffix(")"), rest.count > 1 else { return nil }
    return (trimmed(String(text[..<colon])), trimmed(String(rest.dropFirst().dropLast())))
  }

  private static func path(_ text: String) -> PropertyPath? {
    let names = text.split(separator: ".", omittingEmptySubsequences: false).map { String($0.first == "#" ? $0.dropFirst() : $0) }
    guard names.count <= QueryExpression.maximumNesting, names.allSatisfy(ModelCheck.isName) else { return nil }
    return PropertyPath(names[0], Array(names.dropFirst()))
  }

  private static func trimmed(_ text: String) -> String {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\n" }
    var rest = text[...].drop(while: isSpace)
    while let last = rest.last, isSpace(last) { rest.removeLast() }
    return String(rest)
  }
}

extension Derivation: CustomStringConvertible {
  /// The expression in Core Data's format, part of version hashes. This is a file format: don't change it.
  public var description: String {
    switch self {
    case .copy(let path): path.description
    case .text(let function, let path): "\(function.rawValue):(\(path))"
    case .count(let relationship): "count:(\(relationship))"
    case .sum(let relationship, let attribute): "sum:(\(relationship).\(attribute))"
    case .now: "now()"
    }
  }
}
