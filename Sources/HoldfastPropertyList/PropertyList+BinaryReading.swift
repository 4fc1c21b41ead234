extension PropertyList {
  /// Reads the binary format (`bplist00`).
  ///
  /// An object that the file references several times is stored once in memory. An unpaired UTF-16 surrogate becomes U+FFFD.
  ///
  /// - Throws: ``PropertyListError``. A duplicate key, a key that isn't text, and a set or URL, which aren't part of property lists, are
  ///   errors too. Two keys that differ only in their Unicode normalization are ``PropertyListError/Code/unsupported``.
  public init(binary bytes: [UInt8], limits: PropertyListLimits = PropertyListLimits()) throws(PropertyListError) {
    if bytes.count > limits.bytes { throw PropertyListError(.tooLarge, "The property list is larger than \(limits.bytes) bytes.") }
    var reader = try BinaryPropertyListReader(BinaryPropertyListLayout(bytes), limits)
    self = try reader.object(reader.layout.top, depth: 0).value
  }
}

private struct BinaryPropertyListReader {
  typealias Part = (value: PropertyList, extent: PropertyListExtent)

  /// The state of an object.
  private enum State {
    case unread
    /// The object is being read. A reference to it now means that it contains itself.
    case open
    case read(Part)
  }

  let layout: BinaryPropertyListLayout
  private let limits: PropertyListLimits
  /// By object index.
  private var states: [State]
  /// The number of values in all lists that were begun, each list once. The tree has at least as many.
  private var valueCount = 0

  init(_ layout: BinaryPropertyListLayout, _ limits: PropertyListLimits) throws(PropertyListError) {
    // Unreferenced objects are legal, but this many of them serve no purpose.
    if layout.count > limits.objects { throw PropertyListError(.tooLarge, "The list has more than \(limits.objects) values.") }
    self.layout = layout
    self.limits = limits
    states = Array(repeating: .unread, count: layout.count)
  }

  mutating func object(_ index: Int, depth: Int) throws(PropertyListError) -> Part {
    let start = try layout.start(ofObject: index)
    switch states[index] {
    case .read(let part): return part
    case .open: throw PropertyListError(.cyclic, at: .byte(start), "A list contains itself.")
    case .unread: break
    }
    states[index] = .open
    let part = try newObject(start, depth)
    states[index] = .read(part)
    return part
  }

  private mutating func newObject(_ start: Int, _ depth: Int) throws(PropertyListError) -> Part {
    let marker = try layout.marker(start)
    switch marker >> 4 {
    case 4, 5, 6: return try bytesOrText(marker, start)
    case 10: return try array(marker, start, depth)
    case 13: return try dictionary(marker, start, depth)
    default: return (try scalar(marker, start), PropertyListExtent())
    }
  }

  private func scalar(_ marker: UInt8, _ start: Int) throws(PropertyListError) -> PropertyList {
    let low = Int(marker & 15)
    switch (marker >> 4, low) {
    case (0, 0): return .null
    case (0, 8), (0, 9): return .bool(low == 9)
    case (1, 0...3): return .integer(Int64(bitPattern: try layout.number(start + 1, 1 << low)))
    case (1, 4): return try longInteger(start)
    case (2, 2): return .real(Double(Float(bitPattern: UInt32(truncatingIfNeeded: try layout.number(start + 1, 4)))))
    case (2, 3): return .real(Double(bitPattern: try layout.number(start + 1, 8)))
    case (3, 3): return .date(Double(bitPattern: try layout.number(start + 1, 8)))
    case (8, 0...7): return .uid(try layout.number(start + 1, low + 1))
    case (0, 12), (0, 13), (0, 14), (11, _), (12, _):
      throw PropertyListError(.unsupported, at: .byte(start), "Sets, URLs and UUIDs aren't supported in property lists.")
    default: throw layout.damaged(start)
    }
  }

  /// 16-byte whole numbers. Core Foundation uses them for numbers above `Int64.max`.
  private func longInteger(_ start: Int) throws(PropertyListError) -> PropertyList {
    let high = try layout.number(start + 1, 8)
    let low = try layout.number(start + 9, 8)
    switch (high, low >> 63) {
    case (0, 0), (UInt64.max, 1): return .integer(Int64(bitPattern: low))
    case (0, _): return .unsigned(low)
    default: throw PropertyListError(.unsupported, at: .byte(start), "A whole number has more than 64 bits.")
    }
  }

  /// The length of a variable-size object in its own units, and the offset of its first unit.
  private func length(_ marker: UInt8, _ start: Int) throws(PropertyListError) -> (count: Int, body: Int) {
    if marker & 15 < 15 { return (Int(marker & 15), start + 1) }
    let kind = try layout.marker(start + 1)
    guard kind >> 4 == 1, kind & 15 <= 3, let count = Int(exactly: try layout.number(start + 2, 1 << (kind & 15))),
      // Each unit takes at least one byte. This keeps products of counts and sizes small.
      count <= layout.bytes.count
    else { throw layout.damaged(start) }
    return (count, start + 2 + (1 << Int(kind & 15)))
  }

  private func bytesOrText(_ marker: UInt8, _ start: Int) throws(PropertyListError) -> Part {
    let (count, body) = try length(marker, start)
    let range = try layout.range(body, marker >> 4 == 6 ? count * 2 : count)
    let extent = PropertyListExtent(bytes: range.count)
    switch marker >> 4 {
    case 4: return (.data(Array(layout.bytes[range])), extent)
    case 5:
      guard let text = String(validating: layout.bytes[range], as: UTF8.self) else { throw layout.damaged(start) }
      return (.string(text), extent)
    default:
      let units = (0..<count).map { UInt16(layout.bytes[body + 2 * $0]) << 8 | UInt16(layout.bytes[body + 2 * $0 + 1]) }
      return (.string(String(decoding: units, as: UTF16.self)), extent)
    }
  }

  private mutating func array(_ marker: UInt8, _ start: Int, _ depth: Int) throws(PropertyListError) -> Part {
    let (count, body) = try length(marker, start)
    _ = try layout.range(body, count * layout.referenceSize)
    try add(values: count, at: start)
    var values: [PropertyList] = []
    values.reserveCapacity(count)
    var extent = PropertyListExtent.emptyList
    for place in 0..<count { values.append(try part(body + place * layout.referenceSize, depth, &extent)) }
    return (.array(values), extent)
  }

  private mutating func dictionary(_ marker: UInt8, _ start: Int, _ depth: Int) throws(PropertyListError) -> Part {
    let (count, body) = try length(marker, start)
    let size = layout.referenceSize
    _ = try layout.range(body, 2 * count * size)
    try add(values: 2 * count, at: start)
    var entries: [String: PropertyList] = [:]
    entries.reserveCapacity(count)
    var extent = PropertyListExtent.emptyList
    for place in 0..<count {
      guard let key = try part(body + place * size, depth, &extent).string else { throw layout.damaged(start) }
      let value = try part(body + (count + place) * size, depth, &extent)
      try entries.add(value, forKey: key, at: .byte(start))
    }
    return (.dictionary(entries), extent)
  }

  /// Counts the values of a list before they are read, because memory is reserved for all of them.
  ///
  /// The extent of a list is known when the list is complete. Until then, each of its superlists could be as large as the limit.
  private mutating func add(values count: Int, at start: Int) throws(PropertyListError) {
    valueCount += count
    if valueCount > limits.objects {
      throw PropertyListError(.tooLarge, at: .byte(start), "The list has more than \(limits.objects) values.")
    }
  }

  /// Reads a value of a list, and adds it to the list's extent.
  private mutating func part(_ place: Int, _ depth: Int, _ extent: inout PropertyListExtent) throws(PropertyListError) -> PropertyList {
    // The stack grows with the nesting of lists, so it is checked before a list is read.
    if depth >= limits.depth { throw PropertyListError(.tooDeep, at: .byte(place), "Lists are nested more than \(limits.depth) deep.") }
    let part = try object(try layout.reference(place), depth: depth + 1)
    extent.add(part.extent)
    try extent.check(limits, at: .byte(place))
    return part.value
  }
}
