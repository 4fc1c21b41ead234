import HoldfastFiles
import HoldfastStore

/// A file that is opened read-only: nothing in its folder is created, changed or removed.
///
/// SQLite needs additional files to read a file with a write-ahead log. If another process has created them, SQLite uses them. Otherwise it
/// reads the file without locks:
/// - without a log, as a file that doesn't change (`immutable`);
/// - with a log that has no index, through ``IndexlessFile``.
///
/// Both require that no other process writes in the meantime, so each request checks the files before and after it reads.
struct ReadOnlyPlace {
  private let file: SQLiteFile
  /// The state of the file when it was opened.
  private let identity: FileIdentity
  /// The state of the log, if it had pages and no index.
  private let log: FileIdentity?

  init(_ file: SQLiteFile) throws(StoreError) {
    do { identity = try OperatingSystem.status(of: file.path).identity } catch { throw SQLiteFile.failure(error, path: file.path) }
    self.file = file
    let log = Self.identity(of: file, "-wal")
    self.log = (log?.size ?? 0) > 0 && Self.identity(of: file, "-shm") == nil ? log : nil
  }

  /// The state of a file beside the database; nil if it doesn't exist.
  private static func identity(of file: SQLiteFile, _ suffix: String) -> FileIdentity? {
    try? OperatingSystem.status(of: file.name.text + suffix).identity
  }

  /// The size of a file beside the database; nil if it doesn't exist.
  private func size(_ suffix: String) -> Int64? { Self.identity(of: file, suffix)?.size }

  /// Whether a journal has to be rolled back. A process that was killed before it wrote to the database may have left another one.
  private var hasHotJournal: Bool { OperatingSystem.isHotJournal(file.name.text + "-journal") }

  /// Whether the file has a log without an index, so that no process has the log open.
  var hasLogWithoutIndex: Bool { log != nil && !hasHotJournal }

  /// Whether SQLite may read a file with a log as one that doesn't change: it is complete by itself, and no process has it open.
  var allowsImmutable: Bool {
    let log = size("-wal")
    return (log == nil || (log == 0 && size("-shm") == nil)) && !hasHotJournal
  }

  /// Whether no process has written to the files since they were opened, or is about to.
  var isUnchanged: Bool {
    guard let now = try? OperatingSystem.status(of: file.path).identity, now.node == identity.node else { return true }
    return now.hasSameBytes(as: identity) && (log.map(isUnchanged(log:)) ?? allowsImmutable)
  }

  /// The present state of the files; nil if it can't be read.
  var mark: CommitMark? {
    guard let now = try? OperatingSystem.status(of: file.path).identity else { return nil }
    let log = Self.identity(of: file, "-wal")
    return .files(database: now, log: (log?.size ?? 0) > 0 ? log : nil)
  }

  private func isUnchanged(log: FileIdentity) -> Bool {
    guard let now = Self.identity(of: file, "-wal") else { return false }
    return now.hasSameBytes(as: log) && size("-shm") == nil && !hasHotJournal
  }

  /// The name under which SQLite opens the file without creating an index for its log.
  var name: String { uri + "?readonly_shm=1" }

  /// The name under which SQLite opens the file as one that doesn't change.
  var immutableName: String { uri + "?immutable=1" }

  /// The name as a URI, with everything but letters, digits and slashes percent-encoded.
  private var uri: String {
    var name = "file:"
    for byte in file.name.text.utf8 {
      switch byte {
      case UInt8(ascii: "/"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        name.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = Array("0123456789ABCDEF".unicodeScalars)
        name.unicodeScalars.append("%")
        name.unicodeScalars.append(digits[Int(byte >> 4)])
        name.unicodeScalars.append(digits[Int(byte & 15)])
      }
    }
    return name
  }

  /// Explains a failure to read the file if the reason is a journal that has to be rolled back first.
  func explained(_ error: StoreError) -> StoreError {
    guard let failure = error.cause as? SQLiteFailure,
      [SQLiteResultCode.cannotOpen, SQLiteResultCode.readOnly].contains(failure.primaryCode)
    else { return error }
    guard hasHotJournal else { return error }
    return StoreError(
      .notPermitted, operation: error.operation, path: error.path,
      reason: "A save was interrupted. Its journal (-journal) has to be rolled back first, which changes the file. Open the store for "
        + "writing once and close it. If the folder isn't writable, do so with a copy of the file and its journal in another folder.",
      cause: error)
  }

  /// The error for a request during which another process wrote.
  func changed(_ operation: String) -> StoreError {
    StoreError(
      .locked, operation: operation, path: file.path,
      reason: "Another process wrote to the file while it was read without locks. Try again.",
      isRetryable: true)
  }
}
