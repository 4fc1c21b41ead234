/// A slot of a hash table, which contains an entry or is free. All bytes of a free slot are 0.
@usableFromInline package protocol HashSlot: BitwiseCopyable {
  static var free: Self { get }
  var isFree: Bool { get }
}

/// A slot that contains the position of an entry in the caller's array.
@usableFromInline package struct PositionSlot: HashSlot {
  /// The position plus 1, or 0 if the slot is free.
  @usableFromInline let number: UInt32

  @inlinable init(number: UInt32) { self.number = number }
  @inlinable package init(_ position: Int) { self.init(number: UInt32(position + 1)) }

  @inlinable package static var free: PositionSlot { PositionSlot(number: 0) }
  @inlinable package var isFree: Bool { number == 0 }
  @inlinable package var position: Int { Int(number) - 1 }
}

/// A hash table with open addressing and linear probing, in memory that the caller owns. ``HashTable`` owns its memory and grows.
///
/// The caller computes the hashes, compares the entries, and keeps at least one slot free. Without a free slot, a search doesn't end. The
/// types are `@usableFromInline`, so that the compiler specialises them for other modules.
@usableFromInline package struct HashSlots<Slot: HashSlot> {
  @usableFromInline let base: UnsafeMutablePointer<Slot>
  @usableFromInline let mask: Int

  /// - Parameter slots: The memory. The number of slots is a power of two. Each is free or contains an entry that was added to this memory.
  @inlinable package init(_ slots: UnsafeMutableBufferPointer<Slot>) {
    base = slots.baseAddress!
    mask = slots.count - 1
  }

  @inlinable package subscript(index: Int) -> Slot {
    @inline(__always) get { base[index] }
    @inline(__always) nonmutating set { base[index] = newValue }
  }

  /// The index of the entry that `matches` accepts. If there is none, the index of the free slot for it.
  @inlinable @inline(__always) package func index(hash: Int, where matches: (Slot) -> Bool) -> Int {
    var index = hash & mask
    while !base[index].isFree, !matches(base[index]) { index = (index + 1) & mask }
    return index
  }

  /// Adds an entry without comparing it with others.
  @inlinable @inline(__always) package func insert(_ slot: Slot, hash: Int) {
    base[index(hash: hash) { _ in false }] = slot
  }

  /// Removes the entry at an index. Moves later entries into the gap, so no tombstone is needed.
  @inlinable package func remove(at index: Int, hash: (Slot) -> Int) {
    var hole = index, next = (hole + 1) & mask
    while !base[next].isFree {
      // An entry must not move before the index where searches for it begin.
      if (next - hash(base[next])) & mask >= (next - hole) & mask {
        base[hole] = base[next]
        hole = next
      }
      next = (next + 1) & mask
    }
    base[hole] = .free
  }
}

/// The hash of a number for a table of at most 2^32 slots.
///
/// It consists of bits 32 to 63 of the number's product with 2^64 divided by the golden ratio.
/// In a table of 2^n slots, the index doesn't depend on the number's upper 32 - n bits.
@inlinable @inline(__always) package func multiplicativeHash(_ number: Int64) -> Int {
  Int(truncatingIfNeeded: (UInt64(bitPattern: number) &* 0x9E37_79B9_7F4A_7C15) >> 32)
}
