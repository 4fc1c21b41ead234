/// How a derived attribute is worked out from other properties, as Core Data's `NSDerivedAttributeDescription` has it.
///
/// | text | value |
/// |---|---|
/// | `name`, `owner.name` | a copy of an attribute of the object, or of one that to-one relationships lead to |
/// | `uppercase:(name)` `lowercase:(name)` | its text in capital or small letters |
/// | `canonical:(name)` | its text without case and diacritics, which is what searches compare |
/// | `walks.@count`, `count:(walks)` | the number of objects of a to-many relationship |
/// | `walks.minutes.@sum`, `sum:(walks.minutes)` | the sum of a number over them; nil counts as 0 |
/// | `now()` | the date of the save that changed the object |
public enum Derivation: Sendable, Hashable {
  /// What is done with text.
  public enum TextFunction: String, Sendable, Hashable, Codable, CaseIterable {
    /// Capital letters.
    case uppercase
    /// Small letters.
    case lowercase
    /// Without case and diacritics.
    case canonical
  }

  /// The value of an attribute, possibly through to-one relationships.
  case copy(PropertyPath)
  /// A text, changed.
  case text(TextFunction, PropertyPath)
  /// The number of objects that a to-many relationship leads to.
  case count(relationship: String)
  /// The sum of an attribute of the objects that a to-many relationship leads to.
  case sum(relationship: String, attribute: String)
  /// The date of the save.
  case now

  /// Reads an expression.
  ///
  /// - Returns: nil for text that says none of these.
  public init?(_ text: String) {
    let text = Derivation.trimmed(text)
    if text == "now()" {
      self = .now
    } else if let call = Derivation.call(text) {
      self.init(function: call.name, of: call.argument)
    } else if let at = text.utf8.firstIndex(of: UInt8(ascii: "@")), text[..<at].hasSuffix(".") {
      // As Core Data has it, the operator stands last.
      self.init(function: String(text[text.index(after: at)...]), of: String(text[..<at].dropLast()))
      if case .text = self { return nil }
    } else if let path = Derivation.path(text) {
      self = .copy(path)
    } else {
      return nil
    }
  }

  /// Whether the value follows from other objects, so that it changes when they do.
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

  /// `name:(argument)`, taken apart.
  private static func call(_ text: String) -> (name: String, argument: String)? {
    guard text.hasSuffix(")"), let colon = text.firstIndex(of: ":") else { return nil }
    let rest = trimmed(String(text[text.index(after: colon)...]))
    guard rest.hasPrefix("("), rest.hasSuffix(")"), rest.count > 1 else { return nil }
    return (trimmed(String(text[..<colon])), trimmed(String(rest.dropFirst().dropLast())))
  }

  private static func path(_ text: String) -> PropertyPath? {
    let names = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard names.allSatisfy(ModelCheck.isName) else { return nil }
    return PropertyPath(dotted: text)
  }

  private static func trimmed(_ text: String) -> String {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\n" }
    var rest = text[...].drop(while: isSpace)
    while let last = rest.last, isSpace(last) { rest.removeLast() }
    return String(rest)
  }
}

extension Derivation: CustomStringConvertible {
  /// The expression as Core Data describes it, which enters version hashes. On disk: do not change.
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
