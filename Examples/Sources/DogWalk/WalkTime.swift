import ExampleSupport
import Foundation

/// The time of a walk, to the second. It is parsed from ISO 8601 with any offset, and printed as ISO 8601 in UTC.
struct WalkTime: CustomStringConvertible {
  let date: Date

  /// Creates a time rounded down to a second, because the list of walks doesn't print fractions.
  init(date: Date) { self.date = Date(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate.rounded(.down)) }

  static var now: WalkTime { WalkTime(date: Date()) }

  /// Parses the value of `--date`.
  static func parse(_ text: String) throws -> WalkTime {
    // Foundation reads 30 February as 2 March. Formatting the date again detects such days.
    let asUTC = String(text.prefix(19)) + "Z"
    guard let date = try? Date(text, strategy: .iso8601), let again = try? Date(asUTC, strategy: .iso8601),
      again.formatted(.iso8601) == asUTC
    else {
      throw UsageError("Give a date and a time with its zone, such as 2026-05-04T07:30:00Z or 2026-05-04T09:30:00+02:00.")
    }
    return WalkTime(date: date)
  }

  var description: String { date.formatted(.iso8601) }
}
