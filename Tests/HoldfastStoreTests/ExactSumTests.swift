import Foundation
import HoldfastStore
import TestSupport
import Testing

/// Sums of floating-point numbers: the exact sum, rounded once.
@Suite struct ExactSumTests {
  private static func sum(_ numbers: some Sequence<Double>) -> Double {
    var sum = ExactSum()
    for number in numbers { sum.add(number) }
    return sum.value
  }

  @Test func nothingIsLostInAnyOrder() {
    #expect(Self.sum([1, 1e16, -1e16]) == 1)
    #expect(Self.sum([1e16, 1, -1e16]) == 1)
    #expect(Self.sum([1e308, 1e308, -1e308]) == 1e308)
    #expect(Self.sum([1e300, 1, -1e300, 1e-300]) == 1)
    #expect(Self.sum([1e300, 1e-300, -1e300]) == 1e-300)
    #expect(Self.sum([.leastNonzeroMagnitude, 1e308, .leastNonzeroMagnitude, -1e308]) == 2 * .leastNonzeroMagnitude)
    #expect(Self.sum(repeatElement(0.1, count: 10)) == 1)
  }

  @Test func theSumIsTheNearestNumber() {
    let half = 0x1p-53, less = 0x1p-200, next = Double(1).nextUp
    #expect(Self.sum([1, half]) == 1, "the even one of two")
    #expect(Self.sum([1, half, less]) == next)
    #expect(Self.sum([1, half, -less]) == 1)
    #expect(Self.sum([next, half]) == next.nextUp, "the even one of two")
    #expect(Self.sum([next, half, -less]) == next)
    #expect(Self.sum([-1, -half, -less]) == -next)
    #expect(Self.sum([.greatestFiniteMagnitude, 0x1p969, less]) == .greatestFiniteMagnitude)
    #expect(Self.sum([.greatestFiniteMagnitude, 0x1p970]) == .infinity)
  }

  @Test func numbersThatArentFiniteDecideTheSum() {
    for others in [[], [1], [1e308, 1e308], [1, 1e300, 1e-300]] as [[Double]] {
      #expect(Self.sum(others + [.infinity] + others) == .infinity)
      #expect(Self.sum(others + [-.infinity, 1e308]) == -.infinity)
      #expect(Self.sum(others + [.infinity, -.infinity]).isNaN)
      #expect(Self.sum(others + [.nan, .infinity]).isNaN)
    }
    #expect(Self.sum([1e308, 1e308]) == .infinity)
    #expect(Self.sum([]) == 0 && Self.sum([]).sign == .plus)
    #expect(Self.sum([-0.0]).sign == .plus)
  }

  @Test func memoryIsAllocatedOnlyForNumbersOfVeryDifferentSizes() {
    var sum = ExactSum(), byteCount = 0
    for number in 0..<1_000_000 { byteCount += sum.add(Double(number) * 0.001) }
    #expect(byteCount == 0)
    #expect(sum.value == 499_999_500)
    let (first, second) = (sum.add(1e100), sum.add(1e-100))
    #expect(first + second > 0 && sum.add(1e-200) == 0)
  }

  /// The sum of multiples of the smallest number is that of whole numbers.
  @Test func randomSumsAreThoseOfWholeNumbers() {
    var random = SeededGenerator("Sums")
    for _ in 0..<TestTier.count(300, full: 30_000) {
      var one = random.round()
      let seed = one.seed, scale = Int.random(in: -1074...840, using: &one)
      let parts = (0..<Int.random(in: 1...12, using: &one)).map { _ in
        // At most 53 bits anywhere in 120.
        Int128(Int64.random(in: -(1 << 53)...(1 << 53), using: &one)) << Int128.random(in: 0...66, using: &one)
      }
      let numbers = parts.map { Double(sign: .plus, exponent: scale, significand: Double($0)) }
      let total = parts.reduce(0, +), expected = Double(sign: .plus, exponent: scale, significand: Double(total))
      #expect(Self.sum(numbers) == expected, "HOLDFAST_SEED=\(seed)")
      // The wide integer gives the same.
      #expect(Self.sum([1e308, -1e-308] + numbers.shuffled(using: &one) + [1e-308, -1e308]) == expected, "HOLDFAST_SEED=\(seed)")
    }
  }
}
