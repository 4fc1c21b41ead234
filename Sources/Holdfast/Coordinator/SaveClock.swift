import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Returns the date of a save, in seconds since 2001-01-01T00:00:00Z. Tests can set a fixed date.
package final class SaveClock: Sendable {
  /// Guards the date that tests have set.
  private let fixed = Mutex<Double?>(nil)

  /// The current date, or the fixed one.
  package func now() -> Double { fixed.withLock { $0 } ?? Date().timeIntervalSinceReferenceDate }

  /// Stops the clock at a date. Nil restarts it.
  package func stop(at date: Double?) { fixed.withLock { $0 = date } }
}
