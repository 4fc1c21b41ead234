/// The predicate of a fetch request template, as its text says.
indirect enum PredicateFormat: Equatable {
  case truth(Bool)
  case and([PredicateFormat])
  case or([PredicateFormat])
  case not(PredicateFormat)
  case comparison(PredicateOperand, PredicateOperator, PredicateOperand, quantifier: Quantifier?)

  /// The word before a comparison with the objects of a to-many relationship.
  enum Quantifier { case any, all, no }

  /// The predicate without constants in it, except if it is one itself.
  var simplified: PredicateFormat {
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
indirect enum PredicateOperand: Equatable {
  /// The names of a key path; none for the object itself. The last one can be `@count`.
  case path([String])
  /// `$NAME`.
  case variable(String)
  case number(String)
  case text(String)
  case truth(Bool)
  case null
  /// Seconds since 2001.
  case date(Double)
  case list([PredicateOperand])
}

/// The operator of a comparison.
struct PredicateOperator: Equatable {
  enum Word: String {
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

  let word: Word
  /// `[c]`.
  var ignoresCase = false
  /// `[d]`.
  var ignoresDiacritics = false

  /// The operator with the same meaning when the operands are exchanged; nil if there is none.
  var mirrored: PredicateOperator? {
    let word: Word? =
      switch self.word {
      case .equal, .notEqual: self.word
      case .less: .greater
      case .lessOrEqual: .greaterOrEqual
      case .greater: .less
      case .greaterOrEqual: .lessOrEqual
      case .beginsWith, .endsWith, .contains, .isIn, .between: nil
      }
    return word.map { PredicateOperator(word: $0, ignoresCase: ignoresCase, ignoresDiacritics: ignoresDiacritics) }
  }
}

/// Why a template has no code, in a sentence.
struct TemplateProblem: Error, Equatable {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}
