#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How decimals are stored in a file. In rows they are digits.
///
/// A decimal is stored as a SQLite number if that is exact, so that other programs can read it. Otherwise, if the store's options allow it,
/// its digits are stored in a BLOB.
enum DecimalColumn {
  /// The integer with these digits, or nil.
  static func integer(_ digits: UnsafeRawBufferPointer) -> Int64? {
    // The longest Int64 has 19 digits and a sign.
    digits.count <= 20 ? Int64(Substring(decoding: digits, as: UTF8.self)) : nil
  }

  /// The floating-point number that is read as these digits, or nil. Of all decimals near a number, only one is.
  static func real(_ digits: UnsafeRawBufferPointer) -> Double? {
    guard let number = Double(String(decoding: digits, as: UTF8.self)), number.isFinite, let shortest = text(number) else { return nil }
    return digits.elementsEqual(shortest.utf8) ? number : nil
  }

  /// The digits of a floating-point number read as a decimal: the shortest ones that denote the same number. Nil if no decimal has them,
  /// because the number is too large or too close to zero.
  static func text(_ number: Double) -> String? {
    let shortest = "\(number)"
    if shortest.hasSuffix(".0"), !shortest.contains("e") { return shortest == "-0.0" ? "0" : String(shortest.dropLast(2)) }
    guard let decimal = Decimal(string: shortest), !decimal.isNaN else { return nil }
    return decimal.description
  }

  /// The digits in a text or data value of a file, or nil if it isn't a number.
  static func text(_ digits: UnsafeRawBufferPointer) -> String? {
    guard isNumber(digits), let number = Decimal(string: String(decoding: digits, as: UTF8.self)), !number.isNaN else { return nil }
    return number.description
  }

  /// Whether bytes are a number from the first to the last one: a sign, digits with a point, and an exponent. `Decimal` ignores everything
  /// after a number.
  private static func isNumber(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var place = 0
    func skipDigits() -> Int {
      let start = place
      while place < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[place]) { place += 1 }
      return place - start
    }
    func skipOne(of allowed: UInt8...) -> Bool {
      guard place < bytes.count, allowed.contains(bytes[place]) else { return false }
      place += 1
      return true
    }
    let (plus, minus, point) = (UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."))
    _ = skipOne(of: plus, minus)
    var count = skipDigits()
    if skipOne(of: point) { count += skipDigits() }
    if count == 0 { return false }
    if skipOne(of: UInt8(ascii: "e"), UInt8(ascii: "E")) {
      _ = skipOne(of: plus, minus)
      if skipDigits() == 0 { return false }
    }
    return place == bytes.count
  }
}
