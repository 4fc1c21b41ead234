/// The predicate of a fetch request in a model, as its text says.
package indirect enum PredicateFormat: Equatable {
  case truth(Bool)
  case and([PredicateFormat])
  case or([PredicateFormat])
  case not(PredicateFormat)
  case comparison(PredicateOperand, PredicateOperator, PredicateOperand, quantifier: Quantifier?)
  /// Whether a to-many relationship has an object that meets a condition, whose paths begin at that object.
  case exists(PredicateOperand, PredicateFormat)

  /// The word before a comparison with the objects of a to-many relationship.
  package enum Quantifier { case any, all, no }

  /// The predicate without constants in it, except if it is one itself.
  package var simplified: PredicateFormat {
    switch self {
    case .truth, .comparison: return self
    case .and(let parts): return PredicateFormat.joined(parts, PredicateFormat.and, neutral: true)
    case .or(let parts): return PredicateFormat.joined(parts, PredicateFormat.or, neutral: false)
    case .not(let part):
      switch part.simplified {
      case .truth(let isTrue): return .truth(!isTrue)
      case .not(let inner): return inner
      case let other: return .not(other)
      }
    case .exists(let operand, let condition):
      switch (operand, condition.simplified) {
      case (_, .truth(false)): return .truth(false)
      case (.path(let path), .truth(true)):
        return .comparison(.path(path + ["@count"]), PredicateOperator(word: .greater), .number("0"), quantifier: nil)
      case (_, let condition): return .exists(operand, condition)
      }
    }
  }

  /// Parts joined by AND, for which true is neutral and false decides, or by OR, for which it is the other way around.
  private static func joined(
    _ parts: [PredicateFormat], _ join: ([PredicateFormat]) -> PredicateFormat, neutral: Bool
  ) -> PredicateFormat {
    let kept = parts.map(\.simplified).filter { $0 != .truth(neutral) }
    if kept.contains(.truth(!neutral)) { return .truth(!neutral) }
    return kept.count > 1 ? join(kept) : kept.first ?? .truth(neutral)
  }
}

/// An operand of a comparison.
package indirect enum PredicateOperand: Equatable {
  /// The names of a key path; none for the object itself. The last one can be `@count`.
  case path([String])
  /// `$NAME`, and the names of a key path behind it.
  case variable(String, [String])
  case number(String)
  case text(String)
  case truth(Bool)
  case null
  /// Seconds since 2001.
  case date(Double)
  case list([PredicateOperand])
  /// The number of objects of a collection that meet a condition, in which a variable is each of the objects.
  case subqueryCount(PredicateOperand, variable: String, PredicateFormat)
}

/// The operator of a comparison.
package struct PredicateOperator: Equatable {
  package enum Word: String {
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case beginsWith = "BEGINSWITH"
    case endsWith = "ENDSWITH"
    case contains = "CONTAINS"
    case isIn = "IN"
    case between = "BETWEEN"
  }

  package let word: Word
  /// `[c]`.
  package var ignoresCase = false
  /// `[d]`.
  package var ignoresDiacritics = false

  package init(word: Word, ignoresCase: Bool = false, ignoresDiacritics: Bool = false) {
    (self.word, self.ignoresCase, self.ignoresDiacritics) = (word, ignoresCase, ignoresDiacritics)
  }

  /// The operator with the same meaning when the operands are exchanged; nil if there is none.
  package var mirrored: PredicateOperator? {
    let word: Word? =
      switch self.word {
      case .equal, .notEqual: self.word
      case .less: .greater
      case .lessOrEqual: .greaterOrEqual
      case .greater: .less
      case .greaterOrEqual: .lessOrEqual
      case .beginsWith, .endsWith, .contains, .isIn, .between: nil
      }
    return word.map { with($0) }
  }

  /// Another operator with the same options.
  func with(_ word: Word) -> PredicateOperator {
    PredicateOperator(word: word, ignoresCase: ignoresCase, ignoresDiacritics: ignoresDiacritics)
  }
}

/// Why a query can't have a predicate, in a sentence.
package struct PredicateProblem: Error, Equatable {
  package let reason: String

  package init(_ reason: String) { self.reason = reason }
}
