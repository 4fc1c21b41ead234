import Foundation
import HoldfastAtomicStore
import TestSupport
import Testing

@testable import HoldfastXMLStore

/// Dates and texts in their written and read forms.
@Suite(.bothReaders) struct XMLTextTests {
  private func text(_ body: (TextOutput) -> Void) -> String {
    var bytes: [UInt8] = []
    let output = TextOutput { bytes += $0 }
    body(output)
    try? output.flush()
    return String(decoding: bytes, as: UTF8.self)
  }

  private func date(_ value: Double) -> String { text { XMLDate.put(value, to: $0) } }
  private func date(_ text: String) -> Double? { Array(text.utf8).withUnsafeBytes { XMLDate.value($0) } }

  @Test func datesHaveTwentyDecimalsAndThoseNearZeroAllThatTheyHave() {
    #expect(date(0) == "0.00000000000000000000" && date(-0.5) == "-0.50000000000000000000" && date(0.1) == "0.10000000000000000555")
    #expect(date(-1_884_549_171) == "-1884549171.00000000000000000000" && date(318_303_001.25) == "318303001.25000000000000000000")
    #expect(date(318_303_001.847_817_957) == "318303001.84781795740127563477")
    #expect(date(0x1p-10) == "0.00097656250000000000" && date(0x1p-63) == "0." + String(format: "%.63f", 0x1p-63).dropFirst(2))
    #expect(date(1e300) == String(format: "%.20f", 1e300) && date(-0x1p63) == "-9223372036854775808.00000000000000000000")
    #expect(date(.nan) == "nan" && date(.infinity) == "inf" && date(-.infinity) == "-inf")
    #expect(
      date(1.0.nextDown) == "0.99999999999999988898" && date(0.999_999_999_999_999_9) == String(format: "%.20f", 0.999_999_999_999_999_9))
  }

  @Test func everyDateIsReadAsItWasWritten() {
    var numbers = SeededGenerator("dates")
    let edges = [
      0.1, -0.1, 1, 0x1p33, (0x1p33).nextDown, 0x1p32, 0x1p31, 0x1p52, 0x1p53, 0x1p63, (0x1p63).nextDown, 0x1p-11, (0x1p-11).nextDown,
      .leastNonzeroMagnitude, .leastNormalMagnitude, .greatestFiniteMagnitude, .ulpOfOne, 1.0.nextDown, 1.0.nextUp, -63_113_904_000,
    ]
    let wild = (0..<2_000).map { _ in Double(bitPattern: UInt64.random(in: 0...UInt64.max, using: &numbers)) }.filter(\.isFinite)
    let usual = (0..<20_000).map { _ in Double.random(in: -2e9...2e9, using: &numbers) }
    for value in edges + wild + usual {
      let text = date(value)
      #expect(date(text)?.bitPattern == value.bitPattern, "\(value): \(text)")
      if value.magnitude >= 0x1p-11 { #expect(text == String(format: "%.20f", value)) }
    }
    // As Core Data writes all of them.
    for value in [0, 1, -0.5, 0.1, 318_303_001, -2_663_528_078.25] { #expect(date(String(format: "%.20f", value)) == value) }
    // Twenty decimals that no floating-point number represents exactly.
    for _ in 0..<TestTier.count(4_000, full: 20_000) {
      let whole = UInt64.random(in: 0..<UInt64(1) << UInt64.random(in: 1...34, using: &numbers), using: &numbers)
      let digits = (0..<20).map { _ in String(Int.random(in: 0...9, using: &numbers)) }.joined()
      #expect(date("\(whole).\(digits)") == Double("\(whole).\(digits)"), "\(whole).\(digits)")
    }
    #expect(date("nan")?.isNaN == true && date("inf") == .infinity && date("12") == 12 && date("1.5") == 1.5)
    for text in ["", "-", ".", "1.", "-.00000000000000000000", "1.0000000000000000000a", "a.00000000000000000000", "1e999"] {
      #expect(date(text) == nil, "\(text)")
    }
  }

  private func escaped(_ string: String) -> String {
    text { output in Array(string.utf8).withUnsafeBytes { output.put(escaped: $0) } }
  }

  private func unescaped(_ string: String) -> String? {
    var output = [UInt8](repeating: 0, count: string.utf8.count)
    let count = Array(string.utf8).withUnsafeBytes { text in
      output.withUnsafeMutableBytes { room in room.baseAddress.flatMap { XMLText.unescape(text, into: $0) } ?? (text.isEmpty ? 0 : nil) }
    }
    return count.map { String(decoding: output[..<$0], as: UTF8.self) }
  }

  @Test func escapesHaveTheBytesOfACodeUnitSwapped() {
    #expect(escaped("a<b>c&d\\e") == "a\\u3c00b\\u3e00c\\u2600d\\u5c00e")
    #expect(escaped("\u{0}\t\n\r\u{1F}\u{7F}") == "\\u0000\t\n\\u0d00\\u1f00\u{7F}")
    #expect(escaped("\u{FFFD}\u{FFFE}\u{FFFF}\u{F000}") == "\u{FFFD}\\ufeff\\uffff\u{F000}")
    #expect(unescaped("\\u3c00\\u3E00\\u3dd8\\u00de") == "<>\u{1F600}")
    #expect(unescaped("\\") == "\\" && unescaped("\\u12") == "\\u12" && unescaped("\\u12g4") == "\\u12g4" && unescaped("\\n") == "\\n")
    #expect(unescaped("\\u3dd8") == nil && unescaped("\\u3dd8x") == nil && unescaped("\\u00de") == nil)
  }

  @Test func everyTextIsReadAsItWasWritten() {
    var numbers = SeededGenerator("texts")
    let pieces = [
      "<", ">", "&", "\\", "\u{0}", "\n", "\t", "\r", "a", "lorem ipsum", "é", "\u{FFFE}", "\u{FFFF}", "\u{FEFF}", "\u{1F4DA}", "\\u3c00",
      "日本", "ﬁ",
    ]
    for _ in 0..<TestTier.count(1_000, full: 3_000) {
      let string = (0..<Int.random(in: 0...30, using: &numbers)).map { _ in pieces.randomElement(using: &numbers) ?? "" }.joined()
      let text = escaped(string)
      #expect(unescaped(text)?.utf8.elementsEqual(string.utf8) == true, "\(text)")
      #expect(text.unicodeScalars.allSatisfy { $0 != "<" && $0 != ">" && $0 != "&" && $0 != "\r" && $0 != "\u{FFFE}" && $0 != "\u{FFFF}" })
    }
  }
}
