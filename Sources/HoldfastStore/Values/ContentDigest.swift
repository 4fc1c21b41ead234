import HoldfastSupport

/// A digest of bytes that finds damage: XXH64 of the xxHash fast digest algorithm specification, with seed 0.
///
/// It is fast, and not secure: anybody can make two contents with the same digest. Bytes may be given in pieces of any size.
///
/// ```swift
/// var digest = ContentDigest()
/// digest.update(bytes)
/// let number = digest.value
/// ```
public struct ContentDigest: Sendable {
  private var hash = XXHash64()

  /// Begins the digest of no bytes.
  public init() {}

  /// Takes further bytes into the digest.
  public mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bytes) }

  /// The digest of all bytes so far. More may follow.
  public var value: UInt64 { hash.finalize() }

  /// The digest of bytes that lie in one piece.
  public static func value(of bytes: UnsafeRawBufferPointer) -> UInt64 { XXHash64.hash(bytes) }
}
