#if Macros
  import SwiftSyntax

  /// The initial value of a property, as far as its text says.
  struct InitialValue {
    enum Kind {
      /// A literal: the same value each time.
      case literal
      /// A member such as `.calm`, or an array of members. It may be a constant or computed.
      case member
      /// Anything else, such as `Date()`.
      case computed
      case none
    }

    let expression: ExprSyntax

    var text: String { expression.trimmedDescription }

    /// The text as an operand: in parentheses unless it is a literal or a collection.
    var operand: String { kind == .literal || kind == .member ? text : "(\(text))" }

    var kind: Kind {
      if expression.is(NilLiteralExprSyntax.self) { return .none }
      if isLiteral { return .literal }
      if isMember(expression) { return .member }
      if let array = expression.as(ArrayExprSyntax.self), array.elements.allSatisfy({ isMember($0.expression) }) { return .member }
      if let dictionary = expression.as(DictionaryExprSyntax.self), dictionary.content.is(TokenSyntax.self) { return .member }
      return .computed
    }

    /// Whether its text is a literal or an array or a dictionary of members, which are cheap to make and the same each time.
    var isLiteralOrCollection: Bool { kind == .literal || (kind == .member && !isMember(expression)) }

    private func isMember(_ expression: ExprSyntax) -> Bool { expression.is(MemberAccessExprSyntax.self) }

    private var isLiteral: Bool {
      if let text = expression.as(StringLiteralExprSyntax.self) { return text.segments.allSatisfy { $0.is(StringSegmentSyntax.self) } }
      return literalType != nil
    }

    /// The type of a literal, unless its context says otherwise.
    private var literalType: String? {
      let number = expression.as(PrefixOperatorExprSyntax.self).flatMap { $0.operator.text == "-" ? $0.expression : nil } ?? expression
      if number.is(IntegerLiteralExprSyntax.self) { return "Int" }
      if number.is(FloatLiteralExprSyntax.self) { return "Double" }
      if expression.is(BooleanLiteralExprSyntax.self) { return "Bool" }
      return expression.is(StringLiteralExprSyntax.self) ? "String" : nil
    }

    /// The type that a property without a type annotation has: that of a literal, of `Type(…)`, or of `Type.member`. Nil if the text doesn't
    /// say it.
    var type: String? {
      if let literalType { return literalType }
      if let call = expression.as(FunctionCallExprSyntax.self) { return call.mayFail ? nil : InitialValue.typeName(call.calledExpression) }
      return expression.as(MemberAccessExprSyntax.self)?.base.flatMap(InitialValue.typeName)
    }

    /// The name of a type, by the rule that types begin with capitals: `Date`, `Farm.Point`, `Set<Int>`.
    private static func typeName(_ expression: ExprSyntax) -> String? {
      let last: String? =
        if let reference = expression.as(DeclReferenceExprSyntax.self) {
          reference.baseName.text
        } else if let generic = expression.as(GenericSpecializationExprSyntax.self) {
          typeName(generic.expression)
        } else {
          expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text
        }
      // A member of `Self` has any type, and in the enumerations that the macro adds, `Self` is another one.
      let text = expression.trimmedDescription
      return last?.first?.isUppercase == true && text != "Self" && !text.hasPrefix("Self.") ? text : nil
    }

    /// Whether the value is a literal that a type of the standard library or Foundation can't have.
    func contradicts(_ type: String) -> Bool {
      guard kind == .literal, let literalType else { return false }
      let accepted: [String: [String]] = [
        "Int": ["Int"], "Int16": ["Int"], "Int32": ["Int"], "Int64": ["Int"], "Double": ["Int", "Double"], "Float": ["Int", "Double"],
        "Decimal": ["Int", "Double"], "Bool": ["Bool"], "String": ["String"], "Date": [], "UUID": [], "Data": [], "URL": [],
      ]
      return accepted[TypeText(type).wrapped].map { !$0.contains(literalType) } ?? false
    }
  }

  extension FunctionCallExprSyntax {
    /// Whether the text looks like an initializer that returns an optional, such as `URL(string: "…")`.
    fileprivate var mayFail: Bool {
      guard let first = arguments.first else { return false }
      if let label = first.label { return ["rawValue", "string", "uuidString", "exactly", "base64Encoded"].contains(label.text) }
      return first.expression.is(StringLiteralExprSyntax.self)
    }
  }

  /// A type as it is written.
  struct TypeText {
    let text: String

    init(_ text: String) { self.text = text }

    /// The text without the name of a module before it, as in `Swift.Int` and `Swift::Int`.
    func without(module: String) -> Substring {
      for start in [module + ".", module + "::"] where text.hasPrefix(start) { return text.dropFirst(start.count) }
      return text[...]
    }

    /// The text without the name of the standard library's module.
    private var standard: Substring { without(module: "Swift") }

    private var hasOptionalMark: Bool { text.hasSuffix("?") && !isFunction }

    var isOptional: Bool { hasOptionalMark || standard.hasPrefix("Optional<") }

    /// The type that an optional wraps; otherwise the type itself.
    var wrapped: String {
      if hasOptionalMark { return String(text.dropLast()) }
      return standard.hasPrefix("Optional<") ? String(standard.dropFirst("Optional<".count).dropLast()) : text
    }

    /// The optional of the type. In front of the mark, some types need parentheses: `(any Shape)?`.
    var optional: String {
      let isOperand = !isFunction && !text.hasPrefix("any ") && !text.hasPrefix("some ") && !text.contains("&")
      return isOperand ? "\(text)?" : "(\(text))?"
    }

    /// Whether it is a function type without parentheses around it. A mark at its end is that of its result.
    private var isFunction: Bool {
      var depth = 0
      var last: Character?
      for character in text {
        switch character {
        case "(", "[", "<": depth += 1
        case ">" where last == "-": if depth == 0 { return true }
        case ")", "]", ">": depth -= 1
        default: break
        }
        last = character
      }
      return false
    }

    private var unqualified: Substring { without(module: "Holdfast") }

    var isOrdered: Bool { unqualified.hasPrefix("OrderedToMany<") }

    var isToMany: Bool { unqualified.hasPrefix("ToMany<") || isOrdered }

    /// The names in the type, each with the names before its last dot: `ToMany` and `Farm.Dog` in `ToMany<Farm.Dog>?`, and in
    /// `ToMany<Farm::Dog>?`.
    var names: [String] {
      text.replacing("::", with: ".").split { !$0.isLetter && !$0.isNumber && $0 != "_" && $0 != "." }.map(String.init)
    }

    /// The names with which the compiler begins to find the types: `ToMany` and `Farm` in `ToMany<Farm.Dog>?`.
    var roots: [String] { names.map { String($0.prefix { $0 != "." }) } }

    /// The text with the name of the class instead of `Self`, for code in other types.
    func replacingSelf(by name: String) -> String {
      var result = ""
      var word = ""
      func appendWord() {
        result += word == "Self" ? name : word
        word = ""
      }
      for character in text {
        if character == "_" || character.isLetter || character.isNumber {
          word.append(character)
        } else {
          appendWord()
          result.append(character)
        }
      }
      appendWord()
      return result
    }

    /// The element of an array or a set.
    var element: String? {
      let text = TypeText(wrapped).standard
      if text.hasPrefix("["), text.hasSuffix("]"), !text.contains(":") { return String(text.dropFirst().dropLast()) }
      for generic in ["Array<", "Set<"] where text.hasPrefix(generic) && text.hasSuffix(">") {
        return String(text.dropFirst(generic.count).dropLast())
      }
      return nil
    }

    /// Whether it is a collection, which can't be the type of an attribute.
    var isCollection: Bool { element != nil || wrapped.hasPrefix("[") || TypeText(wrapped).standard.hasPrefix("Dictionary<") }
  }
#endif
