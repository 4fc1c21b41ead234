/// Writes the decimal digits of integers into memory, two at a time.
public enum DigitText {
  /// The maximum length of a number.
  public static let maximumByteCount = 20

  @usableFromInline static let pairs: StaticString = """
    0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
    5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899
    """

  /// The number of digits of a number.
  @inlinable @inline(__always) public static func length(_ magnitude: UInt64) -> Int {
    if magnitude < 10 { return 1 }
    if magnitude < 100 { return 2 }
    if magnitude < 1000 { return 3 }
    if magnitude < 10_000 { return 4 }
    if magnitude < 100_000 { return 5 }
    if magnitude < 1_000_000 { return 6 }
    var (length, bound) = (7, 10_000_000 as UInt64)
    while length < 19 && magnitude >= bound {
      length += 1
      bound &*= 10
    }
    return length == 19 && magnitude >= bound ? 20 : length
  }

  /// Writes the last digits of a number, padded with leading zeros.
  ///
  /// - Parameters:
  ///   - magnitude: The number.
  ///   - length: The number of digits to write.
  ///   - output: A buffer of at least `length` bytes.
  @inlinable @inline(__always) public static func write(_ magnitude: UInt64, length: Int, to output: UnsafeMutableRawPointer) {
    var (rest, place) = (magnitude, length)
    while place >= 2 {
      place -= 2
      let quotient = rest / 100
      let pair = UnsafeRawPointer(pairs.utf8Start + 2 * Int(truncatingIfNeeded: rest &- quotient &* 100))
      output.storeBytes(of: pair.loadUnaligned(as: UInt16.self), toByteOffset: place, as: UInt16.self)
      rest = quotient
    }
    if place == 1 { output.storeBytes(of: UInt8(truncatingIfNeeded: rest % 10) &+ 0x30, as: UInt8.self) }
  }

  /// Writes a number.
  ///
  /// - Parameters:
  ///   - value: The number.
  ///   - output: A buffer of at least ``maximumByteCount`` bytes.
  /// - Returns: The number of bytes written.
  @inlinable @inline(__always) public static func write(_ value: Int64, to output: UnsafeMutableRawPointer) -> Int {
    let sign = value < 0 ? 1 : 0
    // The first digit overwrites this if there is no sign.
    output.storeBytes(of: UInt8(ascii: "-"), as: UInt8.self)
    let length = length(value.magnitude)
    write(value.magnitude, length: length, to: output + sign)
    return sign + length
  }
}
