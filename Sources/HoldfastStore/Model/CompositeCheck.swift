/// Finds every contradiction in composite declarations, and how many values each has.
struct CompositeCheck {
  let byName: [String: CompositeDescription]
  private(set) var problems: [ModelError.Problem] = []
  /// How many values a group has with all groups within it; nil for one that contains itself.
  private var counts: [String: Int?] = [:]

  /// So many values may one attribute have: groups within groups multiply.
  static let largestCount = 4096

  init(_ composites: [CompositeDescription]) {
    var byName: [String: CompositeDescription] = [:]
    for composite in composites where byName[composite.name] == nil { byName[composite.name] = composite }
    self.byName = byName
    problems += ModelCheck.repeated(composites.map(\.name)).map { CompositeCheck.problem($0, "There are two composites of this name.") }
    for composite in composites { check(composite) }
    for composite in composites where count(composite.name, within: []) == nil {
      problems.append(
        CompositeCheck.problem(
          composite.name,
          "It contains itself, more than \(CompositeCheck.largestCount) values, or composites nested more than \(ModelBounds.nestedComposites) deep."
        ))
    }
  }

  private static func problem(_ name: String, _ reason: String) -> ModelError.Problem {
    ModelError.Problem(path: "composite \(name)", reason: reason)
  }

  private mutating func check(_ composite: CompositeDescription) {
    let names = composite.elements.map(\.name)
    var reasons = ModelCheck.repeated(names).map { "There are two elements named \($0); names must differ, also apart from case." }
    for element in composite.elements {
      if !ModelCheck.isName(element.name) { reasons.append("\(element.name): \(ModelCheck.nameRule)") }
      if element.isTransient || element.isDerived { reasons.append("\(element.name): an element is neither transient nor derived.") }
      reasons += (ModelCheck.reasons(against: element) + self.reasons(against: element)).map { "\(element.name): \($0)" }
    }
    problems += reasons.map { CompositeCheck.problem(composite.name, $0) }
  }

  /// What contradicts itself in the use of a composite by an attribute.
  func reasons(against attribute: AttributeDescription) -> [String] {
    guard attribute.type == .composite else {
      return attribute.compositeName == nil ? [] : ["Only an attribute of composite type has the elements of a composite."]
    }
    var found: [String] = []
    if let name = attribute.compositeName {
      if byName[name] == nil { found.append("There is no composite \(name).") }
    } else {
      found.append("It does not say which composite it is.")
    }
    if attribute.isDerived || attribute.defaultValue != nil { found.append("A composite attribute has no value but its elements'.") }
    return found
  }

  /// How many values and groups an attribute has; 1 for one that isn't composite.
  func valueCount(_ attribute: AttributeDescription) -> Int {
    guard attribute.type == .composite, let name = attribute.compositeName, let count = counts[name] else { return 1 }
    return (count ?? 0) + 1
  }

  private mutating func count(_ name: String, within outer: Set<String>) -> Int? {
    if let known = counts[name] { return known }
    guard let composite = byName[name] else { return 0 }
    if outer.contains(name) || outer.count >= ModelBounds.nestedComposites { return nil }
    var sum: Int? = 0
    for element in composite.elements {
      // A group counts as one more: groups without values multiply as well.
      let part = element.type == .composite ? count(element.compositeName ?? "", within: outer.union([name])).map { $0 + 1 } : 1
      sum = sum.flatMap { sum in part.map { sum + $0 } }.flatMap { $0 > CompositeCheck.largestCount ? nil : $0 }
    }
    counts[name] = sum
    return sum
  }
}
