/// A row's record in a database that may be damaged. See SQLite, *Database File Format*, "Record Format".
struct DamagedRecord {
  /// A column's value. Texts and data are ranges of the record's bytes.
  enum Value {
    case null
    case integer(Int64)
    case real(Double)
    case text(Range<Int>)
    case blob(Range<Int>)
  }

  let bytes: [UInt8]
  let values: [Value]

  /// Reads a record; nil unless the sizes of all values together are the size of the record.
  init?(_ bytes: [UInt8]) {
    var place = 0
    guard let size = bytes.varint(at: &place), size <= UInt64(bytes.count) else { return nil }
    let headerEnd = Int(size)
    var values: [Value] = [], start = headerEnd
    while place < headerEnd {
      guard values.count < ConnectionSettings.maximumColumns, let type = bytes.varint(at: &place), place <= headerEnd,
        let value = Self.value(type, bytes, &start)
      else { return nil }
      values.append(value)
    }
    guard place == headerEnd, start == bytes.count else { return nil }
    self.bytes = bytes
    self.values = values
  }

  /// The value at a place, which moves after it; nil if the bytes end before or the type doesn't exist.
  private static func value(_ type: UInt64, _ bytes: [UInt8], _ place: inout Int) -> Value? {
    let start = place
    func take(_ count: Int) -> Bool {
      guard count <= bytes.count - start else { return false }
      place = start + count
      return true
    }
    switch type {
    case 0: return .null
    case 1...6:
      let count = type <= 4 ? Int(type) : type == 5 ? 6 : 8
      guard take(count) else { return nil }
      let bits = bytes[start..<place].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      // The sign is that of the first byte.
      let unused = UInt64(64 - 8 * count)
      return .integer(Int64(bitPattern: bits << unused) >> Int64(unused))
    case 7:
      guard take(8) else { return nil }
      return .real(Double(bitPattern: bytes[start..<place].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }))
    case 8: return .integer(0)
    case 9: return .integer(1)
    case 12...UInt64(Int32.max):
      guard take(Int(type - 12) / 2) else { return nil }
      return type % 2 == 0 ? .blob(start..<place) : .text(start..<place)
    default: return nil
    }
  }

  /// A text value; nil for other values and invalid text.
  func text(_ column: Int, _ encoding: DamagedPages.TextEncoding) -> String? {
    guard column < values.count, case .text(let range) = values[column] else { return nil }
    return Self.text(bytes[range], encoding)
  }

  static func text(_ bytes: ArraySlice<UInt8>, _ encoding: DamagedPages.TextEncoding) -> String? {
    if encoding == .utf8 { return String(validating: bytes, as: UTF8.self) }
    guard bytes.count % 2 == 0 else { return nil }
    let isBig = encoding == .utf16BigEndian
    let units = stride(from: bytes.startIndex, to: bytes.endIndex, by: 2).map { place -> UInt16 in
      let (first, second) = (UInt16(bytes[place]), UInt16(bytes[place + 1]))
      return isBig ? first << 8 | second : second << 8 | first
    }
    return String(validating: units, as: UTF16.self)
  }

  /// An integer value; nil for other values.
  func integer(_ column: Int) -> Int64? {
    guard column < values.count, case .integer(let value) = values[column] else { return nil }
    return value
  }
}
