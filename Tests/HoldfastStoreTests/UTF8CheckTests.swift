import HoldfastStore
import TestSupport
import Testing

@Suite struct UTF8CheckTests {
  @Test func itAgreesWithTheStandardLibraryOnTextsAndOnTextsWithAChangedByte() {
    var random = SeededGenerator("UTF-8"), invalid = 0
    let pieces = ["a", "plain ASCII text of some length", "é", "한", "👩🏽", "\u{7FF}", "\u{800}", "\u{FFFF}", "\u{10FFFF}", "\u{0}"]
    let rounds = TestTier.count(5_000, full: 20_000)
    for _ in 0..<rounds {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0...8, using: &random) { bytes += Array((pieces.randomElement(using: &random) ?? "").utf8) }
      if let index = bytes.indices.randomElement(using: &random), Bool.random(using: &random) {
        bytes[index] = UInt8.random(in: .min ... .max, using: &random)
      }
      let isValid = String(validating: bytes, as: UTF8.self) != nil
      if !isValid { invalid += 1 }
      #expect(bytes.withUnsafeBytes { UTF8Check.isValid($0) } == isValid, "\(bytes)")
    }
    #expect((rounds / 20...rounds / 2).contains(invalid))
  }

  @Test(
    arguments: [
      [0xC0, 0x80], [0xE0, 0x9F, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x8F, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
      [0x80],
      [0xE2, 0x82], [0xF0, 0x9F, 0x98],
    ] as [[UInt8]])
  func overlongTruncatedAndSurrogateSequencesAreInvalid(_ sequence: [UInt8]) {
    for length in [0, 7, 8, 15, 16, 17] {
      let bytes = Array(repeating: UInt8(ascii: "a"), count: length) + sequence
      #expect(!bytes.withUnsafeBytes { UTF8Check.isValid($0) })
      #expect(!(bytes + [0x61]).withUnsafeBytes { UTF8Check.isValid($0) })
    }
  }
}
