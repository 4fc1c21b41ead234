/// A set of keys, stored as a bitmap because most keys are allocated consecutively.
struct KeySet {
  /// The bits of 64 keys.
  private struct Word: KeyMapElement {
    var bits: UInt64
    static var none: Word { Word(bits: 0) }
    var isNone: Bool { bits == 0 }
  }

  private var words = KeyMap<Word>(shift: 6)

  /// Inserts a key.
  ///
  /// - Returns: Whether the set didn't contain the key.
  @inline(__always) mutating func insert(_ key: Int64) -> Bool {
    let word = words[key >> 6].bits, bit: UInt64 = 1 << UInt64(key & 63)
    words.set(key >> 6, Word(bits: word | bit))
    return word & bit == 0
  }
}
