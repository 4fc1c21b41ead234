import CHoldfastSQLite
import HoldfastStore
import Logging
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The SQLite library of this process.
enum SQLiteLibrary {
  /// The label of every log line of this layer.
  static let logLabel = "holdfast.sqlite"

  /// SQLite's version number: 3.40.1 is 3040001.
  static var version: Int32 { sqlite3_libversion_number() }

  /// Whether this library can lose a commit if a checkpoint runs at the same time (the "WAL reset" defect).
  ///
  /// Holdfast's own checkpoints are safe, because they run under the writer's lock (``WriterCheckpoint``). Other programs on the same file
  /// may not do that.
  static var walResetBug: Bool { hasWALResetBug(version: version) }

  /// The defect was introduced with write-ahead logs in 3.7.0 and fixed in 3.51.3, 3.50.7 and 3.44.6. The release lines in between never
  /// got the fix.
  static func hasWALResetBug(version: Int32) -> Bool {
    switch version {
    case ..<3_007_000: false
    case 3_044_006..<3_045_000, 3_050_007..<3_051_000, 3_051_003...: false
    default: true
    }
  }

  /// Prepares the library once per process. Every connection calls it before it opens anything.
  ///
  /// Redirects SQLite's log to swift-log, and switches its memory statistics off. SQLite refuses that, without harm, if the application has
  /// already used SQLite.
  static func start() throws(StoreError) {
    if let problem = startProblem {
      throw StoreError(.failed, operation: "start SQLite", reason: problem)
    }
  }

  /// Why the library can't be used; nil if it can. Initialised once, by the first thread that reads it.
  private static let startProblem: String? = {
    ProcessGeneration.watch()
    _ = holdfast_sqlite3_config_log(
      { _, code, message in
        guard let message else { return }
        // SQLite logs between a failed call and its caller, which then reads `errno`.
        let number = errno
        defer { errno = number }
        SQLiteLibrary.log(code: code, message: String(cString: message))
      }, nil)
    // With statistics, every allocation of every connection takes one lock of the process. Apple's builds have none.
    _ = holdfast_sqlite3_config_memory_statistics(0)
    if sqlite3_threadsafe() == 0 { return "This SQLite library was built without support for threads. Use one that supports them." }
    if version < 3_031_000 {
      return "SQLite \(String(cString: sqlite3_libversion())) is too old. Use 3.31.0 or later."
    }
    return nil
  }()

  /// If the library is affected, logs once per file and process that other programs can lose commits in the file. Called before something
  /// is written, because a process that only reads can't lose anything. The article *Which store?* explains the defect.
  ///
  /// - Returns: Whether it was the first time.
  @discardableResult
  static func noteWALResetBug(path: String, isAffected: Bool = walResetBug) -> Bool {
    guard isAffected, filesWithNote.withLock({ $0.insert(path).inserted }) else { return false }
    Logger(label: logLabel).debug(
      "This SQLite version can lose commits if another program checkpoints the same file. Holdfast's own checkpoints are safe.",
      metadata: ["version": "\(String(cString: sqlite3_libversion()))", "path": "\(StoreError.printable(path))"])
    return true
  }

  /// The paths for which the note was logged. The mutex protects the set.
  private static let filesWithNote = Mutex<Set<String>>([])

  /// Logs one message of SQLite. Its messages contain SQL text and paths, never bound values.
  private static func log(code: Int32, message: String) {
    // Creates a logger for each message, because the application may configure logging after the first one.
    Logger(label: logLabel).log(
      level: level(code, message), "\(StoreError.printable(SQLiteFileName.spelledOut(message)))", metadata: ["code": "\(code)"])
  }

  /// The level of a message.
  ///
  /// Failures that a caller receives as an error have the level `debug`. Three kinds have higher levels, because not all of them cause an
  /// error:
  ///
  /// - disk failures, some of which happen while a file is closed;
  /// - misuse of SQLite, which would be a defect of Holdfast;
  /// - SQLite's warnings, such as a file with several hard links, where each link would have its own log.
  static func level(_ code: Int32, _ message: String) -> Logger.Level {
    switch code & 0xff {
    case SQLiteResultCode.inputOutput, SQLiteResultCode.misuse: .error
    // A query that would be faster with an index isn't a problem of the file.
    case SQLiteResultCode.warning where code == SQLiteResultCode.warningAutomaticIndex: .debug
    // "file unlinked while open" and "file renamed while open": the next save fails because of it.
    case SQLiteResultCode.warning where message.hasPrefix("file "): .debug
    case SQLiteResultCode.warning: .warning
    default: .debug
    }
  }
}
