import Testing

@testable import BenchmarkRunner

@Suite struct ScaleTests {
  @Test(
    "A linear axis goes from zero in steps of 1, 2 or 5 to the first mark that is not below the greatest value",
    arguments: [
      (1, [0, 0.5, 1]), (0.9, [0, 0.5, 1]), (3, [0, 1, 2, 3]), (3.1, [0, 1, 2, 3, 4]), (10, [0, 5, 10]),
      (0.0004, [0, 0.0001, 0.0002, 0.0003, 0.0004]),
      (7e8, [0, 2e8, 4e8, 6e8, 8e8]), (2e-9, [0, 5e-10, 1e-9, 1.5e-9, 2e-9]),
    ] as [(Double, [Double])])
  func linear(greatest: Double, ticks: [Double]) {
    let scale = Scale.linear([greatest / 2, greatest])
    #expect(scale.ticks.count == ticks.count)
    for (tick, wanted) in zip(scale.ticks, ticks) { #expect((tick - wanted).magnitude <= 1e-12 * wanted, "\(scale.ticks)") }
  }

  @Test(
    "Nothing to show, zeros and what is below them or no number make an axis all the same",
    arguments: [[], [0], [-3], [.nan], [.infinity]] as [[Double]])
  func nothing(values: [Double]) {
    #expect(Scale.linear(values).ticks == [0, 1])
    #expect(Scale.logarithmic(values).ticks == [1, 10])
  }

  @Test("A logarithmic axis has its marks at powers of ten around the values")
  func decades() {
    #expect(Scale.logarithmic([0.002, 3]).ticks == [0.001, 0.01, 0.1, 1, 10])
    #expect(Scale.logarithmic([0.001, 1]).ticks == [0.001, 0.01, 0.1, 1])
    #expect(Scale.logarithmic([1000, 100_000], steps: 4).ticks == [1000, 10_000, 100_000])
  }

  @Test("An axis over many powers of ten has a mark at every second or third")
  func manyDecades() {
    #expect(Scale.logarithmic([1e-9, 1]).ticks == [1e-9, 1e-7, 1e-5, 1e-3, 0.1, 10])
  }

  @Test("Close values have marks at 1, 2 and 5; a single value has two marks around it or one above it")
  func close() {
    #expect(Scale.logarithmic([3, 40]).ticks == [2, 5, 10, 20, 50])
    #expect(Scale.logarithmic([1, 1]).ticks == [1, 2])
    #expect(Scale.logarithmic([3, 3]).ticks == [2, 5])
  }

  @Test("Positions are proportional to the value, or to its logarithm, and never outside of the axis")
  func places() {
    let linear = Scale.linear([4]), logarithmic = Scale.logarithmic([1, 100])
    #expect([-1, 0, 1, 2, 4, 5, .nan].map(linear.place) == [0, 0, 0.25, 0.5, 1, 1, 0])
    #expect([0, 1, 100, 1000, -.infinity].map(logarithmic.place) == [0, 0, 1, 1, 0])
    #expect((logarithmic.place(10) - 0.5).magnitude < 1e-12)
  }

  @Test("All values are within the axis, whatever they are, and there are few, ascending marks")
  func random() {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(state: seed)
    for _ in 0..<2000 {
      let values = (0..<Int.random(in: 1...5, using: &generator)).map { _ in
        Double.random(in: 1..<10, using: &generator) * power(Int.random(in: -30...30, using: &generator))
      }
      for scale in [Scale.linear(values), .logarithmic(values)] {
        #expect((2...7).contains(scale.ticks.count), "seed \(seed), \(values), \(scale.ticks)")
        #expect(scale.ticks == Set(scale.ticks).sorted() && scale.ticks.allSatisfy(\.isFinite), "seed \(seed), \(values)")
        let greatest = values.max() ?? 0, least = values.min() ?? 0
        #expect(scale.ticks.last ?? 0 >= greatest * (1 - 1e-9), "seed \(seed), \(values), \(scale.ticks)")
        #expect(scale.ticks[0] <= least * (1 + 1e-9), "seed \(seed), \(values), \(scale.ticks)")
      }
    }
  }

  private func power(_ exponent: Int) -> Double {
    (0..<exponent.magnitude).reduce(1) { value, _ in exponent < 0 ? value / 10 : value * 10 }
  }

  private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      // SplitMix64.
      state &+= 0x9E37_79B9_7F4A_7C15
      var z = state
      z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
      return z ^ (z >> 31)
    }
  }
}

@Suite struct TickTextTests {
  @Test(
    "Marks of seconds are short",
    arguments: [
      (0, "0"), (1, "1 s"), (0.001, "1 ms"), (0.5, "500 ms"), (0.0002, "200 µs"), (5e-8, "50 ns"), (1000, "1000 s"), (0.3, "300 ms"),
      (1.5e-9, "1.5 ns"),
      (1e-12, "1e-3 ns"), (2e7, "2e7 s"), (1e100, "1e100 s"),
    ] as [(Double, String)])
  func seconds(value: Double, text: String) { #expect(TickText.seconds(value) == text) }

  @Test(
    "Marks of bytes and counts are short",
    arguments: [
      (0, "0", "0"), (200, "200 B", "200"), (5000, "5 kB", "5,000"), (20_000_000, "20 MB", "20M"), (1e9, "1 GB", "1G"),
      (0.5, "0.5 B", "0.5"),
    ] as [(Double, String, String)])
  func others(value: Double, bytes: String, count: String) {
    #expect(TickText.bytes(value) == bytes)
    #expect(TickText.count(value) == count)
  }
}
