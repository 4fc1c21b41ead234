import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Gathers the bytes of a file and hands them on in large pieces, with the digest of them all.
///
/// Owned by one writer. Putting never fails; ``flushIfFull()`` and ``finish()`` do.
final class JSONOutput {
  private let write: (UnsafeRawBufferPointer) throws -> Void
  private var digest = ContentDigest()
  @exclusivity(unchecked) private var base: UnsafeMutableRawPointer
  @exclusivity(unchecked) private var count = 0
  @exclusivity(unchecked) private var capacity: Int
  private static let pieceByteCount = 1 << 18

  /// - Parameter write: takes the pieces, each of about 256 KiB.
  init(_ write: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    self.write = write
    capacity = 2 * JSONOutput.pieceByteCount
    base = JSONOutput.resized(nil, capacity)
  }

  deinit { free(base) }

  private static func resized(_ old: UnsafeMutableRawPointer?, _ capacity: Int) -> UnsafeMutableRawPointer {
    guard let bytes = realloc(old, capacity) else { preconditionFailure("There is no memory for \(capacity) bytes of JSON.") }
    return bytes
  }

  // MARK: Handing on

  /// To be called between objects.
  @inline(__always) func flushIfFull() throws {
    if count >= JSONOutput.pieceByteCount { try flush() }
  }

  /// Hands on what there is.
  func flush() throws {
    let bytes = UnsafeRawBufferPointer(start: base, count: count)
    digest.update(bytes)
    count = 0
    try write(bytes)
  }

  /// Hands everything on, with the digest behind it.
  func finish() throws {
    try flush()
    try JSONSeal.bytes(digest.value).withUnsafeBytes { try write($0) }
  }

  // MARK: Putting

  /// Room for some bytes at the end.
  @inline(__always) private func room(_ more: Int) -> UnsafeMutableRawPointer {
    if count + more > capacity { grow(more) }
    return base + count
  }

  private func grow(_ more: Int) {
    capacity = max(2 * capacity, count + more)
    base = JSONOutput.resized(base, capacity)
  }

  /// Puts bytes as they are.
  @inline(__always) func put(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    room(bytes.count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  /// Puts bytes as they are.
  @inline(__always) func put(_ bytes: [UInt8]) { bytes.withUnsafeBytes { put($0) } }

  /// Puts ASCII as it is.
  @inline(__always) func put(_ text: StaticString) { put(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)) }

  /// Puts ASCII as it is.
  func put(verbatim text: String) {
    var text = text
    text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
  }

  /// Puts a whole number that every reader of JSON reads exactly, or else its text.
  @inline(__always) func put(_ value: Int64) {
    if value.magnitude <= 1 << 53 { return putDigits(value) }
    put("\"")
    putDigits(value)
    put("\"")
  }

  @inline(__always) private func putDigits(_ value: Int64) {
    if value < 0 { put("-") }
    put(digits: value.magnitude, atLeast: 1)
  }

  /// Puts the digits of a number, with zeros before them to a number of digits.
  @inline(__always) private func put(digits magnitude: UInt64, atLeast least: Int) {
    var (length, bound) = (1, 10 as UInt64)
    while length < 19 && magnitude >= bound {
      length += 1
      bound &*= 10
    }
    if length == 19 && magnitude >= bound { length = 20 }
    length = max(length, least)
    let output = room(length)
    var (rest, place) = (magnitude, length)
    while place > 0 {
      place -= 1
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      output.storeBytes(of: UInt8(truncatingIfNeeded: digit) &+ 0x30, toByteOffset: place, as: UInt8.self)
      rest = quotient
    }
    count += length
  }

  /// Puts keys in brackets, of which there is one at least.
  @inline(__always) func put(list keys: UnsafeBufferPointer<Int64>) {
    for (place, key) in keys.enumerated() {
      put(place == 0 ? "[" : ",")
      put(key)
    }
    put("]")
  }

  /// Puts a floating-point number by the shortest text that reads as the same number, and what is none by its name.
  func put(_ value: Double) {
    if putShort(value) { return }
    if value.isFinite { return put(verbatim: value.description) }
    put(value.isNaN ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"")
  }

  /// Puts a number that has a few digits behind the point. A text of up to 15 digits that reads as the number is the shortest
  /// one, since no two such texts read as the same number.
  private func putShort(_ value: Double) -> Bool {
    let magnitude = value.magnitude
    guard magnitude < 1e10 && magnitude >= 1e-3 || magnitude == 0 else { return false }
    var (scale, fraction) = (1.0, 0)
    while fraction <= 4 {
      let scaled = (magnitude * scale).rounded()
      if scaled / scale == magnitude {
        let (whole, rest) = UInt64(scaled).quotientAndRemainder(dividingBy: UInt64(scale))
        if value.sign == .minus { put("-") }
        put(digits: whole, atLeast: 1)
        put(".")
        put(digits: rest, atLeast: max(fraction, 1))
        return true
      }
      scale *= 10
      fraction += 1
    }
    return false
  }

  /// As ``put(_:)-(Double)``, for 32 bits.
  func put(_ value: Float) {
    value.isFinite ? put(verbatim: value.description) : put(Double(value))
  }

  /// Puts text (as UTF-8) in quotes.
  func put(text: UnsafeRawBufferPointer) {
    put("\"")
    var start = 0
    while true {
      let end = JSONOutput.plainEnd(text, from: start)
      put(UnsafeRawBufferPointer(rebasing: text[start..<end]))
      if end == text.count { break }
      putEscape(text[end])
      start = end + 1
    }
    put("\"")
  }

  /// The first byte from an index on that has to be escaped.
  @inline(__always) private static func plainEnd(_ text: UnsafeRawBufferPointer, from start: Int) -> Int {
    let high: UInt64 = 0x8080_8080_8080_8080, ones: UInt64 = 0x0101_0101_0101_0101
    var index = start
    while index + 8 <= text.count {
      let word = text.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      // Bytes that are the sought ones become zero, and borrow from their highest bit; so do those below a space.
      let quotes = word ^ (0x22 &* ones), backslashes = word ^ (0x5C &* ones)
      let found = ((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes) | ((word &- (0x20 &* ones)) & ~word)
      if found & high != 0 { break }
      index += 8
    }
    while index < text.count, text[index] >= 0x20, text[index] != 0x22, text[index] != 0x5C { index += 1 }
    return index
  }

  private func putEscape(_ byte: UInt8) {
    switch byte {
    case 0x22: put("\\\"")
    case 0x5C: put("\\\\")
    case 0x0A: put("\\n")
    case 0x0D: put("\\r")
    case 0x09: put("\\t")
    default:
      put("\\u00")
      put([JSONOutput.digits[Int(byte >> 4)], JSONOutput.digits[Int(byte & 15)]])
    }
  }

  private static let digits = Array("0123456789abcdef".utf8), upperDigits = Array("0123456789ABCDEF".utf8)

  /// Puts bytes as base64 in quotes.
  func put(base64 bytes: UnsafeRawBufferPointer) {
    put("\"")
    let output = room((bytes.count + 2) / 3 * 4)
    var length = 0
    JSONText.base64Digits.withUnsafeBufferPointer { digits in
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let group = min(3, bytes.count - start)
        var bits: UInt32 = 0
        for place in 0..<3 { bits = bits << 8 | (place < group ? UInt32(bytes[start + place]) : 0) }
        for place in 0..<4 {
          let digit = place <= group ? digits[Int(bits >> (18 - 6 * UInt32(place)) & 63)] : UInt8(ascii: "=")
          output.storeBytes(of: digit, toByteOffset: length, as: UInt8.self)
          length += 1
        }
      }
    }
    count += length
    put("\"")
  }

  /// Puts 16 bytes as a UUID in quotes.
  func put(uuid bytes: UnsafeRawBufferPointer) {
    put("\"")
    let output = room(36)
    var length = 0
    func store(_ byte: UInt8) {
      output.storeBytes(of: byte, toByteOffset: length, as: UInt8.self)
      length += 1
    }
    JSONOutput.upperDigits.withUnsafeBufferPointer { digits in
      for (place, byte) in bytes.enumerated() {
        if place == 4 || place == 6 || place == 8 || place == 10 { store(UInt8(ascii: "-")) }
        store(digits[Int(byte >> 4)])
        store(digits[Int(byte & 15)])
      }
    }
    count += length
    put("\"")
  }
}
