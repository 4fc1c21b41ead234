#if Macros
  import SwiftSyntaxMacros

  #if canImport(SwiftCompilerPlugin)
    import SwiftCompilerPlugin
  #else
    @_spi(PluginMessage) import SwiftCompilerPluginMessageHandling
  #endif

  /// The program that the compiler runs to expand macros.
  @main struct Plugin: CompilerPlugin {
    let providingMacros: [any Macro.Type] = [
      EntityMacro.self, ManagedPropertyMacro.self, PropertyOptionsMacro.self, EntityListMacro.self, CompositeMacro.self,
    ]
  }

  #if !canImport(SwiftCompilerPlugin)
    /// What the module of this name provides, which toolchains don't contain.
    protocol CompilerPlugin {
      init()
      var providingMacros: [any Macro.Type] { get }
    }

    extension CompilerPlugin {
      static func main() throws {
        let macros = Dictionary(uniqueKeysWithValues: Self().providingMacros.map { (String(reflecting: $0), $0) })
        try CompilerPluginMessageListener(connection: StandardIOMessageConnection(), provider: Provider(macros: macros)).main()
      }
    }

    private struct Provider: PluginProvider {
      let macros: [String: any Macro.Type]

      func resolveMacro(moduleName: String, typeName: String) throws -> any Macro.Type {
        guard let macro = macros["\(moduleName).\(typeName)"] else { throw UnknownMacro(name: typeName) }
        return macro
      }
    }

    private struct UnknownMacro: Error {
      let name: String
    }
  #endif
#else
  /// Without the trait `Macros` nothing runs this program.
  @main enum Plugin {
    static func main() {}
  }
#endif
