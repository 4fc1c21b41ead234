import HoldfastStore
import Testing

@testable import HoldfastAtomicStore

/// Text that every format writes and reads: digits, UUIDs, short numbers.
@Suite struct TextTests {
  private func written(_ put: (TextOutput) -> Void) throws -> String {
    var all: [UInt8] = []
    let output = TextOutput { all += $0 }
    put(output)
    try output.flush()
    return String(decoding: all, as: UTF8.self)
  }

  @Test func wholeNumbersAreWrittenDigitByDigit() throws {
    var numbers: [Int64] = [0, .min, .max, -1]
    var power: Int64 = 1
    for _ in 0..<18 {
      power *= 10
      numbers += [power - 1, power, power + 1, -power, 1 - power]
    }
    for number in numbers { #expect(try written { $0.put(decimal: number) } == String(number)) }
    #expect(try written { $0.put(digits: .max, atLeast: 1) } == String(UInt64.max))
    #expect(try written { $0.put(digits: 42, atLeast: 5) } == "00042" && (try written { $0.put(digits: 0, atLeast: 3) }) == "000")
  }

  @Test(arguments: [0, 1, -1, 1.75, 0.001, -0.0125, 9_999_999_999.9999, 318_303_001, 1e9 + 0.1, 123_456.7])
  func numbersOfFewDecimalsAreWrittenAsShortAsTheyCanBe(_ value: Double) throws {
    var isShort = false
    #expect(try written { isShort = $0.put(short: value) } == value.description)
    #expect(isShort)
  }

  @Test(arguments: [0.00001, 1.00001, 1e10, 1 / 3, .infinity, .nan, 0.1 + 0.2])
  func otherNumbersAreNotWrittenShort(_ value: Double) throws {
    var isShort = true
    #expect(try written { isShort = $0.put(short: value) }.isEmpty)
    #expect(!isShort)
  }

  @Test func everyByteOfAUUIDIsWrittenAndRead() throws {
    for start in stride(from: 0, to: 256, by: 16) {
      let bytes = (start..<start + 16).map { UInt8($0) }
      let text = try written { output in bytes.withUnsafeBytes { output.put(uuid: $0) } }
      #expect(text.filter { $0 != "-" } == bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined().uppercased())
      for spelling in [text, text.lowercased()] {
        var read = [UInt8](repeating: 0, count: 16)
        let isUUID = read.withUnsafeMutableBytes { output in
          Array(spelling.utf8).withUnsafeBytes { BytesText.decodeUUID($0, into: output.baseAddress!) }
        }
        #expect(isUUID && read == bytes)
      }
    }
  }

  /// Every byte at every position. Eight digits are checked at once, and no other byte may be accepted.
  @Test func whatIsNoHexadecimalDigitIsFoundAtEveryPlaceOfAUUID() {
    let text = Array("01234567-89AB-CDEF-abcd-ef0123456789".utf8)
    var output = [UInt8](repeating: 0, count: 16)
    for place in text.indices {
      for byte in UInt8.min ... .max {
        var changed = text
        changed[place] = byte
        let isRight = text[place] == UInt8(ascii: "-") ? byte == text[place] : NumberText.hexadecimal(byte) != nil
        let isUUID = changed.withUnsafeBytes { text in output.withUnsafeMutableBytes { BytesText.decodeUUID(text, into: $0.baseAddress!) } }
        #expect(isUUID == isRight, "byte \(byte) at \(place)")
      }
    }
  }

  @Test func labelsOfEveryLengthAreCopiedWhole() throws {
    let names = (0..<70).map { String(repeating: "n", count: $0) }
    let table = NameTable(names.map { (before: "<", name: $0, behind: ">") })
    for (place, name) in names.enumerated() {
      #expect(
        try written {
          $0.put(table, place); $0.put("|")
        } == "<\(name)>|")
    }
  }

  @Test func aLinkReaderAnswersAsTheIndexDoes() {
    var random = SystemRandomNumberGenerator()
    let seed = random.next()
    var index = AdjacencyIndex(), state = seed
    func next(_ bound: UInt64) -> Int64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int64((state >> 33) % bound)
    }
    let links = (0..<4000).map { _ in SaveRequest.Link(source: ObjectKey(1 + next(2000)), target: ObjectKey(1 + next(3000))) }
    index.apply(added: LinkOrder.sorted(links), removed: [])
    index.apply(added: [], removed: LinkOrder.sorted(Array(links.prefix(1500))))
    let reader = LinkReader(adjacency: index, order: nil)
    for key in Array(0..<2600) + (0..<2000).map({ _ in ObjectKey(next(2600)) }) {
      #expect(Array(reader.targets(of: key)) == index.withTargets(of: key) { Array($0) }, "seed \(seed)")
    }
    var sources: [ObjectKey] = []
    index.forEachSource { sources.append($0) }
    #expect(sources == (0..<2600).filter { index.withTargets(of: $0) { !$0.isEmpty } }, "seed \(seed)")
  }
}
