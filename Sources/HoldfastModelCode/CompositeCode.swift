import HoldfastStore

/// The struct of one composite attribute.
struct CompositeCode {
  private let composite: CompositeDescription
  private let names: SwiftNames
  private let accessLevel: ModelCode.Access

  init(_ composite: CompositeDescription, _ names: SwiftNames, _ access: ModelCode.Access) {
    (self.composite, self.names, accessLevel) = (composite, names, access)
  }

  /// The name of the struct.
  var typeName: String { names.structName(composite.name) }
  var file: String { SwiftText.file(source, accessLevel) }

  private var elements: [AttributeCode] {
    composite.elements.sorted { SwiftText.precedes($0.name, $1.name) }.map { AttributeCode(attribute: $0, names: names) }
  }

  /// What a struct can't declare: its elements have names and types only.
  var notes: [String] {
    elements.compactMap { element in
      let plain = element.attribute
      if plain.defaultValue == nil && plain.validation == .none && plain.isOptional { return nil }
      return "\(composite.name).\(plain.name): The struct declares an optional element without default value and rules. "
        + "Read the model from its file if you need them."
    }
  }

  var source: String {
    let access = accessLevel == .public ? "public " : ""
    let variables = elements.map { "  /// \($0.comment)\n  \(access)var \($0.name): \($0.wrappedType)?\n" }.joined()
    let list = elements.map { ".element(\(SwiftText.literal($0.attribute.name)), \\.\($0.name))" }
    let count = elements.map { $0.attribute.type == .composite ? "\($0.wrappedType).slotCount" : "1" }.joined(separator: " + ")
    return "/// The composite attribute \(composite.name).\n\(access)struct \(typeName): CompositeAttributeValue {\n" + variables
      + "\n  /// Creates a value without elements.\n  \(access)init() {}\n\n  /// The elements.\n"
      + "  \(access)static let elements: CompositeElements<\(typeName)> = [\n" + list.map { "    \($0),\n" }.joined() + "  ]\n\n"
      + "  /// The number of slots.\n  \(access)static var slotCount: Int { \(count.isEmpty ? "0" : count) }\n}\n"
  }
}
