#if Macros
  import HoldfastMacros
  import SwiftSyntax
  import SwiftSyntaxMacros

  // The compiler finds a macro by the module of the plugin, and tests can't import a plugin without compiling everything twice. So these types
  // forward to those of `HoldfastMacros`.

  struct EntityMacro: MemberMacro, MemberAttributeMacro {
    static func expansion(
      of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax, conformingTo protocols: [TypeSyntax],
      in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
      try HoldfastMacros.EntityMacro.expansion(of: node, providingMembersOf: declaration, conformingTo: protocols, in: context)
    }

    static func expansion(
      of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax, providingAttributesFor member: some DeclSyntaxProtocol,
      in context: some MacroExpansionContext
    ) throws -> [AttributeSyntax] {
      try HoldfastMacros.EntityMacro.expansion(of: node, attachedTo: declaration, providingAttributesFor: member, in: context)
    }
  }

  struct ManagedPropertyMacro: AccessorMacro {
    static func expansion(
      of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
      try HoldfastMacros.ManagedPropertyMacro.expansion(of: node, providingAccessorsOf: declaration, in: context)
    }
  }

  struct PropertyOptionsMacro: PeerMacro {
    static func expansion(
      of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
      try HoldfastMacros.PropertyOptionsMacro.expansion(of: node, providingPeersOf: declaration, in: context)
    }
  }

  struct EntityListMacro: DeclarationMacro {
    static func expansion(of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext) throws -> [DeclSyntax] {
      try HoldfastMacros.EntityListMacro.expansion(of: node, in: context)
    }
  }

  struct CompositeMacro: MemberMacro, ExtensionMacro {
    static func expansion(
      of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax, conformingTo protocols: [TypeSyntax],
      in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
      try HoldfastMacros.CompositeMacro.expansion(of: node, providingMembersOf: declaration, conformingTo: protocols, in: context)
    }

    static func expansion(
      of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax, providingExtensionsOf type: some TypeSyntaxProtocol,
      conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
      try HoldfastMacros.CompositeMacro.expansion(
        of: node, attachedTo: declaration, providingExtensionsOf: type, conformingTo: protocols, in: context)
    }
  }
#endif
