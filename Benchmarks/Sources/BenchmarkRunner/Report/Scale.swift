#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The scale of an axis.
///
/// All values are accepted. A value that isn't finite, or isn't positive on a logarithmic axis, doesn't affect the ends and is
/// placed at the lower one.
struct Scale: Hashable {
  /// The meaning of equal distances on the axis.
  enum Kind { case linear, logarithmic }

  /// The maximum ratio of the values for a linear axis from zero. Beyond it, the smallest value would be invisible.
  static let greatestLinearRatio = 30.0

  let kind: Kind
  /// The values with labels, ascending. The first and the last are the ends of the axis.
  let ticks: [Double]

  private var lower: Double { ticks[0] }
  private var upper: Double { ticks[ticks.count - 1] }

  /// The position of a value, from 0 to 1.
  func place(_ value: Double) -> Double {
    guard value.isFinite, value > lower else { return 0 }
    if value >= upper { return 1 }
    return kind == .linear ? value / upper : log(value / lower) / log(upper / lower)
  }

  // MARK: Linear

  /// An axis from zero to at least the maximum, with at most `steps` intervals.
  static func linear(_ values: [Double], steps: Int = 4) -> Scale {
    let greatest = min(values.filter(\.isFinite).max() ?? 0, 1e300)
    guard greatest > 1e-300 else { return Scale(kind: .linear, ticks: [0, 1]) }
    let step = Round.up(greatest / Double(steps))
    // Labels are multiples rather than sums, which would accumulate errors.
    let count = max(1, (greatest / step.value - 1e-9).rounded(.up))
    return Scale(kind: .linear, ticks: (0...Int(count)).map { step.multiple($0) })
  }

  // MARK: Logarithmic

  /// An axis with labels at powers of ten, and at twice and five times those if the values are close to each other.
  static func logarithmic(_ values: [Double], steps: Int = 5) -> Scale {
    let positive = values.filter { $0.isFinite && $0 > 0 }.map { min(max($0, 1e-100), 1e100) }
    guard let least = positive.min(), let greatest = positive.max() else { return Scale(kind: .logarithmic, ticks: [1, 10]) }
    let isNarrow = greatest / least <= greatestLinearRatio
    return Scale(kind: .logarithmic, ticks: isNarrow ? closeTicks(least, greatest) : decades(least, greatest, steps: steps))
  }

  private static func decades(_ least: Double, _ greatest: Double, steps: Int) -> [Double] {
    let first = Round.down(least, to: [1]).exponent, last = Round.up(greatest, to: [1]).exponent
    let stride = max(1, (last - first + steps - 1) / steps)
    let count = (last - first + stride - 1) / stride
    return (0...count).map { Round(digit: 1, exponent: first + $0 * stride).value }
  }

  private static func closeTicks(_ least: Double, _ greatest: Double) -> [Double] {
    var ticks = [Round.down(least)]
    while let last = ticks.last, last.value < greatest || ticks.count < 2 { ticks.append(last.next) }
    return ticks.map(\.value)
  }
}

/// A number with one digit and a power of ten, as used for labels.
private struct Round {
  var digit: Int
  var exponent: Int

  var value: Double { multiple(1) }

  /// A multiple of the number. Exact for powers of ten that a double represents exactly.
  func multiple(_ factor: Int) -> Double {
    let whole = Double(digit * factor)
    return exponent < 0 ? whole / pow(10, Double(-exponent)) : whole * pow(10, Double(exponent))
  }

  /// The next of 1, 2, 5, 10, …
  var next: Round {
    switch digit {
    case 1: Round(digit: 2, exponent: exponent)
    case 2: Round(digit: 5, exponent: exponent)
    default: Round(digit: 1, exponent: exponent + 1)
    }
  }

  /// The largest such number that isn't greater than a value.
  static func down(_ value: Double, to digits: [Int] = [1, 2, 5]) -> Round {
    // The logarithm of a power of ten can be slightly wrong in either direction.
    let guess = Int(log10(value).rounded(.down))
    let all = (guess - 1...guess + 1).flatMap { exponent in digits.map { Round(digit: $0, exponent: exponent) } }
    return all.last { $0.value <= value * (1 + 1e-12) } ?? all[0]
  }

  /// The smallest such number that isn't less than a value.
  static func up(_ value: Double, to digits: [Int] = [1, 2, 5]) -> Round {
    let guess = Int(log10(value).rounded(.down))
    let all = (guess - 1...guess + 1).flatMap { exponent in digits.map { Round(digit: $0, exponent: exponent) } }
    return all.first { $0.value >= value * (1 - 1e-12) } ?? Round(digit: 1, exponent: guess + 1)
  }
}
