#if Macros
  import SwiftDiagnostics
  import SwiftParser
  import SwiftSyntax
  import SwiftSyntaxMacroExpansion
  import SwiftSyntaxMacros

  @testable import HoldfastMacros

  /// What the macros make of a piece of source.
  struct Expansion {
    let source: String
    private let expanded: Syntax
    private let diagnostics: [Diagnostic]
    private let context: BasicMacroExpansionContext

    private static var macros: [String: any Macro.Type] {
      [
        "Entity": EntityMacro.self, "_ManagedProperty": ManagedPropertyMacro.self, "Attribute": PropertyOptionsMacro.self,
        "Relationship": PropertyOptionsMacro.self, "Unique": EntityListMacro.self, "Index": EntityListMacro.self,
        "Composite": CompositeMacro.self,
      ]
    }

    init(_ source: String) {
      self.source = source
      let tree = Parser.parse(source: source)
      let context = BasicMacroExpansionContext(sourceFiles: [tree: .init(moduleName: "Program", fullFilePath: "Program.swift")])
      let specs = Expansion.macros.mapValues { macro in
        let conformance = TypeSyntax(IdentifierTypeSyntax(name: .identifier("CompositeAttributeValue")))
        return MacroSpec(type: macro, conformances: macro == CompositeMacro.self ? [conformance] : [])
      }
      expanded = tree.expand(
        macroSpecs: specs,
        contextGenerator: { BasicMacroExpansionContext(sharingWith: context, lexicalContext: $0.allMacroLexicalContexts()) },
        indentationWidth: .spaces(2))
      diagnostics = context.diagnostics
      self.context = context
    }

    /// The expanded source.
    var text: String { expanded.description }

    /// Whether the expanded source contains some source, with any line breaks and indentation.
    func contains(_ source: String) -> Bool { Expansion.flat(text).contains(Expansion.flat(source)) }

    /// The texts of the string literals in the expanded source, without those that have interpolations or don't compile.
    var literals: [String] {
      final class Visitor: SyntaxVisitor {
        var texts: [String] = []

        override func visit(_ node: StringLiteralExprSyntax) -> SyntaxVisitorContinueKind {
          if let text = node.representedLiteralValue { texts.append(text) }
          return .visitChildren
        }
      }
      let visitor = Visitor(viewMode: .sourceAccurate)
      visitor.walk(Parser.parse(source: text))
      return visitor.texts
    }

    static func flat(_ source: String) -> String { source.split(whereSeparator: \.isWhitespace).joined(separator: " ") }

    /// Each diagnostic as "line:column severity: message".
    var messages: [String] {
      diagnostics.map { diagnostic in
        let place = context.location(for: diagnostic.position, anchoredAt: diagnostic.node, fileName: "Program.swift")
        return "\(place.line):\(place.column) \(diagnostic.diagMessage.severity): \(diagnostic.message)"
      }
    }

    /// The source after the first correction of each diagnostic.
    var corrected: String {
      var edits: [(range: Range<Int>, text: String)] = []
      for case .replace(let old, let new) in diagnostics.compactMap({ $0.fixIts.first }).flatMap(\.changes) {
        edits.append((old.position.utf8Offset..<old.endPosition.utf8Offset, new.description))
      }
      var bytes = Array(source.utf8)
      for edit in edits.sorted(by: { $0.range.lowerBound > $1.range.lowerBound }) {
        bytes.replaceSubrange(edit.range, with: Array(edit.text.utf8))
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }
#endif
