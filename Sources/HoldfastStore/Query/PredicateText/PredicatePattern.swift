/// A pattern of LIKE whose only wildcards are asterisks at its ends, as a search that a query has.
package enum PredicatePattern {
  /// Splits a pattern into its text and the asterisks at its ends.
  ///
  /// - Returns: Nil for a pattern with other wildcards, or with an escape.
  package static func search(_ pattern: String) -> (begins: Bool, text: String, ends: Bool)? {
    // By bytes, because for Swift an asterisk with a combining mark behind it is another character.
    let asterisk = UInt8(ascii: "*")
    var text = Array(pattern.utf8)[...]
    while text.first == asterisk { text.removeFirst() }
    while text.last == asterisk { text.removeLast() }
    if text.contains(where: { $0 == asterisk || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "\\") }) { return nil }
    return (pattern.utf8.first == asterisk, String(decoding: text, as: UTF8.self), pattern.utf8.last == asterisk)
  }

  /// A comparison with the same result.
  ///
  /// - Throws: A ``PredicateProblem`` if a query has no such comparison.
  static func comparison(
    _ left: PredicateOperand, _ equality: PredicateOperator, _ right: PredicateOperand, _ quantifier: PredicateFormat.Quantifier?
  ) throws(PredicateProblem) -> PredicateFormat {
    guard case .text(let pattern) = right else { throw PredicateProblem("The pattern of LIKE must be text.") }
    guard let (begins, part, ends) = search(pattern) else {
      throw PredicateProblem("A query has LIKE only with asterisks at the ends of the pattern.")
    }
    // Only nil doesn't match any text.
    if part.isEmpty && begins {
      return .comparison(left, PredicateOperator(word: .notEqual), .null, quantifier: quantifier)
    }
    let word: PredicateOperator.Word = begins ? (ends ? .contains : .endsWith) : (ends ? .beginsWith : .equal)
    return .comparison(left, equality.with(word), .text(part), quantifier: quantifier)
  }
}

extension PredicateFormat {
  /// The condition of a subquery with paths that begin at the object for which a variable stands.
  ///
  /// - Throws: A ``PredicateProblem`` if it has other paths: a query can't compare an object of the collection with its owner.
  func element(_ variable: String) throws(PredicateProblem) -> PredicateFormat {
    switch self {
    case .truth: return self
    case .and(let parts): return .and(try PredicateFormat.elements(parts, variable))
    case .or(let parts): return .or(try PredicateFormat.elements(parts, variable))
    case .not(let part): return .not(try part.element(variable))
    case .comparison(let left, let comparison, let right, let quantifier):
      return .comparison(try left.element(variable), comparison, try right.element(variable), quantifier: quantifier)
    case .exists(let operand, let condition):
      // Its paths begin at another object.
      if condition.uses(variable) { throw PredicateProblem("The condition of a SUBQUERY can't use the variable of another one around it.") }
      return .exists(try operand.element(variable), condition)
    }
  }

  private static func elements(_ parts: [PredicateFormat], _ variable: String) throws(PredicateProblem) -> [PredicateFormat] {
    var elements: [PredicateFormat] = []
    for part in parts { elements.append(try part.element(variable)) }
    return elements
  }

  private func uses(_ variable: String) -> Bool {
    switch self {
    case .truth: false
    case .and(let parts), .or(let parts): parts.contains { $0.uses(variable) }
    case .not(let part): part.uses(variable)
    case .comparison(let left, _, let right, _): left.uses(variable) || right.uses(variable)
    case .exists(let operand, let condition): operand.uses(variable) || condition.uses(variable)
    }
  }
}

extension PredicateOperand {
  fileprivate func element(_ variable: String) throws(PredicateProblem) -> PredicateOperand {
    switch self {
    case .variable(variable, let path): return .path(path)
    case .path(let path):
      let name = path.isEmpty ? "SELF" : path.joined(separator: ".")
      throw PredicateProblem("The paths in a SUBQUERY must begin with its variable: $\(variable).\(name)")
    case .list(let operands):
      var elements: [PredicateOperand] = []
      for operand in operands { elements.append(try operand.element(variable)) }
      return .list(elements)
    default: return self
    }
  }

  fileprivate func uses(_ variable: String) -> Bool {
    switch self {
    case .variable(variable, _): true
    case .list(let operands): operands.contains { $0.uses(variable) }
    default: false
    }
  }
}
