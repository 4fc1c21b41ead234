/// The type of each slot's attribute, as an ``AttributeTypeSet`` with one element.
///
/// Relationships and unused entries have the value 0. Each entity has ``ManagedObject/tabulatedSlots`` entries. The address never changes,
/// so consecutive accesses load it once.
@usableFromInline @frozen struct SlotTypes {
  @usableFromInline let base: UnsafeMutablePointer<UInt32>

  /// A table in which every entry is 0.
  init(entityCount: Int) {
    let count = entityCount * ManagedObject.tabulatedSlots
    base = .allocate(capacity: count)
    base.initialize(repeating: 0, count: count)
  }

  func deallocate() { base.deallocate() }

  @inlinable @inline(__always) subscript(index: Int) -> UInt32 {
    get { base[index] }
    nonmutating set { base[index] = newValue }
  }
}
