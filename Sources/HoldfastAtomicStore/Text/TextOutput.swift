import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Collects the bytes of a file, writes them in large pieces and computes their digest.
///
/// Not thread-safe. Appending never fails; ``flushIfFull()`` and ``finish(seal:)`` can throw.
public final class TextOutput {
  private let write: (UnsafeRawBufferPointer) throws -> Void
  private var digest = ContentDigest()
  @usableFromInline @exclusivity(unchecked) var base: UnsafeMutableRawPointer
  @usableFromInline @exclusivity(unchecked) var count = 0
  @usableFromInline @exclusivity(unchecked) var capacity: Int
  @usableFromInline static let pieceByteCount = 1 << 18

  /// Creates an empty output.
  ///
  /// - Parameter write: Writes a piece of about 256 KiB.
  public init(_ write: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    self.write = write
    capacity = 2 * TextOutput.pieceByteCount
    base = TextOutput.resized(nil, capacity)
  }

  deinit { free(base) }

  private static func resized(_ old: UnsafeMutableRawPointer?, _ capacity: Int) -> UnsafeMutableRawPointer {
    guard let bytes = realloc(old, capacity) else { preconditionFailure("Couldn't allocate \(capacity) bytes for text.") }
    return bytes
  }

  // MARK: Flushing

  /// Flushes the buffer if it is full. Call this between objects.
  @inlinable @inline(__always) public func flushIfFull() throws {
    if count >= TextOutput.pieceByteCount { try flush() }
  }

  /// The number of bytes in the buffer.
  @inlinable public var byteCount: Int { count }

  /// Writes the contents of the buffer.
  public func flush() throws {
    let bytes = UnsafeRawBufferPointer(start: base, count: count)
    digest.update(bytes)
    count = 0
    try write(bytes)
  }

  /// Writes all remaining bytes, followed by the seal of the file.
  ///
  /// - Parameter seal: Returns the bytes to append, given the digest of all previous bytes.
  public func finish(seal: (UInt64) -> [UInt8]) throws {
    try flush()
    try seal(digest.value).withUnsafeBytes { try write($0) }
  }

  // MARK: Appending

  /// Returns space at the end of the buffer. Call ``take(_:)`` after filling it.
  @inlinable @inline(__always) public func room(_ more: Int) -> UnsafeMutableRawPointer {
    if count + more > capacity { grow(more) }
    return base + count
  }

  @usableFromInline func grow(_ more: Int) {
    capacity = max(2 * capacity, count + more)
    base = TextOutput.resized(base, capacity)
  }

  /// Appends bytes that were stored in the space returned by ``room(_:)``.
  @inlinable @inline(__always) public func take(_ more: Int) { count += more }

  /// Appends bytes.
  @inlinable @inline(__always) public func put(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    room(bytes.count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  /// Appends bytes.
  public func put(_ bytes: [UInt8]) { bytes.withUnsafeBytes { put($0) } }

  /// Appends ASCII text without escaping.
  @inlinable @inline(__always) public func put(_ text: StaticString) {
    put(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends ASCII text without escaping.
  public func put(verbatim text: String) {
    var text = text
    text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
  }

  /// Appends the label of a name.
  @inlinable @inline(__always) public func put(_ names: NameTable, _ place: Int) {
    let (start, length) = names.extent(place)
    let output = room(length + NameTable.slack)
    var offset = 0
    // Copy in steps of 16 bytes, without a call. The last step can exceed the label; both buffers have slack for that.
    repeat {
      let piece = (start + offset).loadUnaligned(as: SIMD2<UInt64>.self)
      output.storeBytes(of: piece, toByteOffset: offset, as: SIMD2<UInt64>.self)
      offset += NameTable.slack
    } while offset < length
    count += length
  }

  /// Appends an integer.
  @inlinable @inline(__always) public func put(decimal value: Int64) {
    count += DigitText.write(value, to: room(DigitText.maximumByteCount))
  }

  /// Appends the digits of a number, padded with leading zeros.
  @inlinable @inline(__always) public func put(digits magnitude: UInt64, atLeast least: Int) {
    let length = max(DigitText.length(magnitude), least)
    DigitText.write(magnitude, length: length, to: room(length))
    count += length
  }

  /// Appends the shortest text that reads as a finite floating-point number.
  public func put(shortest value: Double) {
    if !put(short: value) { put(verbatim: value.description) }
  }

  /// Appends a number that has at most four decimal places; ignores other numbers.
  ///
  /// A text of up to 15 digits that reads as the number is the shortest one: no two such texts read as the same number.
  ///
  /// - Returns: Whether the number was appended.
  public func put(short value: Double) -> Bool {
    let magnitude = value.magnitude
    guard magnitude < 1e10 && magnitude >= 1e-3 || magnitude == 0 else { return false }
    // Fits into UInt64 because the number is below 10^10. Adding 0.5 doesn't change a product that is an integer.
    let scaled = UInt64(magnitude * 10_000 + 0.5)
    guard Double(scaled) / 10_000 == magnitude else { return false }
    if value.sign == .minus { put("-") }
    let (whole, rest) = scaled.quotientAndRemainder(dividingBy: 10_000)
    put(digits: whole, atLeast: 1)
    put(".")
    DigitText.write(rest, length: 4, to: room(4))
    count += rest % 1000 == 0 ? 1 : rest % 100 == 0 ? 2 : rest % 10 == 0 ? 3 : 4
    return true
  }

  /// Appends bytes as base64, without line breaks.
  public func put(base64 bytes: UnsafeRawBufferPointer) {
    let output = room((bytes.count + 2) / 3 * 4)
    var length = 0
    BytesText.base64Digits.withUnsafeBufferPointer { digits in
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
  }

  /// Appends 16 bytes as an uppercase UUID.
  public func put(uuid bytes: UnsafeRawBufferPointer) {
    precondition(bytes.count == 16, "A UUID has 16 bytes, not \(bytes.count).")
    count += BytesText.encodeUUID(bytes, into: room(36))
  }
}
