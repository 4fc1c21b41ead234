import TestSupport
import Testing

@Suite struct SeededGeneratorTests {
  @Test func theSeedOfARoundRepeatsItAsTheFirstOne() {
    var random = SeededGenerator(seed: 5)
    let rounds = (0..<3).map { _ in random.round() }
    #expect(rounds[0].seed == 5 && Set(rounds.map(\.seed)).count == 3)
    for round in rounds {
      var again = SeededGenerator(seed: round.seed)
      let first = again.round()
      #expect(numbers(first) == numbers(round))
    }
  }

  private func numbers(_ generator: SeededGenerator) -> [UInt64] {
    var copy = generator
    return (0..<4).map { _ in copy.next() }
  }
}
