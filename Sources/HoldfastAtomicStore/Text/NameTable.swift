import HoldfastStore

/// The fields of an entity as reader and writer go over them: in one piece of memory, so that none is retained for each
/// member of each object.
final class JSONFieldTable {
  private struct Entry {
    /// Where the label begins; the name lies within it, behind a comma and a quote.
    var labelStart: Int
    var nameCount: Int
    var kind: JSONEntity.Kind
  }

  let entity: JSONEntity?
  let count: Int
  private let entries: UnsafeMutablePointer<Entry>
  private let labels: UnsafeMutableRawPointer

  init(_ entity: JSONEntity?) {
    self.entity = entity
    let fields = entity?.fields ?? []
    count = fields.count
    entries = .allocate(capacity: max(count, 1))
    labels = .allocate(byteCount: max(fields.reduce(0) { $0 + $1.name.utf8.count + 4 }, 1), alignment: 1)
    var start = 0
    for (place, field) in fields.enumerated() {
      // Names of properties are identifiers: nothing in them has to be escaped.
      let label = Array(",\"\(field.name)\":".utf8)
      (entries + place).initialize(to: Entry(labelStart: start, nameCount: label.count - 4, kind: field.kind))
      label.withUnsafeBytes { (labels + start).copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
      start += label.count
    }
  }

  deinit {
    entries.deallocate()
    labels.deallocate()
  }

  /// What a field holds.
  @inline(__always) func kind(_ place: Int) -> JSONEntity.Kind { entries[place].kind }

  /// What stands before a field's value: a comma, the name in quotes, a colon.
  @inline(__always) func label(_ place: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: labels + entries[place].labelStart, count: entries[place].nameCount + 4)
  }

  /// The name of a field.
  func name(_ place: Int) -> String { entity?.fields[place].name ?? "" }

  /// The place of the field of a name, which is likely behind another; nil when there is none.
  @inline(__always) func place(named text: UnsafeRawBufferPointer, after last: Int) -> Int? {
    var place = last + 1
    while place < count {
      if isName(place, text) { return place }
      place += 1
    }
    for place in 0..<min(last + 1, count) where isName(place, text) { return place }
    return nil
  }

  @inline(__always) private static func differ<Word: FixedWidthInteger>(
    _ a: UnsafeRawPointer, _ b: UnsafeRawPointer, _ offset: Int, _ word: Word.Type
  ) -> Bool {
    a.loadUnaligned(fromByteOffset: offset, as: word) != b.loadUnaligned(fromByteOffset: offset, as: word)
  }

  @inline(__always) private func isName(_ place: Int, _ text: UnsafeRawBufferPointer) -> Bool {
    guard entries[place].nameCount == text.count, let other = text.baseAddress else { return false }
    let name = UnsafeRawPointer(labels + entries[place].labelStart + 2)
    // Names are short: a call would cost more than the comparison. Words may overlap.
    if text.count >= 8 {
      var index = 0
      while index + 8 < text.count {
        if JSONFieldTable.differ(name, other, index, UInt64.self) { return false }
        index += 8
      }
      return !JSONFieldTable.differ(name, other, text.count - 8, UInt64.self)
    }
    if text.count >= 4 {
      return !JSONFieldTable.differ(name, other, 0, UInt32.self) && !JSONFieldTable.differ(name, other, text.count - 4, UInt32.self)
    }
    if text.count >= 2 {
      return !JSONFieldTable.differ(name, other, 0, UInt16.self) && !JSONFieldTable.differ(name, other, text.count - 2, UInt16.self)
    }
    return !JSONFieldTable.differ(name, other, 0, UInt8.self)
  }
}
