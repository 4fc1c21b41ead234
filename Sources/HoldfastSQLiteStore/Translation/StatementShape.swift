import HoldfastStore

/// The key of a cached statement. Statements with equal shapes differ only in their constants.
///
/// It contains everything that the SQL depends on, so equal shapes mean equal statements, without relying on a hash.
struct StatementShape: Equatable, Sendable {
  /// The purpose of the statement, and the rest of a short shape. A short shape needs no array.
  private let head: UInt64
  private(set) var bytes: [UInt8] = []

  /// The purpose of a statement. Each purpose has its own encoding of shapes.
  enum Family: UInt8 {
    case text, fetch, rowByKey, rowsByRange, targets, targetsByRange, targetRows, insert, update, familyByKey, familyByRange, lookUp
  }

  init(_ family: Family) {
    head = UInt64(family.rawValue)
    bytes.reserveCapacity(96)
  }

  /// The shape of a statement that depends only on an entity or on one of its relationships.
  init(_ family: Family, entity: EntityIndex, relationship: RelationshipIndex = 0) {
    head =
      UInt64(family.rawValue) | UInt64(UInt32(truncatingIfNeeded: entity.rawValue)) << 8
      | UInt64(truncatingIfNeeded: relationship.rawValue) << 40
  }

  /// The shape of a statement that depends only on an entity and one of its slots.
  init(_ family: Family, entity: EntityIndex, slot: SlotIndex) {
    self.init(family, entity: entity, relationship: RelationshipIndex(slot.rawValue))
  }

  /// The shape of a statement identified by its text.
  init(sql: StaticString) {
    self.init(.text)
    sql.withUTF8Buffer { bytes += $0 }
  }

  /// A hash that distinguishes most shapes (FNV-1a); equality decides.
  var quickHash: UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ head
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash
  }

  mutating func append(_ byte: UInt8) { bytes.append(byte) }

  mutating func append(_ number: Int) {
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: number)) { bytes += $0 }
  }

  mutating func append(_ text: String) {
    append(text.utf8.count)
    bytes += text.utf8
  }
}
