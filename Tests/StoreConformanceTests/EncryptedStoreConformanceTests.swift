import HoldfastBinaryStore
import HoldfastEncryption
import HoldfastFiles
import HoldfastJSONStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if Encryption
  import Crypto
#endif

extension WholeFileHarness {
  /// A harness whose stores are in encrypted files.
  func encrypted(_ encrypt: @escaping @Sendable (any StoreFileSystem) -> EncryptedFileSystem) -> WholeFileHarness {
    WholeFileHarness { [describe] path, isReadOnly, options in
      var options = options
      options.file.fileSystem = encrypt(options.file.fileSystem)
      return describe(path, isReadOnly, options)
    }
  }
}

/// The binary format reads pages in any order, the others read and write entire files.
@Suite struct EncryptedStoreConformanceTests {
  private static let binary = WholeFileHarness.binary.encrypted { EncryptedFileSystem(ScramblingCipher(), base: $0) }

  @Test(arguments: StoreConformance.share(for: binary.capabilities)) func binaryHolds(_ rule: StoreConformanceCase) async throws {
    try await rule.run(on: Self.binary, timeLimit: nil)
  }

  #if Encryption
    @Test(arguments: 0..<3) func everyFormatHoldsWithAESGCM(_ format: Int) async throws {
      let key = SymmetricKey(size: .bits256)
      let harness = [WholeFileHarness.binary, .json, .xml][format].encrypted { base in
        guard let encrypted = try? EncryptedFileSystem(key: key, base: base) else { preconditionFailure("The key is long enough.") }
        return encrypted
      }
      for rule in StoreConformance.cases(for: harness.capabilities) { try await rule.run(on: harness, timeLimit: nil) }
    }
  #endif
}
