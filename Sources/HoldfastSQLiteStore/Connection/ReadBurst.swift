import Dispatch
import HoldfastStore

/// What a read connection remembers so that requests that follow each other closely share a read transaction.
///
/// Beginning and ending a read transaction takes three system calls, a third of what it costs to read a row by its key.
/// Whoever walks over objects makes thousands of such requests. So from the fifth of a quick succession on the connection
/// stays in its transaction, and the next request goes on in it if nobody has committed since. Requests see the same as
/// in transactions of their own: every commit, by whatever process, changes the header of the log's index, which lies in
/// shared memory, before the commit is over (SQLite documentation, "WAL-mode File Format", section 2.1).
///
/// A transaction that is kept open can keep the log from beginning anew. So it ends before this store writes, and at the
/// latest ``longestRest`` after the last request; and while the log is long, none is kept, which leaves a writer the gaps
/// between requests to begin it anew.
struct ReadBurst {
  /// How long after a request the transaction is kept, in nanoseconds.
  static let longestRest: UInt64 = 20_000_000
  /// The time between two requests of a burst, in nanoseconds.
  private static let longestGap: UInt64 = 1_000_000
  /// A log of more pages than these, of which not all are in the file yet, is long.
  private static let longestLog = 4000
  /// After how many quick requests it pays. A process that reads a row or two never keeps a transaction.
  private static let leastRequests = 4

  /// Whether the connection is in a transaction that outlives its requests.
  fileprivate(set) var isOpen = false
  /// When the last request ended, in nanoseconds of uptime.
  private(set) var lastUse: UInt64 = 0
  private var requests = 0
  /// The log's index; nil until it is asked for, and without a log.
  private var index: LogIndex?
  private var hasLookedForIndex = false
  /// The index's header before the transaction began to read.
  private var seen: LogIndex.Header?

  static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

  /// Whether nobody has committed since the transaction began.
  fileprivate var isCurrent: Bool { index.map { $0.header == seen } ?? false }

  /// Counts a request that begins now; whether a transaction that is begun for it should be kept.
  fileprivate mutating func begin() -> Bool {
    requests = ReadBurst.now &- lastUse < ReadBurst.longestGap ? requests + 1 : 0
    return requests >= ReadBurst.leastRequests
  }

  fileprivate mutating func end() { lastUse = ReadBurst.now }

  /// Notes what the log's index looks like; false when there is no log or it is long.
  fileprivate mutating func look(_ connection: SQLiteConnection) -> Bool {
    if !hasLookedForIndex {
      hasLookedForIndex = true
      // Without a log, asking for its index would make one.
      index = connection.hasLogOpen ? LogIndex(connection.state) : nil
    }
    guard let index else { return false }
    seen = index.header
    return index.pages <= ReadBurst.longestLog || index.pages == index.pagesMoved
  }
}

extension SQLiteConnection {
  /// Makes a connection ready for a request that wants what is committed now: goes on in the transaction that was kept,
  /// or ends it, and begins one that will be kept when the requests follow each other closely.
  func beginRequest() throws(StoreError) {
    try state.checkUsable()
    let isBurst = burst.begin()
    if burst.isOpen {
      if burst.isCurrent { return }
      endBurst()
    }
    guard isBurst, burst.look(self) else { return }
    try begin(.deferred)
    burst.isOpen = true
  }

  /// Notes that a request is over.
  func endRequest() { burst.end() }

  /// Ends the transaction that was kept, if there is one.
  func endBurst() {
    guard burst.isOpen else { return }
    burst.isOpen = false
    if !state.isInherited { rollback() }
  }
}
