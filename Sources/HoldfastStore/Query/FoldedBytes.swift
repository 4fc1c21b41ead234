/// An iterator over the folded bytes of a text. Allocates no memory.
struct FoldedBytes: IteratorProtocol {
  private let text: UnsafeRawBufferPointer
  private let folding: TextFolding
  private let trie: FoldingTrie?
  /// The position in the text at which the next scalar begins.
  private var position: Int
  /// The folded bytes of the scalar before `position`. The first `offset` of them have been returned.
  private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
  private var offset = 0

  /// Creates an iterator that begins at a position. Requires that a scalar begins there.
  init(_ text: UnsafeRawBufferPointer, from position: Int, folding: TextFolding) {
    self.text = text
    self.folding = folding
    self.trie = folding.trie
    self.position = position
  }

  mutating func next() -> UInt8? {
    while offset == piece.count {
      guard position < text.count else { return nil }
      guard let trie, text[position] >= 0x80 else { return nextUndecoded() }
      piece = trie.takeFolded(from: text, at: &position)
      offset = 0
    }
    defer { offset += 1 }
    return piece[offset]
  }

  /// The next byte, if it is ASCII or nothing is folded.
  private mutating func nextUndecoded() -> UInt8 {
    defer { position += 1 }
    return folding.lowered(text[position])
  }
}
