#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// How a figure of a store grows with the number of objects.
public struct Growth: Hashable, Codable, Sendable {
  /// The store.
  public var store: String
  /// What it was measured with.
  public var input: MeasurementInput
  /// The name of the figure.
  public var phase: String
  /// The *b* of `time ≈ a · Nᵇ`: 0 when the time does not depend on N, 1 when it is proportional to it.
  public var exponent: Double
  /// The sizes that were measured, ascending.
  public var sizes: [Int]
  /// Whether the times of the smallest and the largest size lie apart, so that there is growth to speak of.
  public var isClear: Bool

  /// In words, to a tenth of the exponent.
  public var text: String {
    if !isClear { return "constant" }
    return switch exponent {
    case -0.15..<0.15: "constant"
    case 0.9..<1.1: "linear"
    default: "N^" + decimal(exponent, places: 1)
    }
  }

  /// Fits the median wall times of each figure that was measured with two sizes or more, of which the largest is at least
  /// eight times the smallest.
  public static func of(_ summaries: [Summary]) -> [Growth] {
    unique(summaries.map { Key($0) }).compactMap { key in
      let points = summaries.filter { Key($0) == key && $0.wall.median > 0 }.sorted { $0.size < $1.size }
      guard let first = points.first, let last = points.last, last.size >= 8 * first.size else { return nil }
      return Growth(
        store: key.store, input: key.input, phase: key.phase, exponent: slope(points.map { (log(Double($0.size)), log($0.wall.median)) }),
        sizes: points.map(\.size), isClear: !first.wall.overlaps(last.wall))
    }
  }

  private struct Key: Hashable {
    let store: String
    let input: MeasurementInput
    let phase: String

    init(_ summary: Summary) { (store, input, phase) = (summary.store, summary.input, summary.phase) }
  }

  /// The slope of the line with the least squares.
  static func slope(_ points: [(x: Double, y: Double)]) -> Double {
    let count = Double(points.count)
    let x = points.reduce(0) { $0 + $1.x } / count, y = points.reduce(0) { $0 + $1.y } / count
    let below = points.reduce(0) { $0 + ($1.x - x) * ($1.x - x) }
    return below > 0 ? points.reduce(0) { $0 + ($1.x - x) * ($1.y - y) } / below : 0
  }
}
