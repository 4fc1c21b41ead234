/// The distribution of one figure's values in all rounds.
public struct Spread: Hashable, Codable, Sendable {
  /// The minimum.
  public var least: Double
  /// The median; the mean of the two middle values for an even number of values.
  public var median: Double
  /// The maximum.
  public var greatest: Double

  /// Summarizes values. All properties are 0 if there are none.
  public init(_ values: [Double]) {
    let sorted = values.sorted()
    let middle = sorted.count / 2
    least = sorted.first ?? 0
    greatest = sorted.last ?? 0
    median = sorted.isEmpty ? 0 : sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  }

  /// The range as a share of the median; 0 if the median is 0.
  public var relative: Double { median > 0 ? (greatest - least) / median : 0 }

  /// Whether two ranges overlap, so that the order of the values isn't clear.
  public func overlaps(_ other: Spread) -> Bool { least <= other.greatest && other.least <= greatest }
}
