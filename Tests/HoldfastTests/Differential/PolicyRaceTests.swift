import TestSupport
import Testing

/// Contexts change one random graph, read parts of it at different times, discard, refresh, merge and save under random policies.
///
/// - After each save, a new context finds a consistent graph: both ends of every relationship agree, lists contain existing objects, and no
///   two objects have the same unique values.
/// - Each object has the values that the policy makes of those of both sides; see ``SaveExpectation``.
/// - A save that is refused changes nothing in the store, and with the policy `error` nothing in its context.
/// - Merging policies let each save succeed, unless a rule of the model refuses it.
/// - A context without unsaved changes that merges by itself has the same graph as a new context.
///
/// If one context deletes an object while another sets a to-one relationship to it, or one without inverse, the relationship may dangle.
///
/// Set HOLDFAST_SEED to repeat a run. A failure shows the shortest program that was found.
@Suite struct PolicyRaceTests {
  private static let stores: [TestStore] = [.memory, .json, .xml, .binary, .sqlite, .weakest, .second]

  @Test(arguments: stores) func RH4_whatContextsWithPoliciesSaveIsSound(_ store: TestStore) {
    run(store, PolicyRace.Setup(), count: TestTier.count(8, full: 1500))
  }

  @Test(arguments: stores) func RH4_contextsThatInsertTheSameUniqueValuesSaveThemOnce(_ store: TestStore) {
    run(store, PolicyRace.Setup(hasUniqueValues: true), count: TestTier.count(8, full: 1500))
  }

  /// Children push their changes into a context that races with others.
  @Test(arguments: stores, [false, true])
  func RH4_whatChildContextsSaveInARaceIsSound(_ store: TestStore, _ hasUniqueValues: Bool) {
    run(store, PolicyRace.Setup(hasUniqueValues: hasUniqueValues, hasChildren: true), count: TestTier.count(4, full: 750))
  }

  /// Counts, sums and copies are those of the destinations in the store, also if others have changed them.
  @Test(arguments: [TestStore.memory, .sqlite, .binary, .weakest], [false, true])
  func RH4_derivedValuesInARaceAreThoseOfTheDestinations(_ store: TestStore, _ hasUniqueValues: Bool) {
    let setup = PolicyRace.Setup(hasUniqueValues: hasUniqueValues, hasDerivedValues: true)
    run(store, setup, count: TestTier.count(6, full: 500))
  }

  /// Relationships stay within a store.
  @Test(arguments: [(TestStore.memory, TestStore.sqlite), (.sqlite, .json), (.weakest, .binary)])
  func RH4_whatIsSavedInTwoStoresIsSound(_ first: TestStore, _ second: TestStore) {
    run(first, PolicyRace.Setup(hasDerivedValues: true, secondStore: second), count: TestTier.count(6, full: 500))
  }

  /// A screen that reads what the context reports is up to date.
  @Test(arguments: [TestStore.memory, .sqlite, .weakest], [false, true])
  func RH4_whatAContextReportsInARaceIsComplete(_ store: TestStore, _ hasUniqueValues: Bool) {
    run(store, PolicyRace.Setup(hasUniqueValues: hasUniqueValues, screen: 0), count: TestTier.count(6, full: 500))
  }

  /// The saves of children change what the screen shows.
  @Test(arguments: [TestStore.memory, .sqlite, .weakest], [false, true])
  func RH4_whatAParentReportsInARaceIsComplete(_ store: TestStore, _ hasUniqueValues: Bool) {
    run(store, PolicyRace.Setup(hasUniqueValues: hasUniqueValues, hasChildren: true, screen: 2), count: TestTier.count(4, full: 300))
  }

  @Test(arguments: [(TestStore.memory, TestStore.sqlite), (.sqlite, .json), (.weakest, .binary)])
  func RH4_whatAContextOnTwoStoresReportsIsComplete(_ first: TestStore, _ second: TestStore) {
    run(first, PolicyRace.Setup(secondStore: second, screen: 0), count: TestTier.count(4, full: 300))
  }

  private func run(_ store: TestStore, _ setup: PolicyRace.Setup, count: Int) {
    var seeds = SeededGenerator()
    for number in 0..<count {
      let program = PolicyRaceProgram(store, setup, seed: seeds.next())
      guard let failure = program.failure() else { continue }
      let short = program.shortened()
      Issue.record("HOLDFAST_SEED=\(seeds.seed), program \(number) on \(store): \(short.failure() ?? failure)")
      return
    }
  }
}
