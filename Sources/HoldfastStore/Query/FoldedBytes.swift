/// The folded bytes of a text, one at a time, allocating nothing.
struct FoldedBytes: IteratorProtocol {
  private let text: UnsafeRawBufferPointer
  private let folding: TextFolding
  private let trie: FoldingTrie?
  /// Where in the text the next scalar begins.
  private var position: Int
  /// The folded bytes of the scalar before `position`, of which `offset` are given out.
  private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
  private var offset = 0

  /// Starts at a byte of the text that begins a scalar.
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

  /// The next byte when it is ASCII, or when nothing is folded.
  private mutating func nextUndecoded() -> UInt8 {
    defer { position += 1 }
    return folding.lowered(text[position])
  }
}
