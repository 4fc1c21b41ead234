/// The parts of an attribute that are kept behind one reference.
final class AttributeDetails: Sendable, Hashable {
  let declaration: AttributeDescription
  let derivation: Derivation?

  init(_ declaration: AttributeDescription) {
    self.declaration = declaration
    derivation = declaration.derivationExpression.flatMap { Derivation($0) }
  }

  static func == (a: AttributeDetails, b: AttributeDetails) -> Bool { a === b || a.declaration == b.declaration }
  func hash(into hasher: inout Hasher) { hasher.combine(declaration.name) }
}
