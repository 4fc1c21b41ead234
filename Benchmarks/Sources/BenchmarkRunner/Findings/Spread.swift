/// What the rounds of one figure come to.
public struct Spread: Hashable, Codable, Sendable {
  /// The least value.
  public var least: Double
  /// The value in the middle; between the two in the middle of an even number.
  public var median: Double
  /// The greatest value.
  public var greatest: Double

  /// Sums up some values; all 0 for none.
  public init(_ values: [Double]) {
    let sorted = values.sorted()
    let middle = sorted.count / 2
    least = sorted.first ?? 0
    greatest = sorted.last ?? 0
    median = sorted.isEmpty ? 0 : sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  }

  /// How far apart the least and the greatest lie, as a share of the median; 0 when that is 0.
  public var relative: Double { median > 0 ? (greatest - least) / median : 0 }

  /// Whether some value of one lies among those of the other, so that nobody can say which is less.
  public func overlaps(_ other: Spread) -> Bool { least <= other.greatest && other.least <= greatest }
}
