/// Assigns numbers to strings, from 0 in order of appearance. Equal strings get the same number.
///
/// It uses open addressing with ranges of the arena. A dictionary would create a string per lookup.
struct TextNumbering {
  /// Indexed by number.
  private(set) var texts: [ByteRange] = []
  /// For each slot, the number of its string plus 1, or 0 if it is empty. The count is a power of two.
  private var slots = [UInt32](repeating: 0, count: 1024)

  /// The number of a string. Adds a new string to the arena.
  mutating func number(of bytes: UnsafeRawBufferPointer, in arena: inout ByteArena) -> UInt32 {
    if (texts.count + 1) * 2 > slots.count { grow(arena) }
    var slot = firstSlot(bytes)
    while slots[slot] != 0 {
      let number = slots[slot] - 1
      if arena.withBytes(texts[Int(number)], { $0.elementsEqual(bytes) }) { return number }
      slot = (slot + 1) & (slots.count - 1)
    }
    texts.append(arena.append(bytes))
    slots[slot] = UInt32(texts.count)
    return slots[slot] - 1
  }

  private func firstSlot(_ bytes: UnsafeRawBufferPointer) -> Int {
    var hash = FieldHash()
    hash.combine(bytes: bytes)
    return Int(truncatingIfNeeded: hash.value) & (slots.count - 1)
  }

  private mutating func grow(_ arena: ByteArena) {
    slots = [UInt32](repeating: 0, count: slots.count * 2)
    for (number, text) in texts.enumerated() {
      var slot = arena.withBytes(text) { firstSlot(UnsafeRawBufferPointer($0)) }
      while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
      slots[slot] = UInt32(number + 1)
    }
  }
}
