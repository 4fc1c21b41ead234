import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The parts of a file whose size is fixed; see the article *The binary store's format*. Everything here is on disk: do not change.
enum BinaryLayout {
  /// What a file begins and ends with. Not text, and with both kinds of line end, so that a file that was taken for text and changed is
  /// told from others.
  static let mark: [UInt8] = [0x89, 0x48, 0x46, 0x42, 0x0D, 0x0A, 0x1A, 0x0A]
  static let version: UInt32 = 1
  static let headerByteCount = 32
  static let entryByteCount = 56
  static let footerByteCount = 64

  /// What a section holds.
  enum Kind: UInt32 {
    /// What the file says of the store, as a binary property list.
    case info = 1
    /// The model, as canonical JSON.
    case model = 2
    /// Rows of an entity.
    case rows = 3
    /// Links of a many-to-many relationship.
    case links = 4
    /// Targets of an ordered relationship in their order.
    case order = 5
    /// Where values of a uniqueness constraint are found.
    case unique = 6
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

/// An entry of the directory: where a section lies, and what it is about.
struct SectionEntry: Sendable {
  var kind: BinaryLayout.Kind
  /// The place of the entity, relationship or constraint in the lists of the info; 0 for other sections.
  var subject: Int
  var offset: Int64
  var byteCount: Int
  var digest: UInt64
  /// How many rows, links or index entries the section has.
  var count: Int
  /// The least and the largest key of a row or source, or part of a digest, in the section.
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
  /// What a later save is told of the section.
  func part(subject: Int) -> FilePart {
    FilePart(
      kind: Int(kind.rawValue), subject: subject, offset: offset, byteCount: byteCount, digest: digest, count: count, first: first,
      last: last)
  }
}

/// The end of a file.
struct Footer {
  var directoryOffset: Int64
  var directoryByteCount: Int
  var entryCount: Int
  var generation: Int64
  var fileByteCount: Int64
  var directoryDigest: UInt64

  /// The bytes, with the digest of the header and of all that stands before it here.
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

/// Appends numbers in little-endian order.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  mutating func put(_ more: [UInt8]) { bytes += more }
  mutating func put(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }
  mutating func put(_ number: some FixedWidthInteger) { withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) } }
}

/// Appends numbers in as many bytes as each needs, seven bits in each byte, the lowest first; all but the last have their highest bit set.
final class VaryingWriter {
  @exclusivity(unchecked) private var base: UnsafeMutablePointer<UInt8> = .allocate(capacity: 0)
  @exclusivity(unchecked) private var capacity = 0
  /// How many bytes there are.
  @exclusivity(unchecked) private(set) var byteCount = 0

  deinit { base.deallocate() }

  /// Where numbers go.
  struct Place {
    fileprivate var next: UnsafeMutablePointer<UInt8>

    @inline(__always) mutating func put(_ number: UInt64) {
      var rest = number
      while rest >= 0x80 {
        next.pointee = UInt8(truncatingIfNeeded: rest) | 0x80
        next += 1
        rest >>= 7
      }
      next.pointee = UInt8(truncatingIfNeeded: rest)
      next += 1
    }

    /// Puts a signed number: 0, −1, 1, −2 … as 0, 1, 2, 3 …
    @inline(__always) mutating func put(signed number: Int64) { put(UInt64(bitPattern: number << 1 ^ number >> 63)) }
  }

  /// The place behind what there is, with room for so many numbers. What is put there counts when ``end(_:)`` was called.
  @inline(__always) func place(atMost count: Int) -> Place {
    if byteCount + 10 * count > capacity { grow(byteCount + 10 * count) }
    return Place(next: base + byteCount)
  }

  /// Takes what was put at a place.
  @inline(__always) func end(_ place: Place) { byteCount = place.next - base }

  private func grow(_ needed: Int) {
    capacity = max(needed, 2 * capacity, 1 << 12)
    let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    grown.update(from: base, count: byteCount)
    base.deallocate()
    base = grown
  }

  /// What was put, valid until more is.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: byteCount) }

  func removeAll() { byteCount = 0 }
}

/// Reads numbers in little-endian order, and never beyond the end.
struct ByteReader {
  let bytes: UnsafeRawBufferPointer
  private(set) var offset = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var remaining: Int { bytes.count - offset }

  /// The next number; nil when the bytes end before.
  @inline(__always) mutating func number<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
    guard remaining >= Number.bitWidth / 8 else { return nil }
    defer { offset += Number.bitWidth / 8 }
    return Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
  }

  /// A number that counts something.
  mutating func count() -> Int? { number(UInt64.self).flatMap { Int(exactly: $0) } }

  /// The next bytes; nil when there are not so many.
  @inline(__always) mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, count <= remaining else { return nil }
    defer { offset += count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  /// The next number that ``VaryingWriter`` has put; nil for one that does not end, or has more than 64 bits.
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

  /// The next number that ``VaryingWriter`` has put.
  @inline(__always) mutating func signed() -> Int64? { varying().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) } }
}
