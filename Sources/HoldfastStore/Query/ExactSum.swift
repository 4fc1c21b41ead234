/// The sum of floating-point numbers, rounded once, so that it doesn't depend on their order.
///
/// A store that adds up `double` and `float` attributes itself uses this type: rows are stored in different orders, and each addition of
/// two numbers would round.
///
/// ```swift
/// var sum = ExactSum()
/// for number in [1, 1e16, -1e16] { sum.add(number) }
/// print(sum.value)  // 1.0
/// ```
///
/// The sum is held in two numbers, without rounding, as long as these suffice. They do for most data; otherwise they are moved to a wide
/// integer with all bits that a sum can have.
@frozen public struct ExactSum: Sendable {
  /// The sum is that of these two numbers and of the wide integer.
  @usableFromInline var high = 0.0
  @usableFromInline var low = 0.0
  @usableFromInline var wide: WideSum?

  /// Creates the sum of no numbers, which is 0.
  @inlinable public init() {}

  /// Adds a number. A NaN makes the sum NaN, and so do infinities of both signs.
  ///
  /// - Returns: The memory that was allocated, in bytes.
  @discardableResult @inlinable public mutating func add(_ number: Double) -> Int {
    let (sum, error) = ExactSum.exact(high, number)
    let (rest, lost) = ExactSum.exact(low, error)
    // `lost` is NaN if a number or a sum isn't finite.
    guard lost == 0 else { return addWidely(number) }
    high = sum
    low = rest
    return 0
  }

  /// The sum. It is infinite if it exceeds the greatest finite number.
  public var value: Double {
    guard var wide else { return high + low }
    wide.add(high)
    wide.add(low)
    return wide.value
  }

  /// The sum of two numbers as the nearest number and what that lacks: the algorithm `TwoSum` of D. Knuth.
  @inlinable static func exact(_ a: Double, _ b: Double) -> (sum: Double, error: Double) {
    let sum = a + b, part = sum - a
    return (sum, (a - (sum - part)) + (b - part))
  }

  @usableFromInline mutating func addWidely(_ number: Double) -> Int {
    let allocated = wide == nil ? WideSum.byteCount : 0
    var sum = wide ?? WideSum()
    wide = nil
    sum.add(high)
    sum.add(low)
    sum.add(number)
    (high, low, wide) = (0, 0, sum)
    return allocated
  }
}

/// A sum as an integer in units of the smallest number, 2^-1074.
@usableFromInline struct WideSum: Sendable {
  /// The digits of 32 bits, the lowest one first. Additions leave them unsettled: below 0, or above 32 bits.
  private var digits = [Int64](repeating: 0, count: WideSum.digitCount)
  private var unsettledCount = 0
  /// The sum of the numbers that aren't finite; 0 if there are none.
  private var special = 0.0

  /// The greatest number has 2,098 bits, and the sum of 2^62 of them 62 more.
  private static let digitCount = 68
  static let byteCount = digitCount * MemoryLayout<Int64>.stride + 32

  mutating func add(_ number: Double) {
    guard number.isFinite else {
      special += number
      return
    }
    if number == 0 { return }
    // The significand as an integer, and the position of its lowest bit. Subnormal numbers are in the position of the smallest normal ones.
    let exponent = Int(number.exponentBitPattern)
    let significand = number.significandBitPattern | (exponent == 0 ? 0 : 1 << 52), position = max(exponent, 1) - 1
    let place = position / 32, bits = UInt128(significand) << UInt128(position % 32)
    for part in 0..<3 {
      let digit = Int64(truncatingIfNeeded: (bits >> UInt128(32 * part)) & 0xFFFF_FFFF)
      digits[place + part] += number.sign == .minus ? -digit : digit
    }
    unsettledCount += 1
    if unsettledCount == 1 << 30 { settle() }
  }

  /// Carries what exceeds 32 bits. Then all digits are positive except the highest one, which has the sign of the sum.
  private mutating func settle() {
    for place in 0..<WideSum.digitCount - 1 {
      digits[place + 1] += digits[place] >> 32
      digits[place] &= 0xFFFF_FFFF
    }
    unsettledCount = 0
  }

  var value: Double {
    if special != 0 { return special }
    var sum = self
    sum.settle()
    let isNegative = sum.digits[WideSum.digitCount - 1] < 0
    if isNegative {
      for place in sum.digits.indices { sum.digits[place].negate() }
      sum.settle()
    }
    return isNegative ? -sum.magnitude : sum.magnitude
  }

  /// The nearest number to settled digits, the even one of two.
  private var magnitude: Double {
    guard let top = digits.lastIndex(where: { $0 != 0 }) else { return 0 }
    let base = max(top - 2, 0)
    let bits = digits[base...top].reversed().reduce(UInt128(0)) { $0 << 32 | UInt128(truncatingIfNeeded: $1) }
    let excess = max(UInt128.bitWidth - bits.leadingZeroBitCount - Double.significandBitCount - 1, 0)
    var significand = UInt64(truncatingIfNeeded: bits >> UInt128(excess))
    if excess > 0 {
      let rest = bits & (1 << UInt128(excess) - 1), half = UInt128(1) << UInt128(excess - 1)
      let isOverHalf = rest > half || rest == half && (significand & 1 == 1 || digits[..<base].contains { $0 != 0 })
      if isOverHalf { significand += 1 }
    }
    return Double(sign: .plus, exponent: 32 * base + excess - 1074, significand: Double(significand))
  }
}
