import HoldfastAtomicStore

/// Dates as Core Data writes them: seconds since 2001-01-01T00:00:00Z with 20 decimals.
///
/// 20 decimals distinguish all numbers with a magnitude of at least 2^-11. Smaller numbers get all their decimals, so that every
/// number reads back as the same number.
enum XMLDate {
  private static let tenDigits: UInt64 = 10_000_000_000

  // MARK: Writing

  static func put(_ value: Double, to output: TextOutput) {
    guard value.isFinite else { return output.put(value.isNaN ? "nan" : value > 0 ? "inf" : "-inf") }
    if value < 0 { output.put("-") }
    let magnitude = value.magnitude
    if magnitude == 0 || (magnitude >= 0x1p-11 && magnitude < 0x1p63) {
      putUsual(magnitude, to: output)
    } else if magnitude >= 1 {
      output.put(verbatim: digits(magnitude.significandBits53, times: 2, power: Int(magnitude.exponent) - 52))
      output.put(".00000000000000000000")
    } else {
      putTiny(magnitude, to: output)
    }
  }

  /// Writes a number whose fraction has at most 63 binary digits, so that it fits into 64 bits.
  private static func putUsual(_ magnitude: Double, to output: TextOutput) {
    var whole = UInt64(magnitude)
    let fraction = UInt64((magnitude - Double(whole)) * 0x1p64)
    var (first, rest) = fraction.multipliedFullWidth(by: tenDigits)
    var second: UInt64
    (second, rest) = rest.multipliedFullWidth(by: tenDigits)
    // Rounds like `%.20f`: halves to even.
    if rest > 1 << 63 || (rest == 1 << 63 && second & 1 == 1) { second += 1 }
    if second == tenDigits { (first, second) = (first + 1, 0) }
    if first == tenDigits { (whole, first) = (whole + 1, 0) }
    output.put(digits: whole, atLeast: 1)
    output.put(".")
    output.put(digits: first, atLeast: 10)
    output.put(digits: second, atLeast: 10)
  }

  private static func putTiny(_ magnitude: Double, to output: TextOutput) {
    let bits = magnitude.significandBits53
    let zeros = bits.trailingZeroBitCount
    let places = 52 - Int(max(magnitude.exponent, -1022)) - zeros
    let all = digits(bits >> UInt64(zeros), times: 5, power: places)
    output.put("0.")
    output.put(verbatim: String(repeating: "0", count: places - all.utf8.count) + all)
  }

  /// The decimal digits of `number` times `factor` to the power `power`.
  private static func digits(_ number: UInt64, times factor: UInt64, power: Int) -> String {
    // Nine digits per limb, low limbs first.
    var limbs = [number % 1_000_000_000, number / 1_000_000_000 % 1_000_000_000, number / 1_000_000_000_000_000_000]
    for _ in 0..<power {
      var carry: UInt64 = 0
      for place in limbs.indices {
        let product = limbs[place] * factor + carry
        limbs[place] = product % 1_000_000_000
        carry = product / 1_000_000_000
      }
      if carry > 0 { limbs.append(carry) }
    }
    while limbs.count > 1, limbs.last == 0 { limbs.removeLast() }
    let first = limbs.last.map { String($0) } ?? "0"
    return limbs.dropLast().reversed().reduce(into: first) { text, limb in
      let digits = String(limb)
      text += String(repeating: "0", count: 9 - digits.utf8.count) + digits
    }
  }

  // MARK: Reading

  /// Parses a number, rounded to the nearest; nil if the text isn't a number.
  static func value(_ text: UnsafeRawBufferPointer) -> Double? { usual(text) ?? NumberText.real(text) ?? XMLText.special(text) }

  /// Parses a number with 20 decimals and a magnitude from 1 to 2^33 seconds. Only dates within a second of the reference date, or more
  /// than 272 years before or after it, don't qualify.
  @inline(__always) private static func usual(_ text: UnsafeRawBufferPointer) -> Double? {
    let isNegative = text.first == UInt8(ascii: "-")
    let (start, point) = (isNegative ? 1 : 0, text.count - 21)
    guard point > start, point - start <= 10, text[point] == UInt8(ascii: "."), let whole = number(text, start, point),
      let high = number(text, point + 1, point + 11), let low = number(text, point + 11, point + 21), whole > 0, whole < 1 << 33
    else { return nil }
    var magnitude = Double(whole)
    if high | low != 0 {
      // The fraction in units of the last binary digit: the decimals times 2^shift, divided by 10^20. Both numbers are divided by 2^20
      // first.
      let shift = 53 - (64 - whole.leadingZeroBitCount)
      let decimals = high.multipliedFullWidth(by: tenDigits)
      let (sum, carry) = decimals.low.addingReportingOverflow(low)
      let (upper, lower) = (decimals.high + (carry ? 1 : 0), UInt64(shift - 20))
      let shifted = lower == 0 ? (upper, sum) : (upper << lower | sum >> (64 - lower), sum << lower)
      let (quotient, remainder) = fiveToThe20.dividingFullWidth((shifted.0, shifted.1))
      // The divisor is odd, so ties are impossible.
      let units = whole << UInt64(shift) + quotient + (remainder > fiveToThe20 / 2 ? 1 : 0)
      magnitude = Double(units) * Double(bitPattern: UInt64(1023 - shift) << 52)
    }
    return isNegative ? -magnitude : magnitude
  }

  private static let fiveToThe20: UInt64 = 95_367_431_640_625

  @inline(__always) private static func number(_ text: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> UInt64? {
    var value: UInt64 = 0
    for index in start..<end {
      let digit = text[index] &- 0x30
      if digit > 9 { return nil }
      value = value &* 10 &+ UInt64(digit)
    }
    return value
  }
}

extension Double {
  /// The significand as an integer of up to 53 bits.
  fileprivate var significandBits53: UInt64 { exponentBitPattern == 0 ? significandBitPattern : significandBitPattern | 1 << 52 }
}
