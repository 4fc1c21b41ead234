import Foundation
import HoldfastAtomicStore
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastBinaryStore

/// A section patched from its previous version has the same bytes as one encoded from all its rows.
@Suite struct RowSectionPatcherTests {
  private let model: ManagedObjectModel
  private let entity: ManagedObjectModel.Entity
  private let prefix: ManagedObjectID

  init() throws {
    model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note",
        attributes: AttributeType.storedCases.filter { $0 != .transformable }.map {
          AttributeDescription("a\($0.rawValue)", $0, isOptional: true, allowsExternalBinaryDataStorage: $0 == .binaryData)
        }, relationships: [.toOne("next", to: "Note", inverse: nil)])
    ])
    entity = try #require(model.entity(named: "Note"))
    prefix = StoreIdentity.intern(storeUUID: "PAGE-PATCHER-TESTS", model: model).prefix(for: entity)
  }

  // MARK: Values

  /// The distribution of a column's values.
  private enum Likeness: CaseIterable {
    case missing, seldom, mostly, always, alike, far, whole
  }

  private static func value(_ column: ColumnType, _ likeness: Likeness, _ prefix: ManagedObjectID, _ random: inout SeededGenerator)
    -> StoreValue
  {
    switch likeness {
    case .missing: return .null
    case .seldom where Int.random(in: 0..<8, using: &random) > 0: return .null
    case .mostly where Int.random(in: 0..<8, using: &random) == 0: return .null
    default: break
    }
    let number: Int64 =
      switch likeness {
      case .alike: 7
      case .far: Int64.random(in: .min ... .max, using: &random)
      default: Int64.random(in: 0...[1, 200, 60_000, 1 << 30][Int.random(in: 0..<4, using: &random)], using: &random)
      }
    let real = likeness == .whole ? Double(number % 1_000) : Double(number) / 3
    guard case .attribute(let type) = column else { return .objectID(prefix.withKey(ObjectKey(max(1, abs(number % 1_000_000))))) }
    switch type {
    case .integer16: return .int16(Int16(truncatingIfNeeded: number))
    case .integer32: return .int32(Int32(truncatingIfNeeded: number))
    case .integer64: return .int64(number)
    case .boolean: return .bool(number & 1 == 1)
    case .double: return .double(real)
    case .float: return .float(Float(real))
    case .date: return .date(real)
    case .decimal: return .decimal(Decimal(number))
    case .string: return .string(String(repeating: "t", count: Int(abs(number % 40))))
    case .uri: return .uri("https://example.org/\(number)")
    case .uuid: return .uuid(UUID())
    case .objectID: return .objectID(prefix.withKey(ObjectKey(max(1, abs(number % 1_000_000)))))
    case .binaryData where Int.random(in: 0..<60, using: &random) == 0: return .externalData(UUID())
    default: return .data(Data(repeating: UInt8(truncatingIfNeeded: number), count: Int(abs(number % 50))))
    }
  }

  private func batch(_ rows: [(key: ObjectKey, version: RowVersion, values: [StoreValue])]) throws -> RowBatch {
    let builder = RowBatchBuilder(layout: entity.layout, idPrefix: prefix)
    for row in rows { try builder.append(key: row.key, version: row.version, values: row.values) }
    return builder.seal()
  }

  private func byteCount(_ rows: [RowPointer]) -> Int {
    rows.reduce(0) { sum, row in
      sum + entity.slotIndexes.reduce(0) { $0 + (entity.layout.kinds[$1] == .bytes ? row.bytes($1).count : 0) }
    }
  }

  private func encoded(_ rows: [RowPointer]) -> [UInt8] {
    let encoder = RowSectionEncoder(entity, RowSectionBuffer())
    return withExtendedLifetime(encoder) { Array(encoder.encode(rows, bytesCount: byteCount(rows))) }
  }

  // MARK: Tests

  @Test func aPatchedSectionHasTheBytesOfAnEncodedOne() throws {
    var random = SeededGenerator("Patched sections")
    let patcher = RowSectionPatcher(entity, RowSectionBuffer())
    var patchedCount = 0
    for round in 0..<400 {
      let likenesses = entity.layout.columns.map { _ in Likeness.allCases.randomElement(using: &random) ?? .always }
      func values(_ other: Bool) -> [StoreValue] {
        zip(entity.layout.columns, likenesses).map { column, likeness in
          // Sometimes a value of another distribution, so that the encoding changes.
          let isOther = other && Int.random(in: 0..<40, using: &random) == 0
          return Self.value(column, isOther ? Likeness.allCases.randomElement(using: &random) ?? likeness : likeness, prefix, &random)
        }
      }
      var rows: [(key: ObjectKey, version: RowVersion, values: [StoreValue])] = []
      var key = Int64.random(in: 1...1 << 40, using: &random)
      for _ in 0..<Int.random(in: 1...60, using: &random) {
        rows.append((ObjectKey(key), RowVersion(.random(in: 1...3, using: &random)), values(false)))
        key += Int64.random(in: 1...[1, 5, 1 << 20][Int.random(in: 0..<3, using: &random)], using: &random)
      }
      let before = try batch(rows)
      let old = (0..<before.count).map { before.pointer($0) }
      var changed: [(key: ObjectKey, version: RowVersion, values: [StoreValue])] = [], places: [Int: Int?] = [:]
      for place in rows.indices where Int.random(in: 0..<[2, 6, 30][round % 3], using: &random) == 0 {
        places[place] = .some(nil)
        if Int.random(in: 0..<3, using: &random) == 0 { continue }
        places[place] = changed.count
        var new = rows[place]
        new.version = new.version.next
        switch Int.random(in: 0..<3, using: &random) {
        case 0: break
        case 1: new.values = values(true)
        default:
          let slot = Int.random(in: 0..<new.values.count, using: &random)
          new.values[slot] = values(true)[slot]
        }
        changed.append(new)
      }
      let after = try batch(changed)
      var changes: [RowChange] = [], new: [RowPointer] = []
      for place in old.indices {
        guard let change = places[place] else {
          new.append(old[place])
          continue
        }
        let row = change.map { after.pointer($0) }
        changes.append(RowChange(key: old[place].key.rawValue, old: old[place], new: row))
        if let row { new.append(row) }
      }
      let patched = encoded(old).withUnsafeBytes { section in
        patcher.patch(section, count: old.count, first: old[0].key.rawValue, changes[...]).map { (Array($0.bytes), $0.count, $0.keys) }
      }
      guard let (bytes, count, keys) = patched else { continue }
      patchedCount += 1
      #expect(bytes == encoded(new) && count == new.count && keys == new[0].key.rawValue...new[count - 1].key.rawValue, "round \(round)")
    }
    #expect(patchedCount > 150, "\(patchedCount) of 400")
  }

  @Test func aSectionOfWideKeysOrWithValuesInFilesIsNotPatched() throws {
    let values = entity.layout.columns.map { _ in StoreValue.null }
    func patch(_ rows: RowBatch, _ new: RowPointer?) -> Int? {
      let old = (0..<rows.count).map { rows.pointer($0) }, patcher = RowSectionPatcher(entity, RowSectionBuffer())
      return encoded(old).withUnsafeBytes {
        patcher.patch($0, count: old.count, first: old[0].key.rawValue, [RowChange(key: old[1].key.rawValue, old: old[1], new: new)][...])?
          .count
      }
    }
    let rows = try batch([10, 20, 30].map { ($0, 1, values) }), wide = try batch([10, 20, ObjectKey(1 << 33)].map { ($0, 1, values) })
    #expect(patch(rows, nil) == 2 && patch(wide, nil) == nil)
    let slot = try #require(entity.layout.columns.firstIndex(of: .attribute(.binaryData)))
    var inFiles = values
    inFiles[slot] = .externalData(UUID())
    let new = try batch([(20, 2, inFiles)])
    #expect(patch(rows, new.pointer(0)) == nil)
    #expect(patch(try batch([(10, 1, inFiles), (20, 1, values), (30, 1, values)]), nil) == nil)
  }

  @Test func aSectionIsNotPatchedForRowsThatItHasNotOrWhenNoneIsLeft() throws {
    let values = entity.layout.columns.map { _ in StoreValue.null }
    let rows = try batch([10, 20, 30].map { ($0, 1, values) }), old = (0..<3).map { rows.pointer($0) }
    let section = encoded(old), patcher = RowSectionPatcher(entity, RowSectionBuffer())
    func patch(_ changes: [RowChange], _ bytes: ArraySlice<UInt8>, count: Int = 3) -> Int? {
      bytes.withUnsafeBytes { patcher.patch($0, count: count, first: 10, changes[...])?.count }
    }
    let gone = old.map { RowChange(key: $0.key.rawValue, old: $0, new: nil) }
    #expect(patch(Array(gone.prefix(2)), section[...]) == 1)
    #expect(patch(gone, section[...]) == nil)
    #expect(patch([RowChange(key: 15, old: old[0], new: nil)], section[...]) == nil)
    // Bytes that can't be a section with this number of rows are refused.
    for count in 0..<section.count { #expect(patch([gone[0]], section[..<count]) == nil) }
    #expect(patch([gone[0]], section[...], count: 4) == nil)
    #expect(patch([gone[0]], (section + [0])[...]) == nil)
  }
}
