import HoldfastStore

/// The to-one relationships of a row.
extension RowPointer {
  /// The key of the destination in a slot; nil if there is none.
  @inline(__always) func destinationKey(_ slot: SlotIndex) -> ObjectKey? { isPresent(slot) ? key(slot) : nil }

  /// Whether the destination in a slot has a key.
  @inline(__always) func references(_ key: ObjectKey, in slot: SlotIndex) -> Bool { isPresent(slot) && self.key(slot) == key }
}

extension PrivateRow {
  /// Sets the key of the destination in a slot.
  @inline(__always) func setDestination(_ key: ObjectKey, in slot: SlotIndex) { set(slot, cell: UInt64(bitPattern: key.rawValue)) }
}
