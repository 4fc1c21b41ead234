import HoldfastFiles
import HoldfastStore

/// The files that SQLite keeps beside a database, checked before SQLite uses them.
///
/// They are as untrusted as the database: any user who can create a file in the folder can create them. SQLite writes to them in place,
/// rolls the database back to the contents of a journal, and deletes the super-journal that a journal names.
struct CompanionFiles {
  /// The suffixes of the database's name.
  static let suffixes = ["-journal", "-wal", "-shm"]

  /// The suffix of the name of such a file; nil for other names.
  ///
  /// Compares bytes, because the last character of the database's name can include the beginning of the suffix.
  static func suffix(of name: String) -> String? {
    suffixes.first { name.utf8.reversed().starts(with: $0.utf8.reversed()) }
  }

  /// The paths of a database's files.
  static func paths(of database: String) -> [String] { suffixes.map { database + $0 } }

  /// Removes what a former database left at a path where no file is now. SQLite would apply its log or journal to the next database there.
  ///
  /// Does nothing if another process has created a file meanwhile.
  static func removeLeft(at path: String, _ operation: String) throws(StoreError) {
    // Found before the look at the file: those of a database that is created after it aren't among them.
    let left = paths(of: path).filter { OperatingSystem.node(of: $0) != nil }
    if left.isEmpty || OperatingSystem.node(of: path) != nil { return }
    try OperatingSystem.remove(left, operation)
  }

  /// The name under which SQLite opens the database.
  let databaseName: String

  /// Throws if another user may have created one of the files, or if SQLite would write to another file through one of them.
  ///
  /// - Parameters:
  ///   - path: The database's path, for messages.
  ///   - owner: The owner of the database.
  func check(path: String, owner: UInt32) throws(StoreError) {
    for suffix in Self.suffixes {
      guard let problem = problem(suffix, owner: owner) else { continue }
      throw StoreError(.notPermitted, operation: SQLiteFile.opening, path: path, reason: problem)
    }
  }

  /// Throws if SQLite would delete a file named in the journal after rolling the database back.
  func checkJournal(path: String) throws(StoreError) {
    guard hasSuperJournal else { return }
    throw StoreError(
      .failed, operation: SQLiteFile.opening, path: path,
      reason: "A transaction over several databases was interrupted. Its journal (-journal) names another file, which SQLite would "
        + "delete. Holdfast doesn't make such transactions. If you know which program made the journal, open the file with it; "
        + "otherwise restore the store from a backup.")
  }

  /// Why one of the files can't be used; nil if it can be used or doesn't exist.
  func problem(_ suffix: String, owner: UInt32?) -> String? {
    guard let status = try? OperatingSystem.status(of: databaseName + suffix) else { return nil }
    return FileTrust.problem(
      ResolvedFilePath(splitting: databaseName + suffix).name, isExpectedKind: status.kind == .regular, owner: status.owner,
      linkCount: status.linkCount, storeOwner: owner)
  }

  /// Whether the journal names a super-journal. It then ends with the magic number of journals (SQLite, *Database File Format*, 3.2).
  ///
  /// The header of a journal, which begins with the same number, has 28 bytes.
  private var hasSuperJournal: Bool {
    OperatingSystem.lastBytes(of: databaseName + "-journal", longerThan: 28) == [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
  }
}
