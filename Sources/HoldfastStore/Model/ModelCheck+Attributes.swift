/// What can be wrong with an attribute.
extension ModelCheck {
  func problems(in attribute: AttributeDescription, of entity: EntityDescription) -> [ModelError.Problem] {
    let path = "\(entity.name).\(attribute.name)"
    return
      (ModelCheck.reasons(against: attribute) + composites.reasons(against: attribute) + reasons(againstDerivationOf: attribute, entity))
      .map { problem(path, $0) }
  }

  /// The names of the values that stores keep; nothing of groups that are in no order.
  func storedNames(_ attributes: [AttributeDescription]) -> [String] {
    guard composites.problems.isEmpty else { return attributes.map(\.name) }
    return StoredAttributes(attributes, composites.byName).leaves.map(\.name)
  }

  /// What contradicts itself in the attribute alone.
  static func reasons(against attribute: AttributeDescription) -> [String] {
    var found = reasons(againstValidationOf: attribute)
    if let value = attribute.defaultValue, value != .null, !value.fits(attribute.type) {
      found.append("The default value is not a \(attribute.type.rawValue).")
    }
    if attribute.defaultValue?.isExternal == true { found.append("The default value is the name of a file, which only stores give.") }
    if attribute.type == .undefined && !attribute.isTransient {
      found.append("An attribute without a type can only be transient, since no store can keep its values.")
    }
    if attribute.allowsExternalBinaryDataStorage && attribute.type != .binaryData && attribute.type != .transformable {
      found.append("Only values that are bytes can lie in files of their own.")
    }
    if attribute.isDerived && (attribute.isTransient || attribute.defaultValue != nil) {
      found.append("A derived attribute is kept by stores and gets its value from its expression alone.")
    }
    return found
  }

  private static func reasons(againstValidationOf attribute: AttributeDescription) -> [String] {
    let rule = attribute.validation
    var found: [String] = []
    for bound in [rule.minimum, rule.maximum] where bound != nil && bound?.fits(attribute.type) != true {
      found.append("A bound is not a \(attribute.type.rawValue).")
    }
    let isNumeric = attribute.type == .date || attribute.type.isNumber
    if !isNumeric && (rule.minimum != nil || rule.maximum != nil) { found.append("Only numbers and dates have bounds.") }
    let hasText = attribute.type == .string || attribute.type == .uri
    if !hasText && (rule.minimumLength != nil || rule.maximumLength != nil || rule.regularExpression != nil) {
      found.append("Only texts have lengths and patterns.")
    }
    if let pattern = rule.regularExpression {
      if let problem = PatternBound.problem(pattern) {
        found.append(problem)
      } else if (try? Regex(pattern)) == nil {
        found.append("Swift's Regex does not understand the pattern. Correct it.")
      }
    }
    if let minimum = rule.minimumLength, let maximum = rule.maximumLength, minimum > maximum {
      found.append("The least length \(minimum) is above the largest length \(maximum).")
    }
    if let minimum = rule.minimum?.real, let maximum = rule.maximum?.real, minimum > maximum {
      found.append("The smallest value is above the largest.")
    }
    return found
  }

  // MARK: Derived attributes

  private func reasons(againstDerivationOf attribute: AttributeDescription, _ entity: EntityDescription) -> [String] {
    guard let text = attribute.derivationExpression else { return [] }
    guard let derivation = Derivation(text) else {
      return [
        "The derivation expression is none that is known: a key path, uppercase:(path), lowercase:(path), canonical:(path), "
          + "relationship.@count, relationship.attribute.@sum or now()."
      ]
    }
    switch derivation {
    case .now: return attribute.type == .date ? [] : ["now() is a date."]
    case .copy(let path):
      return reason(path, entity) {
        if $0.allowsExternalBinaryDataStorage { return "\(path) may lie in a file of its own, which belongs to one attribute." }
        return $0.type == attribute.type ? nil : "\(path) is a \($0.type.rawValue), not a \(attribute.type.rawValue)."
      }
    case .text(_, let path):
      if attribute.type != .string { return ["A changed text is a text."] }
      return reason(path, entity) { $0.type == .string ? nil : "\(path) is no text." }
    case .count(let name):
      if attribute.type.integerRange == nil || attribute.type == .boolean { return ["A count is a whole number."] }
      return toMany(name, entity) == nil ? ["There is no to-many relationship \(name)."] : []
    case .sum(let name, let summed):
      if !attribute.type.isNumber { return ["A sum is a number."] }
      guard let destination = toMany(name, entity) else { return ["There is no to-many relationship \(name)."] }
      return reason(PropertyPath(summed), destination) { $0.type.isNumber ? nil : "\(summed) is no number." }
    }
  }

  /// What is wrong with the attribute at the end of a path, as the closure says, or with the path.
  private func reason(_ path: PropertyPath, _ start: EntityDescription, _ check: (AttributeDescription) -> String?) -> [String] {
    var entity = start
    for name in path.names.dropLast() {
      let relationship = inheriting(entity).flatMap(\.relationships).first { $0.name == name }
      guard let relationship, !relationship.isToMany, !relationship.isTransient, let next = byName[relationship.destination] else {
        return ["\(entity.name).\(name) is not a to-one relationship."]
      }
      entity = next
    }
    let last = path.rest.last ?? path.first
    guard let attribute = inheriting(entity).flatMap(\.attributes).first(where: { $0.name == last }) else {
      return ["There is no attribute \(entity.name).\(last)."]
    }
    if attribute.isTransient || attribute.isDerived || attribute.type == .composite {
      return ["\(entity.name).\(last) is no attribute that is set and kept."]
    }
    return check(attribute).map { [$0] } ?? []
  }

  private func toMany(_ name: String, _ entity: EntityDescription) -> EntityDescription? {
    guard let relationship = inheriting(entity).flatMap(\.relationships).first(where: { $0.name == name }), relationship.isToMany,
      !relationship.isTransient
    else {
      return nil
    }
    return byName[relationship.destination]
  }

  private func inheriting(_ entity: EntityDescription) -> [EntityDescription] { [entity] + superentities(of: entity) }
}

extension AttributeType {
  /// Whether values are numbers; truth values are not.
  public var isNumber: Bool {
    switch self {
    case .integer16, .integer32, .integer64, .decimal, .double, .float: true
    default: false
    }
  }
}
