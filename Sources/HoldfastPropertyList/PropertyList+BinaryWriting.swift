extension PropertyList {
  /// The list in the binary format (`bplist00`).
  ///
  /// Dictionaries are sorted by key and each text is stored once, so equal lists have equal bytes if their texts have the same Unicode
  /// normalization.
  public var binary: [UInt8] {
    var writer = BinaryPropertyListWriter()
    let top = writer.flatten(self)
    return writer.file(top: top)
  }
}

private struct BinaryPropertyListWriter {
  /// An object whose parts are object indexes.
  private enum Item {
    case leaf(PropertyList)
    case array([Int])
    case dictionary(keys: [Int], values: [Int])
  }

  private var items: [Item] = []
  /// The index of each text.
  private var strings: [ExactText: Int] = [:]

  /// Assigns indexes to a value and all its parts.
  mutating func flatten(_ value: PropertyList) -> Int {
    if case .string(let text) = value, let known = strings[ExactText(text)] { return known }
    let number = items.count
    items.append(.leaf(value))
    switch value {
    case .string(let text): strings[ExactText(text)] = number
    case .array(let parts): items[number] = .array(parts.map { flatten($0) })
    case .dictionary(let entries):
      let sorted = entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      let keys = sorted.map { flatten(.string($0.key)) }
      items[number] = .dictionary(keys: keys, values: sorted.map { flatten($0.value) })
    default: break
    }
    return number
  }

  func file(top: Int) -> [UInt8] {
    let referenceSize = Self.size(items.count)
    var out = Array("bplist00".utf8)
    var offsets: [Int] = []
    for item in items {
      offsets.append(out.count)
      append(item, referenceSize, to: &out)
    }
    let table = out.count
    let offsetSize = Self.size(table)
    for offset in offsets { append(UInt64(offset), offsetSize, to: &out) }
    out += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    for number in [items.count, top, table] { append(UInt64(number), 8, to: &out) }
    return out
  }

  /// The number of bytes for a number: 1, 2, 4 or 8.
  private static func size(_ number: Int) -> Int { number < 1 << 8 ? 1 : number < 1 << 16 ? 2 : number < 1 << 32 ? 4 : 8 }

  private func append(_ item: Item, _ referenceSize: Int, to out: inout [UInt8]) {
    switch item {
    case .leaf(let value): append(leaf: value, to: &out)
    case .array(let parts):
      append(kind: 0xA0, parts.count, to: &out)
      for part in parts { append(UInt64(part), referenceSize, to: &out) }
    case .dictionary(let keys, let values):
      append(kind: 0xD0, keys.count, to: &out)
      for part in keys + values { append(UInt64(part), referenceSize, to: &out) }
    }
  }

  private func append(leaf value: PropertyList, to out: inout [UInt8]) {
    switch value {
    case .null: out.append(0)
    case .bool(let value): out.append(value ? 9 : 8)
    case .integer(let value): append(integer: value, to: &out)
    case .unsigned(let value):
      out.append(0x14)
      append(0, 8, to: &out)
      append(value, 8, to: &out)
    case .real(let value): append(real: 0x23, value, to: &out)
    case .date(let value): append(real: 0x33, value, to: &out)
    case .uid(let value):
      let size = Self.size(Int(clamping: value))
      out.append(0x80 | UInt8(size - 1))
      append(value, size, to: &out)
    case .data(let bytes):
      append(kind: 0x40, bytes.count, to: &out)
      out += bytes
    case .string(let text): append(text: text, to: &out)
    case .array, .dictionary: break
    }
  }

  private func append(text: String, to out: inout [UInt8]) {
    if text.utf8.allSatisfy({ $0 < 128 }) {
      append(kind: 0x50, text.utf8.count, to: &out)
      out += text.utf8
    } else {
      append(kind: 0x60, text.utf16.count, to: &out)
      for unit in text.utf16 { append(UInt64(unit), 2, to: &out) }
    }
  }

  private func append(integer value: Int64, to out: inout [UInt8]) {
    let power = value < 0 ? 3 : value < 256 ? 0 : value < 65_536 ? 1 : value <= Int64(UInt32.max) ? 2 : 3
    out.append(0x10 | UInt8(power))
    append(UInt64(bitPattern: value), 1 << power, to: &out)
  }

  private func append(real marker: UInt8, _ value: Double, to out: inout [UInt8]) {
    out.append(marker)
    append(value.bitPattern, 8, to: &out)
  }

  private func append(kind: UInt8, _ count: Int, to out: inout [UInt8]) {
    if count < 15 {
      out.append(kind | UInt8(count))
    } else {
      out.append(kind | 15)
      append(integer: Int64(count), to: &out)
    }
  }

  /// Appends the lowest bytes of a number, big-endian.
  private func append(_ number: UInt64, _ size: Int, to out: inout [UInt8]) {
    for place in stride(from: size - 1, through: 0, by: -1) { out.append(UInt8(truncatingIfNeeded: number >> (8 * place))) }
  }
}
