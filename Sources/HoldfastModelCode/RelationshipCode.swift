import HoldfastStore

/// The code of one relationship.
struct RelationshipCode {
  let relationship: RelationshipDescription
  let names: SwiftNames

  /// The name in code.
  var name: String { names.property(relationship.name) }
  private var destination: String { names.className(relationship.destination) }

  /// The type of the property.
  var type: String {
    relationship.isToMany ? "\(relationship.isOrdered ? "OrderedToMany" : "ToMany")<\(destination)>" : "\(destination)?"
  }

  // MARK: Accessors

  func property(_ access: String) -> String {
    let inverse = relationship.inverse.map { " The inverse is `\(relationship.destination).\($0)`." } ?? " It has no inverse."
    let count = relationship.isToMany ? "Objects of \(relationship.destination)" : "An object of \(relationship.destination)"
    let order = relationship.isOrdered && relationship.isToMany ? ", in order" : ""
    let memory = relationship.isTransient ? ", kept in memory only" : ""
    return "/// \(count)\(order)\(memory).\(inverse)\n\(access)var \(name): \(type) {\n"
      + "  get { self[property: Slots.\(name)] }\n  set { self[property: Slots.\(name)] = newValue }\n}"
  }

  /// The methods that Core Data's generated code has, for programs that come from there. Empty for to-one relationships.
  func methods(_ access: String) -> String {
    guard relationship.isToMany else { return "" }
    let suffix = SwiftNames.capitalized(relationship.name)
    func method(_ comment: String, _ name: String, _ parameter: String, _ body: String) -> String {
      "/// \(comment) `\(relationship.name)`.\n"
        + SwiftText.member("\(access)func \(name)\(suffix)(_ \(parameter))", "self.\(self.name).\(body)", margin: 2)
    }
    return [
      method("Adds an object to", "addTo", "object: \(destination)", "append(object)"),
      method("Adds objects to", "addTo", "objects: some Sequence<\(destination)>", "append(contentsOf: objects)"),
      method("Removes an object from", "removeFrom", "object: \(destination)", "remove(object)"),
      method("Removes objects from", "removeFrom", "objects: some Sequence<\(destination)>", "subtract(objects)"),
    ].joined(separator: "\n\n")
  }

  // MARK: Declaration

  /// The call that declares the relationship.
  func declaration(in className: String) -> String {
    let base = relationship
    var arguments = [SwiftText.literal(base.name), "\\\(className).\(name)"]
    if base.isTransient { arguments.append(".transient") }
    if !base.isOptional { arguments.append(".required") }
    if base.minCount != 0 { arguments.append(".setting(\\.minCount, \(base.minCount))") }
    if base.maxCount != (base.isToMany ? 0 : 1) { arguments.append(".setting(\\.maxCount, \(base.maxCount))") }
    if base.isOrdered && !base.isToMany { arguments.append(".setting(\\.isOrdered, true)") }
    if let text = base.renamingIdentifier { arguments.append(".renamed(from: \(SwiftText.literal(text)))") }
    if let text = base.versionHashModifier { arguments.append(".versionHashModifier(\(SwiftText.literal(text)))") }
    if !base.userInfo.isEmpty { arguments.append(".userInfo(\(SwiftText.literal(base.userInfo)))") }
    if base.deleteRule != .nullify { arguments.append("deleteRule: .\(base.deleteRule)") }
    if let inverse = base.inverse { arguments.append("inverse: \\\(destination).\(names.property(inverse))") }
    return SwiftText.call(".property", arguments, width: 60)
  }
}
