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
  var file: String { SwiftText.file(source, accessLevel, types: types) }
  /// The types of the elements.
  var types: [String] { elements.map(\.wrappedType) }

  private var elements: [AttributeCode] {
    composite.elements.sorted { SwiftText.precedes($0.name, $1.name) }.map { AttributeCode(attribute: $0, names: names) }
  }

  /// What a struct can't declare: another name.
  var notes: [String] {
    typeName == composite.name
      ? [] : ["\(composite.name): Its struct is \(typeName), and declares a composite attribute of that name."]
  }

  var source: String {
    let access = accessLevel.prefix
    let variables = elements.map { "  /// \($0.comment)\n  \(access)var \($0.name): \($0.wrappedType)?\n" }.joined()
    let list = elements.map(\.element)
    let count = elements.map { $0.attribute.type == .composite ? "\($0.wrappedType).slotCount" : "1" }.joined(separator: " + ")
    return
      "/// The composite attribute \(SwiftText.comment(composite.name)).\n\(accessLevel.typePrefix)struct \(typeName): CompositeAttributeValue {\n"
      + variables
      + "\n  /// Creates a value without elements.\n  \(access)init() {}\n\n  /// The elements.\n"
      + "  \(access)static let elements: CompositeElements<\(typeName)> = \(SwiftText.indented(SwiftText.lines(list)).dropFirst(2))\n\n"
      + "  /// The number of slots.\n  \(access)static var slotCount: Int { \(count.isEmpty ? "0" : count) }\n}\n"
  }
}
