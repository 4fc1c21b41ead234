public import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// The digest of the values of a uniqueness constraint, as stored in files: XXH64.
///
/// The input is the values in the order of the constraint. An integer, Boolean, key or IEEE 754 floating-point number is 8 bytes,
/// little-endian. Text and binary data begin with their byte count, also as 8 bytes. On disk: do not change.
public enum UniqueDigest {
  /// The digest of a row's values; nil if one is missing or NaN.
  public static func value(of row: RowPointer, _ constraint: UniqueConstraint) -> UInt64? {
    if !constraint.decimals.isEmpty, row.hasNaN(inDecimals: constraint.decimals) { return nil }
    if constraint.slots.count == 1 { return single(row, constraint.slots[0], constraint.kinds[0]) }
    var digest = ContentDigest()
    for (slot, kind) in zip(constraint.slots, constraint.kinds) {
      guard row.isPresent(slot) else { return nil }
      if kind == .real && row.real(slot).isNaN { return nil }
      kind == .bytes ? update(&digest, row.bytes(slot)) : update(&digest, word: UInt64(bitPattern: row.integer(slot)))
    }
    return digest.value
  }

  private static func single(_ row: RowPointer, _ slot: SlotIndex, _ kind: CellKind) -> UInt64? {
    guard row.isPresent(slot) else { return nil }
    switch kind {
    case .bytes: return value(of: row.bytes(slot))
    case .real where row.real(slot).isNaN: return nil
    case .integer, .key, .real: return value(ofWord: UInt64(bitPattern: row.integer(slot)))
    }
  }

  /// The digest of a value of 8 bytes.
  static func value(ofWord word: UInt64) -> UInt64 { withUnsafeBytes(of: word.littleEndian) { ContentDigest.value(of: $0) } }

  /// The digest of a value of variable size.
  static func value(of bytes: UnsafeRawBufferPointer) -> UInt64 {
    // Most values are short enough to hash in one piece, without a streaming state.
    if bytes.count > 248 {
      var digest = ContentDigest()
      update(&digest, bytes)
      return digest.value
    }
    return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { buffer in
      buffer.storeBytes(of: UInt64(bytes.count).littleEndian, as: UInt64.self)
      if let source = bytes.baseAddress, let target = buffer.baseAddress { memcpy(target + 8, source, bytes.count) }
      return ContentDigest.value(of: UnsafeRawBufferPointer(rebasing: buffer[..<(bytes.count + 8)]))
    }
  }

  private static func update(_ digest: inout ContentDigest, _ bytes: UnsafeRawBufferPointer) {
    update(&digest, word: UInt64(bytes.count))
    digest.update(bytes)
  }

  private static func update(_ digest: inout ContentDigest, word: UInt64) { withUnsafeBytes(of: word.littleEndian) { digest.update($0) } }
}
