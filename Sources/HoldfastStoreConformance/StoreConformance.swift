public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The conformance kit: named test cases for every rule of ``/HoldfastStore/IncrementalStore``.
///
/// The kit doesn't depend on a test framework. A test target needs three lines. Each case runs on its own thread, so it doesn't block
/// Swift's task pool, even if a request of the store waits for a task:
///
/// ```swift
/// @Test(arguments: StoreConformance.cases(for: MyHarness().capabilities))
/// func contract(_ rule: StoreConformanceCase) async throws { try await rule.run(on: MyHarness()) }
/// ```
///
/// A second test finds abilities that a store has and doesn't declare:
///
/// ```swift
/// @Test func everyAbilityIsDeclared() async {
///   let undeclared = await StoreConformance.undeclaredAbilities(of: MyHarness())
///   #expect(undeclared == [])
/// }
/// ```
public enum StoreConformance {
  /// All cases of the kit: first those that the others depend on, then opening, reading and saving, then the rest.
  public static let all: [StoreConformanceCase] =
    BasicCases.all + OpeningCases.all + ReadingCases.all + SavingCases.all + RelationshipCases.all + ViewCases.all + PredicateCases.all
    + OrderCases.all + ConflictCases.all + SeveringCases.all + FamilyCases.all + ShapeCases.all + OrderedCases.all + DerivedCases.all
    + DurabilityCases.all + FailedCallCases.all + ExternalDataCases.all + OptionCases.all + CombinationCases.all + ParallelReadingCases.all
    + SharedPlaceCases.all + OtherProcessCases.all + DamageCases.all + OutcomeCases.all
    + ExplanationCases.all + HistoryCases.all

  /// Returns the cases that a store with these capabilities must pass.
  public static func cases(for declared: StoreCapabilities) -> [StoreConformanceCase] {
    all.filter { declared.includes($0.requires) }
  }

  /// Returns one line for each ability that a store has and doesn't declare.
  ///
  /// Runs the cases for all abilities that the harness doesn't declare. Leaves out those that can't change the result, because another case
  /// for the same ability has failed. The framework uses only declared abilities, so declare what works. `uniqueLookups` isn't reported:
  /// declare it only if a look-up doesn't read all rows.
  ///
  /// - Parameters:
  ///   - harness: Creates the stores.
  ///   - timeLimit: The maximum time of each case. Defaults to 60 seconds; nil for no limit.
  public static func undeclaredAbilities(of harness: any StoreHarness, timeLimit: Duration? = .seconds(60)) async -> [String] {
    let cases = all.map { (rule: $0, missing: Set($0.requires.abilities(missingIn: harness.capabilities))) }
      // A unique look-up is an ability only if it doesn't read all rows, which the cases can't measure.
      .filter { !$0.missing.isEmpty && !$0.missing.contains("uniqueLookups") }
    var abilities = UndeclaredAbilities(cases.map(\.missing))
    for (rule, missing) in cases where abilities.dependOnCase(missing) {
      let outcome = await rule.outcome(on: StrictHarness(base: harness), CaseLimit(timeLimit))
      abilities.add(missing, passes: outcome.failures.isEmpty)
    }
    return abilities.report
  }
}

/// A harness whose stores must not decline requests, because a store that declines everything would seem able to do everything.
private struct StrictHarness: StoreHarness {
  let base: any StoreHarness
  var capabilities: StoreCapabilities { base.capabilities }
  func makePlace() throws -> StorePlace { try base.makePlace() }
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
  /// The case runs on a thread of its own, which the store may block. At most one case per processor runs at a time.
  ///
  /// At the time limit, the case fails with the request that the store hasn't answered. Its thread keeps waiting, and its places aren't
  /// discarded.
  ///
  /// - Parameters:
  ///   - harness: Creates the store.
  ///   - timeLimit: The maximum time. Defaults to 60 seconds; nil for no limit.
  /// - Throws: ``StoreConformanceFailure`` with the differences that the case found.
  public func run(on harness: any StoreHarness, timeLimit: Duration? = .seconds(60)) async throws {
    try await run(on: harness, CaseLimit(timeLimit))
  }

  package func run(on harness: any StoreHarness, _ limit: CaseLimit) async throws {
    let outcome = await outcome(on: harness, limit)
    if outcome.failures.isEmpty { return }
    let cause = outcome.isLate ? nil : await firstFailingBasis(on: harness, limit)
    throw StoreConformanceFailure(description: "\(self)", failures: outcome.failures, cause: cause)
  }

  func outcome(on harness: any StoreHarness, _ limit: CaseLimit) async -> CaseExecution.Outcome {
    await CaseExecution.run(body, on: harness, limit)
  }

  /// Returns the first basic case before this one that fails, or nil if all pass.
  private func firstFailingBasis(on harness: any StoreHarness, _ limit: CaseLimit) async -> String? {
    for basis in BasicCases.all.prefix(while: { $0.description != description }) {
      if await !basis.outcome(on: harness, limit).failures.isEmpty { return basis.description }
    }
    return nil
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
    /// The last save and the last request before the difference was found, in short form.
    public let requests: [String]

    init(expected: String, got: String, requests: [String] = []) { (self.expected, self.got, self.requests) = (expected, got, requests) }

    /// What was expected and what the store did, on one line.
    public var description: String { "expected \(expected); got \(got)" }
  }

  /// The rule and the title of the case.
  public let rule: String
  /// The differences, in the order in which they were found.
  public let failures: [Difference]
  /// The basic case that also fails and is probably the cause; nil if all basic cases pass.
  public let cause: String?

  init(description rule: String, failures: [Difference], cause: String?) {
    self.rule = rule
    self.failures = failures
    self.cause = cause
  }

  /// The rule and the case, then each difference with the requests that led to it. With a ``cause``, only the first difference.
  public var description: String {
    let heading = cause.map { "The case \(rule) fails because a basic case fails. First fix \($0)" } ?? "The store breaks rule \(rule)"
    var lines = [heading], shown: [String] = []
    for failure in failures.prefix(cause == nil ? failures.count : 1) {
      lines.append("  \(failure)")
      if failure.requests != shown { lines += failure.requests.map { "    after: \($0)" } }
      shown = failure.requests
    }
    return lines.joined(separator: "\n")
  }
}

extension StoreConformanceFailure: LocalizedError {
  /// The same as `description`.
  public var errorDescription: String? { description }
}
