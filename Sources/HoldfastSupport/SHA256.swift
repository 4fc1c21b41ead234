/// The SHA-256 hash function (FIPS 180-4, section 6.2). ``SHA2`` has the algorithm.
///
/// It detects changed bytes. It isn't keyed, so it doesn't authenticate them. A copy of a hasher can be updated independently.
///
/// ```swift
/// var hasher = SHA256()
/// hasher.update(header)
/// hasher.update(body)
/// let digest = hasher.finalize()  // 32 bytes
/// ```
package struct SHA256: Sendable {
  private var hasher = SHA2<UInt32>()

  /// Creates a hasher for an empty message.
  package init() {}

  /// Appends bytes to the message.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) { hasher.update(bytes) }

  /// Appends bytes to the message.
  package mutating func update(_ bytes: some Collection<UInt8>) {
    withContiguousBytes(of: bytes) { update($0) }
  }

  /// Ends the message and returns its digest of 32 bytes.
  package consuming func finalize() -> [UInt8] { hasher.finalize() }

  /// The digest of bytes in memory.
  package static func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] { SHA2<UInt32>.hash(bytes) }

  /// The digest of an array of bytes.
  package static func hash(_ bytes: [UInt8]) -> [UInt8] {
    bytes.withUnsafeBytes { hash($0) }
  }
}

extension UInt32: SHA2Word {
  static var roundCount: Int { 64 }

  var earlySum: Self { rotatedRight(2) ^ rotatedRight(13) ^ rotatedRight(22) }
  var lateSum: Self { rotatedRight(6) ^ rotatedRight(11) ^ rotatedRight(25) }
  var earlySigma: Self { rotatedRight(7) ^ rotatedRight(18) ^ (self &>> 3) }
  var lateSigma: Self { rotatedRight(17) ^ rotatedRight(19) ^ (self &>> 10) }

  /// The first 32 bits of the fractional parts of the square roots of the first 8 primes.
  static let initialState = SIMD8<Self>(
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
  )

  /// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
  static let roundConstants: [Self] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
  ]
}

extension UInt32 {
  fileprivate func rotatedRight(_ count: Self) -> Self { (self &>> count) | (self &<< (32 &- count)) }
}
