import Foundation
import TestSupport
import Testing

@testable import HoldfastBinaryStore

/// Numbers of any number of bits (Golomb-Rice coding), compared with a text of zeros and ones.
@Suite struct BitCodingTests {
  /// A number below 2^62, and its parameter.
  struct Coded: Equatable {
    var number: UInt64
    var low: Int

    /// The bits as the format's article describes them.
    var bits: String {
      let quotient = number >> UInt64(low)
      if quotient >= 16 { return String(repeating: "0", count: 16) + BitCodingTests.bits(number, 62) }
      return String(repeating: "0", count: Int(quotient)) + "1" + BitCodingTests.bits(number & (1 << UInt64(low) - 1), low)
    }

    /// The number of bits.
    var bitCount: Int { number >> UInt64(low) >= 16 ? 78 : Int(number >> UInt64(low)) + 1 + low }
  }

  /// The lowest bits of a number, the highest of them first.
  private static func bits(_ number: UInt64, _ count: Int) -> String {
    (0..<count).reversed().map { number >> UInt64($0) & 1 == 1 ? "1" : "0" }.joined()
  }

  /// Full bytes of zeros and ones, with zeros at the end of the last one.
  private static func bytes(_ bits: String) -> [UInt8] {
    let bits = Array(bits.utf8)
    return stride(from: 0, to: bits.count, by: 8).map { start in
      (start..<start + 8).reduce(0) { $0 << 1 | ($1 < bits.count ? bits[$1] - UInt8(ascii: "0") : 0) }
    }
  }

  private static func encoded(_ numbers: [Coded], inPairs: Bool) -> [UInt8] {
    let writer = BitWriter()
    var place = writer.place(atMost: numbers.count), rest = numbers[...]
    while let first = rest.popFirst() {
      if inPairs, let second = rest.popFirst() {
        place.put(numbers: first.number, first.low, second.number, second.low)
      } else {
        place.put(number: first.number, first.low)
      }
    }
    let bytes = Array(writer.end(place))
    withExtendedLifetime(writer) {}
    return bytes
  }

  /// The numbers until the first one that is refused, and whether only padding is left.
  private static func decoded(_ bytes: [UInt8], _ lows: [Int]) -> (numbers: [UInt64], isAtEnd: Bool) {
    bytes.withUnsafeBytes { bytes in
      var reader = BitReader(bytes, from: 0), numbers: [UInt64] = []
      for low in lows {
        guard let number = reader.number(low) else { return (numbers, false) }
        numbers.append(number)
      }
      return (numbers, reader.isAtEnd)
    }
  }

  /// Numbers of each width, with parameters that fit them or don't.
  private static func numbers(_ count: Int, _ random: inout SeededGenerator) -> [Coded] {
    (0..<count).map { _ in
      let width = UInt64.random(in: 0...62, using: &random)
      let low = Bool.random(using: &random) ? Int.random(in: 0...40, using: &random) : max(0, min(Int(width) - 2, 40))
      return Coded(number: UInt64.random(in: 0..<1 << width, using: &random), low: low)
    }
  }

  @Test(arguments: [false, true]) func numbersOfEveryWidthComeBack(inPairs: Bool) {
    var random = SeededGenerator("Bits of numbers")
    for round in 0..<300 {
      let numbers = Self.numbers(Int.random(in: 1...60, using: &random), &random)
      let bytes = Self.encoded(numbers, inPairs: inPairs)
      #expect(bytes == Self.bytes(numbers.map(\.bits).joined()), "round \(round)")
      let (found, isAtEnd) = Self.decoded(bytes, numbers.map(\.low))
      #expect(found == numbers.map(\.number) && isAtEnd, "round \(round)")
    }
  }

  /// The smallest and largest numbers of each parameter, around the quotient from which they are written in full.
  @Test func theLimitsOfEachParameterComeBack() {
    for low in BitWriter.parameters {
      let one = UInt64(1) << UInt64(low)
      let limits: [UInt64] = [0, 1, one - 1, one, 15 * one, 16 * one - 1, 16 * one, 16 * one + 1, 1 << 62 - 1]
      let numbers = limits.map { Coded(number: $0, low: low) }
      for inPairs in [false, true] {
        let bytes = Self.encoded(numbers, inPairs: inPairs)
        #expect(bytes == Self.bytes(numbers.map(\.bits).joined()), "\(low)")
        let (found, isAtEnd) = Self.decoded(bytes, numbers.map(\.low))
        #expect(found == numbers.map(\.number) && isAtEnd, "\(low)")
      }
    }
  }

  @Test func bitsOfEveryCountAreAppended() {
    var random = SeededGenerator("Bits")
    for _ in 0..<200 {
      let values = (0..<Int.random(in: 1...40, using: &random)).map { _ in
        let count = Int.random(in: 1...56, using: &random)
        return (value: UInt64.random(in: 0..<1 << UInt64(count), using: &random), count: count)
      }
      let writer = BitWriter()
      var place = writer.place(atMost: values.count)
      for (value, count) in values { place.put(value, UInt64(count)) }
      #expect(Array(writer.end(place)) == Self.bytes(values.map { Self.bits($0.value, $0.count) }.joined()))
      withExtendedLifetime(writer) {}
    }
  }

  /// A writer that is used again contains nothing of the former numbers, whatever its capacity is.
  @Test func aWriterCanBeUsedAgain() {
    let writer = BitWriter()
    for count in [100, 1, 3_000, 2] {
      let numbers = (0..<count).map { Coded(number: UInt64($0), low: 3) }
      var place = writer.place(atMost: count)
      for number in numbers { place.put(number: number.number, number.low) }
      #expect(Array(writer.end(place)) == Self.bytes(numbers.map(\.bits).joined()))
    }
    withExtendedLifetime(writer) {}
  }

  // MARK: Parameters

  @Test func noOtherParameterMakesGeometricallyDistributedNumbersShorter() {
    var random = SeededGenerator(seed: 36)
    for mean in [0.3, 1, 1.4, 1.8, 2, 2.8, 3, 5, 5.7, 11, 23, 50, 92, 1_000, 1_480, 25_000, 47_000, 1e6, 1.45e6, 1e12] {
      let scale = -1 / log1p(-1 / (1 + mean))
      let numbers = (0..<5_000).map { _ in UInt64(-log(Double.random(in: 1e-300...1, using: &random)) * scale) }
      func bitCount(_ low: Int) -> Int { numbers.reduce(0) { $0 + Coded(number: $1, low: low).bitCount } }
      let parameter = BitWriter.parameter(sum: numbers.reduce(0) { $0 + Double($1) }, count: numbers.count)
      let best = BitWriter.parameters.map(bitCount).min() ?? 0
      #expect(Double(bitCount(parameter)) <= 1.005 * Double(best), "\(parameter) for \(mean)")
    }
  }

  @Test func parametersOfFewAndOfLargeNumbersAreValid() {
    #expect(BitWriter.parameter(sum: 0, count: 0) == 0 && BitWriter.parameter(sum: 0, count: 7) == 0)
    #expect(BitWriter.parameter(sum: 0x1p62, count: 1) == 40 && BitWriter.parameter(sum: 0x1p76, count: 1 << 14) == 40)
  }

  // MARK: Refusal

  /// Exactly the numbers whose bits are there are read.
  @Test func aTruncatedNumberIsRefused() {
    var random = SeededGenerator("Truncated bits")
    for round in 0..<60 {
      let numbers = Self.numbers(Int.random(in: 1...12, using: &random), &random)
      let bytes = Self.encoded(numbers, inPairs: false)
      var ends: [Int] = []
      for number in numbers { ends.append((ends.last ?? 0) + number.bits.count) }
      for count in 0..<bytes.count {
        let (found, isAtEnd) = Self.decoded(Array(bytes.prefix(count)), numbers.map(\.low))
        let whole = ends.count { $0 <= 8 * count }
        #expect(found == numbers.prefix(whole).map(\.number) && !isAtEnd, "round \(round), \(count) bytes")
      }
    }
  }

  @Test func aLongerFormThanNecessaryIsRefused() {
    for low in [0, 1, 7, 40] {
      let least = UInt64(16) << UInt64(low), zeros = String(repeating: "0", count: 16)
      #expect(Self.decoded(Self.bytes(zeros + Self.bits(least, 62)), [low]).numbers == [least])
      for number in [0, 1, least / 2, least - 1] {
        #expect(Self.decoded(Self.bytes(zeros + Self.bits(number, 62)), [low]).numbers.isEmpty, "\(number) with \(low)")
      }
    }
  }

  @Test func anythingButThePaddingOfTheLastByteIsNotTheEnd() {
    let number = Coded(number: 5, low: 2), bytes = Self.encoded([number], inPairs: false)
    #expect(bytes == [0b0101_0000] && Self.decoded(bytes, [2]).isAtEnd)
    #expect(!Self.decoded(bytes + [0], [2]).isAtEnd)
    #expect(!Self.decoded(bytes, []).isAtEnd)
    for bit in 0..<4 { #expect(!Self.decoded([bytes[0] | 1 << UInt8(bit)], [2]).isAtEnd, "bit \(bit)") }
    // A last byte without padding.
    let full = Self.encoded([number, number], inPairs: false)
    #expect(full.count == 1 && Self.decoded(full, [2, 2]).isAtEnd && Self.decoded(full, [2, 2, 2]).numbers == [5, 5])
  }
}
