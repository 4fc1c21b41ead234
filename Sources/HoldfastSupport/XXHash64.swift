/// The XXH64 hash function (xxHash fast digest algorithm specification).
///
/// It is fast and detects damage, but it isn't secure: anyone can construct two messages with the same hash. Use ``SHA256`` if that
/// matters. A copy of a hasher can be updated independently.
package struct XXHash64: Sendable {
  private let seed: UInt64
  private var lanes: SIMD4<UInt64>
  private var buffer = BlockBuffer(blockSize: stripeSize)

  /// Creates a hasher for an empty message.
  package init(seed: UInt64 = 0) {
    self.seed = seed
    lanes = initialLanes(seed: seed)
  }

  /// Appends bytes to the message.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    buffer.feed(bytes) { lanes.consume($0) }
  }

  /// Appends bytes to the message.
  package mutating func update(_ bytes: some Collection<UInt8>) {
    withContiguousBytes(of: bytes) { update($0) }
  }

  /// Ends the message and returns its hash.
  package consuming func finalize() -> UInt64 {
    buffer.pending.withUnsafeBytes { finish(lanes, seed: seed, totalCount: buffer.totalCount, tail: $0) }
  }

  /// The hash of bytes in memory. Allocates no memory.
  package static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
    let wholeCount = bytes.count - bytes.count % stripeSize
    var lanes = initialLanes(seed: seed)
    lanes.consume(UnsafeRawBufferPointer(rebasing: bytes[..<wholeCount]))
    return finish(lanes, seed: seed, totalCount: UInt64(bytes.count), tail: UnsafeRawBufferPointer(rebasing: bytes[wholeCount...]))
  }

  /// The hash of an array of bytes.
  package static func hash(_ bytes: [UInt8], seed: UInt64 = 0) -> UInt64 {
    bytes.withUnsafeBytes { hash($0, seed: seed) }
  }
}

/// The number of bytes that the four lanes process at once.
private let stripeSize = 32

// The five prime numbers of the specification.
private let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
private let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
private let prime3: UInt64 = 0x1656_67B1_9E37_79F9
private let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
private let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

/// Step 1 of the specification.
private func initialLanes(seed: UInt64) -> SIMD4<UInt64> {
  SIMD4(seed &+ prime1 &+ prime2, seed &+ prime2, seed, seed &- prime1)
}

/// A lane after it has processed eight bytes.
private func mixed(_ lane: UInt64, _ input: UInt64) -> UInt64 {
  (lane &+ input &* prime2).rotatedLeft(31) &* prime1
}

extension SIMD4<UInt64> {
  /// Step 2: processes entire stripes.
  fileprivate mutating func consume(_ stripes: UnsafeRawBufferPointer) {
    // Four scalars, because most processors don't support 64-bit vector multiplication.
    var (first, second, third, fourth) = (self[0], self[1], self[2], self[3])
    for start in stride(from: 0, to: stripes.count, by: stripeSize) {
      first = mixed(first, stripes.word64(at: start))
      second = mixed(second, stripes.word64(at: start + 8))
      third = mixed(third, stripes.word64(at: start + 16))
      fourth = mixed(fourth, stripes.word64(at: start + 24))
    }
    self = SIMD4(first, second, third, fourth)
  }

  /// Step 3: combines the four lanes into one word.
  fileprivate var converged: UInt64 {
    var word = self[0].rotatedLeft(1) &+ self[1].rotatedLeft(7) &+ self[2].rotatedLeft(12) &+ self[3].rotatedLeft(18)
    for index in indices { word = (word ^ mixed(0, self[index])) &* prime1 &+ prime4 }
    return word
  }
}

/// Steps 3 to 6: combines the lanes, the length, and the last bytes of an incomplete stripe.
private func finish(_ lanes: SIMD4<UInt64>, seed: UInt64, totalCount: UInt64, tail: UnsafeRawBufferPointer) -> UInt64 {
  var hash = totalCount < UInt64(stripeSize) ? seed &+ prime5 : lanes.converged
  hash &+= totalCount
  var position = 0
  while tail.count - position >= 8 {
    hash = (hash ^ mixed(0, tail.word64(at: position))).rotatedLeft(27) &* prime1 &+ prime4
    position += 8
  }
  if tail.count - position >= 4 {
    hash = (hash ^ (tail.word32(at: position) &* prime1)).rotatedLeft(23) &* prime2 &+ prime3
    position += 4
  }
  for byte in tail[position...] {
    hash = (hash ^ (UInt64(byte) &* prime5)).rotatedLeft(11) &* prime1
  }
  return avalanche(hash)
}

/// Step 6: mixes each bit of the input into each bit of the hash.
private func avalanche(_ word: UInt64) -> UInt64 {
  var hash = (word ^ (word >> 33)) &* prime2
  hash = (hash ^ (hash >> 29)) &* prime3
  return hash ^ (hash >> 32)
}

extension UInt64 {
  fileprivate func rotatedLeft(_ count: UInt64) -> UInt64 {
    (self &<< count) | (self &>> (64 &- count))
  }
}

extension UnsafeRawBufferPointer {
  fileprivate func word64(at position: Int) -> UInt64 {
    UInt64(littleEndian: loadUnaligned(fromByteOffset: position, as: UInt64.self))
  }

  fileprivate func word32(at position: Int) -> UInt64 {
    UInt64(UInt32(littleEndian: loadUnaligned(fromByteOffset: position, as: UInt32.self)))
  }
}
