package import HoldfastEncryption
import HoldfastSupport

/// A cipher for tests that don't compile swift-crypto. It finds every changed byte and hides contents from a search, but not from an attacker.
package struct ScramblingCipher: FileCipher {
  package let currentKey: KeyIdentifier
  private let keys: Set<KeyIdentifier>

  /// - Parameters:
  ///   - key: The number of the key for new files.
  ///   - formerKeys: The numbers of the keys for existing files.
  package init(key: UInt8 = 1, formerKeys: [UInt8] = []) {
    let identifiers = ([key] + formerKeys).map { KeyIdentifier(Array(repeating: $0, count: 16)) }
    currentKey = identifiers[0]
    keys = Set(identifiers)
  }

  package func fileKey(_ identifier: KeyIdentifier, salt: [UInt8], context: [UInt8]) -> (any FileKey)? {
    keys.contains(identifier) ? ScramblingKey(secret: context + salt) : nil
  }
}

/// A chunk is twelve random bytes, the scrambled contents and a digest of 16 bytes.
private struct ScramblingKey: FileKey {
  private static let (nonceByteCount, digestByteCount) = (12, 16)
  let secret: [UInt8]

  func seal(_ contents: ArraySlice<UInt8>, authenticating associated: [UInt8], into sealed: inout [UInt8]) {
    let nonce = (0..<Self.nonceByteCount).map { _ in UInt8.random(in: .min ... .max) }
    sealed += nonce
    sealed += scrambled(contents, nonce)
    sealed += digest(contents, nonce, associated)
  }

  func open(_ sealed: ArraySlice<UInt8>, authenticating associated: [UInt8], into contents: inout [UInt8]) -> Bool {
    guard sealed.count >= Self.nonceByteCount + Self.digestByteCount else { return false }
    let nonce = Array(sealed.prefix(Self.nonceByteCount))
    let plain = scrambled(sealed.dropFirst(Self.nonceByteCount).dropLast(Self.digestByteCount), nonce)
    guard sealed.suffix(Self.digestByteCount).elementsEqual(digest(plain[...], nonce, associated)) else { return false }
    contents += plain
    return true
  }

  private func scrambled(_ bytes: ArraySlice<UInt8>, _ nonce: [UInt8]) -> [UInt8] {
    var generator = SeededGenerator(seed: nonce.prefix(8).reduce(UInt64(secret[40])) { $0 << 8 ^ UInt64($1) })
    var random = UInt64(0)
    return bytes.enumerated().map { place, byte in
      random = place % 8 == 0 ? generator.next() : random >> 8
      return byte ^ UInt8(truncatingIfNeeded: random)
    }
  }

  private func digest(_ contents: ArraySlice<UInt8>, _ nonce: [UInt8], _ associated: [UInt8]) -> ArraySlice<UInt8> {
    var hasher = SHA256()
    for bytes in [secret[...], nonce[...], associated[...], contents] { hasher.update(bytes) }
    return hasher.finalize()[..<Self.digestByteCount]
  }
}
