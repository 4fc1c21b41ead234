import HoldfastStore

extension RowPointer {
  /// The key of a to-one relationship's destination; nil if it has none.
  @inline(__always) func target(_ slot: SlotIndex) -> ObjectKey? { isPresent(slot) ? key(slot) : nil }
}
