#if Macros
  package import SwiftSyntax
  import SwiftSyntaxBuilder
  package import SwiftSyntaxMacros

  /// `@Entity`: makes the stored properties of a class those of an entity.
  package struct EntityMacro: MemberMacro, MemberAttributeMacro {
    package static func expansion(
      of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax, conformingTo protocols: [TypeSyntax],
      in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
      var check = EntityCheck()
      guard let type = check.classDeclaration(declaration, node) else {
        check.problems.report(to: context)
        return []
      }
      check.check(type, node)
      check.problems.report(to: context)
      return EntityMembers(entity: EntityClass(type, node, in: context)).all.map { "\(raw: $0)" }
    }

    package static func expansion(
      of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax, providingAttributesFor member: some DeclSyntaxProtocol,
      in context: some MacroExpansionContext
    ) throws -> [AttributeSyntax] {
      guard declaration.is(ClassDeclSyntax.self), let variable = member.as(VariableDeclSyntax.self), ManagedProperty(variable) != nil else {
        return []
      }
      return ["@_ManagedProperty"]
    }
  }

  /// The accessors of a property, which `@Entity` adds.
  package struct ManagedPropertyMacro: AccessorMacro {
    package static func expansion(
      of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
      guard let property = declaration.as(VariableDeclSyntax.self).flatMap(ManagedProperty.init) else { return [] }
      let slot = "Slots.\(property.reference)"
      let zero = property.type.isOptional ? nil : property.initial.map { " ?? \($0.operand)" }
      let place = "self[property: \(property.isTransformed ? "TransformableSlot(\(slot))" : slot)]"
      let hasZero = property.isTransformed || property.kind == .transient
      return ["get { \(raw: place + (hasZero ? zero ?? "" : "")) }", "set { \(raw: place) = newValue }"]
    }
  }

  /// `@Attribute` and `@Relationship`: `@Entity` reads their arguments.
  package struct PropertyOptionsMacro: PeerMacro {
    package static func expansion(
      of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
      let attributes = context.lexicalContext.first?.asProtocol((any WithAttributesSyntax).self)?.attributes
      let name = node.trimmedDescription.prefix { $0 != "(" }, isAttribute = name.hasSuffix("Attribute")
      if attributes?.first(named: "Entity") != nil || (isAttribute && attributes?.first(named: "Composite") != nil) { return [] }
      var problems = Problems()
      problems.error(
        "outsideEntity", at: node,
        "\(name) is for the properties of a class with @Entity\(isAttribute ? ", or of a struct with @Composite" : "").")
      problems.report(to: context)
      return []
    }
  }

  /// `#Unique` and `#Index`: `@Entity` reads their arguments, and the compiler checks them.
  package struct EntityListMacro: DeclarationMacro {
    package static func expansion(
      of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
      let attributes = context.lexicalContext.first?.asProtocol((any WithAttributesSyntax).self)?.attributes
      if attributes?.first(named: "Entity") == nil {
        var problems = Problems()
        problems.error("outsideEntity", at: node, "#\(node.macroName.text) is for a class with @Entity, and not for its extensions.")
        problems.report(to: context)
      }
      return []
    }
  }
#endif
