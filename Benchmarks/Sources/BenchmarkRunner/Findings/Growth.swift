#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The growth of a store's figure with the number of objects.
public struct Growth: Hashable, Codable, Sendable {
  /// The store.
  public var store: String
  /// The input of the measurement.
  public var input: MeasurementInput
  /// The name of the figure.
  public var phase: String
  /// The *b* in `time ≈ a · Nᵇ`: 0 if the time doesn't depend on N, 1 if it is proportional to N.
  public var exponent: Double
  /// The measured sizes, ascending.
  public var sizes: [Int]
  /// Whether the time ranges of the smallest and the largest size don't overlap, so that growth is significant.
  public var isClear: Bool

  /// The growth in words, with the exponent rounded to one decimal.
  public var text: String {
    if !isClear { return "constant" }
    return switch exponent {
    case -0.15..<0.15: "constant"
    case 0.9..<1.1: "linear"
    default: "N^" + decimal(exponent, places: 1)
    }
  }

  /// Fits the median wall times of each figure that was measured with several sizes. The largest must be at least eight times the
  /// smallest.
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

  /// The slope of the least-squares line.
  static func slope(_ points: [(x: Double, y: Double)]) -> Double {
    let count = Double(points.count)
    let x = points.reduce(0) { $0 + $1.x } / count, y = points.reduce(0) { $0 + $1.y } / count
    let below = points.reduce(0) { $0 + ($1.x - x) * ($1.x - x) }
    return below > 0 ? points.reduce(0) { $0 + ($1.x - x) * ($1.y - y) } / below : 0
  }
}
