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

  /// Random bytes, eight at a time, because a crash state can need thousands of them.
  mutating func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      for start in stride(from: 0, to: count, by: 8) {
        withUnsafeBytes(of: next()) { word in
          UnsafeMutableRawBufferPointer(buffer)[start...].copyBytes(from: word.prefix(count - start))
        }
      }
      initialized = count
    }
  }
}
