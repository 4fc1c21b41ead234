/// The tokens of a statement in `sqlite_master`, without white space and comments. The bytes must outlive it.
struct SQLTokens: Sequence, IteratorProtocol {
  /// A token. Its text excludes quotes.
  struct Token {
    enum Kind { case word, quotedName, text, number, symbol }

    let kind: Kind
    let bytes: UnsafeRawBufferPointer

    /// Whether it is this bare word, in any case. The argument is in upper case.
    func isWord(_ word: StaticString) -> Bool { kind == .word && bytes.isEqual(word) }

    /// Whether it is this one-character symbol.
    func isSymbol(_ character: Character) -> Bool { kind == .symbol && bytes.count == 1 && bytes[0] == character.asciiValue }

    /// The name in upper case, because SQLite ignores case in names; nil if the token isn't a name.
    var name: String? { kind == .word || kind == .quotedName ? SQLName.upper(String(decoding: bytes, as: UTF8.self)) : nil }
  }

  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// Calls a closure with the tokens of a text.
  static func withTokens<Result>(of text: String, _ body: (SQLTokens) -> Result) -> Result {
    Array(text.utf8).withUnsafeBytes { body(SQLTokens($0)) }
  }

  /// Replaces tokens of a text.
  ///
  /// - Parameter body: Returns the texts that replace tokens, in the order of these; nil if nothing can be replaced.
  static func replacing(in text: String, _ body: ([Token]) -> [(place: Int, text: String)]?) -> String? {
    Array(text.utf8).withUnsafeBytes { bytes in
      let tokens = Array(SQLTokens(bytes))
      guard let replacements = body(tokens), let base = bytes.baseAddress else { return nil }
      var result: [UInt8] = [], copied = 0
      for (place, text) in replacements {
        guard let start = tokens[place].bytes.baseAddress.map({ $0 - base }) else { return nil }
        result += bytes[copied..<start]
        result += text.utf8
        copied = start + tokens[place].bytes.count
      }
      return String(decoding: result + bytes[copied...], as: UTF8.self)
    }
  }

  mutating func next() -> Token? {
    skipSpace()
    guard position < bytes.count else { return nil }
    let start = position
    switch bytes[position] {
    case UInt8(ascii: "'"): return quoted(.text, UInt8(ascii: "'"))
    case UInt8(ascii: "\""): return quoted(.quotedName, UInt8(ascii: "\""))
    case UInt8(ascii: "`"): return quoted(.quotedName, UInt8(ascii: "`"))
    case UInt8(ascii: "["): return quoted(.quotedName, UInt8(ascii: "]"))
    case let byte where Self.isDigit(byte):
      while position < bytes.count, Self.isWordByte(bytes[position]) || bytes[position] == UInt8(ascii: ".") { position += 1 }
      return token(.number, start)
    case let byte where Self.isWordByte(byte):
      while position < bytes.count, Self.isWordByte(bytes[position]) { position += 1 }
      return token(.word, start)
    default:
      position += 1
      return token(.symbol, start)
    }
  }

  private func token(_ kind: Token.Kind, _ start: Int) -> Token {
    Token(kind: kind, bytes: UnsafeRawBufferPointer(rebasing: bytes[start..<position]))
  }

  /// Keeps doubled quotes, which model names don't contain.
  private mutating func quoted(_ kind: Token.Kind, _ end: UInt8) -> Token {
    position += 1
    let start = position
    while position < bytes.count {
      if bytes[position] == end {
        if position + 1 < bytes.count, bytes[position + 1] == end, end != UInt8(ascii: "]") {
          position += 2
          continue
        }
        break
      }
      position += 1
    }
    let token = token(kind, start)
    position = Swift.min(position + 1, bytes.count)
    return token
  }

  private mutating func skipSpace() {
    while position < bytes.count {
      let byte = bytes[position], next = position + 1 < bytes.count ? bytes[position + 1] : 0
      if byte == UInt8(ascii: " ") || (9...13).contains(byte) {
        position += 1
      } else if byte == 0xEF && next == 0xBB && position + 2 < bytes.count && bytes[position + 2] == 0xBF {
        // SQLite takes a byte order mark for white space.
        position += 3
      } else if byte == UInt8(ascii: "-") && next == UInt8(ascii: "-") {
        while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
      } else if byte == UInt8(ascii: "/") && next == UInt8(ascii: "*") {
        position += 2
        while position < bytes.count,
          !(bytes[position] == UInt8(ascii: "*") && position + 1 < bytes.count && bytes[position + 1] == UInt8(ascii: "/"))
        { position += 1 }
        position = Swift.min(position + 2, bytes.count)
      } else {
        return
      }
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 95 || byte == 36 || byte >= 128
  }
}

extension UnsafeRawBufferPointer {
  /// Whether the bytes are this word of ASCII letters, in any case. The word is in upper case.
  fileprivate func isEqual(_ word: StaticString) -> Bool {
    guard count == word.utf8CodeUnitCount else { return false }
    for index in 0..<count {
      let byte = self[index]
      if ((97...122).contains(byte) ? byte - 32 : byte) != word.utf8Start[index] { return false }
    }
    return true
  }
}
