/// Appends numbers bit by bit, highest bits first. A number has a parameter, which should be about the logarithm of the expected number
/// (Golomb-Rice coding).
final class BitWriter {
  @exclusivity(unchecked) private var base: UnsafeMutablePointer<UInt8> = .allocate(capacity: 0)
  @exclusivity(unchecked) private var capacity = 0

  /// The valid parameters. The longest number that isn't written in full has 15 zeros, a one and 40 bits.
  static let parameters = 0...40
  /// Numbers whose quotient is this one or larger are written in full: this many zeros, then 62 bits.
  static let longQuotient = 16

  deinit { base.deallocate() }

  /// The parameter with which numbers are shortest that are distributed geometrically, given their sum.
  ///
  /// It is the largest k for which 2^k is at most (mean + 1/2) · 2 · ln(golden ratio).
  static func parameter(sum: Double, count: Int) -> Int {
    let bound = count > 0 ? (sum / Double(count) + 0.5) * 0.9624 : 0
    return bound < 2 ? 0 : min(Int(bound.exponent), parameters.upperBound)
  }

  /// A position to write at.
  struct Place {
    fileprivate var next: UnsafeMutablePointer<UInt8>
    /// Bits that aren't a full byte yet, at the upper end, and their number.
    private var pending: UInt64 = 0
    fileprivate var pendingCount: UInt64 = 0

    fileprivate init(_ next: UnsafeMutablePointer<UInt8>) { self.next = next }

    /// Appends the lowest bits of a value, which has no others. From 1 to 56.
    @inline(__always) mutating func put(_ value: UInt64, _ count: UInt64) {
      pendingCount &+= count
      pending |= value &<< (64 &- pendingCount)
      UnsafeMutableRawPointer(next).storeBytes(of: pending.bigEndian, as: UInt64.self)
      next += Int(truncatingIfNeeded: pendingCount >> 3)
      pending = pending &<< (pendingCount & 56)
      pendingCount &= 7
    }

    /// Appends a number below 2^62.
    @inline(__always) mutating func put(number: UInt64, _ low: Int) {
      let low = UInt64(truncatingIfNeeded: low), quotient = number &>> low
      if quotient < UInt64(BitWriter.longQuotient) {
        let one: UInt64 = 1 &<< low
        put(one | (number & (one &- 1)), quotient &+ 1 &+ low)
      } else {
        put(0, UInt64(BitWriter.longQuotient))
        put(number >> 31, 31)
        put(number & (1 << 31 - 1), 31)
      }
    }

    /// Appends two numbers, in one step if they are short.
    @inline(__always) mutating func put(numbers first: UInt64, _ firstLow: Int, _ second: UInt64, _ secondLow: Int) {
      let low = (UInt64(truncatingIfNeeded: firstLow), UInt64(truncatingIfNeeded: secondLow))
      let one: (UInt64, UInt64) = (1 &<< low.0, 1 &<< low.1), quotient = (first &>> low.0, second &>> low.1)
      let count = (quotient.0 &+ 1 &+ low.0, quotient.1 &+ 1 &+ low.1)
      if (quotient.0 | quotient.1) < UInt64(BitWriter.longQuotient), count.0 &+ count.1 <= 56 {
        put((one.0 | (first & (one.0 &- 1))) &<< count.1 | one.1 | (second & (one.1 &- 1)), count.0 &+ count.1)
      } else {
        put(number: first, firstLow)
        put(number: second, secondLow)
      }
    }
  }

  /// The beginning, with room for `count` numbers.
  func place(atMost count: Int) -> Place {
    // A number has at most 78 bits. Every step writes eight bytes.
    let needed = 10 * count + 32
    if needed > capacity {
      base.deallocate()
      base = .allocate(capacity: needed)
      capacity = needed
    }
    return Place(base)
  }

  /// The bytes up to a position. The last one is padded with zeros.
  func end(_ place: Place) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: base, count: place.next - base + (place.pendingCount > 0 ? 1 : 0))
  }
}

/// Reads numbers written by ``BitWriter``, and never past the end.
struct BitReader {
  private let bytes: UnsafeRawBufferPointer
  private let bitCount: Int
  private var position: Int

  init(_ bytes: UnsafeRawBufferPointer, from offset: Int) {
    self.bytes = bytes
    bitCount = 8 * bytes.count
    position = 8 * offset
  }

  /// At least the next 57 bits, at the upper end. Bits past the end are zero.
  @inline(__always) private var window: UInt64 {
    let offset = position >> 3
    let word = offset <= bytes.count - 8 ? bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self).bigEndian : lastWord(offset)
    return word &<< UInt64(position & 7)
  }

  private func lastWord(_ offset: Int) -> UInt64 {
    var word: UInt64 = 0
    for place in offset..<offset + 8 { word = word << 8 | (place < bytes.count ? UInt64(bytes[place]) : 0) }
    return word
  }

  /// The next number; nil if it is truncated, or if it has a longer form than necessary.
  ///
  /// The number divided by 2^low is written as that many zeros and a one, followed by the remainder's bits. If there are 16 zeros, 62 bits
  /// follow with the number itself.
  @inline(__always) mutating func number(_ low: Int) -> UInt64? {
    let window = window, quotient = window.leadingZeroBitCount
    if quotient >= BitWriter.longQuotient { return longNumber(low) }
    position += quotient + 1 + low
    if position > bitCount { return nil }
    // Shifted twice, because a parameter can be 0.
    let rest = ((window &<< UInt64(quotient + 1)) >> 1) &>> UInt64(63 - low)
    return UInt64(quotient) &<< UInt64(low) | rest
  }

  private mutating func longNumber(_ low: Int) -> UInt64? {
    position += BitWriter.longQuotient
    let high = window >> 33
    position += 31
    let number = high << 31 | window >> 33
    position += 31
    return position <= bitCount && number >> UInt64(low) >= UInt64(BitWriter.longQuotient) ? number : nil
  }

  /// Whether only the padding of the last byte is left.
  var isAtEnd: Bool { bitCount - position < 8 && window == 0 }
}
