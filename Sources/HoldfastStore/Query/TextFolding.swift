/// The differences that a comparison of text ignores: the `[c]` and `[d]` of a predicate, Core Data's `NSComparisonPredicate.Options`.
///
/// Two texts are equal if they fold to the same UTF-8. Folding uses tables of one Unicode version (``unicodeVersion``) for each scalar, so
/// results are the same on every platform and in every store. Folding is neither a locale's collation nor canonical equivalence: without
/// ``diacriticInsensitive``, an "é" of one scalar differs from an "e" followed by a combining accent.
///
/// ```swift
/// let folding: TextFolding = [.caseInsensitive, .diacriticInsensitive]
/// let isSame = folding.fold("Crème BRÛLÉE") == Array("creme brulee".utf8)  // true
/// ```
///
/// Folding well-formed text twice is the same as folding it once. Damaged text is safe to fold and compare: bytes that aren't well-formed
/// UTF-8 stay unchanged. The empty set compares plain bytes.
///
/// The tables of a set are created when they are first needed for text that isn't ASCII. The call that creates them allocates memory, even
/// if its method is documented to allocate none. Bits without a name are ignored.
public struct TextFolding: OptionSet, Sendable, Hashable, Codable {
  /// The bits of the set.
  public let rawValue: UInt8

  /// Creates a set from its bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// `[c]`: full Unicode case folding. "Straße" equals "STRASSE"; nothing is normalised.
  public static let caseInsensitive = TextFolding(rawValue: 1)

  /// `[d]`: canonical decomposition without combining marks, at any position.
  ///
  /// Combining marks have the general category Mn and a combining class other than 0. Hangul syllables aren't decomposed.
  ///
  /// This also removes marks that readers don't regard as accents. Examples are the voicing marks of kana, the points of Hebrew and
  /// Arabic, and the nukta and virama of Indic scripts.
  public static let diacriticInsensitive = TextFolding(rawValue: 2)
}

extension TextFolding {
  /// The version of the Unicode data in the tables, such as "14.0.0".
  public static let unicodeVersion: String = FoldingTables.unicodeVersion

  /// Appends the folded UTF-8 of a text to an array.
  public func fold(_ text: UnsafeRawBufferPointer, into output: inout [UInt8]) {
    withFolded(text) { output.append(contentsOf: $0) }
  }

  /// Returns the folded UTF-8 of a string.
  public func fold(_ text: String) -> [UInt8] {
    var text = text
    var output: [UInt8] = []
    text.withUTF8 { fold(UnsafeRawBufferPointer($0), into: &output) }
    return output
  }
}

extension TextFolding {
  /// Whether a folded text equals the needle.
  ///
  /// This method and the other tests fold the text, but not the needle: pass one that the same set has already folded. Allocates no memory.
  public func equals(_ text: UnsafeRawBufferPointer, folded needle: UnsafeRawBufferPointer) -> Bool {
    matches(text, needle, wholeText: true)
  }

  /// Whether a folded text begins with the folded needle. Allocates no memory.
  public func hasPrefix(_ text: UnsafeRawBufferPointer, folded needle: UnsafeRawBufferPointer) -> Bool {
    matches(text, needle, wholeText: false)
  }

  /// Whether a folded text ends with the folded needle.
  ///
  /// Allocates no memory if the text is short, or if the ASCII bytes at its end decide the result.
  public func hasSuffix(_ text: UnsafeRawBufferPointer, folded needle: UnsafeRawBufferPointer) -> Bool {
    var textEnd = text.count
    var needleEnd = needle.count
    // An ASCII byte folds to one byte in any context, so the ends can be compared before the rest is folded.
    while needleEnd > 0, textEnd > 0, text[textEnd - 1] < 0x80 {
      guard lowered(text[textEnd - 1]) == needle[needleEnd - 1] else { return false }
      textEnd -= 1
      needleEnd -= 1
    }
    if needleEnd == 0 { return true }
    if textEnd == 0 { return false }
    // No scalar extends past an ASCII byte, so the rest can be folded separately.
    let rest = UnsafeRawBufferPointer(rebasing: text[..<textEnd])
    return withFolded(rest) { folded in
      needleEnd <= folded.count && folded.suffix(needleEnd).elementsEqual(needle[..<needleEnd])
    }
  }

  /// Whether a folded text contains the folded needle. An empty needle is in every text.
  ///
  /// Allocates no memory if the text is ASCII or short. Takes time proportional to the text, and in the worst case to the text times the
  /// needle.
  public func contains(_ text: UnsafeRawBufferPointer, folded needle: UnsafeRawBufferPointer) -> Bool {
    if isASCII(text) { return search(text, for: needle) { lowered($0) } }
    return withFolded(text) { search($0, for: needle) { $0 } }
  }

  /// The order of two texts by their folded bytes: negative, zero or positive. Allocates no memory.
  public func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    var position = 0
    let end = min(a.count, b.count)
    while position < end, (a[position] | b[position]) < 0x80 {
      let (left, right) = (lowered(a[position]), lowered(b[position]))
      if left != right { return left < right ? -1 : 1 }
      position += 1
    }
    var left = FoldedBytes(a, from: position, folding: self)
    var right = FoldedBytes(b, from: position, folding: self)
    return compareRest(&left, &right)
  }
}

extension TextFolding {
  /// The tables of this set, or nil for the empty set, which changes nothing.
  var trie: FoldingTrie? {
    switch intersection([.caseInsensitive, .diacriticInsensitive]) {
    case .caseInsensitive: .caseInsensitive
    case .diacriticInsensitive: .diacriticInsensitive
    case []: nil
    default: .caseAndDiacriticInsensitive
    }
  }

  /// The folding of an ASCII byte. The generator verifies that the tables make no other change to ASCII.
  @inline(__always)
  func lowered(_ byte: UInt8) -> UInt8 {
    let isCapital = byte &- UInt8(ascii: "A") < 26
    return isCapital && contains(.caseInsensitive) ? byte | 0x20 : byte
  }

  /// Whether the folded text equals the needle, or begins with it.
  private func matches(_ text: UnsafeRawBufferPointer, _ needle: UnsafeRawBufferPointer, wholeText: Bool) -> Bool {
    var matched = 0
    let end = min(text.count, needle.count)
    while matched < end, text[matched] < 0x80 {
      guard lowered(text[matched]) == needle[matched] else { return false }
      matched += 1
    }
    return matchesRest(text, needle, from: matched, wholeText: wholeText)
  }

  /// Continues after a prefix of the text that is ASCII and matches the needle byte by byte.
  private func matchesRest(
    _ text: UnsafeRawBufferPointer, _ needle: UnsafeRawBufferPointer, from start: Int, wholeText: Bool
  ) -> Bool {
    let trie = trie
    var position = start
    var matched = start
    // Comparing the whole text continues after the needle, because marks that fold to nothing may follow.
    while position < text.count, wholeText || matched < needle.count {
      guard let trie, text[position] >= 0x80 else {
        guard matched < needle.count, lowered(text[position]) == needle[matched] else { return false }
        position += 1
        matched += 1
        continue
      }
      for byte in trie.takeFolded(from: text, at: &position) {
        guard matched < needle.count else { return !wholeText }
        guard needle[matched] == byte else { return false }
        matched += 1
      }
    }
    return matched == needle.count
  }

  /// Calls `body` with the folded text. Short text is folded on the stack.
  private func withFolded<Result>(_ text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    guard let trie else { return body(text) }
    let capacity = text.count * FoldingTables.maximumGrowth
    return withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { scratch in
      body(UnsafeRawBufferPointer(rebasing: scratch[..<write(text, into: scratch, trie)]))
    }
  }

  /// Writes the folded text to memory of sufficient size, and returns the number of bytes.
  private func write(_ text: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ trie: FoldingTrie) -> Int {
    var position = 0
    var written = 0
    while position < text.count {
      if text[position] < 0x80 {
        output[written] = lowered(text[position])
        position += 1
        written += 1
        continue
      }
      for byte in trie.takeFolded(from: text, at: &position) {
        output[written] = byte
        written += 1
      }
    }
    return written
  }
}

private func isASCII(_ text: UnsafeRawBufferPointer) -> Bool {
  text.reduce(0, |) < 0x80
}

/// Whether the needle occurs in a text, whose bytes are each folded by `fold`.
@inline(__always)
private func search(_ text: UnsafeRawBufferPointer, for needle: UnsafeRawBufferPointer, fold: (UInt8) -> UInt8) -> Bool {
  guard let first = needle.first else { return true }
  guard needle.count <= text.count else { return false }
  for start in 0...(text.count - needle.count) where fold(text[start]) == first {
    var matched = 1
    while matched < needle.count, fold(text[start + matched]) == needle[matched] { matched += 1 }
    if matched == needle.count { return true }
  }
  return false
}

private func compareRest(_ left: inout FoldedBytes, _ right: inout FoldedBytes) -> Int {
  while true {
    switch (left.next(), right.next()) {
    case (nil, nil): return 0
    case (nil, _): return -1
    case (_, nil): return 1
    case (let a?, let b?): if a != b { return a < b ? -1 : 1 }
    }
  }
}
