import CHoldfastSQLite
import HoldfastStore

/// The values of a list that is too long for individual placeholders.
final class BoundList: Sendable {
  let values: [SQLBinding]
  init(_ values: [SQLBinding]) { self.values = values }
}

extension BoundList: Hashable {
  static func == (a: BoundList, b: BoundList) -> Bool { a.values == b.values }
  func hash(into hasher: inout Hasher) { hasher.combine(values) }
}

/// The table-valued function `holdfast_list(?)`: the values of a list bound as a pointer.
///
/// SQLite reads the list once per statement and keeps it as an index, so testing a row takes one lookup. If the column has an index, SQLite
/// may look up each value there instead. Nothing is written, so it works on read-only connections, in every transaction, and for several
/// lists at once. One statement serves lists of every length. The table exists only in statements: it can't be created, so no file can name
/// it.
enum ListTable {
  static let name = "holdfast_list"
  /// The type tag of the bound pointer.
  static let pointerType: StaticString = "holdfast-list"

  static func register(on connection: SQLiteConnection) throws(StoreError) {
    let code = sqlite3_create_module_v2(connection.state.handle, name, module, nil, nil)
    guard code == SQLiteResultCode.ok else { throw connection.state.failure(code) }
  }

  /// A cursor, laid out so that it begins with SQLite's own structure.
  private struct Cursor {
    var base = sqlite3_vtab_cursor()
    var list: Unmanaged<BoundList>?
    var position = 0
  }

  private static let hiddenColumn: Int32 = 1

  /// Shared by all connections.
  nonisolated(unsafe) private static let module: UnsafePointer<sqlite3_module> = {  // because it never changes after its creation
    var module = sqlite3_module()
    module.xConnect = { connection, _, _, _, table, _ in
      let code = sqlite3_declare_vtab(connection, "CREATE TABLE list(value, list HIDDEN)")
      guard code == SQLITE_OK else { return code }
      let made = UnsafeMutablePointer<sqlite3_vtab>.allocate(capacity: 1)
      made.initialize(to: sqlite3_vtab())
      table?.pointee = made
      return SQLITE_OK
    }
    module.xDisconnect = { table in
      table?.deallocate()
      return SQLITE_OK
    }
    module.xBestIndex = { _, info in info.map { ListTable.plan(&$0.pointee) } ?? SQLITE_ERROR }
    module.xOpen = { _, cursor in
      let made = UnsafeMutablePointer<Cursor>.allocate(capacity: 1)
      made.initialize(to: Cursor())
      cursor?.pointee = UnsafeMutableRawPointer(made).assumingMemoryBound(to: sqlite3_vtab_cursor.self)
      return SQLITE_OK
    }
    module.xClose = { cursor in
      ListTable.cursor(cursor).pointee.list?.release()
      ListTable.cursor(cursor).deallocate()
      return SQLITE_OK
    }
    module.xFilter = { cursor, _, _, count, values in
      let cursor = ListTable.cursor(cursor)
      cursor.pointee.list?.release()
      let pointer = count > 0 ? values.flatMap { sqlite3_value_pointer($0[0], ListTable.pointerTypeText) } : nil
      cursor.pointee.list = pointer.map { Unmanaged<BoundList>.fromOpaque($0).retain() }
      cursor.pointee.position = 0
      return SQLITE_OK
    }
    module.xNext = { cursor in
      ListTable.cursor(cursor).pointee.position += 1
      return SQLITE_OK
    }
    module.xEof = { cursor in
      let cursor = ListTable.cursor(cursor)
      return cursor.pointee.list.map { $0._withUnsafeGuaranteedRef { cursor.pointee.position >= $0.values.count } } ?? true ? 1 : 0
    }
    module.xColumn = { cursor, context, column in
      let cursor = ListTable.cursor(cursor)
      if column == ListTable.hiddenColumn { return SQLITE_OK }
      cursor.pointee.list?._withUnsafeGuaranteedRef { ListTable.put($0.values[cursor.pointee.position], context) }
      return SQLITE_OK
    }
    module.xRowid = { cursor, row in
      row?.pointee = Int64(ListTable.cursor(cursor).pointee.position)
      return SQLITE_OK
    }
    let shared = UnsafeMutablePointer<sqlite3_module>.allocate(capacity: 1)
    shared.initialize(to: module)
    return UnsafePointer(shared)
  }()

  static var pointerTypeText: UnsafePointer<CChar> { UnsafeRawPointer(pointerType.utf8Start).assumingMemoryBound(to: CChar.self) }

  private static func cursor(_ cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?) -> UnsafeMutablePointer<Cursor> {
    guard let cursor else { preconditionFailure("SQLite didn't pass a cursor.") }
    return UnsafeMutableRawPointer(cursor).assumingMemoryBound(to: Cursor.self)
  }

  /// Plans a query of the table. The list must be bound before its values are read.
  private static func plan(_ info: inout sqlite3_index_info) -> Int32 {
    for index in 0..<Int(info.nConstraint) {
      let constraint = info.aConstraint[index]
      guard constraint.iColumn == hiddenColumn, Int32(constraint.op) == SQLITE_INDEX_CONSTRAINT_EQ else { continue }
      if constraint.usable == 0 { return SQLITE_CONSTRAINT }
      info.aConstraintUsage[index].argvIndex = 1
      info.aConstraintUsage[index].omit = 1
    }
    info.estimatedCost = 1
    info.estimatedRows = 100
    return SQLITE_OK
  }

  private static func put(_ value: SQLBinding, _ context: OpaquePointer?) {
    switch value {
    case .null, .list: sqlite3_result_null(context)
    case .integer(let number): sqlite3_result_int64(context, number)
    case .real(let number): sqlite3_result_double(context, number)
    case .text(var text): text.withUTF8 { put(UnsafeRawBufferPointer($0), isText: true, context) }
    case .rawText(let bytes): bytes.withUnsafeBytes { put($0, isText: true, context) }
    case .blob(let bytes): bytes.withUnsafeBytes { put($0, isText: false, context) }
    }
  }

  private static func put(_ bytes: UnsafeRawBufferPointer, isText: Bool, _ context: OpaquePointer?) {
    // SQLite needs a pointer even for zero bytes; without one the result would be null.
    let start = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
    if isText {
      sqlite3_result_text64(
        context, start?.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), BoundBytes.copied.destructor, UInt8(SQLITE_UTF8))
    } else {
      sqlite3_result_blob64(context, start, UInt64(bytes.count), BoundBytes.copied.destructor)
    }
  }
}

extension SQLiteStatement {
  /// Binds a list to the parameter of ``ListTable``. The binding lasts until the statement is done or reset.
  func bind(_ list: BoundList, at index: Int) {
    let code = sqlite3_bind_pointer(
      handle, Int32(truncatingIfNeeded: index), Unmanaged.passRetained(list).toOpaque(), ListTable.pointerTypeText
    ) { pointer in
      if let pointer { Unmanaged<BoundList>.fromOpaque(pointer).release() }
    }
    precondition(code == SQLITE_OK, "Parameter \(index) doesn't exist, or the statement is running and wasn't reset: \(sql)")
    holdsList = true
  }
}
