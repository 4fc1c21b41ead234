import HoldfastSupport

/// A digest that detects damage: XXH64 of the xxHash specification, with seed 0.
///
/// The digest is fast but not secure: anyone can construct different contents with the same digest. Bytes may be added in pieces of any
/// size.
///
/// ```swift
/// var digest = ContentDigest()
/// digest.update(bytes)
/// let number = digest.value
/// ```
public struct ContentDigest: Sendable {
  private var hash = XXHash64()

  /// Creates a digest of no bytes.
  public init() {}

  /// Adds bytes to the digest.
  public mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bytes) }

  /// Adds bytes to the digest.
  public mutating func update(_ bytes: some Collection<UInt8>) { hash.update(bytes) }

  /// The digest of all bytes so far. You can add more bytes afterwards.
  public var value: UInt64 { hash.finalize() }

  /// The digest of contiguous bytes.
  public static func value(of bytes: UnsafeRawBufferPointer) -> UInt64 { XXHash64.hash(bytes) }
}
