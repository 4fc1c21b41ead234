import CHoldfastSQLite
import HoldfastStore
import Logging

/// Logs the statements of a connection with their durations.
enum StatementLog {
  /// The longest logged text, in bytes. A statement for a thousand keys is much longer than anyone reads.
  private static let longestText = 4096

  /// Makes a connection log its statements from now on.
  static func install(_ handle: OpaquePointer, _ logging: SQLiteStoreOptions.StatementLogging) {
    let mask = UInt32(SQLITE_TRACE_PROFILE)
    switch logging {
    case .none: break
    case .statements:
      sqlite3_trace_v2(
        handle, mask,
        { _, _, statement, nanoseconds in
          if let statement = OpaquePointer(statement), let nanoseconds = nanoseconds?.load(as: Int64.self) {
            StatementLog.log(StatementLog.text(statement), nanoseconds)
          }
          return 0
        }, nil)
    case .values:
      sqlite3_trace_v2(
        handle, mask,
        { _, _, statement, nanoseconds in
          if let statement = OpaquePointer(statement), let nanoseconds = nanoseconds?.load(as: Int64.self) {
            StatementLog.log(StatementLog.textWithValues(statement), nanoseconds)
          }
          return 0
        }, nil)
    }
  }

  private static func text(_ statement: OpaquePointer) -> String { sqlite3_sql(statement).map { String(cString: $0) } ?? "" }

  /// The text with values, or without them if SQLite has too little memory for it.
  private static func textWithValues(_ statement: OpaquePointer) -> String {
    guard let expanded = sqlite3_expanded_sql(statement) else { return text(statement) }
    defer { sqlite3_free(expanded) }
    return String(cString: expanded)
  }

  private static func log(_ text: @autoclosure () -> String, _ nanoseconds: Int64) {
    // Creates a logger for each message, because the application may configure logging after the first one.
    let logger = Logger(label: SQLiteLibrary.logLabel)
    if logger.logLevel > .debug { return }
    logger.debug("\(StoreError.printable(shortened(text())))", metadata: ["duration": "\(Double(nanoseconds) / 1e9)"])
  }

  private static func shortened(_ text: String) -> String {
    text.utf8.count > longestText ? String(decoding: text.utf8.prefix(longestText), as: UTF8.self) + "…" : text
  }
}
