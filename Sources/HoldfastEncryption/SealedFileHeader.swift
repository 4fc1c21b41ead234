import HoldfastStore

/// The first bytes of an encrypted file, which identify its key.
///
/// On disk: do not change. It consists of the eight characters `HOLDFENC`, the version (four bytes), the checksum (four bytes), the key's
/// identifier and the salt. The checksum distinguishes a damaged header from one with another key. The key of the file is derived from the
/// entire header, so no chunk can be decrypted with a changed header.
struct SealedFileHeader {
  private static let mark = Array("HOLDFENC".utf8)
  private static let version: [UInt8] = [1, 0, 0, 0]
  private static let contextByteCount = 32
  private static let saltByteCount = 32

  let bytes: [UInt8]

  /// Creates the header of a new file.
  init(key: KeyIdentifier) {
    var random = SystemRandomNumberGenerator()
    let salt = (0..<Self.saltByteCount).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    bytes = Self.mark + Self.version + Self.checksum(key.bytes + salt) + key.bytes + salt
  }

  /// The first four bytes of the little-endian XXH64 of the key's identifier and the salt.
  private static func checksum(_ bytes: [UInt8]) -> [UInt8] {
    var digest = ContentDigest()
    digest.update(bytes)
    return (0..<4).map { UInt8(truncatingIfNeeded: digest.value >> (8 * $0)) }
  }

  /// Checks the header of a file.
  init(reading bytes: [UInt8]) throws(Refusal) {
    guard bytes.count == SealedLayout.headerByteCount, bytes.starts(with: Self.mark) else { throw .notEncrypted }
    guard bytes[8..<12].elementsEqual(Self.version) else { throw .newerFormat }
    guard bytes[12..<16].elementsEqual(Self.checksum(Array(bytes[16...]))) else { throw .damaged }
    self.bytes = bytes
  }

  /// Why a header can't be used.
  enum Refusal: Error {
    case notEncrypted, newerFormat, damaged
  }

  var keyIdentifier: KeyIdentifier { KeyIdentifier(bytes[16..<32]) }

  /// The key of the file; nil if the cipher doesn't have the key that the header names.
  func key(_ cipher: any FileCipher) -> (any FileKey)? {
    cipher.fileKey(
      keyIdentifier, salt: Array(bytes[Self.contextByteCount...]), context: Array(bytes[..<Self.contextByteCount]))
  }
}
