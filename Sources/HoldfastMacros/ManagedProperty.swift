#if Macros
  import SwiftParser
  import SwiftSyntax

  /// A property of a class with `@Entity` whose value the framework keeps.
  struct ManagedProperty {
    /// Where and how an object keeps the value. Among attributes and to-one relationships the text can't distinguish; the compiler does.
    enum Kind {
      case value
      case transformable
      case codable
      case toMany
      case transient
      case transientToOne
      case transientToMany
    }

    let variable: VariableDeclSyntax
    /// The name as code refers to it, perhaps in backticks.
    let reference: String
    /// The name in the model.
    let name: String
    let kind: Kind
    let type: TypeText
    let initial: InitialValue?
    /// The arguments of `@Attribute` or `@Relationship` for the declaration, such as `.unique` and `deleteRule: .cascade`.
    let arguments: [String]
    /// Whether saves compute the value.
    let isDerived: Bool

    /// The macro for its settings.
    var macro: String { type.isToMany || variable.attribute(named: "Relationship") != nil ? "Relationship" : "Attribute" }

    /// Whether the row has slots for the property.
    var hasSlots: Bool { kind == .value || isTransformed }

    /// Whether the row has bytes that a transformer decodes.
    var isTransformed: Bool { kind == .transformable || kind == .codable }

    /// Whether a new object has no value until one is set.
    var isRequired: Bool { initial == nil && !type.isOptional }

    /// The property of a variable; nil for variables that aren't managed, or whose type is unknown.
    init?(_ variable: VariableDeclSyntax) {
      guard ManagedProperty.isManaged(variable), variable.isVar, variable.bindings.count == 1, let binding = variable.bindings.first,
        let pattern = binding.pattern.as(IdentifierPatternSyntax.self)
      else { return nil }
      let written = binding.initializer.map { InitialValue(expression: $0.value) }
      guard let type = binding.typeAnnotation?.type.trimmedDescription ?? written?.type else { return nil }
      let attribute = variable.attribute(named: "Attribute"), relationship = variable.attribute(named: "Relationship")
      let options = MacroArguments((attribute ?? relationship)?.arguments)
      self.variable = variable
      self.type = TypeText(type)
      let isNone = self.type.isOptional && written?.text == ".none"
      initial = isNone ? InitialValue(expression: ExprSyntax(NilLiteralExprSyntax())) : written
      reference = pattern.reference
      name = options.string("name") ?? reference.filter { $0 != "`" }
      arguments = options.texts(except: ["name"])
      isDerived = options.has("derived")
      kind =
        if self.type.isToMany {
          options.has("transient") ? .transientToMany : .toMany
        } else if options.has("transient") {
          relationship == nil ? .transient : .transientToOne
        } else {
          options.has("codable") ? .codable : options.has("transformable") ? .transformable : .value
        }
    }

    /// Whether a variable of a class with `@Entity` is managed: a stored property of objects.
    ///
    /// Also if another property of the same declaration is computed: a declaration of several is reported as a mistake.
    static func isManaged(_ variable: VariableDeclSyntax) -> Bool {
      !variable.hasModifier(of: unmanaged.union([.override])) && variable.bindings.contains { $0.accessorBlock == nil }
    }

    /// The modifiers of stored properties that aren't managed.
    static let unmanaged: Set<Keyword> = [.static, .class, .lazy, .weak, .unowned]
  }

  /// The arguments of a macro. One with a label and nil is left out: nil is the default of each that can be nil.
  struct MacroArguments {
    private let list: [LabeledExprSyntax]

    init(_ arguments: AttributeSyntax.Arguments?) {
      guard case .argumentList(let all)? = arguments else {
        list = []
        return
      }
      list = Array(all).filter { $0.label == nil || !$0.expression.is(NilLiteralExprSyntax.self) }
    }

    /// Whether an option is among the arguments without labels: `.name` or `.name(…)`.
    func has(_ option: String) -> Bool {
      list.contains { argument in
        let expression = argument.expression.as(FunctionCallExprSyntax.self)?.calledExpression ?? argument.expression
        return argument.label == nil && expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text == option
      }
    }

    /// The literal text with a label.
    func string(_ label: String) -> String? {
      let literal = list.first { $0.label?.text == label }?.expression.as(StringLiteralExprSyntax.self)
      return literal?.representedLiteralValue
    }

    func has(label: String) -> Bool { list.contains { $0.label?.text == label } }

    /// The arguments as they are written, in order.
    func texts(except labels: [String] = []) -> [String] {
      list.filter { argument in !labels.contains { $0 == argument.label?.text } }.map { argument in
        (argument.label.map { "\($0.text): " } ?? "") + argument.expression.trimmedDescription
      }
    }

    /// The arguments with labels.
    var labelled: [(label: String, value: String)] {
      list.compactMap { argument in argument.label.map { ($0.text, argument.expression.trimmedDescription) } }
    }
  }

  extension IdentifierPatternSyntax {
    /// At the beginning of an accessor's body or of an expression, these are accessors or operators.
    private static let contextualKeywords: Set<String> = [
      "__consuming", "_modify", "_read", "await", "borrow", "borrowing", "consuming", "copy", "didSet", "get", "modify", "mutate",
      "mutating", "nonmutating", "read", "set", "unsafe", "unsafeAddress", "unsafeMutableAddress", "willSet", "yield",
    ]

    /// The name as code can refer to it anywhere: as it is written, or in backticks.
    var reference: String {
      IdentifierPatternSyntax.contextualKeywords.contains(identifier.text) ? "`\(identifier.text)`" : identifier.text
    }
  }

  extension VariableDeclSyntax {
    var isVar: Bool { bindingSpecifier.tokenKind == .keyword(.var) }

    func hasModifier(of keywords: Set<Keyword>) -> Bool {
      modifiers.contains { if case .keyword(let keyword) = $0.name.tokenKind { keywords.contains(keyword) } else { false } }
    }

    /// Its first `willSet` or `didSet`; nil for a property that isn't managed without them.
    var observer: AccessorDeclSyntax? {
      if hasModifier(of: ManagedProperty.unmanaged) { return nil }
      for binding in bindings {
        guard case .accessors(let list)? = binding.accessorBlock?.accessors else { continue }
        let observer = list.first { [.keyword(.willSet), .keyword(.didSet)].contains($0.accessorSpecifier.tokenKind) }
        if let observer { return observer }
      }
      return nil
    }

    func attribute(named name: String) -> AttributeSyntax? { attributes.first(named: name) }

    /// The second `@Attribute` or `@Relationship`, whose settings aren't read.
    var repeatedMacro: (name: String, attribute: AttributeSyntax)? {
      for name in ["Attribute", "Relationship"] {
        if let second = attributes.all(named: name).dropFirst().first { return (name, second) }
      }
      return nil
    }

    /// The first `#if` around `@Attribute` or `@Relationship`, whose settings it would hide.
    var conditionalMacro: IfConfigDeclSyntax? {
      for case .ifConfigDecl(let condition) in attributes where condition.hasPropertyMacro { return condition }
      return nil
    }
  }

  extension IfConfigDeclSyntax {
    fileprivate var hasPropertyMacro: Bool {
      clauses.contains { clause in
        guard case .attributes(let list)? = clause.elements else { return false }
        if list.first(named: "Attribute") != nil || list.first(named: "Relationship") != nil { return true }
        return list.contains { if case .ifConfigDecl(let condition) = $0 { condition.hasPropertyMacro } else { false } }
      }
    }
  }

  extension AttributeListSyntax {
    /// The attribute with a name, perhaps after the name of the module.
    func first(named name: String) -> AttributeSyntax? { all(named: name).first }

    /// The attributes with a name, perhaps after the name of the module.
    fileprivate func all(named name: String) -> [AttributeSyntax] {
      compactMap { element in
        guard case .attribute(let attribute) = element else { return nil }
        let text = attribute.attributeName.trimmedDescription
        return TypeText(text).without(module: "Holdfast") == name ? attribute : nil
      }
    }
  }
#endif
