import HoldfastStore

/// A file that is opened for reading only: nothing in its folder is made, changed or removed.
///
/// SQLite needs files of its own beside a file with a write-ahead log, even to read it. Where another process has them open, they are read.
/// Where they are missing, SQLite can read the file as one that doesn't change (`immutable`): without locks, and without looking for a
/// log. That is right as long as
/// - no log with pages is beside the file, and no process has the file open, which would keep a log and its index there;
/// - no rollback journal is beside it;
/// - the file stays as it is. Another process may write to it, so each request looks before and after it has read.
struct ReadOnlyPlace {
  private let file: SQLiteFile
  /// The status of the file when it was opened.
  private let status: FileStatus

  init(_ file: SQLiteFile) throws(StoreError) {
    do { status = try OperatingSystem.status(of: file.path, followsLinks: false) } catch {
      throw SQLiteFile.failure(error, path: file.path)
    }
    self.file = file
  }

  /// The size of a file beside the database; nil when there is none.
  private func size(_ suffix: String) -> Int64? {
    (try? OperatingSystem.status(of: file.name.text + suffix, followsLinks: false))?.size
  }

  /// Whether SQLite may read a file with a log as one that doesn't change: it is complete without other files, and no process has it open.
  var allowsImmutable: Bool {
    let log = size("-wal")
    return (log == nil || (log == 0 && size("-shm") == nil)) && (size("-journal") ?? 0) == 0
  }

  /// Whether nothing has written to the file since it was opened, or is about to.
  var isUnchanged: Bool {
    guard let now = try? OperatingSystem.status(of: file.path, followsLinks: false) else { return true }
    return now.identity != status.identity || (now.size == status.size && now.modified == status.modified && allowsImmutable)
  }

  /// The name by which SQLite opens the file without making an index for its log.
  var name: String { uri + "?readonly_shm=1" }

  /// The name by which SQLite opens the file as one that doesn't change.
  var immutableName: String { uri + "?immutable=1" }

  /// The name as a URI, in which only letters and digits mean themselves.
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

  /// What a failure to read the file means, if the reason is a log or journal that has to be read or rolled back first.
  func explained(_ error: StoreError) -> StoreError {
    guard let failure = error.cause as? SQLiteFailure,
      [SQLiteResultCode.cannotOpen, SQLiteResultCode.readOnly].contains(failure.primaryCode)
    else { return error }
    let reason: String
    if (size("-wal") ?? 0) > 0 {
      reason =
        "Its last saves are in its log (-wal), and the log's index (-shm) is missing or can't be read. Reading would have to make it."
    } else if (size("-journal") ?? 0) > 0 {
      reason = "A save was interrupted, and its journal (-journal) has to be rolled back first, which changes the file."
    } else {
      return error
    }
    return StoreError(
      .notPermitted, operation: error.operation, path: error.path,
      reason: reason + " Open the store for writing once and close it; or copy the file, together with the files beside it, to a folder "
        + "that can be written, and do that with the copy.", cause: error)
  }

  /// The error for a request during which another process has written.
  func changed(_ operation: String) -> StoreError {
    StoreError(
      .locked, operation: operation, path: file.path,
      reason: "Another process wrote to the file while it was read without locks. Try again.",
      isRetryable: true)
  }
}
