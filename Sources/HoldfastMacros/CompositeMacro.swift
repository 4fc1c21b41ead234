#if Macros
  package import SwiftSyntax
  import SwiftSyntaxBuilder
  package import SwiftSyntaxMacros

  /// `@Composite`: makes a struct the type of composite attributes.
  package struct CompositeMacro: MemberMacro, ExtensionMacro {
    package static func expansion(
      of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax, conformingTo protocols: [TypeSyntax],
      in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
      var problems = Problems()
      defer { problems.report(to: context) }
      guard let type = declaration.as(StructDeclSyntax.self) else {
        problems.error("notAStruct", at: node, "@Composite is for structs.")
        return []
      }
      if let parameters = type.genericParameterClause {
        problems.error(
          "generic", at: parameters, "A generic struct can't be a composite attribute: a model has one composite for each struct.")
        return []
      }
      let elements = elements(of: type, &problems), access = type.modifiers.access(in: context)
      let types = Set(elements.flatMap { TypeText($0.type).roots })
      for element in elements where types.contains(element.name) {
        problems.error(
          "propertyAsType", at: element.pattern, "\(element.name) is also the name of a type in the struct. Rename the element.")
      }
      let list = elements.map { "  .element(\($0.arguments.joined(separator: ", "))),\n" }.joined()
      let counts = elements.map { "  count += ManagedObject.slotCount(of: \($0.type).self)\n" }.joined()
      let members: [DeclSyntax] = [
        "\(raw: access)static let elements: CompositeElements<\(type.name.trimmed)> = [\n\(raw: list)]",
        "\(raw: access)static var slotCount: Int {\n  var count = 0\n\(raw: counts)  return count\n}",
      ]
      return members + initializers(of: type, access, elements)
    }

    /// A stored property of the struct.
    private struct Element {
      let pattern: IdentifierPatternSyntax
      let name: String
      /// The name as code refers to it, perhaps in backticks.
      let reference: String
      let type: String
      let initial: InitialValue?
      let modifiers: DeclModifierListSyntax
      /// The arguments of `@Attribute`.
      let options: [String]

      /// The parameter of the initializer.
      ///
      /// - Parameter isWide: Whether other modules can see the initializer and all its elements. Its default arguments can't name what they
      ///   don't see, such as an internal constant. They can create a value, which has all initial values.
      func parameter(isWide: Bool) -> String {
        let isLiteral = initial.map { $0.kind == .literal || $0.kind == .none } ?? true, text = initial?.text ?? "nil"
        return "\(reference): \(type) = \(isWide && !isLiteral ? "Self().\(reference)" : text)"
      }

      /// What the list of elements has of it.
      var arguments: [String] { ["\"\(name)\"", "\\.\(reference)"] + options }
    }

    /// The initializers that the struct needs and the compiler doesn't add: it adds none that are public, and none beside others.
    ///
    /// The type of an element that isn't public may not be public either. So an initializer with this element isn't public.
    private static func initializers(of type: StructDeclSyntax, _ access: String, _ elements: [Element]) -> [DeclSyntax] {
      let own = type.memberBlock.members.compactMap { $0.decl.as(InitializerDeclSyntax.self) }
      let hasEmpty = own.contains { $0.signature.parameterClause.parameters.isEmpty }
      if hasEmpty || (own.isEmpty && access.isEmpty) { return [] }
      let empty: DeclSyntax = "\(raw: access)init() {}", visible = elements.filter { !$0.modifiers.isPrivate }
      if !own.isEmpty || visible.isEmpty { return [empty] }
      let isWide = visible.allSatisfy { $0.modifiers.isVisible(with: access) }
      let parameters = visible.map { $0.parameter(isWide: isWide) }.joined(separator: ", ")
      let lines = visible.map { "  self.\($0.reference) = \($0.reference)\n" }.joined()
      return [empty, "\(raw: isWide ? access : "")init(\(raw: parameters)) {\n\(raw: lines)}"]
    }

    package static func expansion(
      of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax, providingExtensionsOf type: some TypeSyntaxProtocol,
      conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
      guard declaration.is(StructDeclSyntax.self), !protocols.isEmpty else { return [] }
      // An extension of a type that isn't available everywhere isn't either.
      let availability = declaration.attributes.compactMap { element -> String? in
        guard case .attribute(let attribute) = element, attribute.attributeName.trimmedDescription == "available" else { return nil }
        return attribute.trimmedDescription + "\n"
      }
      return [
        try ExtensionDeclSyntax(
          "\(raw: availability.joined())extension \(type.trimmed): nonisolated CompositeAttributeValue {}")
      ]
    }

    private static func elements(of type: StructDeclSyntax, _ problems: inout Problems) -> [Element] {
      type.memberBlock.members.compactMap { member in
        if let condition = member.decl.as(IfConfigDeclSyntax.self), condition.hasManagedProperties {
          problems.error(
            "conditional", at: condition,
            "The elements of a composite attribute can't depend on #if: a store has the same for all programs.")
        }
        guard let variable = member.decl.as(VariableDeclSyntax.self) else { return nil }
        if let condition = variable.conditionalMacro {
          problems.error(
            "conditionalSettings", at: condition,
            "The settings of an element can't depend on #if: a store has the same for all programs.")
        }
        guard ManagedProperty.isManaged(variable) else {
          if let observer = variable.observer {
            problems.error("observer", at: observer, "An element can't have observers: reading the attribute would call them.")
          } else if let attribute = variable.attribute(named: "Attribute") {
            problems.error("notStored", at: attribute, "Only a stored property is an element.")
          }
          return nil
        }
        guard variable.isVar else {
          problems.error(
            "constant", at: variable.bindingSpecifier, "An element is a variable: its value is read from a store.", .makeVariable(variable))
          return nil
        }
        guard variable.bindings.count == 1, let binding = variable.bindings.first,
          let pattern = binding.pattern.as(IdentifierPatternSyntax.self)
        else {
          problems.error("severalBindings", at: variable, "Declare each element on its own.")
          return nil
        }
        let name = pattern.identifier.text.filter { $0 != "`" }
        if !name.isModelName { problems.error("propertyName", at: pattern, "\(Problem.nameRule) Rename the element.") }
        let initial = binding.initializer.map { InitialValue(expression: $0.value) }
        guard let type = binding.typeAnnotation?.type.trimmedDescription ?? initial?.type else {
          problems.error(
            "missingType", at: pattern, "The type of '\(pattern.identifier.text)' must be written: the macro can't infer it.",
            .insertType(of: binding))
          return nil
        }
        if initial == nil, !TypeText(type).isOptional, let type = binding.typeAnnotation?.type {
          problems.error(
            "noInitialValue", at: pattern,
            "An element has an initial value or is optional: a struct without values is made before it is read.", .makeOptional(type))
        }
        return Element(
          pattern: pattern, name: name, reference: pattern.reference, type: type, initial: initial, modifiers: variable.modifiers,
          options: options(of: variable, &problems))
      }
    }

    /// The rules and settings of an element. Reports what an element can't have.
    private static func options(of variable: VariableDeclSyntax, _ problems: inout Problems) -> [String] {
      guard let attribute = variable.attribute(named: "Attribute") else { return [] }
      if let (name, second) = variable.repeatedMacro {
        problems.error("repeatedMacro", at: second, "The element has @\(name) twice. Write all its arguments in the first one.")
      }
      let arguments = MacroArguments(attribute.arguments)
      if arguments.has(label: "name") {
        problems.error("elementName", at: attribute, "An element has the name of its property.")
      }
      if arguments.has("unique") {
        problems.error(
          "uniqueElement", at: attribute, "An element can't be unique by itself. Name it in `#Unique` of the class with the attribute.")
      } else if ["codable", "derived", "transient"].contains(where: { arguments.has($0) }) {
        problems.error("elementKind", at: attribute, "An element is a value in the row: it can't be Codable, derived or transient.")
      }
      return arguments.texts(except: ["name"])
    }
  }
#endif
