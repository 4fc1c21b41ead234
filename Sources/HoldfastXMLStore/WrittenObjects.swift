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

/// Takes objects in exactly the form that ``XMLDocumentWriter`` produces out of what libxml2 reads, and passes them to the row reader.
///
/// libxml2 calls a function per element and text, and checks every character several times. It defines what is right: an object in any
/// other form, or with any mistake, is left to it.
///
/// libxml2 reads ahead, so its state belongs to earlier bytes than those it asks for. Before objects are taken, it gets spaces until nothing
/// else is left to it. Comments, CDATA sections and processing instructions would hide what their bytes mean. After the first one that libxml2
/// receives, it receives everything.
package struct WrittenObjects {
  /// Whether objects are read in this way. Tests set it to false to compare.
  @TaskLocal package static var areRead = true

  private enum Step {
    /// libxml2 has received the end of an object, and the next byte begins another one.
    case behindObject
    /// It has received spaces as well.
    case behindSpaces
    case elsewhere
  }

  private let document: XMLDocumentReader
  private let rows: XMLRowReader?
  private var step = Step.elsewhere
  /// The number of bytes that libxml2 has not yet received of those before the root element.
  private var prologByteCount: Int
  /// Whether libxml2 received only elements and texts.
  private var isPlain: Bool
  private var endsWithAngle = false
  private var spaceCount = 0
  /// During this number of calls, libxml2 gets all bytes. The number doubles each time an object has another form.
  private var pause = 0
  private var nextPause = 1
  /// The number of bytes that were taken.
  private(set) var skipped = 0

  /// - Parameter root: The offset of the root element in the bytes that libxml2 receives.
  init(_ document: XMLDocumentReader, root: Int) {
    self.document = document
    prologByteCount = root
    rows = document.objectReader
    isPlain = WrittenObjects.areRead && rows != nil
  }

  /// Writes spaces for libxml2, if it has received the end of an object.
  mutating func padding(in buffer: UnsafeMutableRawPointer, _ most: Int) -> Int? {
    guard step == .behindObject else { return nil }
    step = document.hasBegun ? .behindSpaces : .elsewhere
    if step == .elsewhere { return nil }
    // libxml2 asks for more bytes when it has less than 250.
    spaceCount = min(most, 256)
    memset(buffer, 0x20, spaceCount)
    return spaceCount
  }

  /// Takes the objects at the beginning of some bytes.
  ///
  /// - Returns: The number of their bytes.
  mutating func take(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    guard step == .behindSpaces, let rows else { return 0 }
    step = .elsewhere
    let count = document.isBetweenObjects(atMost: spaceCount) ? try rows.takeObjects(bytes) : 0
    document.skip(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    skipped += count
    // Spaces aren't worth it for a few small objects.
    (pause, nextPause) = count > 1024 ? (0, 1) : (nextPause, min(2 * nextPause, 64))
    return count
  }

  /// The number of bytes that libxml2 gets: up to the end of an object if another one follows, otherwise all of them.
  mutating func count(of bytes: UnsafeRawBufferPointer, atMost most: Int) -> Int {
    var count = min(most, bytes.count)
    if !isPlain { return count }
    if pause > 0 {
      pause -= 1
    } else if prologByteCount == 0, let end = WrittenObjects.end(in: bytes, before: count) {
      count = end
      step = .behindObject
    }
    isPlain = !hasMarkup(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    if !isPlain { step = .elsewhere }
    return count
  }

  /// The index behind the first object's end that another object follows.
  private static func end(in bytes: UnsafeRawBufferPointer, before limit: Int) -> Int? {
    guard let base = bytes.baseAddress else { return nil }
    let end = base + bytes.count
    var place = base
    while let found = memchr(place, 0x0A, base + limit - place) {
      place = UnsafeRawPointer(found) + 1
      guard place - base > 10, ByteCursor(place, end).isNext(word: ByteCursor.objectBegins) else { continue }
      var before = ByteCursor(place - 10, end)
      if before.skip(word: ByteCursor.objectEnds) && before.skip(word: ByteCursor.endOfLine) { return place - base }
    }
    return nil
  }

  /// Whether a comment, a CDATA section, a processing instruction or a declaration begins behind the prolog.
  private mutating func hasMarkup(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let hidden = min(prologByteCount, bytes.count)
    prologByteCount -= hidden
    guard let base = bytes.baseAddress, bytes.count > hidden else { return false }
    func isMarkup(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "!") || byte == UInt8(ascii: "?") }
    if endsWithAngle && isMarkup(bytes[hidden]) { return true }
    let end = base + bytes.count
    var place = base + hidden
    endsWithAngle = bytes[bytes.count - 1] == UInt8(ascii: "<")
    while let found = memchr(place, 0x3C, end - place) {
      place = UnsafeRawPointer(found) + 1
      if place < end && isMarkup(place.load(as: UInt8.self)) { return true }
    }
    return false
  }

  /// The number of line feeds.
  static func lineCount(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard let base = bytes.baseAddress else { return 0 }
    let end = base + bytes.count
    var place = base, count = 0
    while let found = memchr(place, 0x0A, end - place) {
      place = UnsafeRawPointer(found) + 1
      count += 1
    }
    return count
  }
}

extension XMLRowReader {
  /// Reads the objects at the beginning of some bytes, as long as each has the form of the writer and the entity of the last object, and
  /// another object follows.
  ///
  /// - Returns: The number of bytes of these objects.
  func takeObjects(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    guard let base = bytes.baseAddress, let beginning, isWithinLimits(beginning) else { return 0 }
    let fields = fields
    var cursor = ByteCursor(base, base + bytes.count), start = base
    while takeObject(&cursor, beginning, fields) {
      for link in statedTargets { addStated(link.target, link.place) }
      try endObject()
      start = cursor.place
    }
    forgetLinks()
    return start - base
  }

  /// Whether no name and no object can exceed the limits for names and members.
  private func isWithinLimits(_ beginning: NameTable) -> Bool {
    // A number that is read directly has at most 20 bytes.
    guard options.maximumTextByteCount >= 20, fields.count <= options.maximumMemberCount,
      beginning.label(0).count <= options.maximumNameByteCount
    else { return false }
    return (0..<fields.count).allSatisfy { fields.names.label($0).count <= options.maximumNameByteCount }
  }

  /// Reads an object, and moves to the beginning of the next one. Returns false if it has another form.
  @inline(__always) private func takeObject(_ cursor: inout ByteCursor, _ beginning: NameTable, _ fields: XMLFieldTable) -> Bool {
    // Also forgets how many links the former object has, which aren't this object's.
    clear()
    statedTargets.removeAll(keepingCapacity: true)
    guard cursor.skip(beginning, 0), let own = cursor.integer(), keyRange.contains(own), cursor.skip(word: ByteCursor.tagEnds) else {
      return false
    }
    (key, field, memberCount) = (ObjectKey(own), -1, 0)
    while !cursor.skip(word: ByteCursor.objectEnds) {
      // The elements follow in the order of the table. Most objects have most of them.
      repeat {
        field += 1
        if field == fields.count { return false }
      } while !cursor.skip(fields.names, field)
      guard takeValue(&cursor, fields.kind(field)) else { return false }
    }
    return cursor.skip(word: ByteCursor.endOfLine) && cursor.isNext(word: ByteCursor.objectBegins)
  }

  @inline(__always) private func takeValue(_ cursor: inout ByteCursor, _ kind: XMLEntity.Kind) -> Bool {
    if case .attribute(let slot, let type) = kind { return takeAttribute(&cursor, slot, type) && cursor.skipAttributeEnd() }
    let start = cursor.place
    let count =
      switch kind {
      case .attribute: nil as Int?
      case .target(let slot): cursor.forEachReference(in: keyRange) { values.set(slot, integer: $0) }.flatMap { $0 < 2 ? $0 : nil }
      case .targets(let place, let isOrdered): cursor.forEachReference(in: keyRange) { add(ObjectKey($0), place, isOrdered) }
      case .stated(let place): cursor.forEachReference(in: keyRange) { statedTargets.append((place, ObjectKey($0))) }
      }
    return count != nil && cursor.place - start <= options.maximumAttributeValueByteCount
  }

  @inline(__always) private func takeAttribute(_ cursor: inout ByteCursor, _ slot: SlotIndex, _ type: AttributeType) -> Bool {
    switch type {
    case .string, .uri:
      guard let text = cursor.text(), text.count <= options.maximumTextByteCount else { return false }
      do { try set(slot, escaped: text) } catch { return false }
      return true
    case .integer16: return takeInteger(&cursor, slot, Int64(Int16.min)...Int64(Int16.max))
    case .integer32: return takeInteger(&cursor, slot, Int64(Int32.min)...Int64(Int32.max))
    case .integer64: return takeInteger(&cursor, slot, .min ... .max)
    case .boolean: return takeInteger(&cursor, slot, 0...1)
    case .double:
      let start = cursor.place
      if let value = cursor.real(), cursor.byte == UInt8(ascii: "<") {
        values.set(slot, real: value)
        return true
      }
      cursor.place = start
      return takeNumber(&cursor, slot) { NumberText.real($0) ?? XMLText.special($0) }
    case .date: return takeNumber(&cursor, slot, XMLDate.value)
    case .float, .decimal, .uuid, .objectID, .binaryData, .transformable, .composite, .undefined: return takeOther(&cursor, slot, type)
    }
  }

  @inline(__always) private func takeInteger(_ cursor: inout ByteCursor, _ slot: SlotIndex, _ range: ClosedRange<Int64>) -> Bool {
    guard let value = cursor.integer(), range.contains(value) else { return false }
    values.set(slot, integer: value)
    return true
  }

  @inline(__always) private func takeNumber(
    _ cursor: inout ByteCursor, _ slot: SlotIndex, _ number: (UnsafeRawBufferPointer) -> Double?
  ) -> Bool {
    guard let text = cursor.text(), text.count <= options.maximumTextByteCount, let value = number(text) else { return false }
    values.set(slot, real: value)
    return true
  }

  /// Reads a value that isn't among the most frequent ones.
  private func takeOther(_ cursor: inout ByteCursor, _ slot: SlotIndex, _ type: AttributeType) -> Bool {
    guard let text = cursor.text(), text.count <= options.maximumTextByteCount else { return false }
    // Errors are repeated by libxml2, with their position.
    do { try set(slot, type, copyOf: text) } catch { return false }
    return true
  }
}

/// The parts of an object in the form of the writer.
extension ByteCursor {
  /// The text `<object `.
  fileprivate static let objectBegins: UInt64 = 0x2074_6365_6A62_6F3C
  /// The text `</object`.
  fileprivate static let objectEnds: UInt64 = 0x7463_656A_626F_2F3C
  /// The text `>` and a line feed.
  fileprivate static let endOfLine: UInt16 = 0x0A3E
  /// The text `">`.
  fileprivate static let tagEnds: UInt16 = 0x3E22

  /// Moves behind `</attribute>`.
  @inline(__always) fileprivate mutating func skipAttributeEnd() -> Bool {
    skip(word: 0x6269_7274_7461_2F3C as UInt64) && skip(word: 0x3E65_7475 as UInt32)
  }

  /// Reads ` idrefs="z1 z2"/>` or `/>`, and calls `body` with each key. Returns their number.
  @inline(__always) fileprivate mutating func forEachReference(in range: ClosedRange<Int64>, _ body: (Int64) -> Void) -> Int? {
    var count = 0
    if skip(word: 0x3D73_6665_7264_6920 as UInt64) {
      guard skip(UInt8(ascii: "\"")) else { return nil }
      repeat {
        guard skip(UInt8(ascii: "z")), let key = integer(), range.contains(key) else { return nil }
        body(key)
        count += 1
      } while skip(UInt8(ascii: " "))
      guard skip(UInt8(ascii: "\"")) else { return nil }
    }
    return skip(word: 0x3E2F as UInt16) ? count : nil
  }

  /// Reads the text before a tag. Every character is one that XML allows, and none that XML or its parser changes.
  @inline(__always) fileprivate mutating func text() -> UnsafeRawBufferPointer? {
    let start = place
    while true {
      skipPlain()
      switch byte {
      case UInt8(ascii: "<"): return UnsafeRawBufferPointer(start: start, count: place - start)
      case 0x09, 0x0A: place += 1
      case 0x80...: if !skipCharacter() { return nil }
      default: return nil
      }
    }
  }

  /// Moves to the next byte that isn't ASCII, is below a space, or is one of `<`, `>` and `&`.
  @inline(__always) private mutating func skipPlain() {
    let high: UInt64 = 0x8080_8080_8080_8080, ones: UInt64 = 0x0101_0101_0101_0101
    while count >= 8 {
      let word = UInt64(littleEndian: place.loadUnaligned(as: UInt64.self))
      // As in the writer. The lowest bit that is found belongs to the first such byte.
      let angles = (word | 2 &* ones) ^ (0x3E &* ones), ampersands = word ^ (0x26 &* ones)
      let found =
        (word | ((angles &- ones) & ~angles) | ((ampersands &- ones) & ~ampersands) | ((word &- (0x20 &* ones)) & ~word)) & high
      if found != 0 {
        place += found.trailingZeroBitCount >> 3
        return
      }
      place += 8
    }
    while byte >= 0x20, byte < 0x80, byte | 2 != 0x3E, byte != UInt8(ascii: "&") { place += 1 }
  }

  /// Moves behind a character of several bytes, if it is well-formed (Unicode Standard, table 3-7) and allowed in XML.
  @inline(__always) private mutating func skipCharacter() -> Bool {
    func byte(_ index: Int) -> UInt8 { index < count ? place.load(fromByteOffset: index, as: UInt8.self) : 0 }
    func isNext(_ index: Int) -> Bool { byte(index) & 0xC0 == 0x80 }
    let first = byte(0), second = byte(1)
    guard isNext(1) else { return false }
    switch first {
    case 0xC2...0xDF: place += 2
    case 0xE0...0xEF:
      guard isNext(2), first != 0xE0 || second >= 0xA0, first != 0xED || second < 0xA0 else { return false }
      // U+FFFE and U+FFFF.
      if first == 0xEF, second == 0xBF, byte(2) >= 0xBE { return false }
      place += 3
    case 0xF0...0xF4:
      guard isNext(2), isNext(3), first != 0xF0 || second >= 0x90, first != 0xF4 || second < 0x90 else { return false }
      place += 4
    default: return false
    }
    return true
  }
}
