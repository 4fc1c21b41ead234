/// A position in bytes that never passes their end, for scanners of what a writer of this package has written.
///
/// Its methods read exactly one form of a value. They return nil or false for any other form; the position is then meaningless.
public struct ByteCursor {
  /// The position.
  public var place: UnsafeRawPointer
  /// The end of the bytes.
  public let end: UnsafeRawPointer

  /// Creates a cursor at the beginning of some bytes. They must not be released while it is used.
  @inlinable @inline(__always) public init(_ place: UnsafeRawPointer, _ end: UnsafeRawPointer) { (self.place, self.end) = (place, end) }

  /// The next byte; 0 at the end.
  @inlinable @inline(__always) public var byte: UInt8 { place < end ? place.load(as: UInt8.self) : 0 }

  /// The number of bytes that are left.
  @inlinable @inline(__always) public var count: Int { end - place }

  /// Moves behind a byte.
  @inlinable @inline(__always) public mutating func skip(_ expected: UInt8) -> Bool {
    if byte != expected { return false }
    place += 1
    return true
  }

  /// Moves behind the bytes of a word, beginning with the lowest one.
  @inlinable @inline(__always) public mutating func skip<Word: FixedWidthInteger>(word expected: Word) -> Bool {
    guard isNext(word: expected) else { return false }
    place += MemoryLayout<Word>.size
    return true
  }

  /// Whether the next bytes are those of a word, beginning with the lowest one.
  @inlinable @inline(__always) public func isNext<Word: FixedWidthInteger>(word expected: Word) -> Bool {
    count >= MemoryLayout<Word>.size && Word(littleEndian: place.loadUnaligned(as: Word.self)) == expected
  }

  /// Moves behind the label of a name.
  @inlinable @inline(__always) public mutating func skip(_ names: NameTable, _ name: Int) -> Bool {
    guard let count = names.labelCount(name, at: place, before: end) else { return false }
    place += count
    return true
  }

  /// Reads an integer of at most 18 digits, without a zero before other digits.
  @inlinable @inline(__always) public mutating func integer() -> Int64? {
    let isNegative = skip(UInt8(ascii: "-"))
    guard let (value, count) = digits(), count <= 18 else { return nil }
    return isNegative ? -Int64(value) : Int64(value)
  }

  /// Reads a number without an exponent whose digits and power of ten a `Double` represents exactly.
  @inlinable @inline(__always) public mutating func real() -> Double? {
    let isNegative = skip(UInt8(ascii: "-"))
    guard let (whole, count) = digits() else { return nil }
    var value = whole, fraction = 0
    if skip(UInt8(ascii: ".")) {
      guard let (part, more) = digits(isFraction: true), count + more <= 18 else { return nil }
      (value, fraction) = (value &* ByteCursor.power(more) &+ part, more)
    }
    guard count + fraction <= 18, value <= 1 << 53 else { return nil }
    // The quotient of two exact numbers is rounded once, so it is right.
    let magnitude = Double(value) / Double(ByteCursor.power(fraction))
    return isNegative ? -magnitude : magnitude
  }

  /// Reads digits. The value is right for at most 18 of them.
  @inlinable @inline(__always) mutating func digits(isFraction: Bool = false) -> (value: UInt64, count: Int)? {
    let start = place, first = byte
    var value: UInt64 = 0
    while byte &- 0x30 < 10 {
      value = value &* 10 &+ UInt64(byte &- 0x30)
      place += 1
    }
    let count = place - start
    return count == 0 || (first == 0x30 && count > 1 && !isFraction) ? nil : (value, count)
  }

  /// Ten to the power of at most 18.
  @inlinable @inline(__always) static func power(_ exponent: Int) -> UInt64 {
    powers.withUnsafeBufferPointer { $0[exponent] }
  }

  @usableFromInline static let powers: [UInt64] = (0...18).map { (0..<$0).reduce(1) { power, _ in power * 10 } }
}
