import CSQLite
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
        // SQLite logs between a call that failed and its caller, who asks for the number.
        let number = errno
        defer { errno = number }
        SQLiteLibrary.log(code: code, message: String(cString: message))
      }, nil)
    if sqlite3_threadsafe() == 0 { return "This SQLite library was built without support for threads." }
    if version < 3_031_000 {
      return "SQLite \(String(cString: sqlite3_libversion())) is too old; at least 3.31.0 is needed."
    }
    return nil
  }()

  /// Notes once per file and process that other programs can lose commits in it, if they can. Called when something is to be
  /// written: a process that only reads can't lose anything. *Which store?* explains it to users.
  ///
  /// - Returns: whether it was the first time.
  @discardableResult
  static func noteWALResetBug(path: String, isAffected: Bool = walResetBug) -> Bool {
    guard isAffected, filesWithNote.withLock({ $0.insert(path).inserted }) else { return false }
    Logger(label: logLabel).debug(
      "This SQLite can lose commits when another program checkpoints the same file; Holdfast's own checkpoints are safe.",
      metadata: ["version": "\(String(cString: sqlite3_libversion()))", "path": "\(path)"])
    return true
  }

  /// The paths that the note was logged for. Protects the list itself.
  private static let filesWithNote = Mutex<Set<String>>([])

  /// Passes on one message of SQLite. Its messages hold SQL text and paths, never bound values.
  private static func log(code: Int32, message: String) {
    // A logger of its own for each message, because the application may set up logging after the first one.
    Logger(label: logLabel).log(
      level: level(code, message), "\(SQLiteFileName.spelledOut(message).escapingControlCharacters())", metadata: ["code": "\(code)"])
  }

  /// The level of a message.
  ///
  /// What a caller receives as an error anyway is for debugging. Three kinds are logged because no error reports them all:
  ///
  /// - failures of the disk, some of which happen while a file is closed;
  /// - misuse of SQLite, which would be a defect of ours;
  /// - SQLite's warnings, such as a file with several hard links, each of which would have a log of its own.
  static func level(_ code: Int32, _ message: String) -> Logger.Level {
    switch code & 0xff {
    case SQLiteResultCode.inputOutput, SQLiteResultCode.misuse: .error
    // A query that would be faster with an index is no fault of a file.
    case SQLiteResultCode.warning where code == SQLiteResultCode.warningAutomaticIndex: .debug
    // "file unlinked while open" and "file renamed while open": the next save fails because of it.
    case SQLiteResultCode.warning where message.hasPrefix("file "): .debug
    case SQLiteResultCode.warning: .warning
    default: .debug
    }
  }
}
