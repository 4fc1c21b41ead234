public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Tells a store author when the store is right: one named case for each rule of ``/HoldfastStore/IncrementalStore``.
///
/// The kit imports no test framework. In a test target it takes three lines:
///
/// ```swift
/// @Test(arguments: StoreConformance.cases(for: MyHarness().capabilities))
/// func contract(_ rule: StoreConformanceCase) throws { try rule.run(on: MyHarness()) }
/// ```
///
/// The cases about abilities that a store doesn't declare can run too. The store could declare what passes:
///
/// ```swift
/// @Test(arguments: StoreConformance.undeclared(for: MyHarness().capabilities))
/// func undeclared(_ rule: StoreConformanceCase) {
///   #expect(throws: StoreConformanceFailure.self, "Declare it.") { try rule.run(on: MyHarness()) }
/// }
/// ```
public enum StoreConformance {
  /// Every case there is. This is the only list.
  public static let all: [StoreConformanceCase] =
    OpeningCases.all + ViewCases.all + ReadingCases.all + PredicateCases.all + OrderCases.all + RelationshipCases.all
    + SavingCases.all + ConflictCases.all + SeveringCases.all + FamilyCases.all + ShapeCases.all + OrderedCases.all + DerivedCases.all
    + DurabilityCases.all + ExternalDataCases.all

  /// The cases that a store with these capabilities has to pass.
  public static func cases(for declared: StoreCapabilities) -> [StoreConformanceCase] {
    all.filter { declared.includes($0.requires) }
  }

  /// The cases about abilities that are not declared. A store is expected to fail them.
  public static func undeclared(for declared: StoreCapabilities) -> [StoreConformanceCase] {
    all.filter { !declared.includes($0.requires) }
  }
}

/// One rule, tried in one way.
public struct StoreConformanceCase: Sendable, CustomStringConvertible {
  /// The number of the rule in the documentation of ``/HoldfastStore/IncrementalStore`` and of what belongs to it: "F1".
  public let rule: String
  /// What is tried, in a few words. Rule and title together name the case.
  public let title: String
  /// The abilities that the case needs.
  public let requires: StoreCapabilities
  private let body: @Sendable (CaseRun) throws -> Void

  init(
    _ rule: String, _ title: String, requires: StoreCapabilities = .with { _ in }, _ body: @escaping @Sendable (CaseRun) throws -> Void
  ) {
    self.rule = rule
    self.title = title
    self.requires = requires
    self.body = body
  }

  /// Rule and title: "F1 all rows of an entity, each once".
  public var description: String { "\(rule) \(title)" }

  /// Tries the rule on a fresh store.
  ///
  /// - Throws: ``StoreConformanceFailure`` with everything that was not as it should be.
  public func run(on harness: any StoreHarness) throws {
    let run = CaseRun(harness)
    do {
      try body(run)
    } catch {
      run.fail("that no call throws", got: "\(error)")
    }
    run.finish()
    if !run.failures.isEmpty { throw StoreConformanceFailure(description: "\(self)", failures: run.failures) }
  }
}

/// All that one case found wrong.
public struct StoreConformanceFailure: Error, Sendable, CustomStringConvertible {
  /// One thing that was not as it should be.
  public struct Difference: Sendable, CustomStringConvertible {
    /// What the rule demands.
    public let expected: String
    /// What the store did.
    public let got: String

    /// Both in a line.
    public var description: String { "expected \(expected); got \(got)" }
  }

  /// The rule and the case.
  public let rule: String
  /// Everything that was found, in order.
  public let failures: [Difference]

  init(description rule: String, failures: [Difference]) {
    self.rule = rule
    self.failures = failures
  }

  /// The rule, and a line for each difference.
  public var description: String { "Rule \(rule) does not hold:\n" + failures.map { "  \($0)" }.joined(separator: "\n") }
}

extension StoreConformanceFailure: LocalizedError {
  /// The description.
  public var errorDescription: String? { description }
}

extension StoreCapabilities {
  /// Whether all that another value declares is declared here.
  public func includes(_ other: StoreCapabilities) -> Bool {
    comparisons.isSuperset(of: other.comparisons) && comparedTypes.isSuperset(of: other.comparedTypes)
      && traversal.isSuperset(of: other.traversal) && zip(limits, other.limits).allSatisfy { $0 >= $1 }
      && zip(flags, other.flags).allSatisfy { $0 || !$1 }
  }

  private var flags: [Bool] {
    [
      booleanOperators, uniqueLookups, sorting, windowing, counting, aggregates, uniqueness, snapshots, versions, residentRows,
      externalData, batchRequests, history,
    ]
  }

  private var limits: [Int] {
    [largestList, maximumConditions, maximumNesting, maximumQuantifierNesting, maximumJoins, maximumSortTerms]
  }

  /// No abilities but those that a closure sets, and limits within which the questions of all cases stay unless it sets others.
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
}
