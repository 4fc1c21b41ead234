import Foundation

/// Random numbers from a seed (SplitMix64): the same seed gives the same numbers on every machine.
///
/// `HOLDFAST_SEED` in the environment repeats a run: generators that aren't given a seed start from it.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  /// The seed from which the generator started.
  package let seed: UInt64
  private var state: UInt64

  /// Makes a generator with a given seed.
  package init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  /// Makes a generator with the seed of the environment, or a random one, and prints it with the purpose and the file of the test.
  ///
  /// Without a purpose it prints only when all long tests run; the test prints the seed when it fails.
  package init(_ purpose: String? = nil, file: StaticString = #fileID) {
    self.init(seed: SeededGenerator.seedOfEnvironment ?? .random(in: .min ... .max))
    if purpose != nil || TestTier.isFull { print("\(purpose ?? "Seed"): HOLDFAST_SEED=\(seed) in \(file)") }
  }

  /// The seed in `HOLDFAST_SEED`; nil if it isn't set.
  package static var seedOfEnvironment: UInt64? { ProcessInfo.processInfo.environment["HOLDFAST_SEED"].flatMap { UInt64($0) } }

  /// Makes the generator of a test's next round.
  ///
  /// The first round has the seed of this generator. So `HOLDFAST_SEED` with the seed of a round repeats it as the first one.
  package mutating func round() -> SeededGenerator {
    let isFirst = state == seed, number = next()
    return SeededGenerator(seed: isFirst ? seed : number)
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
