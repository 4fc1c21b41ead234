import CSQLite
import HoldfastStore
import Logging

/// The SQLite library that this process runs with.
enum SQLiteLibrary {
  /// The label of every log line of this layer.
  static let logLabel = "holdfast.sqlite"

  /// The version as SQLite numbers it: 3.40.1 is 3040001.
  static var version: Int32 { sqlite3_libversion_number() }

  /// Whether a checkpoint that runs beside a commit can lose that commit with this library (the "WAL reset" defect).
  ///
  /// Our own checkpoints are safe from it, because they run under the writer's lock (``WriterCheckpoint``). Other
  /// programs on the same file may not do that.
  static var walResetBug: Bool { hasWALResetBug(version: version) }

  /// The defect came with write-ahead logs in 3.7.0. It was repaired in 3.51.3, 3.50.7 and 3.44.6; the release
  /// lines between those never got the repair.
  static func hasWALResetBug(version: Int32) -> Bool {
    switch version {
    case ..<3_007_000: false
    case 3_044_006..<3_045_000, 3_050_007..<3_051_000, 3_051_003...: false
    default: true
    }
  }

  /// Prepares the library once per process. Every connection calls it before it opens anything.
  ///
  /// Sends SQLite's own log to swift-log. That is refused, without harm, if the application used SQLite earlier.
  static func start() throws(StoreError) {
    if let problem = startProblem {
      throw StoreError(.failed, operation: "start SQLite", reason: problem)
    }
  }

  /// Why the library cannot be used; nil when it can. Initialised once, by the first thread that asks.
  private static let startProblem: String? = {
    ProcessGeneration.watch()
    _ = holdfast_sqlite3_config_log(
      { _, code, message in
        guard let message else { return }
        SQLiteLibrary.log(code: code, message: String(cString: message))
      }, nil)
    if sqlite3_threadsafe() == 0 { return "This SQLite library was built without support for threads." }
    if version < 3_031_000 {
      return "SQLite \(String(cString: sqlite3_libversion())) is too old; at least 3.31.0 is needed."
    }
    return nil
  }()

  /// Says once per process that other programs can lose commits, if they can. Called when something is to be written:
  /// a process that only reads cannot lose anything, and the first line of a log costs as much as opening a store.
  static func warnOfWALResetBug() { _ = warning }

  private static let warning: Void = {
    guard walResetBug else { return }
    Logger(label: logLabel).info(
      "This SQLite can lose commits when another program checkpoints the same file; Holdfast's own checkpoints are safe.",
      metadata: ["version": "\(String(cString: sqlite3_libversion()))"])
  }()

  /// Passes on one message of SQLite. Its messages hold SQL text and paths, never bound values.
  private static func log(code: Int32, message: String) {
    let level: Logger.Level =
      switch code & 0xff {
      case SQLiteResultCode.warning: .warning
      // The recovery of a log, and what the caller is told by an error anyway. What remains is damage, failures of the
      // operating system and misuse.
      case SQLiteResultCode.notice, SQLiteResultCode.error, SQLiteResultCode.schemaChanged, SQLiteResultCode.constraint,
        SQLiteResultCode.busy, SQLiteResultCode.locked, SQLiteResultCode.interrupted, SQLiteResultCode.notADatabase,
        SQLiteResultCode.readOnly, SQLiteResultCode.full, SQLiteResultCode.tooBig:
        .debug
      default: .error
      }
    // A logger of its own for each message, because the application may set up logging after the first one.
    Logger(label: logLabel).log(level: level, "\(message)", metadata: ["code": "\(code)"])
  }
}
