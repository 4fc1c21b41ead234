import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Tells the date of a save, in seconds since 2001-01-01T00:00:00Z. Tests put a date of their own in its place.
package final class SaveClock: Sendable {
  /// Guards the date that tests have set.
  private let fixed = Mutex<Double?>(nil)

  /// The present date, or the one that was set.
  package func now() -> Double { fixed.withLock { $0 } ?? Date().timeIntervalSinceReferenceDate }

  /// Stops the clock at a date, or lets it go again with nil.
  package func stop(at date: Double?) { fixed.withLock { $0 = date } }
}
