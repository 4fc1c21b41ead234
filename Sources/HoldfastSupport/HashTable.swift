/// A hash table that owns its slots and keeps at least half of them free. It is cheaper than a `Dictionary`; see ``HashSlots``.
///
/// Adding, removing and reserving invalidate indexes.
@usableFromInline package struct HashTable<Slot: HashSlot>: ~Copyable {
  @usableFromInline var slots: HashSlots<Slot>
  @usableFromInline var count = 0

  /// Creates an empty table with capacity for a number of entries.
  @inlinable package init(capacity: Int = 0) {
    let size = max(64, 1 << (Int.bitWidth - max(0, 2 * capacity - 1).leadingZeroBitCount))
    let memory = UnsafeMutableBufferPointer<Slot>.allocate(capacity: size)
    memory.initialize(repeating: .free)
    slots = HashSlots(memory)
  }

  deinit { slots.base.deallocate() }

  /// Reserves capacity for more entries.
  @inlinable package mutating func reserve(_ more: Int, hash: (Slot) -> Int) {
    if (count + more) * 2 <= slots.mask + 1 { return }
    var grown = HashTable(capacity: count + more)
    for index in 0...slots.mask where !slots[index].isFree { grown.slots.insert(slots[index], hash: hash(slots[index])) }
    grown.count = count
    self = grown
  }

  /// The index of the entry that `matches` accepts. If there is none, the index of the free slot for it.
  @inlinable @inline(__always) package func index(hash: Int, where matches: (Slot) -> Bool) -> Int {
    slots.index(hash: hash, where: matches)
  }

  /// The slot at an index. Reserve capacity before you store an entry in a free slot.
  @inlinable package subscript(index: Int) -> Slot {
    @inline(__always) get { slots[index] }
    @inline(__always) set {
      if slots[index].isFree { count += 1 }
      slots[index] = newValue
    }
  }

  /// Adds an entry without comparing it with others.
  @inlinable package mutating func insert(_ slot: Slot, hash: (Slot) -> Int) {
    reserve(1, hash: hash)
    self[index(hash: hash(slot)) { _ in false }] = slot
  }

  /// Removes the entry at an index.
  @inlinable package mutating func remove(at index: Int, hash: (Slot) -> Int) {
    count -= 1
    slots.remove(at: index, hash: hash)
  }
}
