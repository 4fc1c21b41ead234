import Foundation
import HoldfastStore
import Testing

@Suite struct ExternalDataNameTests {
  /// SHA-256 of "abc" begins with BA7816BF 8F01CFEA 414140DE 5DAE2223 (FIPS 180-2). The format is on disk and must not change.
  @Test func aNameHoldsTheDigestBehindSixBytesOfChance() {
    let names = (0..<50).map { _ in Array("abc".utf8).withUnsafeBytes { ExternalDataName.make(for: $0) } }
    #expect(names.allSatisfy { $0.uuidString.hasSuffix("-8FEA-8141-40DE5DAE2223") })
    #expect(Set(names).count == 50)
    for (text, holds) in [("abc", true), ("abd", false), ("", false), ("abcd", false)] {
      #expect(Array(text.utf8).withUnsafeBytes { ExternalDataName.matches(names[0], $0) } == holds)
    }
  }

  @Test func aNameOfAnotherVersionSaysNothingOfTheBytes() throws {
    let name = try #require(UUID(uuidString: "6BA7B810-9DAD-4ADC-80B4-00C04FD430C8"))
    #expect([UInt8]().withUnsafeBytes { ExternalDataName.matches(name, $0) })
  }

  @Test func aNameWithTheDigestOfBytesIsTheSameValueAsTheBytes() throws {
    let layout = RowLayout([.attribute(.binaryData)]), builder = RowBatchBuilder(layout: layout, idPrefix: nil)
    let names = ["abc", "abd"].map { text in Array(text.utf8).withUnsafeBytes { ExternalDataName.make(for: $0) } }
    let values: [StoreValue] = [
      .data(Data("abc".utf8)), .externalData(names[0]), .externalData(names[1]), .externalData(UUID()), .null, .data(Data("abd".utf8)),
    ]
    for (place, value) in values.enumerated() { try builder.append(key: ObjectKey(place + 1), version: 1, values: [value]) }
    let batch = builder.seal()
    for one in values.indices {
      for other in values.indices {
        let isSame = one == other || [[0, 1], [2, 5]].contains([one, other].sorted())
        #expect(batch.pointer(one).hasOtherValue(than: batch.pointer(other), 0, .bytes) == !isSame, "\(one) \(other)")
      }
    }
  }

  @Test func onlyUpperCaseTextOfAUUIDIsAName() {
    func id(_ text: String) -> UUID? { Array(text.utf8).withUnsafeBytes { ExternalDataName.id($0) } }
    let name = UUID()
    #expect(id(name.uuidString) == name)
    let wrong = [
      "", name.uuidString.lowercased(), name.uuidString + "0", String(name.uuidString.dropLast()), "../" + name.uuidString.dropFirst(3),
      name.uuidString.replacingOccurrences(of: "-", with: "0"), "GGGGGGGG-0000-0000-0000-000000000000", String(repeating: "-", count: 36),
    ]
    for text in wrong { #expect(id(text) == nil, "\(text)") }
  }

  @Test func aCellThatNamesAFileStaysOneWhereverItsRowIsCopied() throws {
    let layout = RowLayout([.attribute(.binaryData), .attribute(.integer64), .attribute(.transformable), .attribute(.string)])
    let (id, same) = (UUID(), UUID())
    let values: [StoreValue] = [.externalData(id), .int64(5), .externalData(same), .string("text")]
    let builder = RowBatchBuilder(layout: layout, idPrefix: nil)
    // Enough rows that growing them moves the bytes after them.
    for key in 1...200 { try builder.append(key: ObjectKey(key), version: 1, values: values) }
    let inline: [StoreValue] = [.data(withUnsafeBytes(of: id.uuid) { Data($0) }), .int64(5), .null, .string("text")]
    try builder.append(key: 201, version: 1, values: inline)
    let batch = builder.seal()
    for index in 0..<200 { #expect(batch[index].values == values) }
    #expect(batch[200].values == inline && !batch.pointer(200).isExternal(0) && !batch.pointer(200).isExternal(2))
    #expect(batch.pointer(0).externalID(0) == id && batch.pointer(0).externalID(3) == nil)
    // The bytes of a name aren't the name.
    #expect(batch.pointer(0).differs(from: batch.pointer(200), 0, .bytes))
    #expect(!batch.pointer(0).differs(from: batch.pointer(1), 0, .bytes))
    #expect(!batch.pointer(0).hasSameValues(as: batch.pointer(200), in: [0, 1], layout.kinds))
    #expect(batch.pointer(0).hasSameValues(as: batch.pointer(200), in: [1, 3], layout.kinds))
    let copies = RowBatchBuilder(layout: layout, idPrefix: nil)
    for index in 0..<batch.count { copies.append(batch.pointer(index)) }
    let copied = copies.seal()
    #expect((0..<batch.count).allSatisfy { copied[$0].values == batch[$0].values })
    let coded = try JSONDecoder().decode(CodedRows.self, from: JSONEncoder().encode(CodedRows(batch))).batch()
    #expect((0..<batch.count).allSatisfy { coded[$0].values == batch[$0].values })
  }
}
