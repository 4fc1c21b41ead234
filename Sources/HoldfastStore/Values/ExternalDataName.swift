import HoldfastSupport

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Names of external files, which contain attribute values that are too large for a row.
///
/// See ``ManagedObjectModel/Attribute/allowsExternalBinaryDataStorage``. Holdfast names a file with a version 8 UUID (RFC 9562): 48 random
/// bits and 74 bits of the SHA-256 digest of its bytes. No two values share a file, so references aren't counted, and a reader can check
/// the contents against the name. A UUID of another version, such as Core Data's, doesn't identify the bytes.
public enum ExternalDataName {
  /// Creates a new, unique name for a file with these bytes.
  public static func make(for bytes: UnsafeRawBufferPointer) -> UUID {
    var name = digestPart(bytes)
    let chance = UInt64.random(in: 0..<1 << 48)
    for place in 0..<6 { name[place] = UInt8(truncatingIfNeeded: chance >> UInt64(8 * place)) }
    return name.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }

  /// Whether a file with this name may contain these bytes. False if the name contains another digest.
  public static func matches(_ name: UUID, _ bytes: UnsafeRawBufferPointer) -> Bool { !hasDigest(name) || identifies(name, bytes) }

  /// Whether the name contains the digest of these bytes. False if it contains none.
  package static func identifies(_ name: UUID, _ bytes: UnsafeRawBufferPointer) -> Bool {
    hasDigest(name) && withUnsafeBytes(of: name.uuid) { name in digestPart(bytes)[6...].elementsEqual(name[6...]) }
  }

  private static func hasDigest(_ name: UUID) -> Bool { name.uuid.6 >> 4 == 8 && name.uuid.8 >> 6 == 2 }

  /// Parses a file name: the 36 characters of an upper-case UUID. Returns nil for other text.
  public static func id(_ text: UnsafeRawBufferPointer) -> UUID? {
    guard text.count == 36 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16)
    var place = 0
    while place < 36 {
      if [8, 13, 18, 23].contains(place) {
        if text[place] != UInt8(ascii: "-") { return nil }
        place += 1
        continue
      }
      guard let high = digit(text[place]), let low = digit(text[place + 1]) else { return nil }
      bytes.append(high << 4 | low)
      place += 2
    }
    return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// Sixteen bytes, the last ten of them version, variant and digest. This is a file format: don't change it.
  private static func digestPart(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var name = Array(SHA256.hash(bytes)[..<16])
    name[6] = name[6] & 0x0F | 0x80
    name[8] = name[8] & 0x3F | 0x80
    return name
  }
}
