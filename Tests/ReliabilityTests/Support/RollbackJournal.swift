import TestSupport

/// Rollback journals made by an attacker (SQLite, *Database File Format*, 3).
enum RollbackJournal {
  private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

  /// A hot journal without pages, with the database's previous length and the name of a super-journal.
  static func bytes(for database: String, pages: UInt32? = nil, superJournal: String? = nil) throws -> [UInt8] {
    let size = try TemporaryFolder.read(database).count
    var bytes = magic
    for number in [0, 0, pages ?? UInt32(size / 4096), 512, 4096] as [UInt32] { bytes += bigEndian(number) }
    bytes += [UInt8](repeating: 0, count: 512 - bytes.count)
    guard let superJournal else { return bytes }
    let name = Array(superJournal.utf8)
    bytes += bigEndian(0x4000_0000 / 4096 + 1) + name + bigEndian(UInt32(name.count))
    return bytes + bigEndian(name.reduce(0) { $0 + UInt32($1) }) + magic
  }

  private static func bigEndian(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
}
