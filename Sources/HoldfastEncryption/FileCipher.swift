/// Authenticated encryption for an ``EncryptedFileSystem``, with one key for new files and any number of keys for existing ones.
package protocol FileCipher: Sendable {
  /// The key for new files.
  var currentKey: KeyIdentifier { get }

  /// Derives the key of one file. Returns nil if no key has the identifier.
  ///
  /// - Parameters:
  ///   - salt: 32 random bytes of the file.
  ///   - context: Other bytes of the file's header. A different context results in a different key.
  func fileKey(_ identifier: KeyIdentifier, salt: [UInt8], context: [UInt8]) -> (any FileKey)?
}

/// The key of one file.
package protocol FileKey: Sendable {
  /// Appends a sealed chunk, which is ``SealedLayout/overhead`` bytes longer than its contents. Each call uses another nonce.
  func seal(_ contents: ArraySlice<UInt8>, authenticating associated: [UInt8], into sealed: inout [UInt8])

  /// Appends the contents of a sealed chunk. Returns false, and appends nothing, if the bytes aren't those that were sealed.
  func open(_ sealed: ArraySlice<UInt8>, authenticating associated: [UInt8], into contents: inout [UInt8]) -> Bool
}

/// Identifies a key without revealing it: 16 bytes.
package struct KeyIdentifier: Sendable, Hashable, CustomStringConvertible {
  static let byteCount = 16
  let bytes: [UInt8]

  package init(_ bytes: some Sequence<UInt8>) {
    self.bytes = Array(bytes)
    precondition(self.bytes.count == Self.byteCount, "A key identifier has \(Self.byteCount) bytes.")
  }

  /// Eight hexadecimal digits, which distinguish a few keys.
  package var description: String { bytes.prefix(4).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
