import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Hashes of rows' values and comparisons of them where they lie.
///
/// The hashes are seeded by chance per process, so that nobody can write a file whose texts all collide, and they
/// never leave the process.
enum Hashing {
  /// An odd number with its bits well spread: 2^64 divided by the golden ratio.
  static let multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15

  /// A seed by chance.
  static let seed = UInt64.random(in: .min ... .max)

  /// Both halves of a product, folded: every bit of the answer depends on every bit of both.
  @inline(__always) static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = (a ^ 0xA076_1D64_78BD_642F).multipliedFullWidth(by: b | 1)
    return product.high ^ product.low
  }

  /// The hash of bytes.
  @inline(__always) static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
    var hash = seed ^ UInt64(truncatingIfNeeded: bytes.count) &* multiplier
    var offset = 0
    while bytes.count - offset >= 8 {
      hash = fold(hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self), multiplier)
      offset += 8
    }
    if offset < bytes.count { hash = fold(hash ^ tail(bytes, from: offset), multiplier) }
    return hash
  }

  /// The last one to seven bytes, or the last eight when there are as many.
  @inline(__always) private static func tail(_ bytes: UnsafeRawBufferPointer, from offset: Int) -> UInt64 {
    if bytes.count >= 8 { return bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self) }
    var word: UInt64 = 0
    for index in offset..<bytes.count { word = word << 8 | UInt64(bytes[index]) }
    return word
  }

  /// The hash of the values of some slots, or nil when one of them is missing or is a NaN, which equals nothing.
  @inline(__always) static func hash(_ row: RowPointer, _ slots: [Int], _ kinds: [CellKind], seed: UInt64) -> UInt64? {
    var hash = seed
    for slot in slots {
      guard row.isPresent(slot) else { return nil }
      switch kinds[slot] {
      case .bytes: hash = Hashing.hash(row.bytes(slot), seed: hash)
      case .integer, .key: hash = fold(hash ^ UInt64(bitPattern: row.integer(slot)), multiplier)
      case .real:
        let value = row.real(slot)
        if value.isNaN { return nil }
        hash = fold(hash ^ value.bitPattern, multiplier)
      }
    }
    return hash
  }

  /// Whether two rows have the same value in a slot; two missing values are the same.
  @inline(__always) static func same(_ a: RowPointer, _ b: RowPointer, _ slot: Int, _ kind: CellKind) -> Bool {
    guard a.isPresent(slot) == b.isPresent(slot) else { return false }
    guard a.isPresent(slot) else { return true }
    return kind == .bytes ? same(a.bytes(slot), b.bytes(slot)) : a.integer(slot) == b.integer(slot)
  }

  /// Whether two runs of bytes are the same.
  @inline(__always) static func same(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count == b.count else { return false }
    guard let first = a.baseAddress, let second = b.baseAddress else { return true }
    return memcmp(first, second, a.count) == 0
  }

  /// Whether two rows have the same values in all of the slots.
  static func same(_ a: RowPointer, _ b: RowPointer, _ slots: [Int], _ kinds: [CellKind]) -> Bool {
    slots.allSatisfy { same(a, b, $0, kinds[$0]) }
  }
}
