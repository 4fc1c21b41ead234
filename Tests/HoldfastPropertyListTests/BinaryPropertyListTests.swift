import Foundation
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

@Suite struct BinaryPropertyListTests {
  /// A file of objects given as bytes, with one byte for each offset and each reference.
  static func file(_ objects: [[UInt8]], top: Int = 0) -> [UInt8] {
    var bytes = Array("bplist00".utf8), offsets: [UInt8] = []
    for object in objects {
      offsets.append(UInt8(bytes.count))
      bytes += object
    }
    let table = bytes.count
    return bytes + offsets + [0, 0, 0, 0, 0, 0, 1, 1] + [objects.count, top, table].flatMap { [0, 0, 0, 0, 0, 0, 0, UInt8($0)] }
  }

  private static func code(_ bytes: [UInt8], limits: PropertyListLimits = PropertyListLimits()) -> PropertyListError.Code? {
    do throws(PropertyListError) {
      _ = try PropertyList(binary: bytes, limits: limits)
      return nil
    } catch { return error.code }
  }

  @Test func whatIsWrittenIsReadAgain() throws {
    var random = SeededGenerator("Binary property lists")
    for _ in 0..<300 {
      let list = RandomPropertyLists.list([.null, .uid], using: &random)
      #expect(try PropertyList(list.binary) == list)
    }
  }

  @Test func aDateIsReadExactly() throws {
    let list = try PropertyList(PropertyList.dictionary(["born": .date(86_400.1), "height": .real(0.5)]).binary)
    #expect(list["born"]?.date == Date(timeIntervalSinceReferenceDate: 86_400.1))
    #expect(list["height"]?.date == nil)
  }

  @Test func foundationReadsWhatIsWritten() throws {
    let list: PropertyList = [
      "name": .string("Zoë"), "age": .integer(300), "below": .integer(-5), "height": .real(0.5), "dog": .bool(true), "born": .date(86_400),
      "raw": .data([1, 2, 3]), "list": .array([.string("a"), .integer(1)]),
    ]
    let found = try PropertyListSerialization.propertyList(from: Data(list.binary), format: nil)
    let expected: NSDictionary = [
      "name": "Zoë", "age": 300, "below": -5, "height": 0.5, "dog": true, "born": Date(timeIntervalSinceReferenceDate: 86_400),
      "raw": Data([1, 2, 3]), "list": ["a", 1] as [Any],
    ]
    #expect(found as? NSDictionary == expected)
  }

  @Test func whatFoundationWritesIsRead() throws {
    let theirs: [String: Any] = [
      "text": "Zoë", "list": [1, 2.5, true] as [Any], "data": Data([9]), "date": Date(timeIntervalSinceReferenceDate: 1),
    ]
    let bytes = try PropertyListSerialization.data(fromPropertyList: theirs, format: .binary, options: 0)
    let list = try PropertyList(Array(bytes))
    #expect(
      list == ["text": .string("Zoë"), "list": .array([.integer(1), .real(2.5), .bool(true)]), "data": .data([9]), "date": .date(1)])
    #expect(list["list"]?.array?.count == 3)
  }

  @Test func equalListsHaveEqualBytes() {
    let keys = (0..<40).map { "key \($0)" }
    let first = PropertyList.dictionary(Dictionary(uniqueKeysWithValues: keys.map { ($0, .integer(1)) }))
    let second = PropertyList.dictionary(Dictionary(uniqueKeysWithValues: keys.reversed().map { ($0, .integer(1)) }))
    #expect(first.binary == second.binary)
  }

  /// The bug: the second of two such texts was stored as the first one.
  @Test func textsThatDifferOnlyInTheirNormalizationAreBothStored() throws {
    let texts = ["caf\u{E9}", "cafe\u{301}", "caf\u{E9}"]
    let list = PropertyList.dictionary(["cafe\u{301}": .integer(1), "list": .array(texts.map { .string($0) })])
    let found = try #require(try PropertyList(list.binary).dictionary)
    #expect(found.keys.contains { Array($0.utf8) == Array("cafe\u{301}".utf8) })
    let read = found["list"]?.array?.map { Array(($0.string ?? "").utf8) }
    #expect(read == texts.map { Array($0.utf8) })
  }

  @Test func wholeNumbersOfSixteenBytesAreReadAsFarAs64BitsReach() throws {
    func number(_ high: UInt8, _ low: [UInt8]) -> [UInt8] { Self.file([[0x14] + Array(repeating: high, count: 8) + low]) }
    let largest = Array(repeating: UInt8(0xFF), count: 8)
    #expect(try PropertyList(binary: number(0, largest)) == .unsigned(.max))
    #expect(try PropertyList(binary: number(0xFF, largest)) == .integer(-1))
    #expect(try PropertyList(binary: number(0, [0, 0, 0, 0, 0, 0, 0, 7])) == .integer(7))
    #expect(Self.code(number(1, largest)) == .unsupported)
    #expect(Self.code(number(0xFF, [0, 0, 0, 0, 0, 0, 0, 7])) == .unsupported)
  }

  @Test func aFloatOfFourBytesIsRead() throws {
    #expect(try PropertyList(binary: Self.file([[0x22, 0x3F, 0xC0, 0, 0]])) == .real(1.5))
  }

  @Test func aListThatContainsItselfIsRefused() {
    #expect(Self.code(Self.file([[0xA1, 0]])) == .cyclic)
    #expect(Self.code(Self.file([[0xA1, 1], [0xD1, 2, 0], [0x51, 0x61]])) == .cyclic)
  }

  @Test func aDictionaryWithAKeyTwiceOrANumberAsKeyIsRefused() {
    #expect(Self.code(Self.file([[0xD2, 1, 1, 2, 2], [0x51, 0x61], [0x09]])) == .damaged)
    #expect(Self.code(Self.file([[0xD1, 1, 1], [0x09]])) == .damaged)
  }

  /// `NSDictionary` distinguishes such keys, so the file isn't damaged. A Swift dictionary would lose one of the values.
  @Test func twoKeysThatDifferOnlyInTheirNormalizationAreNotSupported() {
    let keys: [[UInt8]] = [[0x61, 0, 0xE9], [0x62, 0, 0x65, 3, 1]]
    #expect(Self.code(Self.file([[0xD2, 1, 2, 3, 3]] + keys + [[0x09]])) == .unsupported)
    #expect(Self.code(Self.file([[0xD2, 2, 2, 3, 3]] + keys + [[0x09]])) == .damaged)
  }

  @Test func setsAreRefusedByName() {
    #expect(Self.code(Self.file([[0xC1, 1], [0x09]])) == .unsupported)
  }

  @Test func textThatIsNotUTF8IsRefused() { #expect(Self.code(Self.file([[0x51, 0xFF]])) == .damaged) }

  @Test func sharedListsThatWouldUnfoldWithoutEndAreRefusedQuickly() {
    // Each of 100 lists contains the next one ten times.
    let bomb = Self.file((1..<20).map { [0xAA] + Array(repeating: UInt8($0), count: 10) } + [[0x09]])
    #expect(Self.code(bomb) == .tooLarge)
  }

  @Test func sharedBytesCountWhereverTheyStand() throws {
    let file = Self.file([[0xA3, 1, 1, 1], [0x44, 1, 2, 3, 4]])
    #expect(try PropertyList(binary: file).array?.count == 3)
    #expect(Self.code(file, limits: PropertyListLimits(bytes: 11)) == .tooLarge)
  }

  @Test func tooDeepListsAreRefusedEvenIfTheyWereReadBefore() {
    // The first object references all others, the deepest first, so that reading never recurses deeply.
    let chain = (0..<10).map { [UInt8(0xA1), UInt8($0 + 2)] } + [[0x09]]
    let file = Self.file([[0xAA] + (1...10).reversed().map { UInt8($0) }] + chain)
    #expect(Self.code(file, limits: PropertyListLimits(depth: 11)) == nil)
    #expect(Self.code(file, limits: PropertyListLimits(depth: 10)) == .tooDeep)
    let deep = (0..<200).reduce(PropertyList.bool(true)) { list, _ in .array([list]) }
    #expect(Self.code(deep.binary) == .tooDeep)
  }

  /// The bug: each of several nested lists could have as many values as the limit for the tree, so a small model cache took gigabytes.
  @Test func theLimitHoldsForListsThatAreNotCompleteYet() {
    // Each list has five values and the next list. The last one is damaged, and isn't reached.
    let leaves = Array(repeating: UInt8(4), count: 5)
    let lists = (1...3).map { [0xA6] + leaves + [UInt8($0)] }
    let file = Self.file(lists + [[0xA1, 99], [0x09]])
    #expect(Self.code(file) == .damaged)
    #expect(Self.code(file, limits: PropertyListLimits(objects: 8)) == .tooLarge)
    let whole = Self.file(lists + [[0xA0], [0x09]])
    #expect(Self.code(whole, limits: PropertyListLimits(objects: 19)) == nil)
    #expect(Self.code(whole, limits: PropertyListLimits(objects: 18)) == .tooLarge)
  }

  /// The bug: memory was reserved for all values of each of up to 128 nested lists, which could share their bytes, so a file of 2 MB
  /// reserved about 10 GB.
  @Test func nestedListsWithTooManyValuesAreRefusedBeforeTheirValuesAreRead() {
    // The first key of the outer dictionary is the inner dictionary, whose first key isn't text.
    let rest = Array(repeating: UInt8(2), count: 19)
    let file = Self.file([[0xDA, 1] + rest, [0xDA, 2] + rest, [0x09]])
    #expect(Self.code(file) == .damaged)
    #expect(Self.code(file, limits: PropertyListLimits(objects: 30)) == .tooLarge)
    let few = Array(repeating: UInt8(2), count: 9)
    let arrays = Self.file([[0xAA, 1] + few, [0xAA, 99] + few, [0x09]])
    #expect(Self.code(arrays) == .damaged)
    #expect(Self.code(arrays, limits: PropertyListLimits(objects: 15)) == .tooLarge)
  }

  @Test func limitsHoldForBytesAndValues() {
    let list = PropertyList.array((0..<100).map { .integer($0) })
    #expect(Self.code(list.binary, limits: PropertyListLimits(objects: 101)) == nil)
    #expect(Self.code(list.binary, limits: PropertyListLimits(objects: 100)) == .tooLarge)
    #expect(Self.code(list.binary, limits: PropertyListLimits(bytes: 100)) == .tooLarge)
  }

  @Test func otherBytesAreNoPropertyList() {
    #expect(Self.code([]) == .notAPropertyList)
    #expect(Self.code(Array(repeating: 0, count: 100)) == .notAPropertyList)
    #expect(Self.code(Array("bplist00".utf8) + Array(repeating: 0, count: 32)) == .damaged)
  }

  @Test func anErrorContainsThePositionAndTheReason() {
    let error = #expect(throws: PropertyListError.self) { try PropertyList(binary: Self.file([[0xA1, 1], [0xC0]])) }
    #expect(error?.place == .byte(10))
    #expect(error?.description == "At byte 10: Sets, URLs and UUIDs aren't supported in property lists. [unsupported]")
  }

  @Test func everyCutAndEveryChangedByteIsReadOrRefused() throws {
    var random = SeededGenerator("Damaged binary property lists"), refused = 0
    let changes = TestTier.count(500, full: 2_000)
    for _ in 0..<20 {
      let bytes = RandomPropertyLists.list([.null, .uid], using: &random).binary
      for count in 0..<bytes.count where bytes.count < 2000 {
        #expect(throws: PropertyListError.self) { try PropertyList(binary: Array(bytes[..<count])) }
      }
      for _ in 0..<changes {
        var changed = bytes
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          guard let place = changed.indices.randomElement(using: &random) else { continue }
          changed[place] = UInt8.random(in: .min ... .max, using: &random)
        }
        if let list = try? PropertyList(binary: changed) {
          #expect(throws: Never.self) { try PropertyList(binary: list.binary) }
        } else {
          refused += 1
        }
        _ = PropertyList.isDictionary(changed, ofKeysBeginningWith: ["NS", "_"])
      }
    }
    #expect((changes * 15 / 2...changes * 39 / 2).contains(refused), "\(refused) of \(20 * changes) refused")
  }

  @Test func theBeginningsOfKeysAreFoundOutWithoutReading() {
    let list: PropertyList = ["NSOne": .bool(true), "_two": .bool(true), "NS a long key beyond fifteen": .bool(true)]
    #expect(PropertyList.isDictionary(list.binary, ofKeysBeginningWith: ["NS", "_"]))
    #expect(!PropertyList.isDictionary(list.binary, ofKeysBeginningWith: ["NS"]))
    #expect(!PropertyList.isDictionary(PropertyList.string("NS").binary, ofKeysBeginningWith: ["NS"]))
    #expect(!PropertyList.isDictionary([1, 2, 3], ofKeysBeginningWith: ["NS"]))
  }
}

extension PropertyList: ExpressibleByDictionaryLiteral {
  init(dictionaryLiteral elements: (String, PropertyList)...) { self = .dictionary(Dictionary(uniqueKeysWithValues: elements)) }
}
