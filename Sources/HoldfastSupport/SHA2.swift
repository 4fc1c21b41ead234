/// The hash functions of the SHA-2 family (FIPS 180-4, sections 5 and 6), which differ only in their ``SHA2Word``.
///
/// The framework has its own implementation instead of swift-crypto's, because the modules may depend only on swift-log. Core Data's
/// version hashes and the names of external files need it. Compiling swift-crypto takes about five minutes of processor time.
///
/// It is generic, so only ``SHA256`` and ``SHA512`` use it: their methods are concrete, and the compiler specializes this code for them.
struct SHA2<Word: SHA2Word>: Sendable {
  private static var wordSize: Int { MemoryLayout<Word>.size }

  /// The eight hash words between blocks: H0 to H7 in the standard.
  private var state = Word.initialState
  private var buffer = BlockBuffer(blockSize: 16 * wordSize)

  /// Appends bytes to the message.
  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    buffer.feed(bytes) { state.compress($0) }
  }

  /// Ends the message and returns its digest.
  consuming func finalize() -> [UInt8] {
    buffer.secureHashPadding(lengthFieldSize: 2 * Self.wordSize).withUnsafeBytes { update($0) }
    var digest: [UInt8] = []
    digest.reserveCapacity(8 * Self.wordSize)
    for index in state.indices { appendBigEndian(state[index], to: &digest) }
    return digest
  }

  /// The digest of bytes in memory.
  static func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var hasher = SHA2()
    hasher.update(bytes)
    return hasher.finalize()
  }
}

/// The word of a hash function, with the function's constants and the sums of its rotations.
///
/// The sums are requirements instead of lists of counts, because concrete rotations are more than twice as fast in a debug build.
protocol SHA2Word: FixedWidthInteger, SIMDScalar, Codable, Sendable where SIMD8Storage: Sendable {
  /// The number of rounds over a block.
  static var roundCount: Int { get }
  /// The hash words before the first block.
  static var initialState: SIMD8<Self> { get }
  /// One constant for each round.
  static var roundConstants: [Self] { get }

  /// Σ0 in the standard.
  var earlySum: Self { get }
  /// Σ1 in the standard.
  var lateSum: Self { get }
  /// σ0 in the standard.
  var earlySigma: Self { get }
  /// σ1 in the standard.
  var lateSigma: Self { get }
}

extension SIMD8 where Scalar: SHA2Word {
  /// Processes entire blocks.
  fileprivate mutating func compress(_ blocks: UnsafeRawBufferPointer) {
    withUnsafeTemporaryAllocation(of: Scalar.self, capacity: Scalar.roundCount) { schedule in
      Scalar.roundConstants.withUnsafeBufferPointer { constants in
        for start in stride(from: 0, to: blocks.count, by: 16 * MemoryLayout<Scalar>.size) {
          prepare(schedule, from: blocks, at: start)
          self &+= rounds(schedule, constants)
        }
      }
    }
  }

  /// Fills the message schedule: the block as 16 words, and the words derived from them.
  private func prepare(_ schedule: UnsafeMutableBufferPointer<Scalar>, from blocks: UnsafeRawBufferPointer, at start: Int) {
    for index in 0..<16 {
      let offset = start + index * MemoryLayout<Scalar>.size
      schedule[index] = Scalar(bigEndian: blocks.loadUnaligned(fromByteOffset: offset, as: Scalar.self))
    }
    for index in 16..<Scalar.roundCount {
      schedule[index] =
        schedule[index - 16] &+ schedule[index - 15].earlySigma &+ schedule[index - 7] &+ schedule[index - 2].lateSigma
    }
  }

  /// The working words after the rounds over one block.
  private func rounds(_ schedule: UnsafeMutableBufferPointer<Scalar>, _ constants: UnsafeBufferPointer<Scalar>) -> Self {
    var (a, b, c, d, e, f, g, h) = (self[0], self[1], self[2], self[3], self[4], self[5], self[6], self[7])
    // Eight rounds at a time: the words are renamed instead of moved, which is over twice as fast as a simple loop.
    for index in stride(from: 0, to: Scalar.roundCount, by: 8) {
      step(a, b, c, &d, e, f, g, &h, schedule[index + 0] &+ constants[index + 0])
      step(h, a, b, &c, d, e, f, &g, schedule[index + 1] &+ constants[index + 1])
      step(g, h, a, &b, c, d, e, &f, schedule[index + 2] &+ constants[index + 2])
      step(f, g, h, &a, b, c, d, &e, schedule[index + 3] &+ constants[index + 3])
      step(e, f, g, &h, a, b, c, &d, schedule[index + 4] &+ constants[index + 4])
      step(d, e, f, &g, h, a, b, &c, schedule[index + 5] &+ constants[index + 5])
      step(c, d, e, &f, g, h, a, &b, schedule[index + 6] &+ constants[index + 6])
      step(b, c, d, &e, f, g, h, &a, schedule[index + 7] &+ constants[index + 7])
    }
    return Self(a, b, c, d, e, f, g, h)
  }
}

/// One round. `d` becomes the new e and `h` the new a; the other words are only renamed.
@inline(__always)
private func step<Word: SHA2Word>(
  _ a: Word, _ b: Word, _ c: Word, _ d: inout Word, _ e: Word, _ f: Word, _ g: Word, _ h: inout Word, _ input: Word
) {
  let choice = (e & f) ^ (~e & g)
  let first = h &+ e.lateSum &+ choice &+ input
  let majority = (a & b) ^ (a & c) ^ (b & c)
  d &+= first
  h = first &+ a.earlySum &+ majority
}
