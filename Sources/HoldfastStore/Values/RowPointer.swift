#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Unchecked access to the bytes of a row. ``RowView`` is the checked alternative.
///
/// It points to one of these:
///
/// - A sealed row of a ``RowBatch``. The row never changes, and the pointer is valid while the batch is alive.
/// - The private row of a managed object with unsaved changes. Setting a value changes the row and may move it. A save, a rollback or a
///   refresh of the object frees it. Use the pointer only in the object's context, and only until one of these happens.
/// - A row under construction. Its owner documents how long the pointer is valid.
///
/// It isn't `Sendable`, because a private row may change at any time. To use a sealed row on another thread, send its batch or a
/// ``RowView``. The framework and fast stores use pointers. No method checks a slot.
@frozen public struct RowPointer {
  /// The address of the row.
  public let base: UnsafeRawPointer

  // Rows are aligned to words. `load` would test that in every accessor; `loadUnaligned` is the same instruction without the test.

  /// Creates a pointer to a row.
  @inlinable @inline(__always) public init(_ base: UnsafeRawPointer) { self.base = base }

  /// The key.
  @inlinable @inline(__always) public var key: ObjectKey { ObjectKey(base.loadUnaligned(as: Int64.self)) }

  /// The version.
  @inlinable @inline(__always) public var version: RowVersion { RowVersion(base.loadUnaligned(fromByteOffset: 8, as: Int64.self)) }

  /// Whether the slot contains a value.
  @inlinable @inline(__always) public func isPresent(_ slot: SlotIndex) -> Bool {
    base.loadUnaligned(fromByteOffset: RowLayout.presenceOffset(slot), as: UInt64.self) & slot.bit != 0
  }

  /// The presence bits of up to 64 slots.
  @inlinable @inline(__always) package func presence(ofWord word: Int) -> UInt64 {
    base.loadUnaligned(fromByteOffset: RowLayout.presenceOffset(SlotIndex(64 * word)), as: UInt64.self)
  }

  /// The whole number, Boolean value or key in the slot. 0 if there is none.
  @inlinable @inline(__always) public func integer(_ slot: SlotIndex) -> Int64 {
    base.loadUnaligned(fromByteOffset: RowLayout.cellOffset(slot), as: Int64.self)
  }

  /// The floating-point number in the slot, or 0 if there is none.
  @inlinable @inline(__always) public func real(_ slot: SlotIndex) -> Double {
    base.loadUnaligned(fromByteOffset: RowLayout.cellOffset(slot), as: Double.self)
  }

  /// The text or bytes in the slot, or empty if there are none.
  @inlinable @inline(__always) public func bytes(_ slot: SlotIndex) -> UnsafeRawBufferPointer {
    let cell = base.loadUnaligned(fromByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    return UnsafeRawBufferPointer(start: base + Int(cell & 0x7FFF_FFFF), count: Int(cell >> 32))
  }

  /// Whether a slot of bytes contains an external file name instead of a value.
  ///
  /// Always false if the attribute doesn't allow external storage, so callers needn't check it there.
  @inlinable @inline(__always) public func isExternal(_ slot: SlotIndex) -> Bool {
    base.loadUnaligned(fromByteOffset: RowLayout.cellOffset(slot), as: UInt64.self) & (1 << 31) != 0 && isPresent(slot)
  }

  /// Whether a slot of any kind contains an external file name. A number may have the bits of one.
  @inlinable public func isExternal(_ slot: SlotIndex, _ layout: RowLayout) -> Bool { layout.kinds[slot] == .bytes && isExternal(slot) }

  /// The external file name in a slot of bytes, or nil if there is none.
  public func externalID(_ slot: SlotIndex) -> UUID? {
    guard isExternal(slot) else { return nil }
    let bytes = bytes(slot)
    return bytes.count == 16 ? UUID(uuid: bytes.loadUnaligned(as: uuid_t.self)) : nil
  }

  /// Whether two rows of a layout have equal values. Ignores keys and versions.
  public func hasSameValues(as other: RowPointer, _ layout: RowLayout) -> Bool {
    !layout.slots.contains { differs(from: other, $0, layout.kinds[$0]) }
  }

  /// Whether two rows of a layout have equal values, except in some slots. Ignores keys and versions.
  public func hasSameValues(as other: RowPointer, _ layout: RowLayout, butFor slots: [SlotIndex]) -> Bool {
    !layout.slots.contains { differs(from: other, $0, layout.kinds[$0]) && !slots.contains($0) }
  }

  /// Whether two rows with the same layout have equal values in some slots. Ignores keys and versions. The layout is given by its kinds of
  /// cells.
  public func hasSameValues(as other: RowPointer, in slots: [SlotIndex], _ kinds: [CellKind]) -> Bool {
    !slots.contains { differs(from: other, $0, kinds[$0]) }
  }

  /// Whether the values of a slot differ in two rows of a layout. Nil differs from every value.
  ///
  /// Numbers are compared bit by bit, text and bytes byte by byte. The name of an external file differs from a value with the same bytes.
  @inlinable public func differs(from other: RowPointer, _ slot: SlotIndex, _ kind: CellKind) -> Bool {
    if isPresent(slot) != other.isPresent(slot) { return true }
    guard isPresent(slot) else { return false }
    guard kind == .bytes else { return integer(slot) != other.integer(slot) }
    return !Bytes.equal(bytes(slot), other.bytes(slot)) || isExternal(slot) != other.isExternal(slot)
  }

  /// Whether a slot has another value than in another row of a layout, wherever the values are stored.
  ///
  /// The context that has saved a large value has its bytes, and the store's row has the name of the file. The digest in the name shows
  /// that they are the same value.
  package func hasOtherValue(than other: RowPointer, _ slot: SlotIndex, _ kind: CellKind) -> Bool {
    guard differs(from: other, slot, kind) else { return false }
    guard kind == .bytes, isPresent(slot), other.isPresent(slot), isExternal(slot) != other.isExternal(slot) else { return true }
    let (file, value) = isExternal(slot) ? (self, other) : (other, self)
    return file.externalID(slot).map { !ExternalDataName.identifies($0, value.bytes(slot)) } ?? true
  }

  /// The text in the slot, as a new `String`.
  @inlinable @inline(__always) public func string(_ slot: SlotIndex) -> String {
    let bytes = bytes(slot)
    return String(decoding: bytes, as: UTF8.self)
  }
}
