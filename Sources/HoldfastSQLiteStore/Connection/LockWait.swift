import CHoldfastSQLite
import HoldfastStore

/// Waits for locks of other connections and processes.
///
/// SQLite's own handler, `sqlite3_busy_timeout`, tries again only every 100 ms once it has waited 0.2 s. A released lock is granted to the
/// first connection that tries, and a connection that saves again at once is faster than those that wait. When eight processes saved without
/// pauses, some of them waited for more than 5 s. With an attempt every 5 ms, the longest wait was 0.5 s with a log and 1.5 s without one.
/// All processes together saved 5 % less with a log, and a third less without one.
///
/// A wait also ends when the request of the statement is cancelled, or its deadline passes.
///
/// Confined like the connection, which owns it.
final class LockWait {
  /// How long a statement may wait.
  var limit = Duration.zero
  /// How long the current statement has waited, without the time that it worked in between.
  private var waited = Duration.zero
  /// Has the options of the request.
  private let watch: StatementWatch
  /// Why the last wait ended before its limit; nil if it didn't.
  private var end: StoreError?

  init(_ watch: StatementWatch = StatementWatch()) { self.watch = watch }

  /// Makes the statements of a connection wait. SQLite references this object until the connection is closed.
  func install(_ handle: OpaquePointer) {
    sqlite3_busy_handler(
      handle,
      { wait, attempts in
        guard let wait else { return 0 }
        return Unmanaged<LockWait>.fromOpaque(wait).takeUnretainedValue().waits(after: attempts) ? 1 : 0
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Waits until the next attempt. Returns false if the statement has waited long enough, or its request must end.
  ///
  /// - Parameter attempts: The number of earlier calls for the same statement.
  func waits(after attempts: Int32) -> Bool {
    if attempts == 0 { (waited, end) = (.zero, nil) }
    guard waited < limit else { return false }
    end = watch.ending
    if end != nil { return false }
    let began = ContinuousClock.now
    sqlite3_sleep(Self.pause(after: attempts))
    waited += ContinuousClock.now - began
    return true
  }

  /// Returns once why the last wait ended before its limit; nil if it didn't.
  func takeEnd() -> StoreError? {
    defer { end = nil }
    return end
  }

  /// The time until the next attempt, in milliseconds.
  static func pause(after attempts: Int32) -> Int32 { min(attempts + 1, 5) }
}
