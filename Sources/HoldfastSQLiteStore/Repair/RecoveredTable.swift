import HoldfastStore

/// A table of the new file, into which rows of the damaged one are inserted.
final class RecoveredTable {
  let name: String
  private let columns: [Column]
  /// The column that is another name of the row's key.
  private let keyColumn: Int?
  private let entityColumn: Int?
  /// The entity numbers that rows can have; nil if they aren't known.
  var entityNumbers: Set<Int64>?
  private let encoding: DamagedPages.TextEncoding
  private let insertion: SQLiteStatement
  private(set) var rowCount = 0

  private struct Column {
    let name: String
    let type: ValueClass
  }

  /// The values that a column of the layout can have. Columns of other programs' tables can have all values.
  private enum ValueClass {
    case integer, number, text, any

    init(declared: String) {
      switch declared.split(separator: "(").first.map({ SQLName.upper(String($0)) }) {
      case "INTEGER": self = .integer
      case "FLOAT", "TIMESTAMP": self = .number
      case "VARCHAR": self = .text
      default: self = .any
      }
    }

    func contains(_ value: DamagedRecord.Value) -> Bool {
      switch (self, value) {
      case (_, .null), (.any, _), (.integer, .integer), (.number, .integer), (.number, .real), (.text, .text): true
      default: false
      }
    }
  }

  init(_ name: String, _ connection: SQLiteConnection, _ encoding: DamagedPages.TextEncoding) throws {
    self.name = name
    self.encoding = encoding
    var columns: [Column] = [], keys: [Int] = []
    let info = try connection.prepare("SELECT name, type, pk FROM pragma_table_info(?1)")
    try info.bind(name, at: 1)
    while try info.step() {
      if info.int64(2) > 0 { keys.append(columns.count) }
      columns.append(Column(name: info.string(0), type: ValueClass(declared: info.string(1))))
    }
    self.columns = columns
    keyColumn = keys.count == 1 && columns[keys[0]].type == .integer ? keys[0] : nil
    entityColumn = columns.firstIndex { $0.name == "Z_ENT" }
    let names = (keyColumn == nil ? ["rowid"] : []) + columns.map { SQLName.quoted($0.name) }
    let places = names.indices.map { "?\($0 + 1)" }
    insertion = try connection.prepare(
      "INSERT OR IGNORE INTO \(SQLName.quoted(name)) (\(names.joined(separator: ", "))) VALUES (\(places.joined(separator: ", ")))")
  }

  /// Whether a row's values are those of a row of this table.
  func fits(_ row: TreeReader.Row) -> Bool {
    let record = row.record
    // A column that was added to the table isn't part of older rows.
    guard record.values.count <= columns.count, !record.values.isEmpty else { return false }
    for (index, value) in record.values.enumerated() {
      guard columns[index].type.contains(value) else { return false }
      if index == keyColumn, case .integer(let key) = value, key != row.key { return false }
      if case .text(let range) = value, !isText(record.bytes[range]) { return false }
    }
    guard let entityColumn, let entityNumbers else { return true }
    return record.integer(entityColumn).map(entityNumbers.contains) ?? false
  }

  private func isText(_ bytes: ArraySlice<UInt8>) -> Bool {
    encoding == .utf8 ? bytes.withUnsafeBytes { UTF8Check.isValid($0) } : DamagedRecord.text(bytes, encoding) != nil
  }

  /// Inserts a row. Returns false if it doesn't fit, the table already has one with its key, or a value is larger than the options allow.
  func insert(_ row: TreeReader.Row, _ connection: SQLiteConnection) throws -> Bool {
    guard fits(row) else { return false }
    do { try bind(row) } catch let error as StoreError where Self.isRefusal(error) {
      insertion.reset()
      return false
    }
    guard connection.changes == 1 else { return false }
    rowCount += 1
    return true
  }

  private static func isRefusal(_ error: StoreError) -> Bool {
    error.code == .unstorableValue || (error.cause as? SQLiteFailure)?.primaryCode == SQLiteResultCode.constraint
  }

  private func bind(_ row: TreeReader.Row) throws {
    try row.record.bytes.withUnsafeBytes { bytes in
      if keyColumn == nil { insertion.bind(row.key, at: 1) }
      let offset = keyColumn == nil ? 2 : 1
      for index in columns.indices {
        if index == keyColumn {
          insertion.bind(row.key, at: index + offset)
        } else {
          try bind(index < row.record.values.count ? row.record.values[index] : .null, bytes, at: index + offset)
        }
      }
      try insertion.run()
    }
  }

  private func bind(_ value: DamagedRecord.Value, _ bytes: UnsafeRawBufferPointer, at place: Int) throws {
    switch value {
    case .null: insertion.bindNull(at: place)
    case .integer(let number): insertion.bind(number, at: place)
    case .real(let number): insertion.bind(number, at: place)
    case .blob(let range): try insertion.bindBlob(UnsafeRawBufferPointer(rebasing: bytes[range]), .borrowed, at: place)
    case .text(let range):
      if encoding == .utf8 {
        try insertion.bindText(UnsafeRawBufferPointer(rebasing: bytes[range]), .borrowed, at: place)
      } else {
        try insertion.bind(DamagedRecord.text(Array(bytes[range])[...], encoding) ?? "", at: place)
      }
    }
  }
}
