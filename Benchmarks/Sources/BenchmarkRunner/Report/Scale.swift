#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Where values stand on an axis.
///
/// Values may be anything: what is not finite or, on a logarithmic axis, not above zero has no part in choosing the ends, and stands
/// at the lower one.
struct Scale: Hashable {
  /// What equal steps on the axis mean.
  enum Kind { case linear, logarithmic }

  /// How many times the least the greatest value may be for both to be told apart on an axis from zero.
  static let greatestLinearRatio = 30.0

  let kind: Kind
  /// The values with a mark, ascending; the first and the last are the ends of the axis.
  let ticks: [Double]

  private var lower: Double { ticks[0] }
  private var upper: Double { ticks[ticks.count - 1] }

  /// Places from 0 to 1.
  func place(_ value: Double) -> Double {
    guard value.isFinite, value > lower else { return 0 }
    if value >= upper { return 1 }
    return kind == .linear ? value / upper : log(value / lower) / log(upper / lower)
  }

  // MARK: Linear

  /// An axis from zero to at least the greatest value, with at most so many steps between marks.
  static func linear(_ values: [Double], steps: Int = 4) -> Scale {
    let greatest = min(values.filter(\.isFinite).max() ?? 0, 1e300)
    guard greatest > 1e-300 else { return Scale(kind: .linear, ticks: [0, 1]) }
    let step = Round.up(greatest / Double(steps))
    // Marks are multiples, not sums, which would drift.
    let count = max(1, (greatest / step.value - 1e-9).rounded(.up))
    return Scale(kind: .linear, ticks: (0...Int(count)).map { step.multiple($0) })
  }

  // MARK: Logarithmic

  /// An axis with marks at powers of ten, and at twice and five times these when all values lie close together.
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

/// A number with one digit and a power of ten: what stands at the marks of an axis.
private struct Round {
  var digit: Int
  var exponent: Int

  var value: Double { multiple(1) }

  /// So many times the number, as exact as a literal for the powers that a double has exactly.
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

  /// The greatest with one of these digits that is not above a value.
  static func down(_ value: Double, to digits: [Int] = [1, 2, 5]) -> Round {
    // The logarithm of a power of ten may come out a little wrong on either side.
    let guess = Int(log10(value).rounded(.down))
    let all = (guess - 1...guess + 1).flatMap { exponent in digits.map { Round(digit: $0, exponent: exponent) } }
    return all.last { $0.value <= value * (1 + 1e-12) } ?? all[0]
  }

  /// The least that is not below a value.
  static func up(_ value: Double, to digits: [Int] = [1, 2, 5]) -> Round {
    let guess = Int(log10(value).rounded(.down))
    let all = (guess - 1...guess + 1).flatMap { exponent in digits.map { Round(digit: $0, exponent: exponent) } }
    return all.first { $0.value >= value * (1 - 1e-12) } ?? Round(digit: 1, exponent: guess + 1)
  }
}
