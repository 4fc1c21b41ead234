public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The conformance kit: named test cases for every rule of ``/HoldfastStore/IncrementalStore``.
///
/// The kit doesn't depend on a test framework. A test target needs three lines:
///
/// ```swift
/// @Test(arguments: StoreConformance.cases(for: MyHarness().capabilities))
/// func contract(_ rule: StoreConformanceCase) throws { try rule.run(on: MyHarness()) }
/// ```
///
/// Cases for capabilities that a store doesn't declare can run too. If one passes, the store could declare that capability:
///
/// ```swift
/// @Test(arguments: StoreConformance.undeclared(for: MyHarness().capabilities))
/// func undeclared(_ rule: StoreConformanceCase) {
///   #expect(throws: StoreConformanceFailure.self, "Declare it.") { try rule.run(on: MyHarness()) }
/// }
/// ```
public enum StoreConformance {
  /// All cases of the kit.
  public static let all: [StoreConformanceCase] =
    OpeningCases.all + ViewCases.all + ReadingCases.all + PredicateCases.all + OrderCases.all + RelationshipCases.all
    + SavingCases.all + ConflictCases.all + SeveringCases.all + FamilyCases.all + ShapeCases.all + OrderedCases.all + DerivedCases.all
    + DurabilityCases.all + ExternalDataCases.all + OptionCases.all + CombinationCases.all + OutcomeCases.all

  /// Returns the cases that a store with these capabilities must pass.
  public static func cases(for declared: StoreCapabilities) -> [StoreConformanceCase] {
    all.filter { declared.includes($0.requires) }
  }

  /// Returns the cases for capabilities that aren't declared. A store is expected to fail them.
  public static func undeclared(for declared: StoreCapabilities) -> [StoreConformanceCase] {
    all.filter { !declared.includes($0.requires) }
  }
}

/// A test of one rule.
public struct StoreConformanceCase: Sendable, CustomStringConvertible {
  /// The rule's number in the documentation of ``/HoldfastStore/IncrementalStore``, for example "F1".
  public let rule: String
  /// What the case tests, in a few words. Rule and title together are unique.
  public let title: String
  /// The capabilities that the case requires.
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

  /// The rule and the title, for example "F1: all rows of an entity, each once".
  public var description: String { "\(rule): \(title)" }

  /// Tests the rule on a new store.
  ///
  /// - Throws: ``StoreConformanceFailure`` with all differences that the case found.
  public func run(on harness: any StoreHarness) throws {
    let run = CaseRun(harness)
    do {
      try body(run)
    } catch {
      run.fail("no call to throw an error", got: "\(error)")
    }
    run.finish()
    if !run.failures.isEmpty { throw StoreConformanceFailure(description: "\(self)", failures: run.failures) }
  }
}

/// The differences that one case found between a store and the contract.
public struct StoreConformanceFailure: Error, Sendable, CustomStringConvertible {
  /// A single difference.
  public struct Difference: Sendable, CustomStringConvertible {
    /// What the rule requires.
    public let expected: String
    /// What the store did instead.
    public let got: String

    /// Both on one line.
    public var description: String { "expected \(expected); got \(got)" }
  }

  /// The rule and the title of the case.
  public let rule: String
  /// The differences, in the order in which they were found.
  public let failures: [Difference]

  init(description rule: String, failures: [Difference]) {
    self.rule = rule
    self.failures = failures
  }

  /// The rule and the case, then one line per difference.
  public var description: String { "The store breaks rule \(rule)\n" + failures.map { "  \($0)" }.joined(separator: "\n") }
}

extension StoreConformanceFailure: LocalizedError {
  /// The same as `description`.
  public var errorDescription: String? { description }
}

extension StoreCapabilities {
  /// Returns whether this value declares everything that another one declares.
  public func includes(_ other: StoreCapabilities) -> Bool {
    comparisons.isSuperset(of: other.comparisons) && comparedTypes.isSuperset(of: other.comparedTypes)
      && traversal.isSuperset(of: other.traversal) && zip(limits, other.limits).allSatisfy { $0 >= $1 }
      && zip(flags, other.flags).allSatisfy { $0 || !$1 }
  }

  private var flags: [Bool] {
    [
      booleanOperators, uniqueLookups, sorting, windowing, counting, aggregates, uniqueness, snapshots, versions, residentRows,
      externalData,
    ]
  }

  private var limits: [Int] {
    [largestList, maximumConditions, maximumNesting, maximumQuantifierNesting, maximumJoins, maximumSortTerms]
  }

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
}
