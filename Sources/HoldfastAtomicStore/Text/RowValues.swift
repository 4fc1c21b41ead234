public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// A buffer for the values of one row, set in any order.
///
/// The row has the layout of ``/HoldfastStore/RowLayout``, and a batch copies it once it is complete. Reusing the buffer for the
/// next row avoids an allocation per row.
public final class RowValues {
  @usableFromInline @exclusivity(unchecked) var base: UnsafeMutableRawPointer
  @usableFromInline @exclusivity(unchecked) var capacity: Int
  /// The offset of text and binary data, after the cells of the widest entity.
  private let fixedByteCount: Int
  @usableFromInline @exclusivity(unchecked) var used: Int
  /// Whether the values need more bytes than a row can have, which is about 2 GiB. The values are wrong then, and the row can't be used.
  @exclusivity(unchecked) public private(set) var isTooLarge = false
  private let mostBytes = RowValues.maximumByteCount

  /// The maximum size of a row in bytes. The batch of a row has a few more bytes. Tests set a smaller one.
  @TaskLocal package static var maximumByteCount = 1 << 31 - 1 << 20

  /// Creates a buffer for entities with at most `slotCount` slots.
  public init(slotCount: Int) {
    fixedByteCount = RowLayout.cellOffset(SlotIndex(max(slotCount, 1)))
    used = fixedByteCount
    capacity = fixedByteCount + 4096
    base = RowValues.resized(nil, capacity)
    memset(base, 0, fixedByteCount)
  }

  deinit { free(base) }

  private static func resized(_ old: UnsafeMutableRawPointer?, _ capacity: Int) -> UnsafeMutableRawPointer {
    guard let bytes = realloc(old, capacity) else { preconditionFailure("Couldn't allocate \(capacity) bytes for a row.") }
    return bytes
  }

  /// The row. Valid until the next change.
  @inlinable public var row: RowPointer { RowPointer(base) }

  /// Removes all values. The cells of missing values are 0, which readers of rows require.
  public func clear() {
    used = fixedByteCount
    isTooLarge = false
    memset(base, 0, fixedByteCount)
  }

  @inlinable @inline(__always) func set(_ slot: SlotIndex, cell: UInt64) {
    let word = RowLayout.presenceOffset(slot)
    let bits = base.load(fromByteOffset: word, as: UInt64.self)
    base.storeBytes(of: bits | slot.bit, toByteOffset: word, as: UInt64.self)
    base.storeBytes(of: cell, toByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
  }

  /// Sets an integer, Boolean or key.
  @inlinable @inline(__always) public func set(_ slot: SlotIndex, integer: Int64) { set(slot, cell: UInt64(bitPattern: integer)) }

  /// Sets a floating-point number. −0.0 becomes 0.0, as in every row.
  @inlinable @inline(__always) public func set(_ slot: SlotIndex, real: Double) { set(slot, cell: (real == 0 ? 0 : real).bitPattern) }

  /// Sets text, which must be valid UTF-8, or binary data.
  @inlinable @inline(__always) public func set(_ slot: SlotIndex, bytes text: UnsafeRawBufferPointer) {
    let start = room(text.count)
    if let source = text.baseAddress { start.copyMemory(from: source, byteCount: text.count) }
    take(slot, text.count)
  }

  /// Sets text.
  public func set(_ slot: SlotIndex, text: String) {
    var text = text
    text.withUTF8 { set(slot, bytes: UnsafeRawBufferPointer($0)) }
  }

  /// Sets a reference to the external file with a name.
  public func set(_ slot: SlotIndex, external id: UUID) {
    let start = used
    withUnsafeBytes(of: id.uuid) { set(slot, bytes: $0) }
    set(slot, cell: UInt64(start) | UInt64(16) << 32 | RowLayout.externalBit)
  }

  /// Sets bytes that a closure writes. The closure returns their count, or nil if they are invalid.
  @inlinable @inline(__always) public func set(_ slot: SlotIndex, maximumByteCount: Int, _ write: (UnsafeMutableRawPointer) -> Int?) -> Bool
  {
    guard let count = write(room(maximumByteCount)) else { return false }
    take(slot, count)
    return true
  }

  @inlinable @inline(__always) func room(_ count: Int) -> UnsafeMutableRawPointer {
    if used + count > capacity { grow(count) }
    return base + used
  }

  @usableFromInline func grow(_ count: Int) {
    if used + count > mostBytes {
      // Offsets in a row have 31 bits. The row isn't used, so the next values can overwrite the former ones.
      isTooLarge = true
      used = fixedByteCount
      if used + count <= capacity { return }
    }
    capacity = max(min(2 * capacity, mostBytes), used + count)
    base = RowValues.resized(base, capacity)
  }

  @inlinable @inline(__always) func take(_ slot: SlotIndex, _ count: Int) {
    set(slot, cell: UInt64(used) | UInt64(count) << 32)
    used += count
  }
}
