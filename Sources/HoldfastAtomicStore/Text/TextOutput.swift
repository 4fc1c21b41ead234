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
/// Owned by one writer. Putting never fails; ``flushIfFull()`` and ``finish(seal:)`` do.
public final class TextOutput {
  private let write: (UnsafeRawBufferPointer) throws -> Void
  private var digest = ContentDigest()
  @usableFromInline @exclusivity(unchecked) var base: UnsafeMutableRawPointer
  @usableFromInline @exclusivity(unchecked) var count = 0
  @usableFromInline @exclusivity(unchecked) var capacity: Int
  @usableFromInline static let pieceByteCount = 1 << 18

  /// Begins with nothing.
  ///
  /// - Parameter write: takes the pieces, each of about 256 KiB.
  public init(_ write: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    self.write = write
    capacity = 2 * TextOutput.pieceByteCount
    base = TextOutput.resized(nil, capacity)
  }

  deinit { free(base) }

  private static func resized(_ old: UnsafeMutableRawPointer?, _ capacity: Int) -> UnsafeMutableRawPointer {
    guard let bytes = realloc(old, capacity) else { preconditionFailure("There is no memory for \(capacity) bytes of text.") }
    return bytes
  }

  // MARK: Handing on

  /// To be called between objects.
  @inlinable @inline(__always) public func flushIfFull() throws {
    if count >= TextOutput.pieceByteCount { try flush() }
  }

  /// How many bytes were put and not handed on yet.
  @inlinable public var byteCount: Int { count }

  /// How many bytes were handed on.
  private(set) var handedOn: Int64 = 0

  /// The bytes from a place of those that were not handed on yet.
  func bytes(from start: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base + start, count: count - start) }

  /// Hands on what there is.
  public func flush() throws {
    let bytes = UnsafeRawBufferPointer(start: base, count: count)
    digest.update(bytes)
    handedOn += Int64(count)
    count = 0
    try write(bytes)
  }

  /// Hands everything on, with what seals the file behind it.
  ///
  /// - Parameter seal: what follows bytes with a digest.
  public func finish(seal: (UInt64) -> [UInt8]) throws {
    try flush()
    try seal(digest.value).withUnsafeBytes { try write($0) }
  }

  // MARK: Putting

  /// Room for some bytes at the end, which count once ``take(_:)`` says so.
  @inlinable @inline(__always) public func room(_ more: Int) -> UnsafeMutableRawPointer {
    if count + more > capacity { grow(more) }
    return base + count
  }

  @usableFromInline func grow(_ more: Int) {
    capacity = max(2 * capacity, count + more)
    base = TextOutput.resized(base, capacity)
  }

  /// Counts bytes that were stored in the room at the end.
  @inlinable @inline(__always) public func take(_ more: Int) { count += more }

  /// Puts bytes as they are.
  @inlinable @inline(__always) public func put(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    room(bytes.count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  /// Puts bytes as they are.
  public func put(_ bytes: [UInt8]) { bytes.withUnsafeBytes { put($0) } }

  /// Puts ASCII as it is.
  @inlinable @inline(__always) public func put(_ text: StaticString) {
    put(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Puts ASCII as it is.
  public func put(verbatim text: String) {
    var text = text
    text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
  }

  /// Puts the label of a name.
  @inlinable @inline(__always) public func put(_ names: NameTable, _ place: Int) {
    let (start, length) = names.extent(place)
    let output = room(length + NameTable.slack)
    var offset = 0
    // In steps of 16 bytes without a call. The last one goes too far, on both sides into room that is there for that.
    repeat {
      let piece = (start + offset).loadUnaligned(as: SIMD2<UInt64>.self)
      output.storeBytes(of: piece, toByteOffset: offset, as: SIMD2<UInt64>.self)
      offset += NameTable.slack
    } while offset < length
    count += length
  }

  /// Puts a whole number.
  @inlinable @inline(__always) public func put(decimal value: Int64) {
    count += DigitText.write(value, to: room(DigitText.mostBytes))
  }

  /// Puts the digits of a number, with zeros before them to a number of digits.
  @inlinable @inline(__always) public func put(digits magnitude: UInt64, atLeast least: Int) {
    let length = max(DigitText.length(magnitude), least)
    DigitText.write(magnitude, length: length, to: room(length))
    count += length
  }

  /// Puts a finite floating-point number by the shortest text that reads as the same number.
  public func put(shortest value: Double) {
    if !put(short: value) { put(verbatim: value.description) }
  }

  /// Puts a number that has up to four digits behind the point; others are not put.
  ///
  /// A text of up to 15 digits that reads as the number is the shortest one, since no two such texts read as the same number.
  ///
  /// - Returns: whether it was put.
  public func put(short value: Double) -> Bool {
    let magnitude = value.magnitude
    guard magnitude < 1e10 && magnitude >= 1e-3 || magnitude == 0 else { return false }
    // Both fit: the number is below 10^10. A half is rounded up, which does not matter to a whole number.
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

  /// Puts bytes as base64, in one line.
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

  /// Puts 16 bytes as a UUID, in upper case.
  public func put(uuid bytes: UnsafeRawBufferPointer) {
    precondition(bytes.count == 16, "A UUID has 16 bytes, and not \(bytes.count).")
    count += BytesText.encodeUUID(bytes, into: room(36))
  }
}
