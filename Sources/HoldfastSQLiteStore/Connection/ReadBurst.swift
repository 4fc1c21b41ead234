import Dispatch
import HoldfastStore

/// The state of a read connection that lets requests in quick succession share a read transaction.
///
/// Beginning and ending a read transaction takes three system calls, a third of the cost of reading a row by its key. Iterating over
/// objects makes thousands of such requests. So from the fifth request in quick succession, the connection stays in its transaction. The
/// next request continues in it if there was no commit in between.
///
/// Requests see the same data as in their own transactions. Every commit, by any process, changes the header of the log's index in shared
/// memory before it ends (SQLite documentation, "WAL-mode File Format", section 2.1).
///
/// A transaction that stays open can keep the log from restarting. So it ends before this store writes, and at most ``longestRest`` after
/// the last request. While the log is long, no transaction is kept, so that a writer can restart the log between requests.
struct ReadBurst {
  /// The maximum time for which the transaction is kept after a request, in nanoseconds.
  static let longestRest: UInt64 = 20_000_000
  /// The maximum time between the beginnings of two requests of a burst, in nanoseconds. For longer requests, keeping the transaction would
  /// save little.
  private static let longestGap: UInt64 = 1_000_000
  /// The number of pages above which a log is long, if not all of its pages are in the file yet.
  private static let longestLog = 4000
  /// The number of quick requests before a transaction is kept. A process that reads a row or two never keeps one.
  private static let leastRequests = 4

  /// Whether the connection is in a transaction that outlasts its requests.
  fileprivate(set) var isOpen = false
  /// The beginning of the last request, in nanoseconds of uptime.
  private(set) var lastUse: UInt64 = 0
  private var requests = 0
  /// The log's index; nil before the first look, and without a log.
  private var index: LogIndex?
  private var hasLookedForIndex = false
  /// The index's header before the transaction began to read.
  private var seen: LogIndex.Header?

  static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

  /// The present header of the log's index while the connection keeps a transaction; nil otherwise.
  ///
  /// The connection has the log open then, so no process can remove it.
  var header: LogIndex.Header? { isOpen ? index?.header : nil }

  /// Whether there was no commit since the transaction began.
  fileprivate var isCurrent: Bool { index.map { $0.header == seen } ?? false }

  /// Counts a request that begins now. Returns whether to keep a transaction begun for it.
  fileprivate mutating func begin() -> Bool {
    let now = ReadBurst.now
    requests = now &- lastUse < ReadBurst.longestGap ? requests + 1 : 0
    lastUse = now
    return requests >= ReadBurst.leastRequests
  }

  /// Notes the header of the log's index. Returns false if there is no log or it is long.
  fileprivate mutating func look(_ connection: SQLiteConnection) -> Bool {
    if !hasLookedForIndex {
      hasLookedForIndex = true
      // Without a log, requesting its index would create one.
      index = connection.hasLogOpen ? LogIndex(connection.state) : nil
    }
    guard let index else { return false }
    seen = index.header
    return index.pages <= ReadBurst.longestLog || index.pages == index.pagesMoved
  }
}

extension SQLiteConnection {
  /// Prepares a connection for a request that reads the latest commit.
  ///
  /// Continues in the kept transaction if it is current, and otherwise ends it. In a burst, begins a transaction to keep.
  func beginRequest() throws(StoreError) {
    try state.checkUsable()
    let isBurst = burst.begin()
    if burst.isOpen {
      if burst.isCurrent { return }
      endBurst()
    }
    guard isBurst, burst.look(self) else { return }
    // Not counted, because the number of these statements depends on the time between requests.
    try uncounted { () throws(StoreError) in try begin(.deferred) }
    burst.isOpen = true
  }

  /// Ends the kept transaction, if there is one.
  func endBurst() {
    guard burst.isOpen else { return }
    burst.isOpen = false
    if !state.isInherited { uncounted { rollback() } }
  }
}
