import ExampleSupport
import Foundation

/// The time of a walk, to the second. It is read as ISO 8601 with any offset, and written as ISO 8601 in UTC.
struct WalkTime: CustomStringConvertible {
  let date: Date

  /// Leaves out the fraction of a second, which the list does not show.
  init(date: Date) { self.date = Date(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate.rounded(.down)) }

  static var now: WalkTime { WalkTime(date: Date()) }

  /// Reads what `--date` was given.
  static func parse(_ text: String) throws -> WalkTime {
    // Foundation takes 30 February for 2 March; written again, such a day is not what was read.
    let asUTC = String(text.prefix(19)) + "Z"
    guard let date = try? Date(text, strategy: .iso8601), let again = try? Date(asUTC, strategy: .iso8601),
      again.formatted(.iso8601) == asUTC
    else {
      throw UsageError("Give a date and a time with its zone, as 2026-05-04T07:30:00Z or 2026-05-04T09:30:00+02:00.")
    }
    return WalkTime(date: date)
  }

  var description: String { date.formatted(.iso8601) }
}
