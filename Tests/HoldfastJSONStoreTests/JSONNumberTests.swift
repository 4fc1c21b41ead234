import Foundation
import TestSupport
import Testing

@testable import HoldfastAtomicStore
@testable import HoldfastJSONStore

@Suite struct JSONNumberTests {
  private func real(_ text: String) -> Double? { Array(text.utf8).withUnsafeBytes { NumberText.real($0) } }
  private func integer(_ text: String) -> Int64? { Array(text.utf8).withUnsafeBytes { NumberText.integer($0) } }

  @Test func randomNumbersReadAsTheBitsThatWereWritten() {
    var random = SeededGenerator("Numbers")
    let count = TestTier.count(20_000, full: 200_000)
    for _ in 0..<count {
      let value = Double(bitPattern: random.next())
      if !value.isFinite { continue }
      #expect(real(value.description) == value, "\(value)")
    }
    for _ in 0..<count {
      let value = Double(Int64.random(in: -1_000_000_000...1_000_000_000, using: &random)) / 1000
      #expect(real(value.description) == value, "\(value)")
    }
  }

  @Test func numbersAreWrittenByTheirShortestTexts() throws {
    var random = SeededGenerator("Written numbers")
    for round in 0..<TestTier.count(10_000, full: 100_000) {
      let digits = Double(Int64.random(in: -100_000_000...100_000_000, using: &random))
      let value =
        round % 2 == 0 ? digits / [1, 10, 100, 1000, 10_000, 100_000].randomElement(using: &random)! : Double(bitPattern: random.next())
      if value.isFinite && value != 0 { #expect(TextOutput.text(value) == value.description) }
    }
    #expect(TextOutput.text(0) == "0.0" && TextOutput.text(.infinity) == "\"Infinity\"" && TextOutput.text(.nan) == "\"NaN\"")
  }

  @Test func shortTextsReadAsTheLibraryReadsThem() {
    for mantissa in stride(from: 1, to: 9_007_199_254_740_992, by: 90_071_992_547_409) {
      for exponent in -30...30 {
        let text = "\(mantissa)e\(exponent)"
        #expect(real(text) == Double(text), "\(text)")
      }
    }
  }

  @Test(arguments: ["0", "-0", "0.0", "1", "-1.5", "1e5", "1E+5", "12e-3", "9007199254740993", "0e400", "5e-324"])
  func numbersAreRead(_ text: String) { #expect(real(text) == Double(text)) }

  @Test(arguments: ["", "-", "+1", ".5", "1.", "1e", "1e+", "0x10", "nan", "inf", "1e400", "-1e400", "1e-400", "1 ", " 1", "1,5"])
  func whatIsNoNumberOrCannotBeKeptIsRefused(_ text: String) { #expect(real(text) == nil) }

  /// Digits and exponents so large that one of them alone couldn't be a number.
  @Test func aLargeExponentCountsWithAllItsDigits() {
    let zeros = String(repeating: "0", count: 100_010)
    #expect(real("0.\(zeros)1e100011") == 1 && real("-0.\(zeros)25e100011") == -2.5)
    #expect(real("0.\(zeros)1e200022") == nil && real("0.\(zeros)1e100000") == 1e-11)
    #expect(real("1e99999999999999999999") == nil && real("1e-99999999999999999999") == nil)
  }

  /// The cursor of the scanners reads a number like the text of a value that yajl or libxml2 has found, or leaves it to them.
  @Test func aCursorReadsNumbersAsTheirTextsAreRead() {
    var random = SeededGenerator("Cursor")
    var readCount = 0
    for _ in 0..<TestTier.count(20_000, full: 1_000_000) {
      var text = (0..<Int.random(in: 1...20, using: &random)).map { _ in "\(Int.random(in: 0...9, using: &random))" }.joined()
      let point = text.index(text.startIndex, offsetBy: Int.random(in: 0...text.count, using: &random))
      if Bool.random(using: &random) { text.insert(".", at: point) }
      if Bool.random(using: &random) { text = "-" + text }
      let (real, integer) = cursorNumbers(text)
      if let real, real.bitPattern != self.real(text)?.bitPattern { Issue.record("HOLDFAST_SEED=\(random.seed): \(text), \(real)") }
      if let integer, integer != self.integer(text) { Issue.record("HOLDFAST_SEED=\(random.seed): \(text), \(integer)") }
      readCount += real == nil ? 0 : 1
    }
    #expect(readCount > 5_000)
  }

  /// The numbers that a cursor reads from an entire text.
  private func cursorNumbers(_ text: String) -> (real: Double?, integer: Int64?) {
    Array(text.utf8).withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return (nil, nil) }
      var first = ByteCursor(base, base + bytes.count), second = first
      let (real, integer) = (first.real(), second.integer())
      return (first.count == 0 ? real : nil, second.count == 0 ? integer : nil)
    }
  }

  @Test func wholeNumbersReachToBothEnds() {
    #expect(integer("9223372036854775807") == .max)
    #expect(integer("-9223372036854775808") == .min)
    #expect(integer("9223372036854775808") == nil)
    #expect(integer("-9223372036854775809") == nil)
    #expect(integer("99999999999999999999") == nil)
    #expect(integer("9999999999999999999") == nil)
    #expect(integer("1.0") == nil && integer("1e2") == nil && integer("") == nil && integer("-") == nil)
    #expect(integer("-0") == 0)
  }
}

extension TextOutput {
  /// The text of a number.
  fileprivate static func text(_ value: Double) -> String {
    var bytes: [UInt8] = []
    let output = TextOutput { bytes += $0 }
    output.put(value)
    try? output.flush()
    return String(decoding: bytes, as: UTF8.self)
  }
}
