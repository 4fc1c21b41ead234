#if Macros
  import SwiftSyntax
  import SwiftSyntaxMacros

  /// A class with `@Entity`, as far as its text says.
  struct EntityClass {
    let name: String
    let superclass: String
    let isFinal: Bool
    let properties: [ManagedProperty]
    /// What members of the class that others use begin with, such as `public `.
    let access: String
    /// The same for members that subclasses override.
    let overriddenAccess: String
    /// The parameters of the initializers in the class. An asynchronous one doesn't contradict another.
    let initializers: [[InitializerParameter]]
    /// The arguments of `@Entity`.
    let arguments: MacroArguments
    /// The names in each `#Unique` and `#Index`.
    let uniquenessConstraints: [[String]]
    let indexes: [[String]]

    /// - Parameter context: Where the class is declared.
    init(_ declaration: ClassDeclSyntax, _ attribute: AttributeSyntax, in context: some MacroExpansionContext) {
      name = declaration.name.text
      superclass = declaration.inheritanceClause?.inheritedTypes.first?.type.trimmedDescription ?? "ManagedObject"
      properties = declaration.memberBlock.members.compactMap { $0.decl.as(VariableDeclSyntax.self).flatMap(ManagedProperty.init) }
      isFinal = declaration.modifiers.contains { $0.name.tokenKind == .keyword(.final) }
      access = declaration.modifiers.access(in: context)
      let isOpen = declaration.modifiers.contains { $0.name.tokenKind == .keyword(.open) }
      overriddenAccess = isOpen ? "open " : access
      initializers = declaration.memberBlock.members.compactMap { member in
        guard let initializer = member.decl.as(InitializerDeclSyntax.self), initializer.genericParameterClause == nil else { return nil }
        let signature = initializer.signature
        if signature.effectSpecifiers?.asyncSpecifier != nil { return nil }
        return signature.parameterClause.parameters.map { InitializerParameter($0.firstName.text, $0.type.trimmedDescription) }
      }
      arguments = MacroArguments(attribute.arguments)
      let own = Dictionary(properties.map { ($0.reference.filter { $0 != "`" }, $0.name) }) { first, _ in first }
      uniquenessConstraints = EntityClass.names(in: "Unique", declaration, own)
      indexes = EntityClass.names(in: "Index", declaration, own)
    }

    /// The properties in the order of their slots.
    var sorted: [ManagedProperty] {
      properties.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }
    }

    /// The lists of names in the macros with a name, such as `#Index<Dog>([\.name], [\.home.city])`.
    private static func names(in macro: String, _ declaration: ClassDeclSyntax, _ own: [String: String]) -> [[String]] {
      declaration.memberBlock.members.compactMap { $0.decl.as(MacroExpansionDeclSyntax.self) }.filter { $0.macroName.text == macro }
        .flatMap { expansion in
          expansion.arguments.compactMap { argument in
            argument.expression.as(ArrayExprSyntax.self)?.elements.compactMap { element in
              element.expression.as(KeyPathExprSyntax.self).map { path(of: $0, declaration.name.text, own) }
            }
          }
        }
    }

    /// The path of names of a key path. Its root may be the class with the types around it, as in `\Farm.Dog.name`.
    private static func path(of keyPath: KeyPathExprSyntax, _ type: String, _ own: [String: String]) -> String {
      var names = keyPath.names
      if keyPath.root != nil, let end = names.lastIndex(of: type) { names.removeFirst(end + 1) }
      return ([own[names.first ?? ""] ?? names.first ?? ""] + names.dropFirst()).joined(separator: ".")
    }
  }

  /// A parameter of an initializer. Equal ones are the same for the compiler.
  struct InitializerParameter: Equatable {
    let label: String
    let type: String
    let isOptional: Bool

    init(_ label: String, _ type: String) {
      let text = TypeText(type)
      self.label = label.filter { $0 != "`" }
      (self.type, isOptional) = (text.wrapped, text.isOptional)
    }
  }

  extension DeclModifierListSyntax {
    var isPrivate: Bool { contains { [.keyword(.private), .keyword(.fileprivate)].contains($0.name.tokenKind) && $0.detail == nil } }

    /// The access of a type with these modifiers: `public `, `package ` or nothing. Without an own one, that of the extension around it.
    func access(in context: some MacroExpansionContext) -> String {
      let own: [Keyword] = [.open, .public, .package, .internal, .fileprivate, .private]
      let hasOwn = contains { modifier in modifier.detail == nil && own.contains { modifier.name.tokenKind == .keyword($0) } }
      guard !hasOwn, let container = context.lexicalContext.first?.as(ExtensionDeclSyntax.self) else { return access }
      return container.modifiers.access
    }

    /// `public `, `package ` or nothing.
    var access: String {
      for modifier in self {
        switch modifier.name.tokenKind {
        case .keyword(.public) where modifier.detail == nil, .keyword(.open): return "public "
        case .keyword(.package) where modifier.detail == nil: return "package "
        default: continue
        }
      }
      return ""
    }

    /// Whether all code that sees a declaration with an access such as `public ` also sees one with these modifiers.
    func isVisible(with access: String) -> Bool {
      switch access {
      case "public ": self.access == access
      case "package ": self.access != ""
      default: !isPrivate
      }
    }
  }
#endif
