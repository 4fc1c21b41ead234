import Dispatch
import Foundation
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastStoreWrappers
import Synchronization
import TestSupport
import Testing

@Suite struct KitTests {
  @Test func everyCaseHasANameOfItsOwn() {
    let names = StoreConformance.all.map(\.description)
    #expect(Set(names).count == names.count)
  }

  @Test func aStoreIsTestedForWhatItDeclares() {
    for capabilities in [MemoryHarness().capabilities, MinimalHarness().capabilities] {
      let cases = StoreConformance.cases(for: capabilities)
      #expect(!cases.isEmpty && cases.count < StoreConformance.all.count)
    }
  }

  /// The numbers of the rules in the doc comments.
  private static func documentedRules() throws -> Set<String> {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/HoldfastStore/Store")
    let files = try [folder, folder.appending(path: "History")].flatMap {
      try FileManager.default.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil)
    }
    return try Set(
      files.filter { $0.pathExtension == "swift" }.flatMap { file in
        try String(contentsOf: file, encoding: .utf8).matches(of: #/\/\/\/ - \*\*([A-Z]\d+)\*\*: /#).map { String($0.1) }
      })
  }

  @Test func everyRuleHasACaseAndAStoreThatBreaksIt() throws {
    let rules = try Self.documentedRules()
    #expect(rules.count > 50)
    let unknown = Set(StoreConformance.all.map(\.rule)).subtracting(rules)
    #expect(unknown.isEmpty, "These rules have cases, but aren't documented.")
    #expect(rules.subtracting(StoreConformance.all.map(\.rule)).isEmpty, "These rules have no case.")
    let broken =
      Flaw.allCases.flatMap(\.rules) + OutcomeStoreTests.Flaw.allCases.map(\.rule)
      + HistoryStoreTests.Flaw.allCases.map(\.rule)
    #expect(rules.subtracting(broken).isEmpty, "No broken store breaks these rules.")
  }

  @Test func theArticleListsEachRule() throws {
    let article = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/HoldfastStore/HoldfastStore.docc/StoreContract.md")
    let rows = try String(contentsOf: article, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("| ") }
    let listed = rows.flatMap { row in row.split(separator: "|")[0].matches(of: #/[A-Z]\d+/#).map { String($0.0) } }
    #expect(try Set(listed) == Self.documentedRules())
    #expect(listed.count == Set(listed).count, "A rule has two rows.")
  }

  // MARK: Failures

  private static func failure(of flaw: Flaw, in title: String) async throws -> StoreConformanceFailure {
    let rule = try #require(StoreConformance.all.first { $0.title == title })
    let failure = await #expect(throws: StoreConformanceFailure.self) { try await rule.run(on: BrokenHarness(flaw: flaw), timeLimit: nil) }
    return try #require(failure)
  }

  @Test func aFailureShowsTheRequestsThatLedToIt() async throws {
    let failure = try await Self.failure(of: .dropsUpdates, in: "rows can be updated and deleted")
    #expect(failure.rule == "S10: rows can be updated and deleted" && failure.cause == nil)
    let text = failure.description
    #expect(text.hasPrefix("The store breaks rule S10: rows can be updated and deleted\n  expected the version of row "), "\(text)")
    #expect(text.contains("    after: save: Company: update key "), "\(text)")
    #expect(text.contains(" (name), delete key "), "\(text)")
    #expect(text.contains("    after: fetch rows of Company"), "\(text)")
    #expect(text.components(separatedBy: "after: fetch").count == 2, "The requests are shown once: \(text)")
  }

  @Test func aFailureBeginsWithTheBasicCaseThatFails() async throws {
    let failure = try await Self.failure(of: .losesInverse, in: "a save doesn't change a snapshot")
    #expect(failure.cause == "L2: a many-to-many relationship can be read from both sides")
    #expect(
      failure.description.hasPrefix(
        "The case V1: a save doesn't change a snapshot fails because a basic case fails. First fix L2: a many-to-many relationship"))
    #expect(failure.description.components(separatedBy: "expected").count == 2, "Only the first difference is shown.")
  }

  // MARK: Time limits

  /// A store whose fetches never return.
  private final class StuckStore: ForwardingStore {
    let base: any IncrementalStore = MemoryStore()
    let isStuck: @Sendable () -> Void
    init(_ isStuck: @escaping @Sendable () -> Void) { self.isStuck = isStuck }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      isStuck()
      DispatchSemaphore(value: 0).wait()
    }
  }

  private struct StuckHarness: StoreHarness {
    let isStuck: @Sendable () -> Void
    var capabilities: StoreCapabilities { MemoryStore().capabilities }
    func makePlace() -> StorePlace { StorePlace(StoreDescription(type: "stuck") { [isStuck] in StuckStore(isStuck) }) }
  }

  @Test func aStoreThatWaitsForeverFailsTheCaseAtItsTimeLimit() async throws {
    // The limit is reached when the store has received the request, so the test doesn't depend on time.
    let reached = Reached()
    let harness = StuckHarness { reached.signal() }
    let rule = try #require(StoreConformance.all.first { $0.title == "inserted rows can be fetched" })
    let failure = await #expect(throws: StoreConformanceFailure.self) {
      try await rule.run(
        on: harness,
        CaseLimit { atLimit in
          reached.set(atLimit)
          return {}
        })
    }
    #expect(
      failure?.failures.map(\.description) == [
        "expected the case to end within its time limit; got a timeout; the last request was: fetch rows of Company"
      ])
    #expect(failure?.cause == nil)
  }

  private final class Reached: Sendable {
    private let atLimit = Mutex<(@Sendable () -> Void)?>(nil)
    func set(_ closure: @escaping @Sendable () -> Void) { atLimit.withLock { $0 = closure } }
    func signal() { atLimit.withLock { $0 }?() }
  }

  @Test func aCaseThatEndsInTimePasses() async throws {
    let rule = try #require(StoreConformance.all.first { $0.title == "inserted rows can be fetched" })
    try await rule.run(on: MemoryHarness(), timeLimit: .seconds(1_000_000))
  }

  /// A store whose requests wait for a task.
  private final class AsynchronousStore: ForwardingStore {
    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }

    func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
      let hasEnded = DispatchSemaphore(value: 0)
      Task {
        await Task.yield()
        hasEnded.signal()
      }
      hasEnded.wait()
      return try base.beginRead(kind, options: options)
    }
  }

  private struct AsynchronousHarness: StoreHarness {
    var capabilities: StoreCapabilities { MemoryStore().capabilities }
    func makePlace() -> StorePlace { StorePlace(MemoryHarness().makePlace().description.wrapped { AsynchronousStore($0) }) }
  }

  @Test(arguments: StoreConformance.all.prefix(7))
  func aStoreMayWaitForTasks(_ rule: StoreConformanceCase) async throws { try await rule.run(on: AsynchronousHarness(), timeLimit: nil) }

  // MARK: Undeclared abilities

  /// A store that declares less than it does.
  private final class ModestStore: ForwardingStore {
    let base: any IncrementalStore = MemoryStore()
    var capabilities: StoreCapabilities { ModestHarness().capabilities }
  }

  private struct ModestHarness: StoreHarness {
    var capabilities: StoreCapabilities {
      var capabilities = MemoryStore().capabilities
      capabilities.snapshots = false
      return capabilities
    }
    func makePlace() -> StorePlace { StorePlace(StoreDescription(type: "modest") { ModestStore() }) }
  }

  @Test func anAbilityThatIsNotDeclaredIsReportedOnce() async {
    let report = await StoreConformance.undeclaredAbilities(of: ModestHarness(), timeLimit: nil)
    #expect(report.count == 1, "\(report)")
    #expect(report.first?.hasPrefix("snapshots: ") == true && report.first?.hasSuffix(" cases pass. Declare it.") == true)
  }

  @Test func casesThatAreLeftOutDoNotChangeTheReport() {
    var random = SeededGenerator("Undeclared abilities")
    var leftOut = 0, reported = 0
    for round in 0..<300 {
      var cases: [Set<String>] = []
      for _ in 0..<12 {
        let abilities = (0..<Int.random(in: 1...3, using: &random)).compactMap { _ in ["a", "b", "c", "d"].randomElement(using: &random) }
        cases.append(Set(abilities))
      }
      var some = UndeclaredAbilities(cases), all = some
      for missing in cases {
        let passes = Int.random(in: 0..<4, using: &random) > 0
        all.add(missing, passes: passes)
        if some.dependOnCase(missing) { some.add(missing, passes: passes) } else { leftOut += 1 }
      }
      #expect(some.report == all.report, "seed \(random.seed), round \(round): \(cases)")
      reported += all.report.count
    }
    #expect(leftOut > 300 && reported > 100, "\(leftOut) left out, \(reported) reported")
  }

  // MARK: Declining

  /// Declines windows of sorted rows, counts of companies and more than 20 sources, and can't compare names.
  private final class DecliningStore: ForwardingStore {
    let base: any IncrementalStore = EvaluatingStore(MemoryStore())
    private let incomparable = Mutex<[EntityIndex: Set<SlotIndex>]>([:])
    private let company = Mutex<EntityIndex?>(nil)

    func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
      var metadata = try base.open(model: model, host: host)
      for entity in model.entities {
        if let slot = entity.slot(named: "name"), entity.uniqueSlots.allSatisfy({ !$0.contains(slot) }) {
          metadata.incomparableSlots[entity.index] = [slot]
        }
      }
      incomparable.withLock { [slots = metadata.incomparableSlots] in $0 = slots }
      company.withLock { $0 = model.entity(named: "Company")?.index }
      return metadata
    }

    /// Whether a plan computes aggregates of names, or groups by them. The framework never requests that.
    private func isImpossible(_ plan: FetchPlan) -> Bool {
      guard case .aggregates(let aggregates) = plan.output else { return false }
      let slots = incomparable.withLock { $0[plan.entity] ?? [] }
      return !slots.isDisjoint(with: aggregates.groupBy + aggregates.columns.compactMap(\.slot))
    }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      if plan.limit != nil, !plan.sorts.isEmpty {
        throw StoreError(.unsupportedRequest, operation: "fetch rows", reason: "The store can't limit sorted rows.")
      }
      if plan.output == .count, plan.entity == company.withLock({ $0 }) {
        throw StoreError(.unsupportedRequest, operation: "fetch rows", reason: "The store can't count companies.")
      }
      if isImpossible(plan) { throw StoreError(.general, operation: "fetch rows", reason: "The store can't compare names.") }
      var wrong = plan
      if let predicate = plan.predicate, predicate.paths.contains("name") { wrong.predicate = .not(predicate) }
      try base.fetch(wrong, in: view, options: options, into: sink)
    }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      if request.sources.count > 20 {
        throw StoreError(.tooLarge, operation: "read a relationship", reason: "The answer would be too large.")
      }
      return try base.relationships(request, in: view, options: options)
    }
  }

  private struct DecliningHarness: StoreHarness {
    var declinesRequests = true
    var capabilities: StoreCapabilities { DecliningStore().capabilities }
    func makePlace() -> StorePlace { StorePlace(StoreDescription(type: "declining") { DecliningStore() }) }
  }

  private static let readingCases = StoreConformance.cases(for: DecliningHarness().capabilities).filter {
    ["F1", "F2", "F3", "F6", "L1"].contains($0.rule)
  }

  /// A third of them, or all in the full tier.
  private static let someReadingCases = {
    let step = TestTier.step(3), first = Int.random(in: 0..<step)
    return stride(from: first, to: readingCases.count, by: step).map { readingCases[$0] }
  }()

  @Test(arguments: someReadingCases) func aStoreMayDecline(_ rule: StoreConformanceCase) async throws {
    try await rule.run(on: DecliningHarness(), timeLimit: nil)
  }

  /// The bug: the store was sent counts that it may decline, and aggregates of attributes that it can't compare.
  @Test func aStoreMayDeclineCountsAndIsNotSentAggregatesOfWhatItCannotCompare() async throws {
    let rules = Self.readingCases.filter { ["counts of all rows", "aggregates of all rows and of groups"].contains($0.title) }
    #expect(rules.count == 2)
    for rule in rules { try await rule.run(on: DecliningHarness(), timeLimit: nil) }
  }

  @Test func decliningIsAFailureUnlessTheHarnessAllowsIt() async {
    var passing: Set = ["F1", "F3", "L1"]
    // Until one case of each rule has failed.
    for rule in Self.readingCases where passing.contains(rule.rule) {
      do { try await rule.run(on: DecliningHarness(declinesRequests: false), timeLimit: nil) } catch { passing.remove(rule.rule) }
    }
    #expect(passing.isEmpty)
  }
}
