import Foundation
import Holdfast

/// The class comes from `BowTies.xcdatamodeld`, when the package is built. Extensions add to it.
extension BowTie {
  /// Whether it was worn in the last 30 days before a date.
  func isInFashion(at date: Date) -> Bool {
    lastWorn.map { date.timeIntervalSince($0) < 30 * 86_400 } ?? false
  }
}
