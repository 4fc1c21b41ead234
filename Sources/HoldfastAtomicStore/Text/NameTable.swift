/// A table of names in contiguous memory.
///
/// Formats that read and write names with each object use it: looking up or writing a name doesn't retain a string.
public final class NameTable {
  @usableFromInline struct Entry {
    /// The offset of the label, and of the name in it.
    @usableFromInline var labelStart: Int
    @usableFromInline var labelCount: Int
    @usableFromInline var nameStart: Int
    @usableFromInline var nameCount: Int
  }

  /// The number of names.
  public let count: Int
  @usableFromInline let entries: UnsafeMutablePointer<Entry>
  /// All labels, one after the other, followed by ``slack`` readable bytes.
  @usableFromInline let labels: UnsafeMutableRawPointer
  /// The step in which labels are copied, in bytes.
  @usableFromInline static let slack = 16

  /// Creates a table.
  ///
  /// - Parameter names: The names, each with the text before and after it in a file.
  public init(_ names: [(before: String, name: String, behind: String)]) {
    count = names.count
    entries = .allocate(capacity: max(count, 1))
    let byteCount = names.reduce(NameTable.slack) { $0 + ($1.before + $1.name + $1.behind).utf8.count }
    labels = .allocate(byteCount: byteCount, alignment: 1)
    labels.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
    var start = 0
    for (place, entry) in names.enumerated() {
      let label = Array((entry.before + entry.name + entry.behind).utf8)
      (entries + place).initialize(
        to: Entry(
          labelStart: start, labelCount: label.count, nameStart: start + entry.before.utf8.count, nameCount: entry.name.utf8.count))
      label.withUnsafeBytes { UnsafeMutableRawBufferPointer(start: labels + start, count: label.count).copyMemory(from: $0) }
      start += label.count
    }
  }

  deinit {
    entries.deallocate()
    labels.deallocate()
  }

  /// The text of a name in a file, including the text before and after it.
  @inlinable @inline(__always) public func label(_ place: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: labels + entries[place].labelStart, count: entries[place].labelCount)
  }

  /// The start and length of a name's label. ``slack`` more bytes are readable.
  @inlinable @inline(__always) func extent(_ place: Int) -> (UnsafeRawPointer, Int) {
    (UnsafeRawPointer(labels + entries[place].labelStart), entries[place].labelCount)
  }

  /// The index of a name; nil if there is none. The search starts after `last`.
  @inlinable @inline(__always) public func place(named text: UnsafeRawBufferPointer, after last: Int) -> Int? {
    var place = last + 1
    while place < count {
      if isName(place, text) { return place }
      place += 1
    }
    for place in 0..<min(last + 1, count) where isName(place, text) { return place }
    return nil
  }

  /// The length of a name's label, if a text begins with it and eight more bytes; otherwise nil.
  @inlinable @inline(__always) public func labelCount(_ place: Int, at text: UnsafeRawPointer, before end: UnsafeRawPointer) -> Int? {
    let (label, count) = extent(place)
    guard end - text >= count + 8 else { return nil }
    // Bytes behind a short label don't count.
    let first = label.loadUnaligned(as: UInt64.self) ^ text.loadUnaligned(as: UInt64.self)
    if count < 8 { return UInt64(littleEndian: first) << (64 - 8 * UInt64(count)) == 0 && count > 0 ? count : nil }
    if first != 0 { return nil }
    var index = 8
    while index + 8 <= count {
      if NameTable.differ(label, text, index, UInt64.self) { return nil }
      index += 8
    }
    return NameTable.differ(label, text, count - 8, UInt64.self) ? nil : count
  }

  @inlinable @inline(__always) static func differ<Word: FixedWidthInteger>(
    _ a: UnsafeRawPointer, _ b: UnsafeRawPointer, _ offset: Int, _ word: Word.Type
  ) -> Bool {
    a.loadUnaligned(fromByteOffset: offset, as: word) != b.loadUnaligned(fromByteOffset: offset, as: word)
  }

  @inlinable @inline(__always) func isName(_ place: Int, _ text: UnsafeRawBufferPointer) -> Bool {
    guard entries[place].nameCount == text.count, let other = text.baseAddress else { return false }
    let name = UnsafeRawPointer(labels + entries[place].nameStart)
    // Names are short, so a call to memcmp would cost more than comparing words. The words can overlap.
    if text.count >= 8 {
      var index = 0
      while index + 8 < text.count {
        if NameTable.differ(name, other, index, UInt64.self) { return false }
        index += 8
      }
      return !NameTable.differ(name, other, text.count - 8, UInt64.self)
    }
    if text.count >= 4 {
      return !NameTable.differ(name, other, 0, UInt32.self) && !NameTable.differ(name, other, text.count - 4, UInt32.self)
    }
    if text.count >= 2 {
      return !NameTable.differ(name, other, 0, UInt16.self) && !NameTable.differ(name, other, text.count - 2, UInt16.self)
    }
    return !NameTable.differ(name, other, 0, UInt8.self)
  }
}
