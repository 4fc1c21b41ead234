import CHoldfastSQLite
import HoldfastStore

/// Stops the statements of a request that was cancelled or exceeds its time limit. SQLite calls it some thousand times per second while it
/// runs a statement.
///
/// Confined like the connection, which owns it.
final class StatementWatch {
  /// Why statements were stopped.
  enum Stop {
    case late(seconds: Double)
    /// The error of the request's options.
    case limited(StoreError)
  }

  private var deadline: (end: ContinuousClock.Instant, seconds: Double)?
  private var options = RequestOptions.none
  /// Why the last statement was stopped; nil if it wasn't.
  private(set) var stop: Stop?

  /// The number of virtual-machine instructions between two checks: well below a millisecond.
  private static let instructionCount: Int32 = 10_000

  func install(_ handle: OpaquePointer) {
    sqlite3_progress_handler(
      handle, StatementWatch.instructionCount,
      { watch in
        guard let watch else { return 0 }
        return Unmanaged<StatementWatch>.fromOpaque(watch).takeUnretainedValue().stops() ? 1 : 0
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  private func stops() -> Bool {
    if let deadline, ContinuousClock.now > deadline.end {
      stop = .late(seconds: deadline.seconds)
      return true
    }
    guard let ending else { return false }
    stop = .limited(ending)
    return true
  }

  /// The error of a request that was cancelled, or whose deadline has passed; nil if it may go on.
  var ending: StoreError? {
    do throws(StoreError) {
      try options.check("run a statement")
      return nil
    } catch { return error }
  }

  /// Runs a request with a time limit; nil for no limit.
  func limiting<R>(toSeconds seconds: Double?, _ body: () throws -> R) rethrows -> R {
    stop = nil
    // A nested request shares the limit of the outer one.
    guard let seconds, deadline == nil else { return try body() }
    // A clock can't count to infinity.
    deadline = (.now + .seconds(min(seconds, 1e9)), seconds)
    defer { deadline = nil }
    return try body()
  }

  /// Runs a request with its options. A nested request has its own.
  func obeying<R, E: Error>(_ options: RequestOptions, _ body: () throws(E) -> R) throws(E) -> R {
    let before = self.options
    self.options = options
    defer { self.options = before }
    return try body()
  }
}
