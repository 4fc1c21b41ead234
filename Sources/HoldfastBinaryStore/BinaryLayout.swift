import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The fixed-size components of a file; see <doc:Format>. Everything here is on disk: do not change.
enum BinaryLayout {
  /// The first and last bytes of a file. They aren't text and contain both kinds of line ends, so that a conversion of the file as
  /// text is detected.
  static let mark: [UInt8] = [0x89, 0x48, 0x46, 0x42, 0x0D, 0x0A, 0x1A, 0x0A]
  static let version: UInt32 = 1
  static let headerByteCount = 32
  static let entryByteCount = 56
  static let footerByteCount = 64

  /// The contents of a section.
  enum Kind: UInt32 {
    /// The store information, as a binary property list.
    case info = 1
    /// The model, as canonical JSON.
    case model = 2
    /// Rows of an entity.
    case rows = 3
    /// Links of a many-to-many relationship.
    case links = 4
    /// The destinations of an ordered relationship, in order.
    case order = 5
    /// The index of a uniqueness constraint.
    case unique = 6
    /// The history, as `HistoryLog.bytes`.
    case history = 7
    /// Links that rows or sections of links contain at their other end.
    case inverse = 8
  }

  static func header(uuid: UUID) -> [UInt8] {
    var bytes = ByteWriter()
    bytes.put(mark)
    bytes.put(version)
    bytes.put(0 as UInt32)
    withUnsafeBytes(of: uuid.uuid) { bytes.put($0) }
    return bytes.bytes
  }
}

/// An entry of the directory: the position and the contents of a section.
struct SectionEntry: Sendable {
  var kind: BinaryLayout.Kind
  /// The index of the entity, relationship, constraint or inverse in the store information; 0 for other sections.
  var subject: Int
  var offset: Int64
  var byteCount: Int
  var digest: UInt64
  /// The number of rows, links or index entries.
  var count: Int
  /// The smallest and largest key of a row or source, or upper half of a digest.
  var first: Int64
  var last: Int64

  func append(to bytes: inout ByteWriter) {
    bytes.put(kind.rawValue)
    bytes.put(UInt32(truncatingIfNeeded: subject))
    bytes.put(offset)
    bytes.put(Int64(byteCount))
    bytes.put(digest)
    bytes.put(Int64(count))
    bytes.put(first)
    bytes.put(last)
  }
}

extension SectionEntry {
  /// The description of the section for a later save.
  func part(subject: Int) -> FilePart {
    FilePart(
      kind: Int(kind.rawValue), subject: subject, offset: offset, byteCount: byteCount, digest: digest, count: count, first: first,
      last: last)
  }
}

/// The footer of a file.
struct Footer {
  var directoryOffset: Int64
  var directoryByteCount: Int
  var entryCount: Int
  var generation: Int64
  var fileByteCount: Int64
  var directoryDigest: UInt64

  /// The encoded footer, with a digest of the header and of the footer up to the digest.
  func bytes(header: [UInt8]) -> [UInt8] {
    var bytes = ByteWriter()
    bytes.put(directoryOffset)
    bytes.put(Int64(directoryByteCount))
    bytes.put(Int64(entryCount))
    bytes.put(generation)
    bytes.put(fileByteCount)
    bytes.put(directoryDigest)
    bytes.put((header + bytes.bytes).withUnsafeBytes { ContentDigest.value(of: $0) })
    bytes.put(BinaryLayout.mark)
    return bytes.bytes
  }
}

/// Appends integers in little-endian order.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  mutating func put(_ more: [UInt8]) { bytes += more }
  mutating func put(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }
  mutating func put(_ number: some FixedWidthInteger) { withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) } }
}

/// Appends variable-length integers: seven bits per byte, lowest bits first, with the highest bit set in all bytes except the last.
final class VaryingWriter {
  @exclusivity(unchecked) private var base: UnsafeMutablePointer<UInt8> = .allocate(capacity: 0)
  @exclusivity(unchecked) private var capacity = 0
  /// The number of bytes written.
  @exclusivity(unchecked) private(set) var byteCount = 0

  deinit { base.deallocate() }

  /// A position to write at.
  struct Place {
    fileprivate var next: UnsafeMutablePointer<UInt8>

    @inline(__always) mutating func put(_ number: UInt64) {
      if number < 0x80 {
        next.pointee = UInt8(truncatingIfNeeded: number)
        next += 1
      } else if number < 1 << 28 {
        putShort(UInt32(truncatingIfNeeded: number))
      } else {
        putLong(number)
      }
    }

    /// Writes a number of two to four bytes without branches.
    @inline(__always) private mutating func putShort(_ number: UInt32) {
      let byteCount = ((38 &- number.leadingZeroBitCount) &* 37) >> 8
      let low = number & 0x7F | (number & 0x3F80) << 1, high = (number & 0x1F_C000) << 2 | (number & 0xFE0_0000) << 3
      let marks = 0x80_8080 & (1 &<< UInt32(truncatingIfNeeded: 8 &* (byteCount &- 1)) &- 1) as UInt32
      UnsafeMutableRawPointer(next).storeBytes(of: (low | high | marks).littleEndian, as: UInt32.self)
      next += byteCount
    }

    private mutating func putLong(_ number: UInt64) {
      var rest = number
      while rest >= 0x80 {
        next.pointee = UInt8(truncatingIfNeeded: rest) | 0x80
        next += 1
        rest >>= 7
      }
      next.pointee = UInt8(truncatingIfNeeded: rest)
      next += 1
    }

    /// Writes a signed number: 0, −1, 1, −2 … as 0, 1, 2, 3 …
    @inline(__always) mutating func put(signed number: Int64) { put(UInt64(bitPattern: number << 1 ^ number >> 63)) }
  }

  /// The current end, with room for `count` numbers. Call ``end(_:)`` to keep the numbers written there.
  @inline(__always) func place(atMost count: Int) -> Place {
    if byteCount + 10 * count > capacity { grow(byteCount + 10 * count) }
    return Place(next: base + byteCount)
  }

  /// Keeps the numbers that were written up to a position.
  @inline(__always) func end(_ place: Place) { byteCount = place.next - base }

  private func grow(_ needed: Int) {
    capacity = max(needed, 2 * capacity, 1 << 12)
    let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    grown.update(from: base, count: byteCount)
    base.deallocate()
    base = grown
  }

  /// The bytes written, valid until more are written.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: byteCount) }

  func removeAll() { byteCount = 0 }
}

/// Reads integers in little-endian order, and never past the end.
struct ByteReader {
  let bytes: UnsafeRawBufferPointer
  private(set) var offset = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var remaining: Int { bytes.count - offset }

  /// The next integer; nil if there are too few bytes left.
  @inline(__always) mutating func number<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
    guard remaining >= Number.bitWidth / 8 else { return nil }
    defer { offset += Number.bitWidth / 8 }
    return Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
  }

  /// The next integer, as a count.
  mutating func count() -> Int? { number(UInt64.self).flatMap { Int(exactly: $0) } }

  /// The next `count` bytes; nil if there are fewer left.
  @inline(__always) mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, count <= remaining else { return nil }
    defer { offset += count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  /// The next integer written by ``VaryingWriter``; nil if it is truncated or has more than 64 bits.
  @inline(__always) mutating func varying() -> UInt64? {
    guard offset < bytes.count else { return nil }
    let first = bytes[offset]
    offset += 1
    return first < 0x80 ? UInt64(first) : longer(first)
  }

  private mutating func longer(_ first: UInt8) -> UInt64? {
    var value = UInt64(first & 0x7F), shift: UInt64 = 7
    while offset < bytes.count {
      let byte = bytes[offset]
      offset += 1
      if shift == 63 && byte > 1 { return nil }
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
      shift += 7
      if shift > 63 { return nil }
    }
    return nil
  }

  /// The next signed integer written by ``VaryingWriter``.
  @inline(__always) mutating func signed() -> Int64? { varying().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) } }
}
