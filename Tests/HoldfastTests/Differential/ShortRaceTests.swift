import HoldfastStore
import TestSupport
import Testing

/// All short races of two contexts. One of them has read some of the objects that both change.
///
/// The long programs of ``PolicyRaceTests`` rarely reach a certain combination of what was read and what is changed; these reach each.
/// A share of the races runs by default: another one in each run. `HOLDFAST_SEED` repeats it.
@Suite struct ShortRaceTests {
  @Test(arguments: ShortRace.Shape.allCases) func RH4_whatIsSavedIsSoundWhateverTheContextHasRead(_ shape: ShortRace.Shape) throws {
    let step = TestTier.isFull ? 13 : 2003
    try run(shape, .memory, from: step, by: step)
    try run(shape, .sqlite, from: 37 * step, by: 37 * step)
  }

  /// Runs each race whose number has a distance from a random one that is a multiple of another number.
  private func run(_ shape: ShortRace.Shape, _ store: TestStore, from limit: Int, by step: Int) throws {
    var random = SeededGenerator()
    let model = try ShortRace.model(shape)
    var failures = 0
    for number in stride(from: Int.random(in: 0..<limit, using: &random), to: ShortRace.count, by: step) {
      let race = ShortRace(shape, number)
      do { try race.run(store.makePlace(model: model, classes: []), model) } catch {
        Issue.record("HOLDFAST_SEED=\(random.seed), race \(number) on \(store): \(race): \(error)")
        failures += 1
        if failures == 5 { return }
      }
    }
  }
}
