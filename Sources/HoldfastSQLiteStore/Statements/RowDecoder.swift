import CHoldfastSQLite
import HoldfastStore

/// Decodes rows of one entity from a statement into a batch. The statement's columns are the key, the version, then the slots in order.
///
/// It checks every value's storage class. If another program or a fault has changed the file, it throws an error with the table, column and
/// key. It never traps and never returns another value.
final class RowDecoder: Sendable {
  let entity: ManagedObjectModel.Entity
  private let table: StoreSchema.Table
  private let codes: [ColumnCode]
  private let path: String

  init(entity: ManagedObjectModel.Entity, table: StoreSchema.Table, path: String) {
    self.entity = entity
    self.table = table
    self.path = path
    codes = entity.slots.map { ColumnCode($0) }
  }

  /// Begins a row with the key and version of the statement's current row.
  @inline(__always)
  func beginRow(_ statement: SQLiteStatement, in builder: RowBatchBuilder) throws {
    let key = ObjectKey(sqlite3_column_int64(statement.handle, 0)), version = RowVersion(sqlite3_column_int64(statement.handle, 1))
    if key < 0 || version <= 0 || version.rawValue == .max { try check(key: key, version: version, statement) }
    builder.beginRow(key: key, version: version)
  }

  /// Appends the statement's current row.
  @inline(__always)
  func append(_ statement: SQLiteStatement, to builder: RowBatchBuilder) throws {
    let handle = statement.handle
    try beginRow(statement, in: builder)
    try codes.withUnsafeBufferPointer { codes in
      for slot in codes.indices {
        if !(try RowDecoder.append(handle, Int32(truncatingIfNeeded: slot &+ 2), codes[slot], to: builder)) {
          builder.cancelRow()
          throw wrongType(statement, SlotIndex(slot), slot + 2)
        }
      }
    }
    builder.endRow()
  }

  /// Appends the statement's current row. Its slots are in the given columns.
  func append(_ statement: SQLiteStatement, _ places: [Int32], to builder: RowBatchBuilder) throws {
    try beginRow(statement, in: builder)
    for slot in codes.indices {
      if !(try RowDecoder.append(statement.handle, places[slot], codes[slot], to: builder)) {
        builder.cancelRow()
        throw wrongType(statement, SlotIndex(slot), Int(places[slot]))
      }
    }
    builder.endRow()
  }

  /// Whether the statement's current row can be read. Adds it to the batch if so.
  func isReadable(_ statement: SQLiteStatement, _ builder: RowBatchBuilder) -> Bool { (try? append(statement, to: builder)) != nil }

  /// Whether the version of the statement's current row is valid.
  func hasValidVersion(_ statement: SQLiteStatement) -> Bool {
    (try? check(key: 0, version: RowVersion(statement.int64(1)), statement)) != nil
  }

  /// The slots of the statement's current row whose values can't be read.
  func unreadableSlots(_ statement: SQLiteStatement, _ builder: RowBatchBuilder) -> [SlotIndex] {
    entity.slotIndexes.filter { slot in
      builder.beginRow(key: 0, version: 1)
      defer { builder.cancelRow() }
      let column = Int32(truncatingIfNeeded: slot.rawValue + 2)
      return (try? RowDecoder.append(statement.handle, column, codes[slot.rawValue], to: builder)) != true
    }
  }

  /// Appends one value; false if it has a storage class that the column can't have.
  ///
  /// It looks up the value once, and then reads its class and content from it. SQLite allows that while no other thread uses the
  /// connection, and connections are confined to one thread.
  @inline(__always)
  private static func append(_ handle: OpaquePointer, _ column: Int32, _ code: ColumnCode, to builder: RowBatchBuilder) throws -> Bool {
    let value = sqlite3_column_value(handle, column)
    let type = sqlite3_value_type(value)
    if type == SQLITE_NULL {
      builder.appendNull()
      return true
    }
    switch code {
    case .integer64:
      if type != SQLITE_INTEGER { return false }
      builder.append(integer: sqlite3_value_int64(value))
    case .key:
      let key = sqlite3_value_int64(value)
      if type != SQLITE_INTEGER || key < 0 { return false }
      builder.append(integer: key)
    case .integer16, .integer32, .boolean:
      if type != SQLITE_INTEGER { return false }
      let number = sqlite3_value_int64(value)
      switch code {
      case .boolean: if UInt64(bitPattern: number) > 1 { return false }
      case .integer16: if Int64(Int16(truncatingIfNeeded: number)) != number { return false }
      default: if Int64(Int32(truncatingIfNeeded: number)) != number { return false }
      }
      builder.append(integer: number)
    case .real:
      if type != SQLITE_FLOAT && type != SQLITE_INTEGER { return false }
      builder.append(real: sqlite3_value_double(value))
    case .text:
      if type != SQLITE_TEXT { return false }
      let bytes = bytes(value)
      if !UTF8Check.isValid(bytes) { return false }
      builder.append(bytes: bytes)
    case .objectID:
      if type != SQLITE_TEXT { return false }
      let bytes = bytes(value)
      if !ObjectIDText.isURI(bytes) { return false }
      builder.append(bytes: bytes)
    case .uuid:
      if type != SQLITE_BLOB { return false }
      let bytes = bytes(value)
      if bytes.count != 16 { return false }
      builder.append(bytes: bytes)
    case .data:
      if type != SQLITE_BLOB && type != SQLITE_TEXT { return false }
      builder.append(bytes: bytes(value))
    case .marked: return marked(value, type, to: builder)
    case .decimal: return decimal(value, type, to: builder)
    }
    return true
  }

  /// The bytes of a text or data value, without copying. (Reading a text as a blob never copies it.)
  @inline(__always)
  private static func bytes(_ value: OpaquePointer?) -> UnsafeRawBufferPointer {
    guard let start = sqlite3_value_blob(value) else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
  }

  /// Decodes a column with marks. A text has no mark, because the attribute was a text attribute when it was saved.
  @inline(never)
  private static func marked(_ value: OpaquePointer?, _ type: Int32, to builder: RowBatchBuilder) -> Bool {
    if type == SQLITE_TEXT {
      builder.append(bytes: bytes(value))
      return true
    }
    guard type == SQLITE_BLOB, let content = MarkedColumn.content(bytes(value)) else { return false }
    switch content {
    case .bytes(let bytes): builder.append(bytes: bytes)
    case .file(let id): builder.append(external: id)
    }
    return true
  }

  @inline(never)
  private static func decimal(_ value: OpaquePointer?, _ type: Int32, to builder: RowBatchBuilder) -> Bool {
    switch type {
    case SQLITE_INTEGER: builder.append(text: String(sqlite3_value_int64(value)))
    case SQLITE_FLOAT:
      let number = sqlite3_value_double(value)
      guard number.isFinite, let text = DecimalColumn.text(number) else { return false }
      builder.append(text: text)
    default:
      guard let text = DecimalColumn.text(bytes(value)) else { return false }
      builder.append(text: text)
    }
    return true
  }

  /// Refuses invalid keys and versions. Negative keys belong to unsaved objects, and a version must have a successor. Rows with version 0
  /// or without a version are valid, but rare enough to be checked here.
  @inline(never)
  private func check(key: ObjectKey, version: RowVersion, _ statement: SQLiteStatement) throws {
    let type = statement.type(1)
    if key >= 0 && version.rawValue != .max && (type == .integer || type == .null) { return }
    let fault = key < 0 ? "an invalid key" : "an invalid version"
    throw StoreError(
      .damaged, operation: "read rows of \(entity.name)", path: path,
      reason: "\(table.name) has a row with key \(key) and \(fault). Another program or a fault has changed the file.")
  }

  @inline(never)
  private func wrongType(_ statement: SQLiteStatement, _ slot: SlotIndex, _ place: Int) -> StoreError {
    let found =
      switch statement.type(place) {
      case .integer: "INTEGER"
      case .float: "REAL"
      case .text: "TEXT"
      case .blob: "BLOB"
      case .null: "NULL"
      }
    return StoreError(
      .wrongType, operation: "read rows of \(entity.name)", path: path,
      reason:
        "\(table.name).\(table.columns[slot]) of the row with key \(statement.int64(0)) contains a value of storage class \(found), which isn't valid for \(entity.name).\(entity.slots[slot].name). Another program or a fault has changed the file."
    )
  }
}
