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
    guard let number = Double(String(decoding: digits, as: UTF8.self)), number.isFinite else { return nil }
    return digits.elementsEqual(text(number).utf8) ? number : nil
  }

  /// The digits of a floating-point number read as a decimal: the shortest ones that denote the same number.
  static func text(_ number: Double) -> String {
    let shortest = "\(number)"
    if shortest.hasSuffix(".0"), !shortest.contains("e") { return shortest == "-0.0" ? "0" : String(shortest.dropLast(2)) }
    return Decimal(string: shortest)?.description ?? shortest
  }

  /// The digits in a text or data value of a file, or nil if it isn't a number.
  static func text(_ digits: UnsafeRawBufferPointer) -> String? {
    guard digits.allSatisfy({ (48...57).contains($0) || [43, 45, 46, 69, 101].contains($0) }), !digits.isEmpty else { return nil }
    guard let number = Decimal(string: String(decoding: digits, as: UTF8.self)), !number.isNaN else { return nil }
    return number.description
  }
}
