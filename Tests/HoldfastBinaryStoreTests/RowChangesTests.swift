import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import HoldfastBinaryStore

/// Which sections are kept, depending on the changes in their rows.
@Suite struct RowChangesTests {
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [EntityDescription("Note", attributes: [AttributeDescription("text", .string)])])
    } catch { fatalError("\(error)") }
  }()

  private static func batch(_ keys: some Sequence<ObjectKey>, _ identity: StoreIdentity) throws -> RowBatch {
    let builder = RowBatchBuilder(entity: model.entities[0], identity: identity)
    for key in keys {
      try builder.append(key: key, version: 1, values: [.string("Note \(key) " + String(repeating: ".", count: 150))])
    }
    return builder.seal()
  }

  private static func part(_ keys: ClosedRange<ObjectKey>, count: Int, byteCount: Int = 1 << 14) -> FilePart {
    FilePart(
      kind: 3, subject: 0, offset: 0, byteCount: byteCount, digest: 0, count: count, first: keys.lowerBound.rawValue,
      last: keys.upperBound.rawValue)
  }

  @Test func aSectionWithFewChangesAndNoNewRowIsKept() throws {
    let identity = StoreIdentity.intern(storeUUID: "ROW-CHANGES-TESTS", model: Self.model)
    let rows = try Self.batch(1...200, identity)
    func changes(_ changed: [Int], new: [Int] = []) -> RowChanges {
      var changes = RowChanges()
      // Unsorted, as from a table that contains keys far beyond all others.
      for index in new.reversed() { changes.append(nil, rows.pointer(index)) }
      for index in changed.reversed() { changes.append(rows.pointer(index), nil) }
      changes.sort()
      return changes
    }
    // The key of the row at index 0 is 1.
    let part = Self.part(11...50, count: 40)
    #expect(changes([]).areFew(in: part) && changes([0, 9, 50, 100]).areFew(in: part))
    #expect(changes(Array(10..<20)).areFew(in: part) && !changes(Array(10..<21)).areFew(in: part))
    #expect(changes([], new: [0, 9, 50]).areFew(in: part))
    for new in [10, 30, 49] { #expect(!changes([], new: [new]).areFew(in: part) && !changes([12], new: [0, new, 150]).areFew(in: part)) }
    #expect(changes([10]).areFew(in: Self.part(11...50, count: 40, byteCount: 8_192)))
    #expect(!changes([10]).areFew(in: Self.part(11...50, count: 40, byteCount: 8_191)))
    #expect(changes([]).areFew(in: Self.part(11...50, count: 40, byteCount: 1)))
    #expect(changes([30, 12, 20, 60]).changes(in: part).map(\.key) == [13, 21, 31])
  }

  /// Reserved keys may be used later than the keys after them.
  @Test func aRowWithAKeyBetweenThoseOfASectionIsWritten() throws {
    let file = try BinaryTestFile()
    let store = WholeFileStore(binaryAt: file.path)
    let identity = try store.open(model: Self.model).identity
    let keys = try store.reserveKeys(entity: 0, count: 3_000)
    #expect(keys == Array(1...3_000))
    func save(_ keys: some Sequence<ObjectKey>) throws {
      var request = SaveRequest(), changes = SaveRequest.EntityChanges(entity: 0)
      changes.inserted = [try Self.batch(keys, identity)]
      request.entities = [changes]
      try store.prepare(request).commit()
    }
    let late: [ObjectKey] = [1, 700, 1_500, 1_501, 3_000]
    try save(keys.filter { !late.contains($0) })
    for key in late { try save([key]) }
    try store.close()
    try file.open(Self.model)
    let notes = try file.context(Self.model).fetch(FetchRequest<ManagedObject>(entityName: "Note"))
    #expect(notes.map(\.objectID.key).sorted() == keys)
    for note in notes {
      guard case .string(let text) = try note.value(forKey: "text").storeValue else { continue }
      #expect(text.hasPrefix("Note \(note.objectID.key) "))
    }
  }
}
