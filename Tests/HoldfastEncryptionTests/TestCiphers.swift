import HoldfastEncryption
import HoldfastFiles
import TestSupport

#if Encryption
  import Crypto
  import Foundation
#endif

/// What a test encrypts with.
enum TestCipher: CaseIterable, Sendable {
  case scrambling
  #if Encryption
    case aesGCM
  #endif

  /// A file system with numbered keys.
  func fileSystem(key: UInt8 = 1, formerKeys: [UInt8] = [], base: any StoreFileSystem = POSIXFileSystem()) throws -> EncryptedFileSystem {
    switch self {
    case .scrambling: return EncryptedFileSystem(ScramblingCipher(key: key, formerKeys: formerKeys), base: base)
    #if Encryption
      case .aesGCM: return try EncryptedFileSystem(key: Self.key(key), formerKeys: formerKeys.map(Self.key), base: base)
    #endif
    }
  }

  #if Encryption
    private static func key(_ number: UInt8) -> SymmetricKey { SymmetricKey(data: [UInt8](repeating: number, count: 32)) }
  #endif
}
