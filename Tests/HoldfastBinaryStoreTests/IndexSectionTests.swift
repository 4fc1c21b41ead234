import HoldfastAtomicStore
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastBinaryStore

/// An index section from which entries are removed and to which others are added.
@Suite struct IndexSectionTests {
  private static func part(_ section: IndexSections.Section) -> FilePart {
    FilePart(kind: 0, subject: 0, offset: 0, byteCount: section.bytes.count, digest: 0, count: section.count, first: 0, last: 0)
  }

  private static func found(_ section: IndexSections.Section) -> [[Int64]] {
    let size = section.bytes.count / max(section.count, 1)
    return section.bytes.withUnsafeBytes { bytes in
      (0..<section.count).map { index in
        let digest = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: size * index, as: UInt32.self))
        let key =
          size == 12
          ? Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: size * index + 4, as: Int64.self))
          : Int64(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: size * index + 4, as: UInt32.self)))
        return [Int64(digest), key]
      }
    }
  }

  @Test func entriesGoAndComeInSectionsOfBothWidths() throws {
    var random = SeededGenerator("Index sections")
    for round in 0..<300 {
      func entries(_ count: Int, from first: Int64) -> [IndexSections.Entry] {
        (0..<count).map { index in
          let isFar = round % 3 == 2 && Int.random(in: 0..<10, using: &random) == 0
          // Few digests, so that many are equal.
          return IndexSections.Entry(
            digest: UInt64.random(in: 0...(round % 2 == 0 ? 3 : .max), using: &random), key: first + Int64(index) + (isFar ? 1 << 40 : 0))
        }
      }
      let all = entries(Int.random(in: 1...200, using: &random), from: 1)
      let gone = all.filter { _ in Int.random(in: 0..<4, using: &random) == 0 }
      let new = entries(Int.random(in: 0...20, using: &random), from: 1_000)
      let before = IndexSections.Section(all)
      var section = try #require(before.bytes.withUnsafeBytes { IndexSections.Section($0, Self.part(before)) })
      let isDone = section.change(removing: gone, adding: new)
      #expect(isDone, "round \(round)")
      let goneKeys = Set(gone.map(\.key)), expected = all.filter { !goneKeys.contains($0.key) } + new
      #expect(section.count == expected.count, "round \(round)")
      #expect(Self.found(section) == expected.map { [Int64(UInt32(truncatingIfNeeded: $0.digest)), $0.key] }, "round \(round)")
      #expect(section.bytes == IndexSections.Section(expected).bytes, "round \(round)")
    }
  }

  @Test func anEntryThatIsNotThereIsNotTakenOut() throws {
    for key in [3, 1 << 40] as [Int64] {
      func change(_ digest: UInt64, _ gone: Int64) -> (isDone: Bool, byteCount: Int) {
        var section = IndexSections.Section([1, 2, key].map { IndexSections.Entry(digest: 7, key: $0) })
        let isDone = section.change(removing: [IndexSections.Entry(digest: digest, key: gone)], adding: [])
        return (isDone, section.bytes.count)
      }
      #expect(!change(7, 4).isDone && !change(8, key).isDone)
      #expect(change(7, key) == (true, 16))
    }
  }

  /// RG4: the maximum is the same for writing and for reading.
  @Test func RG4_aSectionHasAMillionEntriesAtMostWhenItIsWrittenAndWhenItIsRead() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Note", attributes: [AttributeDescription("text", .string)], uniquenessConstraints: [["text"]])
    ])
    let schema = TableSchema(model: model, identity: StoreIdentity.intern(storeUUID: "INDEX-SECTION-TESTS", model: model))
    let most = 1_048_576
    for count in [most - 1, most, most + 1] {
      let entries = (1...count).map { IndexSections.Entry(digest: 7, key: Int64($0)) }
      var sections: [(count: Int, isRead: Bool, refusal: StoreError?)] = []
      IndexSections.write(entries) { bytes, count, range in
        let entry = SectionEntry(
          kind: .unique, subject: 0, offset: 0, byteCount: bytes.count, digest: 0, count: count, first: range.lowerBound,
          last: range.upperBound)
        let isRead = (try? IndexSections.check(bytes, entry)) != nil
        var refusal: StoreError?
        do throws(StoreError) { try IndexSections.checkCount(count, schema.uniqueConstraints[0]) } catch { refusal = error }
        sections.append((count, isRead, refusal))
      }
      // Entries with equal digests can't be divided.
      let largest = try #require(sections.max { $0.count < $1.count })
      #expect(largest.count == count && largest.isRead == (count <= most), "\(count)")
      #expect(largest.refusal?.code == (count <= most ? nil : .unstorableValue), "\(count)")
      if let refusal = largest.refusal { #expect(refusal.reason.contains("on text") && refusal.reason.contains("Choose other values")) }
    }
  }
}
