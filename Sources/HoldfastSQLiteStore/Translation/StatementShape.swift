/// What makes two statements the same but for their constants: the key under which a prepared statement is kept.
///
/// It spells out all that the SQL depends on, so equal shapes mean equal statements; nothing is left to a hash.
struct StatementShape: Equatable, Sendable {
  /// The family, and for statements that depend on little more, all of it: no array to allocate.
  private let head: UInt64
  private(set) var bytes: [UInt8] = []

  /// What a statement is for. Each family spells its shape differently.
  enum Family: UInt8 {
    case text, fetch, rowByKey, rowsByRange, targets, targetsByRange, targetRows, insert, update, familyByKey, familyByRange
  }

  init(_ family: Family) {
    head = UInt64(family.rawValue)
    bytes.reserveCapacity(96)
  }

  /// The shape of a statement that depends on an entity, or on one of its relationships, alone.
  init(_ family: Family, entity: Int, relationship: Int = 0) {
    head = UInt64(family.rawValue) | UInt64(UInt32(truncatingIfNeeded: entity)) << 8 | UInt64(truncatingIfNeeded: relationship) << 40
  }

  /// The shape of a statement by its own text.
  init(sql: StaticString) {
    self.init(.text)
    sql.withUTF8Buffer { bytes += $0 }
  }

  /// Tells most shapes apart (FNV-1a); equality decides.
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
