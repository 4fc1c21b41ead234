import HoldfastStore

/// Hashes the values of rows in place.
///
/// Hashes are seeded randomly per process, so that a crafted file can't contain text whose hashes all collide. They are never
/// stored outside the process.
enum Hashing {
  /// 2^64 divided by the golden ratio: an odd number with well-distributed bits.
  static let multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15

  /// The random seed of this process.
  static let seed = UInt64.random(in: .min ... .max)

  /// XORs both halves of a 128-bit product, so that every bit of the result depends on every bit of both factors.
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

  /// The last one to seven bytes; the last eight if `bytes` has at least eight.
  @inline(__always) private static func tail(_ bytes: UnsafeRawBufferPointer, from offset: Int) -> UInt64 {
    if bytes.count >= 8 { return bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self) }
    var word: UInt64 = 0
    for index in offset..<bytes.count { word = word << 8 | UInt64(bytes[index]) }
    return word
  }

  /// The hash of the values of a constraint; nil if one of them is missing or NaN, which isn't equal to anything.
  @inline(__always) static func hash(_ row: RowPointer, _ constraint: TableSchema.Constraint) -> UInt64? {
    var hash = seed
    if !constraint.decimals.isEmpty, row.hasNaN(inDecimals: constraint.decimals) { return nil }
    for slot in constraint.slots {
      guard row.isPresent(slot) else { return nil }
      switch constraint.kinds[slot] {
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
}

extension RowPointer {
  /// Whether a slot with a decimal contains NaN, which is a text in rows.
  func hasNaN(inDecimals slots: [SlotIndex]) -> Bool { slots.contains { isPresent($0) && bytes($0).elementsEqual("NaN".utf8) } }
}
