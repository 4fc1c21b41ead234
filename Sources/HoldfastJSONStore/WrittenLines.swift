import HoldfastAtomicStore
import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Lines of objects in exactly the form that ``JSONDocumentWriter`` produces. They are read without yajl, which calls a function per token.
///
/// yajl defines what is right. So a line in any other form, or with any mistake, is left to yajl.
package enum WrittenLines {
  /// Whether lines are read in this way. Tests set it to false to compare.
  @TaskLocal package static var areRead = true

  /// The index of the first line that begins with an object at or after `start`, and has a line before it.
  static func start(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
    guard let base = bytes.baseAddress else { return nil }
    let end = base + bytes.count
    var place = base + start
    while let found = memchr(place, 0x0A, end - place) {
      place = UnsafeRawPointer(found) + 1
      var line = ByteCursor(place, end)
      if line.skip(word: ByteCursor.key) { return place - base }
    }
    return nil
  }

  /// Whether the bytes before a line are those between two objects of a list, or before the first one.
  static func precede(_ bytes: UnsafeRawBufferPointer, _ line: Int) -> Bool {
    line >= 2 && (bytes[line - 2] == UInt8(ascii: ",") || bytes[line - 2] == UInt8(ascii: "["))
  }

  /// Writes a text without the writer's escapes. Returns its length, or nil if there is another escape.
  static func unescape(_ text: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer) -> Int? {
    var index = 0, count = 0
    while index < text.count {
      var byte = text[index]
      index += 1
      if byte == UInt8(ascii: "\\") {
        guard index < text.count else { return nil }
        switch text[index] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): byte = text[index]
        case UInt8(ascii: "n"): byte = 0x0A
        case UInt8(ascii: "r"): byte = 0x0D
        case UInt8(ascii: "t"): byte = 0x09
        case UInt8(ascii: "u"):
          guard text.count - index > 4, text[index + 1] == 0x30, text[index + 2] == 0x30, text[index + 3] &- 0x30 < 8,
            let high = NumberText.hexadecimal(text[index + 3]), let low = NumberText.hexadecimal(text[index + 4])
          else { return nil }
          byte = high << 4 | low
          index += 4
        default: return nil
        }
        index += 1
      }
      output.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
      count += 1
    }
    return count
  }
}

extension JSONRowReader {
  /// Reads the lines at the beginning of some bytes, as long as each has the form of the writer and another object follows.
  ///
  /// The bytes are valid UTF-8.
  ///
  /// - Returns: The number of bytes of these lines.
  func takeLines(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    guard let base = bytes.baseAddress else { return 0 }
    let fields = fields
    var line = ByteCursor(base, base + bytes.count), start = base
    while takeLine(&line, fields) {
      try endRow()
      start = line.place
    }
    forgetLinks()
    return start - base
  }

  /// Reads a line, and moves to the beginning of the next object. Returns false if the line has another form.
  @inline(__always) private func takeLine(_ line: inout ByteCursor, _ fields: JSONFieldTable) -> Bool {
    beginRow()
    guard line.skip(word: ByteCursor.key), let own = line.integer(), keyRange.contains(own) else { return false }
    key = ObjectKey(own)
    while line.byte == UInt8(ascii: ",") {
      // The members follow in the order of the table. Most objects have most of them.
      repeat {
        field += 1
        if field == fields.count { return false }
      } while !line.skip(fields.names, field)
      guard takeValue(&line, fields.kind(field)) else { return false }
    }
    return line.skipEnd()
  }

  @inline(__always) private func takeValue(_ line: inout ByteCursor, _ kind: JSONEntity.Kind) -> Bool {
    switch kind {
    case .attribute(let slot, .string), .attribute(let slot, .uri):
      guard let (text, hasEscapes) = line.text() else { return false }
      if hasEscapes { return values.set(slot, maximumByteCount: text.count) { WrittenLines.unescape(text, into: $0) } }
      values.set(slot, bytes: text)
      return true
    case .attribute(let slot, .integer64) where line.byte != ByteCursor.quote: return takeInteger(&line, slot, .min ... .max)
    case .attribute(let slot, .integer32): return takeInteger(&line, slot, Int64(Int32.min)...Int64(Int32.max))
    case .attribute(let slot, .integer16): return takeInteger(&line, slot, Int64(Int16.min)...Int64(Int16.max))
    case .attribute(let slot, .double) where line.byte != ByteCursor.quote, .attribute(let slot, .date) where line.byte != ByteCursor.quote:
      guard let value = line.finiteNumber() else { return false }
      values.set(slot, real: value)
      return true
    case .attribute(let slot, .boolean):
      guard let value = line.boolean() else { return false }
      values.set(slot, integer: value ? 1 : 0)
      return true
    case .target(let slot) where line.byte != ByteCursor.quote: return takeInteger(&line, slot, keyRange)
    case .targets(let place, let isOrdered): return takeTargets(&line, place, isOrdered)
    case .orders: return false
    default: return takeOther(&line)
    }
  }

  @inline(__always) private func takeInteger(_ line: inout ByteCursor, _ slot: SlotIndex, _ range: ClosedRange<Int64>) -> Bool {
    guard let value = line.integer(), range.contains(value) else { return false }
    values.set(slot, integer: value)
    return true
  }

  @inline(__always) private func takeTargets(_ line: inout ByteCursor, _ place: Int, _ isOrdered: Bool) -> Bool {
    guard line.skip(UInt8(ascii: "[")) else { return false }
    repeat {
      guard let target = line.integer(), keyRange.contains(target) else { return false }
      add(ObjectKey(target), place, isOrdered)
    } while line.skip(UInt8(ascii: ","))
    return line.skip(UInt8(ascii: "]"))
  }

  /// Reads a value that isn't among the most frequent ones.
  private func takeOther(_ line: inout ByteCursor) -> Bool {
    do {
      if line.byte == ByteCursor.quote {
        guard let (text, hasEscapes) = line.text(), !hasEscapes else { return false }
        try string(text)
      } else {
        guard let text = line.number() else { return false }
        try number(text)
      }
      return true
    } catch {
      // yajl repeats it, and reports the error with its position.
      return false
    }
  }
}

extension ByteCursor {
  static let quote = UInt8(ascii: "\"")
  /// The text `{"$key":`.
  static let key: UInt64 = 0x3A22_7965_6B24_227B
  /// The text `},\n{` between two objects.
  private static let end: UInt32 = 0x7B0A_2C7D

  /// Moves to the beginning of the next object.
  @inline(__always) fileprivate mutating func skipEnd() -> Bool {
    guard isNext(word: ByteCursor.end) else { return false }
    place += 3
    return true
  }

  /// Reads a floating-point number.
  @inline(__always) fileprivate mutating func finiteNumber() -> Double? {
    let start = place
    if let value = real(), byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") { return value }
    place = start
    return number().flatMap(NumberText.real)
  }

  /// Reads a text in quotes.
  ///
  /// - Returns: The bytes between the quotes, and whether there is a backslash among them.
  @inline(__always) fileprivate mutating func text() -> (UnsafeRawBufferPointer, hasEscapes: Bool)? {
    guard skip(ByteCursor.quote) else { return nil }
    let start = place
    var hasEscapes = false
    while true {
      skipPlain()
      switch byte {
      case ByteCursor.quote:
        place += 1
        return (UnsafeRawBufferPointer(start: start, count: place - start - 1), hasEscapes)
      case UInt8(ascii: "\\") where count >= 2:
        hasEscapes = true
        place += 2
      default: return nil
      }
    }
  }

  /// Moves to the next quotation mark, backslash or control character.
  @inline(__always) private mutating func skipPlain() {
    let high: UInt64 = 0x8080_8080_8080_8080, ones: UInt64 = 0x0101_0101_0101_0101
    while count >= 8 {
      let word = UInt64(littleEndian: place.loadUnaligned(as: UInt64.self))
      // As in the writer. The lowest bit that is found belongs to the first such byte.
      let quotes = word ^ (0x22 &* ones), backslashes = word ^ (0x5C &* ones)
      let found =
        (((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes) | ((word &- (0x20 &* ones)) & ~word)) & high
      if found != 0 {
        place += found.trailingZeroBitCount >> 3
        return
      }
      place += 8
    }
    while byte >= 0x20, byte != ByteCursor.quote, byte != UInt8(ascii: "\\") { place += 1 }
  }

  /// Moves behind a number that begins as JSON requires. What follows isn't checked.
  fileprivate mutating func number() -> UnsafeRawBufferPointer? {
    let start = place
    while byte != UInt8(ascii: ","), byte != UInt8(ascii: "}"), byte > 0x20 { place += 1 }
    let text = UnsafeRawBufferPointer(start: start, count: place - start), digits = text.first == UInt8(ascii: "-") ? 1 : 0
    guard text.count > digits, text[digits] &- 0x30 < 10 else { return nil }
    let hasZero = text.count > digits + 1 && text[digits] == 0x30 && text[digits + 1] &- 0x30 < 10
    return hasZero ? nil : text
  }

  @inline(__always) fileprivate mutating func boolean() -> Bool? {
    // The texts "true" and "fals".
    if skip(word: 0x6575_7274 as UInt32) { return true }
    return skip(word: 0x736C_6166 as UInt32) && skip(UInt8(ascii: "e")) ? false : nil
  }
}
