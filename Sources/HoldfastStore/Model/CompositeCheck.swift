/// Finds the problems of composite declarations, and counts the values of each composite.
struct CompositeCheck {
  let byName: [String: CompositeDescription]
  private(set) var problems: [ModelError.Problem] = []
  /// The number of values and nested composites in each composite, or nil if it contains itself or exceeds a limit.
  private var counts: [String: Int?] = [:]

  /// The maximum number of values in an attribute. Nested composites multiply it.
  static let largestCount = 4096

  init(_ composites: [CompositeDescription]) {
    var byName: [String: CompositeDescription] = [:]
    for composite in composites where byName[composite.name] == nil { byName[composite.name] = composite }
    self.byName = byName
    problems += ModelCheck.repeated(composites.map(\.name)).map { CompositeCheck.problem($0, "Another composite has this name.") }
    for composite in composites { check(composite) }
    for composite in composites where count(composite.name, within: []) == nil {
      problems.append(
        CompositeCheck.problem(
          composite.name,
          "The composite contains itself, more than \(CompositeCheck.largestCount) values, or composites nested more than \(ModelBounds.nestedComposites) deep."
        ))
    }
  }

  private static func problem(_ name: String, _ reason: String) -> ModelError.Problem {
    ModelError.Problem(path: "composite \(name)", reason: reason)
  }

  private mutating func check(_ composite: CompositeDescription) {
    let names = composite.elements.map(\.name)
    var reasons = ModelCheck.repeated(names).map { "Two elements are named \($0), ignoring case. Rename one of them." }
    for element in composite.elements {
      if !ModelCheck.isName(element.name) { reasons.append("\(element.name): \(ModelCheck.nameRule)") }
      if element.isTransient || element.isDerived { reasons.append("\(element.name): An element can't be transient or derived.") }
      reasons += (ModelCheck.reasons(against: element) + self.reasons(against: element)).map { "\(element.name): \($0)" }
    }
    problems += reasons.map { CompositeCheck.problem(composite.name, $0) }
  }

  /// The problems of an attribute's use of a composite.
  func reasons(against attribute: AttributeDescription) -> [String] {
    guard attribute.type == .composite else {
      return attribute.compositeName == nil ? [] : ["Only an attribute of type composite can name a composite."]
    }
    var found: [String] = []
    if let name = attribute.compositeName {
      if byName[name] == nil { found.append("The composite \(name) doesn't exist.") }
    } else {
      found.append("The composite attribute doesn't name its composite.")
    }
    if attribute.isDerived || attribute.defaultValue != nil { found.append("A composite attribute can't be derived or have a default.") }
    return found
  }

  /// The number of values and nested composites in an attribute; 1 if it isn't composite.
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
      // The composite itself counts as one, because composites without values multiply too.
      let part = element.type == .composite ? count(element.compositeName ?? "", within: outer.union([name])).map { $0 + 1 } : 1
      sum = sum.flatMap { sum in part.map { sum + $0 } }.flatMap { $0 > CompositeCheck.largestCount ? nil : $0 }
    }
    counts[name] = sum
    return sum
  }
}
