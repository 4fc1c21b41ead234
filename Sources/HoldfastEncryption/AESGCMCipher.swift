#if Encryption
  public import Crypto
  public import HoldfastFiles
  public import HoldfastStore

  #if canImport(FoundationEssentials)
    import FoundationEssentials
  #else
    import Foundation
  #endif

  extension EncryptedFileSystem {
    /// The smallest key in bits.
    private static let smallestKey = 128

    /// Creates a file system that encrypts with AES-GCM. Requires the trait `Encryption`.
    ///
    /// Keep the key in a key store, for example the operating system's, and not next to the file. Derive a key from a password only with a
    /// function for this purpose, such as scrypt.
    ///
    /// To replace a key, pass the old one in `formerKeys`. The next save encrypts the store's file with the new key. The files of external
    /// values keep the old key until the values are replaced, and backups until they are removed, so continue to pass the old key.
    ///
    /// - Parameters:
    ///   - key: The key for new files, with at least 128 bits. Create one with `SymmetricKey(size: .bits256)`.
    ///   - formerKeys: The keys for existing files.
    ///   - base: The file system that contains the encrypted files.
    /// - Throws: ``/HoldfastStore/StoreError`` with code `notPermitted` if a key is too short.
    public convenience init(key: SymmetricKey, formerKeys: [SymmetricKey] = [], base: any StoreFileSystem = POSIXFileSystem())
      throws(StoreError)
    {
      for key in [key] + formerKeys where key.bitCount < Self.smallestKey {
        throw StoreError(
          .notPermitted, operation: "use an encryption key",
          reason: "A key has \(key.bitCount) bits, but at least \(Self.smallestKey) are needed. Check where the key comes from.")
      }
      self.init(AESGCMCipher(key, formerKeys), base: base)
    }
  }

  /// AES-GCM with 256-bit keys (NIST SP 800-38D), derived for each file with HKDF and SHA-256 (RFC 5869).
  private struct AESGCMCipher: FileCipher {
    let currentKey: KeyIdentifier
    private let keys: [KeyIdentifier: SymmetricKey]

    init(_ key: SymmetricKey, _ formerKeys: [SymmetricKey]) {
      currentKey = Self.identifier(of: key)
      keys = Dictionary((formerKeys + [key]).map { (Self.identifier(of: $0), $0) }) { _, last in last }
    }

    private static func identifier(of key: SymmetricKey) -> KeyIdentifier {
      KeyIdentifier(
        derive(key, salt: [], info: Array("holdfast key identifier".utf8), KeyIdentifier.byteCount).withUnsafeBytes { Array($0) })
    }

    private static func derive(_ key: SymmetricKey, salt: [UInt8], info: [UInt8], _ byteCount: Int) -> SymmetricKey {
      HKDF<SHA256>.deriveKey(inputKeyMaterial: key, salt: salt, info: info, outputByteCount: byteCount)
    }

    func fileKey(_ identifier: KeyIdentifier, salt: [UInt8], context: [UInt8]) -> (any FileKey)? {
      keys[identifier].map { AESGCMKey(key: Self.derive($0, salt: salt, info: context, 32)) }
    }
  }

  /// Seals chunks. A sealed chunk is the nonce, the encrypted contents and the tag. Nonces are random; a file has far fewer than 2^32
  /// chunks.
  private struct AESGCMKey: FileKey {
    let key: SymmetricKey

    func seal(_ contents: ArraySlice<UInt8>, authenticating associated: [UInt8], into sealed: inout [UInt8]) {
      // Sealing fails only for contents of more than 64 GiB.
      guard let box = try? AES.GCM.seal(contents, using: key, authenticating: associated) else {
        preconditionFailure("A chunk can't be too large for AES-GCM.")
      }
      sealed.append(contentsOf: box.nonce)
      sealed.append(contentsOf: box.ciphertext)
      sealed.append(contentsOf: box.tag)
    }

    func open(_ sealed: ArraySlice<UInt8>, authenticating associated: [UInt8], into contents: inout [UInt8]) -> Bool {
      guard let box = try? AES.GCM.SealedBox(combined: sealed), let plain = try? AES.GCM.open(box, using: key, authenticating: associated)
      else { return false }
      contents.append(contentsOf: plain)
      return true
    }
  }
#endif
