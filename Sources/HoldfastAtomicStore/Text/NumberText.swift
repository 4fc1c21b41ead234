#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Parses numbers, independent of the locale and without rounding exact values.
public enum NumberText {
  /// The integer that a text represents.
  ///
  /// Nil if the text isn't a number, has a fraction or an exponent, or exceeds 64 bits.
  @inlinable public static func integer(_ text: UnsafeRawBufferPointer) -> Int64? {
    var index = 0
    let isNegative = text.first == UInt8(ascii: "-")
    if isNegative { index = 1 }
    guard index < text.count, text.count - index <= 19 else { return nil }
    var magnitude: UInt64 = 0
    while index < text.count {
      let digit = text[index] &- 0x30
      guard digit < 10 else { return nil }
      magnitude = magnitude &* 10 &+ UInt64(digit)
      index += 1
    }
    // Numbers of 19 digits are less than 2^64.
    if isNegative { return magnitude <= 1 << 63 ? Int64(bitPattern: 0 &- magnitude) : nil }
    return Int64(exactly: magnitude)
  }

  /// The nearest floating-point number.
  ///
  /// Nil if the text isn't a number, if the number overflows, or if it isn't zero but would be rounded to zero.
  public static func real(_ text: UnsafeRawBufferPointer) -> Double? {
    guard let parts = Parts(text) else { return nil }
    if let value = parts.exactProduct { return value }
    guard let value = Double(String(decoding: text, as: UTF8.self)), value.isFinite else { return nil }
    return value == 0 && parts.hasDigits ? nil : value
  }

  /// The nearest 32-bit floating-point number, rounded once; see ``real(_:)``.
  public static func single(_ text: UnsafeRawBufferPointer) -> Float? {
    guard let parts = Parts(text), let value = Float(String(decoding: text, as: UTF8.self)), value.isFinite else { return nil }
    return value == 0 && parts.hasDigits ? nil : value
  }

  /// The components of a number: `mantissa × 10^exponent`.
  private struct Parts {
    var mantissa: UInt64 = 0
    var exponent = 0
    var isNegative = false
    /// Whether the mantissa contains all digits.
    var isExact = true
    /// Whether there is a nonzero digit.
    var hasDigits = false

    /// Parses a number such as `-12.5e-3`; nil if the text isn't a number.
    init?(_ text: UnsafeRawBufferPointer) {
      var index = 0
      func digit() -> UInt8? { index < text.count && text[index] &- 0x30 < 10 ? text[index] &- 0x30 : nil }
      if text.first == UInt8(ascii: "-") { (isNegative, index) = (true, 1) }
      guard digit() != nil else { return nil }
      while let next = digit() {
        take(next)
        index += 1
      }
      if index < text.count, text[index] == UInt8(ascii: ".") {
        index += 1
        guard digit() != nil else { return nil }
        while let next = digit() {
          take(next)
          exponent -= 1
          index += 1
        }
      }
      if index < text.count, text[index] | 0x20 == UInt8(ascii: "e") {
        index += 1
        var isDown = false
        if index < text.count, text[index] == UInt8(ascii: "-") || text[index] == UInt8(ascii: "+") {
          isDown = text[index] == UInt8(ascii: "-")
          index += 1
        }
        guard digit() != nil else { return nil }
        var power = 0
        while let next = digit() {
          // Larger than any number of decimals, which the exponent may have to make up for.
          power = min(power * 10 + Int(next), 1 << 50)
          index += 1
        }
        exponent += isDown ? -power : power
      }
      guard index == text.count else { return nil }
    }

    @inline(__always) private mutating func take(_ digit: UInt8) {
      if digit != 0 { hasDigits = true }
      let (product, overflow) = mantissa.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(UInt64(digit))
      if overflow || carry { isExact = false }
      mantissa = sum
    }

    /// The number, if it is the product or quotient of two exact numbers. The only rounding is then correct; see Clinger, "How to
    /// Read Floating Point Numbers Accurately", 1990.
    var exactProduct: Double? {
      guard isExact, mantissa <= 1 << 53, exponent.magnitude <= 22 else { return nil }
      let power = Parts.powers[Int(exponent.magnitude)]
      let value = exponent < 0 ? Double(mantissa) / power : Double(mantissa) * power
      return isNegative ? -value : value
    }

    /// The powers of ten that a Double represents exactly.
    private static let powers: [Double] = [
      1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ]
  }

  /// The value of a hexadecimal digit; nil for other characters.
  @inlinable @inline(__always) public static func hexadecimal(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
  }

  /// The decimal number that a text represents exactly; nil if there is none.
  public static func decimal(_ text: UnsafeRawBufferPointer) -> Decimal? {
    if text.elementsEqual("NaN".utf8) { return .nan }
    // Decimal(string:) ignores invalid characters at the end and rounds numbers that are too long. Reject both.
    var digits = 0, leading = true, points = 0
    for (index, byte) in text.enumerated() {
      switch byte {
      case 0x30...0x39:
        if byte != 0x30 { leading = false }
        if !leading { digits += 1 }
      case UInt8(ascii: "-") where index == 0 && text.count > 1: break
      case UInt8(ascii: ".") where points == 0 && index > 0 && index + 1 < text.count && text[index - 1] &- 0x30 < 10: points = 1
      default: return nil
      }
    }
    guard !text.isEmpty, text.count <= 170 else { return nil }
    let string = String(decoding: text, as: UTF8.self)
    guard let value = Decimal(string: string), !value.isNaN else { return nil }
    return digits <= 38 || value.description == string ? value : nil
  }
}
