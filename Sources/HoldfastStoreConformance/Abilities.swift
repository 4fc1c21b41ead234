public import HoldfastStore

extension StoreCapabilities {
  /// Returns whether this value declares everything that another one declares.
  public func includes(_ other: StoreCapabilities) -> Bool { other.abilities(missingIn: self).isEmpty }

  /// Capabilities set by a closure, with limits that are large enough for the requests of all cases.
  static func with(_ set: (inout StoreCapabilities) -> Void) -> StoreCapabilities {
    var capabilities = StoreCapabilities()
    capabilities.maximumConditions = 5
    capabilities.maximumNesting = 4
    capabilities.maximumQuantifierNesting = 2
    capabilities.maximumJoins = 2
    capabilities.maximumSortTerms = 2
    set(&capabilities)
    return capabilities
  }

  /// The names of the abilities that this value declares and another one doesn't, such as "sorting" or "comparisons: order".
  func abilities(missingIn declared: StoreCapabilities) -> [String] {
    let sets: [(String, Bool)] =
      StoreCapabilities.comparisonNames.map { ("comparisons: \($0)", comparisons.contains($1) && !declared.comparisons.contains($1)) }
      + AttributeType.storedCases.map {
        ("comparedTypes: \($0.rawValue)", comparedTypes.contains($0) && !declared.comparedTypes.contains($0))
      }
      + StoreCapabilities.traversalNames.map { ("traversal: \($0)", traversal.contains($1) && !declared.traversal.contains($1)) }
    let flags = StoreCapabilities.flagNames.map { ($0, self[keyPath: $1] && !declared[keyPath: $1]) }
    let limits = StoreCapabilities.limitNames.map { ("\($0): \(self[keyPath: $1])", self[keyPath: $1] > declared[keyPath: $1]) }
    return (sets + flags + limits).filter(\.1).map(\.0)
  }

  private static var comparisonNames: [(String, ComparisonCapabilities)] {
    [
      ("equality", .equality), ("order", .order), ("membership", .membership), ("substrings", .substrings), ("folding", .folding),
      ("remainders", .remainders),
    ]
  }

  private static var traversalNames: [(String, TraversalCapabilities)] {
    [("toOne", .toOne), ("quantifiers", .quantifiers), ("counts", .counts)]
  }

  private static var flagNames: [(String, KeyPath<StoreCapabilities, Bool>)] {
    [
      ("booleanOperators", \.booleanOperators), ("uniqueLookups", \.uniqueLookups), ("sorting", \.sorting), ("windowing", \.windowing),
      ("counting", \.counting), ("aggregates", \.aggregates), ("uniqueness", \.uniqueness), ("snapshots", \.snapshots),
      ("versions", \.versions), ("residentRows", \.residentRows), ("externalData", \.externalData),
    ]
  }

  private static var limitNames: [(String, KeyPath<StoreCapabilities, Int>)] {
    [
      ("maximumListCount", \.maximumListCount), ("maximumConditions", \.maximumConditions), ("maximumNesting", \.maximumNesting),
      ("maximumQuantifierNesting", \.maximumQuantifierNesting), ("maximumJoins", \.maximumJoins),
      ("maximumSortTerms", \.maximumSortTerms),
    ]
  }
}

/// Finds the abilities that a store has and doesn't declare.
package struct UndeclaredAbilities {
  /// The result of a case that needs undeclared abilities.
  private struct Result {
    let missing: Set<String>
    let passes: Bool
  }

  private var results: [Result] = []
  /// The abilities with cases that need no other undeclared ability. Only these cases decide whether the ability works.
  private let tested: Set<String>
  /// The abilities with such a case that has failed.
  private var failed: Set<String> = []

  /// - Parameter cases: The undeclared abilities that each case needs.
  package init(_ cases: [Set<String>]) { tested = Set(cases.filter { $0.count == 1 }.flatMap { $0 }) }

  /// Returns whether the result of a case can still change the report.
  package func dependOnCase(_ missing: Set<String>) -> Bool {
    missing.count == 1 ? failed.isDisjoint(with: missing) : !missing.isSubset(of: tested)
  }

  /// Adds the result of a case.
  package mutating func add(_ missing: Set<String>, passes: Bool) {
    results.append(Result(missing: missing, passes: passes))
    if missing.count == 1 && !passes { failed.formUnion(missing) }
  }

  /// One line per ability that works.
  ///
  /// An ability works if every case passes that needs no other undeclared ability. If there are no such cases, it is reported together with
  /// the other abilities that the passing cases need.
  package var report: [String] {
    Set(results.flatMap(\.missing)).sorted().compactMap { ability in
      let needing = results.filter { $0.missing.contains(ability) }, alone = needing.filter { $0.missing.count == 1 }
      if !alone.isEmpty {
        return alone.allSatisfy(\.passes) ? "\(ability): \(Self.cases(alone.count)). Declare it." : nil
      }
      let passing = needing.filter(\.passes)
      guard let least = passing.min(by: { $0.missing.count < $1.missing.count }) else { return nil }
      let others = least.missing.subtracting([ability]).sorted().joined(separator: ", ")
      return "\(ability): \(Self.cases(passing.count)), together with \(others). Declare them."
    }
  }

  private static func cases(_ count: Int) -> String { count == 1 ? "1 case passes" : "\(count) cases pass" }
}
