#if Macros
  import SwiftDiagnostics
  import SwiftSyntax
  import SwiftSyntaxMacros

  /// A mistake in a declaration, in a sentence at its place.
  struct Problem: DiagnosticMessage {
    let message: String
    let severity: DiagnosticSeverity
    let name: String

    /// What each name in a model is.
    static let nameRule = "A name in a model has ASCII letters, digits and underscores, and doesn't begin with a digit."

    var diagnosticID: MessageID { MessageID(domain: "Holdfast", id: name) }
  }

  extension String {
    /// Whether a model can have the name.
    var isModelName: Bool {
      guard let first = utf8.first, !(48...57).contains(first) else { return false }
      return utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95 }
    }
  }

  /// A change of the source that corrects a mistake.
  struct Correction {
    let message: String
    let change: FixIt.Change

    private struct Message: FixItMessage {
      let message: String
      var fixItID: MessageID { MessageID(domain: "Holdfast", id: message) }
    }

    var fixIt: FixIt { FixIt(message: Message(message: message), changes: [change]) }

    /// Replaces a piece of source by another one of the same kind.
    static func replace(_ old: some SyntaxProtocol, by new: some SyntaxProtocol, _ message: String) -> Correction {
      Correction(message: message, change: .replace(oldNode: Syntax(old), newNode: Syntax(new)))
    }

    /// Replaces `let` by `var`.
    static func makeVariable(_ constant: VariableDeclSyntax) -> Correction {
      var variable = constant
      variable.bindingSpecifier = .keyword(.var, leadingTrivia: constant.bindingSpecifier.leadingTrivia, trailingTrivia: .space)
      return .replace(constant, by: variable, "Replace 'let' by 'var'")
    }
  }

  /// The diagnostics of one expansion.
  struct Problems {
    private(set) var all: [Diagnostic] = []

    /// Adds a mistake that prevents compilation.
    mutating func error(_ name: String, at node: some SyntaxProtocol, _ message: String, _ corrections: Correction...) {
      add(Problem(message: message, severity: .error, name: name), node, corrections)
    }

    mutating func warning(_ name: String, at node: some SyntaxProtocol, _ message: String, _ corrections: Correction...) {
      add(Problem(message: message, severity: .warning, name: name), node, corrections)
    }

    private mutating func add(_ problem: Problem, _ node: some SyntaxProtocol, _ corrections: [Correction]) {
      all.append(Diagnostic(node: Syntax(node), message: problem, fixIts: corrections.map(\.fixIt)))
    }

    /// Reports the diagnostics to the compiler.
    func report(to context: some MacroExpansionContext) {
      for diagnostic in all { context.diagnose(diagnostic) }
    }
  }
#endif
