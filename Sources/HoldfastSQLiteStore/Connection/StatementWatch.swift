import CSQLite
import HoldfastStore

/// Stops the statements of a request whose rows are not wanted any more, or that takes longer than it may. SQLite asks it while it runs a
/// statement, some thousand times a second.
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
  /// Why the last statement was stopped; nil when it was not.
  private(set) var stop: Stop?

  /// After how many instructions of SQLite's machine it asks: well below a millisecond.
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

  /// Runs a request that may take so many seconds; nil for any time.
  func limiting<R>(toSeconds seconds: Double?, _ body: () throws -> R) rethrows -> R {
    stop = nil
    // A request within another has the time of that one.
    guard let seconds, deadline == nil else { return try body() }
    // A clock can't count to infinity.
    deadline = (.now + .seconds(min(seconds, 1e9)), seconds)
    defer { deadline = nil }
    return try body()
  }

  /// Runs a request for the rows that a sink wants.
  func asking<R>(_ sink: any RowSink, _ body: () throws -> R) rethrows -> R {
    let before = self.sink
    self.sink = sink
    defer { self.sink = before }
    return try body()
  }
}
