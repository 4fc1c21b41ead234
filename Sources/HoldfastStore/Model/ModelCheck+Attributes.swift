/// Checks of attribute declarations.
extension ModelCheck {
  func problems(in attribute: AttributeDescription, of entity: EntityDescription) -> [ModelError.Problem] {
    let path = "\(entity.name).\(attribute.name)"
    return
      (ModelCheck.reasons(against: attribute) + composites.reasons(against: attribute) + reasons(againstDerivationOf: attribute, entity))
      .map { problem(path, $0) }
  }

  /// The names of the stored values. Doesn't expand composites if they have problems.
  func storedNames(_ attributes: [AttributeDescription]) -> [String] {
    guard composites.problems.isEmpty else { return attributes.map(\.name) }
    return StoredAttributes(attributes, composites.byName).leaves.map(\.name)
  }

  /// The problems of an attribute that don't involve other declarations.
  static func reasons(against attribute: AttributeDescription) -> [String] {
    var found = reasons(againstValidationOf: attribute)
    if let value = attribute.defaultValue, value != .null, !value.fits(attribute.type) {
      found.append("The default value isn't of type \(attribute.type.rawValue).")
    }
    if attribute.defaultValue?.isExternal == true { found.append("The default value is the name of an external file.") }
    if attribute.type == .undefined && !attribute.isTransient {
      found.append("An attribute without a type can only be transient, because stores can't keep its values.")
    }
    if attribute.allowsExternalBinaryDataStorage && attribute.type != .binaryData && attribute.type != .transformable {
      found.append("Only attributes whose values are bytes allow external storage: binary data and transformable.")
    }
    if attribute.isDerived && (attribute.isTransient || attribute.defaultValue != nil) {
      found.append("A derived attribute can't be transient or have a default value.")
    }
    return found
  }

  private static func reasons(againstValidationOf attribute: AttributeDescription) -> [String] {
    let rule = attribute.validation
    var found: [String] = []
    for bound in [rule.minimum, rule.maximum] where bound != nil && bound?.fits(attribute.type) != true {
      found.append("A bound isn't of type \(attribute.type.rawValue).")
    }
    if rule.minimum?.isNaN == true || rule.maximum?.isNaN == true { found.append("A bound is NaN, which has no order. Use a number.") }
    let isNumeric = attribute.type == .date || attribute.type.isNumber
    if !isNumeric && (rule.minimum != nil || rule.maximum != nil) { found.append("Only numbers and dates can have bounds.") }
    let hasText = attribute.type == .string || attribute.type == .uri
    if !hasText && (rule.minimumLength != nil || rule.maximumLength != nil || rule.regularExpression != nil) {
      found.append("Only text can have length limits and patterns.")
    }
    if let pattern = rule.regularExpression {
      if let problem = PatternBound.problem(pattern) {
        found.append(problem)
      } else if (try? Regex(pattern)) == nil {
        found.append("The pattern isn't a valid regular expression in Swift. Correct it.")
      }
    }
    if let minimum = rule.minimumLength, let maximum = rule.maximumLength, minimum > maximum {
      found.append("The minimum length \(minimum) is greater than the maximum length \(maximum).")
    }
    if let minimum = rule.minimum, let maximum = rule.maximum, ValueComparison.holds(minimum, .greaterThan, maximum) {
      found.append("The minimum value is greater than the maximum.")
    }
    return found
  }

  // MARK: Derived attributes

  private func reasons(againstDerivationOf attribute: AttributeDescription, _ entity: EntityDescription) -> [String] {
    guard let text = attribute.derivationExpression else { return [] }
    guard let derivation = Derivation(text) else {
      return [
        "The derivation expression is invalid: \(text). Use a key path, uppercase:(path), lowercase:(path), canonical:(path), "
          + "relationship.@count, relationship.attribute.@sum or now()."
      ]
    }
    switch derivation {
    case .now: return attribute.type == .date ? [] : ["now() requires an attribute of type date."]
    case .copy(let path):
      return reason(path, entity) {
        if $0.allowsExternalBinaryDataStorage { return "\(path) allows external storage, so its values can't be copied." }
        return $0.type == attribute.type ? nil : "\(path) is of type \($0.type.rawValue), not \(attribute.type.rawValue)."
      }
    case .text(_, let path):
      if attribute.type != .string { return ["The expression requires an attribute of type string."] }
      return reason(path, entity) { $0.type == .string ? nil : "\(path) isn't of type string." }
    case .count(let name):
      if attribute.type.integerRange == nil || attribute.type == .boolean { return ["A count requires an integer attribute."] }
      return toMany(name, entity) == nil ? ["The stored to-many relationship \(name) doesn't exist."] : []
    case .sum(let name, let summed):
      if !attribute.type.isNumber { return ["A sum requires a number attribute."] }
      guard let destination = toMany(name, entity) else { return ["The stored to-many relationship \(name) doesn't exist."] }
      return reason(PropertyPath(summed), destination) { $0.type.isNumber ? nil : "\(summed) isn't a number." }
    }
  }

  /// The problem of a path, or the one that the closure returns for the attribute at its end.
  private func reason(_ path: PropertyPath, _ start: EntityDescription, _ check: (AttributeDescription) -> String?) -> [String] {
    var entity = start
    for name in path.names.dropLast() {
      let relationship = inheriting(entity).lazy.flatMap(\.relationships).first { $0.name == name }
      guard let relationship, !relationship.isToMany, !relationship.isTransient, let next = byName[relationship.destination] else {
        return ["\(entity.name).\(name) isn't a stored to-one relationship."]
      }
      entity = next
    }
    let last = path.rest.last ?? path.first
    guard let attribute = inheriting(entity).lazy.flatMap(\.attributes).first(where: { $0.name == last }) else {
      return ["The attribute \(entity.name).\(last) doesn't exist."]
    }
    if attribute.isTransient || attribute.isDerived || attribute.type == .composite {
      return ["\(entity.name).\(last) is transient, derived or composite. Use a stored attribute."]
    }
    return check(attribute).map { [$0] } ?? []
  }

  private func toMany(_ name: String, _ entity: EntityDescription) -> EntityDescription? {
    guard let relationship = inheriting(entity).lazy.flatMap(\.relationships).first(where: { $0.name == name }), relationship.isToMany,
      !relationship.isTransient
    else {
      return nil
    }
    return byName[relationship.destination]
  }

  private func inheriting(_ entity: EntityDescription) -> [EntityDescription] { [entity] + superentities(of: entity) }
}

extension AttributeType {
  /// Whether values of this type are numbers. Boolean values aren't.
  public var isNumber: Bool {
    switch self {
    case .integer16, .integer32, .integer64, .decimal, .double, .float: true
    default: false
    }
  }
}
