extension PropertyList {
  /// Reads the binary format (`bplist00`).
  ///
  /// Bounded: every offset is checked, and an object is never read inside itself.
  init(binary bytes: [UInt8]) throws(PropertyListError) {
    var reader = try BinaryPropertyListReader(bytes)
    self = try reader.object(reader.top, depth: 0)
  }
}

extension PropertyList {
  /// Whether bytes are a dictionary in binary format whose keys are ASCII texts that all begin with one of the prefixes.
  /// Finds it out without making a single value; false also for bytes that are damaged.
  static func isDictionary(_ bytes: [UInt8], ofKeysBeginningWith prefixes: [StaticString]) -> Bool {
    guard let reader = try? BinaryPropertyListReader(bytes) else { return false }
    return (try? reader.keysBegin(with: prefixes)) ?? false
  }
}

private struct BinaryPropertyListReader {
  private let bytes: [UInt8]
  private let offsetSize: Int
  private let referenceSize: Int
  private let count: Int
  private let table: Int
  let top: Int
  /// How many objects may still be made: shared objects are read anew wherever they stand, so a small file could
  /// otherwise describe a huge tree.
  private var budget = 1_000_000

  init(_ bytes: [UInt8]) throws(PropertyListError) {
    guard bytes.count >= 40, bytes.starts(with: Array("bplist0".utf8)) else {
      throw PropertyListError(description: "It is not a binary property list.")
    }
    self.bytes = bytes
    let trailer = bytes.count - 32
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    guard let count = Int(exactly: BinaryPropertyListReader.number(bytes, trailer + 8, 8)),
      let top = Int(exactly: BinaryPropertyListReader.number(bytes, trailer + 16, 8)),
      let table = Int(exactly: BinaryPropertyListReader.number(bytes, trailer + 24, 8)),
      (1...8).contains(offsetSize), (1...8).contains(referenceSize), top < count, table >= 8, table <= trailer,
      count <= (trailer - table) / offsetSize
    else { throw PropertyListError(description: "The trailer of the property list is damaged.") }
    self.count = count
    self.top = top
    self.table = table
  }

  private static func number(_ bytes: [UInt8], _ start: Int, _ size: Int) -> UInt64 {
    bytes[start..<start + size].reduce(0) { $0 << 8 | UInt64($1) }
  }

  private func damaged() -> PropertyListError { PropertyListError(description: "An object of the property list is damaged.") }

  private func range(_ start: Int, _ size: Int) throws(PropertyListError) -> Range<Int> {
    guard size >= 0, start >= 8, start <= table, size <= table - start else { throw damaged() }
    return start..<start + size
  }

  private func integer(_ start: Int, _ size: Int) throws(PropertyListError) -> UInt64 {
    let range = try range(start, size)
    return BinaryPropertyListReader.number(bytes, range.lowerBound, size)
  }

  private func start(ofObject index: Int) throws(PropertyListError) -> Int {
    guard index < count, let start = Int(exactly: BinaryPropertyListReader.number(bytes, table + index * offsetSize, offsetSize)) else {
      throw damaged()
    }
    return start
  }

  func keysBegin(with prefixes: [StaticString]) throws(PropertyListError) -> Bool {
    let dictionary = try start(ofObject: top)
    let marker = bytes[try range(dictionary, 1).lowerBound]
    guard marker >> 4 == 13, marker & 15 < 15 else { return false }
    for place in 0..<Int(marker & 15) {
      guard let index = Int(exactly: try integer(dictionary + 1 + place * referenceSize, referenceSize)) else { return false }
      let key = try start(ofObject: index)
      let keyMarker = bytes[try range(key, 1).lowerBound]
      guard keyMarker >> 4 == 5 else { return false }
      // Only the beginning matters, so a long text's length need not be read; its digits stand before it.
      let text = keyMarker & 15 == 15 ? key + 3 : key + 1
      let lengthMarker = bytes[try range(key + 1, 1).lowerBound]
      guard keyMarker & 15 < 15 || lengthMarker == 0x10 else { return false }
      if !(try begins(at: text, with: prefixes)) { return false }
    }
    return true
  }

  private func begins(at start: Int, with prefixes: [StaticString]) throws(PropertyListError) -> Bool {
    for prefix in prefixes {
      guard start + prefix.utf8CodeUnitCount <= table else { continue }
      var isSame = true
      for place in 0..<prefix.utf8CodeUnitCount where bytes[start + place] != prefix.utf8Start[place] { isSame = false }
      if isSame { return true }
    }
    return false
  }

  mutating func object(_ index: Int, depth: Int) throws(PropertyListError) -> PropertyList {
    budget -= 1
    guard index < count, depth < 64, budget > 0,
      let start = Int(exactly: BinaryPropertyListReader.number(bytes, table + index * offsetSize, offsetSize))
    else { throw damaged() }
    let marker = bytes[try range(start, 1).lowerBound]
    let low = Int(marker & 15)
    switch marker >> 4 {
    case 0 where low == 8 || low == 9: return .bool(low == 9)
    case 1 where low <= 3: return .integer(Int64(bitPattern: try integer(start + 1, 1 << low)))
    case 1 where low == 4: return .integer(Int64(bitPattern: try integer(start + 9, 8)))
    case 2 where low == 2: return .real(Double(Float(bitPattern: UInt32(truncatingIfNeeded: try integer(start + 1, 4)))))
    case 2 where low == 3: return .real(Double(bitPattern: try integer(start + 1, 8)))
    case 3 where low == 3: return .date(Double(bitPattern: try integer(start + 1, 8)))
    case 8: return .uid(try integer(start + 1, low + 1))
    case 4, 5, 6, 10, 12, 13: return try sized(marker >> 4, start, low, depth)
    default: throw damaged()
    }
  }

  private mutating func sized(_ kind: UInt8, _ start: Int, _ low: Int, _ depth: Int) throws(PropertyListError) -> PropertyList {
    var length = low, body = start + 1
    if low == 15 {
      let marker = bytes[try range(start + 1, 1).lowerBound]
      guard marker >> 4 == 1, marker & 15 <= 3, let long = Int(exactly: try integer(start + 2, 1 << (marker & 15))) else { throw damaged() }
      length = long
      body = start + 2 + (1 << Int(marker & 15))
    }
    guard length <= bytes.count else { throw damaged() }
    switch kind {
    case 4: return .data(Array(bytes[try range(body, length)]))
    case 5:
      guard let text = String(validating: bytes[try range(body, length)], as: UTF8.self) else { throw damaged() }
      return .string(text)
    case 6:
      let raw = bytes[try range(body, length * 2)]
      let units = stride(from: raw.startIndex, to: raw.endIndex, by: 2).map { UInt16(raw[$0]) << 8 | UInt16(raw[$0 + 1]) }
      return .string(String(decoding: units, as: UTF16.self))
    case 10, 12: return .array(try objects(body, length, depth))
    default: return try dictionary(body, length, depth)
    }
  }

  private mutating func objects(_ start: Int, _ length: Int, _ depth: Int) throws(PropertyListError) -> [PropertyList] {
    _ = try range(start, length * referenceSize)
    var out: [PropertyList] = []
    for place in 0..<length {
      guard let index = Int(exactly: try integer(start + place * referenceSize, referenceSize)) else { throw damaged() }
      out.append(try object(index, depth: depth + 1))
    }
    return out
  }

  private mutating func dictionary(_ start: Int, _ length: Int, _ depth: Int) throws(PropertyListError) -> PropertyList {
    let keys = try objects(start, length, depth)
    let values = try objects(start + length * referenceSize, length, depth)
    var out: [String: PropertyList] = [:]
    for (key, value) in zip(keys, values) {
      guard let key = key.string else { throw damaged() }
      out[key] = value
    }
    return .dictionary(out)
  }
}
