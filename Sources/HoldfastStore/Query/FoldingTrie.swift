/// What each scalar folds to under one combination of foldings, found in two loads.
///
/// The scalars are cut into blocks of 64. `blockStarts` says where the answers for a block begin in `answers`; the
/// blocks in which nothing folds share one run of zeros. An answer is 0 when the scalar stays as it is, and otherwise
/// the place of its folded UTF-8 in `pool`, as in ``FoldingMappings/Entry/place``.
///
/// The tables live in memory that is never freed: one trie per combination and process, built on first use
/// (0.1 ms each for case and diacritics, 0.7 ms for both together).
///
/// `@unchecked Sendable` because the memory is written by `init` only, before anybody else can see the value.
struct FoldingTrie: @unchecked Sendable {  // because only the initialiser writes to the memory
  /// Full case folding.
  static let caseInsensitive = FoldingTrie(.caseInsensitive)
  /// Decomposition without combining marks.
  static let diacriticInsensitive = FoldingTrie(.diacriticInsensitive)
  /// Case folded first, then diacritics, and again until nothing changes.
  static let caseAndDiacriticInsensitive = FoldingTrie(.caseAndDiacriticInsensitive)

  private static let blockSize = 64

  private let blockStarts: UnsafeBufferPointer<UInt16>
  private let answers: UnsafeBufferPointer<UInt32>
  private let pool: UnsafeRawBufferPointer

  /// The folded UTF-8 of a scalar, or nil when the scalar folds to itself.
  func folded(_ scalar: UInt32) -> UnsafeRawBufferPointer? {
    let block = Int(scalar) / Self.blockSize
    guard block < blockStarts.count else { return nil }
    let answer = Int(answers[Int(blockStarts[block]) + Int(scalar) % Self.blockSize])
    guard answer != 0 else { return nil }
    return UnsafeRawBufferPointer(rebasing: pool[(answer >> 4)..<(answer >> 4) + (answer & 15)])
  }

  /// The folded bytes, which may be none, of the scalar that begins at `position`; moves the position behind it.
  ///
  /// A byte that is not well-formed UTF-8 is its own folding.
  func takeFolded(from text: UnsafeRawBufferPointer, at position: inout Int) -> UnsafeRawBufferPointer {
    let scalar = DecodedScalar(at: position, in: text)
    let start = position
    position += scalar.length
    return scalar.value.flatMap(folded) ?? UnsafeRawBufferPointer(rebasing: text[start..<position])
  }

  private init(_ mappings: FoldingMappings) {
    let largest = mappings.entries.reduce(0) { max($0, $1.scalar) }
    var blockStarts = [UInt16](repeating: 0, count: Int(largest) / Self.blockSize + 1)
    var answers = [UInt32](repeating: 0, count: Self.blockSize)
    for entry in mappings.entries {
      let block = Int(entry.scalar) / Self.blockSize
      if blockStarts[block] == 0 {
        blockStarts[block] = UInt16(answers.count)
        answers.append(contentsOf: repeatElement(0, count: Self.blockSize))
      }
      answers[Int(blockStarts[block]) + Int(entry.scalar) % Self.blockSize] = entry.place
    }
    self.blockStarts = UnsafeBufferPointer(immortalCopy(of: blockStarts))
    self.answers = UnsafeBufferPointer(immortalCopy(of: answers))
    self.pool = UnsafeRawBufferPointer(immortalCopy(of: mappings.pool))
  }
}

private func immortalCopy<Element>(of elements: [Element]) -> UnsafeMutableBufferPointer<Element> {
  let copy = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
  _ = copy.initialize(from: elements)
  return copy
}
