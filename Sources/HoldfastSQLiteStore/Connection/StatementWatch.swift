import CSQLite
import HoldfastStore

/// Stops the statements of a request whose rows are no longer needed, or that exceeds its time limit. SQLite calls it some thousand times
/// per second while it runs a statement.
///
/// Confined like the connection, which owns it.
final class StatementWatch {
  /// Why statements were stopped.
  enum Stop {
    case late(seconds: Double)
    case unwanted(any Error)
  }

  private var deadline: (end: ContinuousClock.Instant, seconds: Double)?
  private var sink: (any RowSink)?
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
    do { try sink?.checkWanted() } catch {
      stop = .unwanted(error)
      return true
    }
    return false
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

  /// Runs a request that stops when the sink doesn't need more rows. Nil for a request that isn't cancelled, even during one that is.
  func asking<R>(_ sink: (any RowSink)?, _ body: () throws -> R) rethrows -> R {
    let before = self.sink
    self.sink = sink
    defer { self.sink = before }
    return try body()
  }
}
