/// A pseudorandom number generator with a seed.
struct DiskRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Random bytes. A crash state can need thousands of them, even in debug builds, so they are made from words and copied in bulk.
  mutating func bytes(_ count: Int) -> [UInt8] {
    var words = [UInt64](repeating: 0, count: (count + 7) / 8)
    var place = 0
    while place < words.count {
      words[place] = next()
      place += 1
    }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      words.withUnsafeBytes { UnsafeMutableRawBufferPointer(buffer).copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
      initialized = count
    }
  }
}
