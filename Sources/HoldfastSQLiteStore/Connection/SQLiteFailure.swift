import CHoldfastSQLite
import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The details of a failed SQLite call that are safe to report outside of this module.
///
/// It is the cause of every ``StoreError`` that comes from SQLite. It never contains bound values. The SQL text has placeholders, and the
/// message is omitted if another program's trigger may have put values into it.
struct SQLiteFailure: LocalizedError, CustomStringConvertible {
  /// The extended result code.
  let resultCode: Int32
  /// The operating system's error number; nil if SQLite didn't make a system call.
  let systemError: Int32?
  /// SQLite's message.
  let message: String?
  /// The statement, truncated if very long; nil if no statement was involved.
  let sql: String?

  init(resultCode: Int32, systemError: Int32? = nil, message: String? = nil, sql: String? = nil) {
    self.resultCode = resultCode
    self.systemError = systemError
    self.message = message
    self.sql = sql
  }

  /// Reads the connection's details of the call that just returned `resultCode`.
  init(resultCode: Int32, connection: OpaquePointer?, sql: String?) {
    // The connection's own code is more precise if it belongs to the same call.
    let extended = connection.map { sqlite3_extended_errcode($0) } ?? resultCode
    let belongs = extended & 0xff == resultCode & 0xff
    let code = belongs ? extended : resultCode
    self.resultCode = code
    // SQLite updates the system's number only for these two codes, and not if a commit fails. The number is then left over from an earlier
    // call. An earlier failure with the second code would have ended the connection, so the number isn't misleading.
    let asksSystem = code & 0xff == SQLiteResultCode.cannotOpen || code & 0xff == SQLiteResultCode.inputOutput
    let number = asksSystem && belongs ? connection.map { sqlite3_system_errno($0) } ?? 0 : 0
    systemError = number == 0 ? nil : number
    if code == SQLiteResultCode.constraintTrigger {
      message = nil
    } else if belongs, let connection, let text = sqlite3_errmsg(connection) {
      message = String(cString: text)
    } else {
      message = String(cString: sqlite3_errstr(code))
    }
    self.sql = sql.map { Self.shortened($0) }
  }

  var primaryCode: Int32 { resultCode & 0xff }

  /// Whether the connection with this failure must not be used again.
  ///
  /// After a failed sync, the kernel may have dropped the pages that it couldn't write, and may report success next time. After a failed
  /// read or a sign of damage, the cached pages aren't reliable. A file that was opened without permission to write, or was moved since,
  /// stays read-only for the connection. A full disk doesn't break the connection: SQLite reports a full disk during a write with a separate
  /// result code.
  var breaksConnection: Bool {
    switch primaryCode {
    case SQLiteResultCode.inputOutput, SQLiteResultCode.corrupt, SQLiteResultCode.notADatabase, SQLiteResultCode.readOnly: true
    default: false
    }
  }

  /// The store error for this failure.
  func storeError(operation: String, path: String?, isReadOnly: Bool) -> StoreError {
    let code = code == .notPermitted && primaryCode == SQLiteResultCode.readOnly && isReadOnly ? .readOnly : code
    return StoreError(code, operation: operation, path: path, reason: reason(code), cause: self, isRetryable: isRetryable)
  }

  private var code: StoreError.Code {
    switch primaryCode {
    case SQLiteResultCode.notADatabase: .notAStore
    case SQLiteResultCode.corrupt: .damaged
    case SQLiteResultCode.full: .diskFull
    case SQLiteResultCode.inputOutput:
      switch systemError {
      case ErrorNumber.noSpace, ErrorNumber.quotaExceeded, ErrorNumber.tooLarge: .diskFull
      default: resultCode == SQLiteResultCode.inputOutputNoMemory ? .general : .inputOutput
      }
    case SQLiteResultCode.noLargeFiles: .inputOutput
    case SQLiteResultCode.busy, SQLiteResultCode.locked, SQLiteResultCode.protocol, SQLiteResultCode.schemaChanged: .locked
    case SQLiteResultCode.readOnly: resultCode == SQLiteResultCode.readOnlyMoved ? .storeReplaced : .notPermitted
    case SQLiteResultCode.permission, SQLiteResultCode.unauthorized: .notPermitted
    case SQLiteResultCode.cannotOpen: codeWhenItCannotOpen
    case SQLiteResultCode.tooBig: .unstorableValue
    case SQLiteResultCode.mismatch: .wrongType
    case SQLiteResultCode.interrupted: .cancelled
    case SQLiteResultCode.error where lacksPart: .damaged
    case SQLiteResultCode.constraint: resultCode == SQLiteResultCode.constraintUnique ? .constraintConflict : .general
    default: .general
    }
  }

  /// Whether the file lacks a table or column. All SQL is based on the layout recorded in the file, so a missing name is an error in the
  /// file. SQLite has no result code for it, only a message.
  private var lacksPart: Bool {
    guard let message else { return false }
    return message.hasPrefix("no such table") || message.hasPrefix("no such column") || message.contains(" has no column named ")
  }

  private var codeWhenItCannotOpen: StoreError.Code {
    if resultCode == SQLiteResultCode.cannotOpenLink { return .notPermitted }
    if resultCode == SQLiteResultCode.cannotOpenDirectory { return .notAStore }
    switch systemError {
    case ErrorNumber.notFound, ErrorNumber.notDirectory: return .notFound
    case ErrorNumber.isDirectory: return .notAStore
    case ErrorNumber.accessDenied, ErrorNumber.notPermitted, ErrorNumber.readOnlyFileSystem, ErrorNumber.tooManyLinks: return .notPermitted
    case ErrorNumber.noSpace, ErrorNumber.quotaExceeded: return .diskFull
    default: return .inputOutput
    }
  }

  private var isRetryable: Bool {
    switch systemError {
    case ErrorNumber.tooManyOpenFiles, ErrorNumber.tooManyOpenFilesInSystem: true
    default: code == .locked || code == .diskFull
    }
  }

  private func reason(_ code: StoreError.Code) -> String {
    switch code {
    case .notAStore: "The file isn't a SQLite database. Check the path."
    case .damaged: "The file is damaged. Restore it from a backup, or recover the readable part with repairPersistentStore."
    case .diskFull: "The disk is full, or the file has reached its size limit. Nothing was saved. Free some space and try again."
    case .inputOutput: "The operating system couldn't read or write the file."
    case .locked where resultCode == SQLiteResultCode.busySnapshot:
      "Another connection saved after this transaction began to read. Begin the transaction again."
    case .locked: "Another process or connection holds a lock on the file. Try again later."
    case .readOnly: "The store was opened read-only."
    case .notPermitted where resultCode == SQLiteResultCode.cannotOpenLink: "The path contains a symbolic link. Use the resolved path."
    case .notPermitted: "This user doesn't have permission to read or write the file or its folder."
    case .notFound: "The file or its folder doesn't exist."
    case .unstorableValue: "A text, a data value or the statement exceeds the store's size limit."
    case .wrongType: "A value has a type that its column can't store."
    case .cancelled: "The request was cancelled."
    case .storeReplaced:
      "Another program removed or replaced the file. Put it back, or close the store and open it again to use the new file."
    case .constraintConflict: "Two rows would have the same values of a uniqueness constraint."
    default:
      primaryCode == SQLiteResultCode.outOfMemory || resultCode == SQLiteResultCode.inputOutputNoMemory
        ? "SQLite couldn't allocate memory." : "SQLite refused the request."
    }
  }

  var errorDescription: String? { description }

  var description: String {
    var text = "SQLite result \(resultCode)"
    if let message { text += ", \(message)" }
    if let systemError { text += ", \(ErrorNumber.describe(systemError))" }
    if let sql { text += ", in: \(sql)" }
    // The message can quote names in the file.
    return StoreError.printable(text)
  }

  private static func shortened(_ sql: String) -> String {
    let limit = 1000
    return sql.utf8.count <= limit ? sql : String(sql.prefix(limit)) + " …"
  }
}

extension StoreError {
  /// Whether the log, or the file, couldn't be synchronized. The system may then have marked pages as clean that never reached the disk, so
  /// the next synchronization must not be trusted before they are written again.
  var isFailedSynchronization: Bool { (cause as? SQLiteFailure)?.resultCode == SQLiteResultCode.inputOutputSync }
}
