/// Gives equal texts the same number, from 0 in order of appearance.
///
/// Open addressing over the places of the texts in the arena: a dictionary of strings would make a string per look-up.
struct TextNumbering {
  /// Keyed by number.
  private(set) var texts: [ByteRange] = []
  /// Number + 1 of the text in each slot, 0 where there is none; the count is a power of two.
  private var slots = [UInt32](repeating: 0, count: 1024)

  /// The number of a text; a new text is added to the arena.
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
