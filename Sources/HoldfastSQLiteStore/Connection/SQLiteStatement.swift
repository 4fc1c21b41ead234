import CHoldfastSQLite
import HoldfastStore

/// A compiled SQL statement: bind values, step through the rows, read columns.
///
/// ``step()`` starts the statement. It returns true if there is a row to read. When it returns false or throws, the statement is ready
/// again. Its bindings are kept, except those of a statement with a list. If you stop before the last row, call ``reset()``: until then the
/// statement holds a read lock.
///
/// Confined like its connection. Using it after the connection was closed throws.
final class SQLiteStatement {
  /// SQLite's handle. Valid as long as this object.
  let handle: OpaquePointer
  /// The SQL text.
  let sql: String
  private let state: ConnectionState
  /// Whether the statement was started and hasn't finished.
  @exclusivity(unchecked) private(set) var isRunning = false
  /// Whether a list is bound. It may be large, so it is released when the statement finishes.
  @exclusivity(unchecked) var holdsList = false

  /// Compiles the text, which must be one statement.
  init(_ sql: String, state: ConnectionState) throws(StoreError) {
    try state.checkUsable()
    let (code, handle, isWhole) = state.compile(sql, flags: UInt32(SQLITE_PREPARE_PERSISTENT))
    guard code == SQLiteResultCode.ok else { throw state.failure(code, sql: sql) }
    guard let handle else { preconditionFailure("The SQL text contains no statement: \(sql)") }
    precondition(isWhole, "The SQL text contains more than one statement: \(sql)")
    self.handle = handle
    self.sql = sql
    self.state = state
  }

  deinit {
    noteEnd()
    // In a forked child the handle isn't finalized, because that could touch the parent's file.
    if !state.isInherited { sqlite3_finalize(handle) }
  }

  /// Advances to the next row. Returns true if there is one; false if the statement has finished and is ready again.
  @inline(__always)
  func step() throws(StoreError) -> Bool {
    if !isRunning { try begin() }
    let code = sqlite3_step(handle)
    if code == SQLiteResultCode.row { return true }
    try end(code)
    return false
  }

  /// Runs the statement to its end and ignores its rows.
  func run() throws(StoreError) {
    while try step() {}
  }

  /// Makes the statement ready again, whatever its state. Keeps the bindings.
  @inline(__always)
  func reset() {
    if isRunning {
      noteEnd()
      // The returned code is the last step's, which was already reported.
      sqlite3_reset(handle)
    }
    if holdsList { releaseList() }
  }

  @inline(never)
  private func releaseList() {
    holdsList = false
    clearBindings()
  }

  /// Releases the connection's unused cache pages.
  func releasePages() { sqlite3_db_release_memory(sqlite3_db_handle(handle)) }

  /// Sets every parameter to null.
  func clearBindings() { sqlite3_clear_bindings(handle) }

  /// The number of columns of a row.
  var columnCount: Int { Int(sqlite3_column_count(handle)) }

  /// The number of parameters.
  var parameterCount: Int { Int(sqlite3_bind_parameter_count(handle)) }

  @inline(__always)
  private func begin() throws(StoreError) {
    try state.checkUsable()
    state.statementsRun &+= 1
    isRunning = true
    state.runningCount += 1
  }

  @inline(__always)
  private func noteEnd() {
    guard isRunning else { return }
    isRunning = false
    state.runningCount -= 1
  }

  @inline(__always)
  private func end(_ code: Int32) throws(StoreError) {
    guard code == SQLiteResultCode.done else { throw failed(code) }
    reset()
  }

  @inline(never)
  private func failed(_ code: Int32) -> StoreError {
    let error = state.failure(code, sql: sql)
    reset()
    return error
  }

  /// The error for a value that couldn't be bound.
  @inline(never)
  fileprivate func refused(_ code: Int32, index: Int) -> StoreError {
    precondition(
      code != SQLITE_MISUSE && code != SQLITE_RANGE,
      "Parameter \(index) doesn't exist, or the statement is running and wasn't reset: \(sql)")
    return state.failure(code, sql: sql)
  }
}

/// The owner of bytes bound to a parameter.
enum BoundBytes {
  /// The caller. They must stay valid until the parameter is bound again or the bindings are cleared.
  case borrowed
  /// SQLite, which copies them.
  case copied

  @inline(__always)
  var destructor: sqlite3_destructor_type? {
    switch self {
    case .borrowed: nil
    // SQLite's marker for "copy it": the pointer −1, which SQLite compares and never calls.
    case .copied: unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    }
  }
}

// MARK: - Binding

/// Parameters are numbered from 1, as in SQLite. Binding to a parameter that doesn't exist, or while the statement is running, is a
/// programming error and traps.
extension SQLiteStatement {
  @inline(__always)
  func bind(_ value: Int64, at index: Int) {
    let code = sqlite3_bind_int64(handle, Int32(truncatingIfNeeded: index), value)
    if code != SQLiteResultCode.ok { bindingFailed(code, index: index) }
  }

  @inline(__always)
  func bind(_ key: ObjectKey, at index: Int) { bind(key.rawValue, at: index) }

  @inline(__always)
  func bind(_ value: Int, at index: Int) { bind(Int64(value), at: index) }

  @inline(__always)
  func bind(_ value: Double, at index: Int) {
    let code = sqlite3_bind_double(handle, Int32(truncatingIfNeeded: index), value)
    if code != SQLiteResultCode.ok { bindingFailed(code, index: index) }
  }

  @inline(__always)
  func bindNull(at index: Int) {
    let code = sqlite3_bind_null(handle, Int32(truncatingIfNeeded: index))
    if code != SQLiteResultCode.ok { bindingFailed(code, index: index) }
  }

  /// Binds UTF-8 bytes as text. Zero bytes are the empty text, not null.
  @inline(__always)
  func bindText(_ bytes: UnsafeRawBufferPointer, _ ownership: BoundBytes, at index: Int) throws(StoreError) {
    let start = bytes.baseAddress ?? Self.noBytes
    let code = sqlite3_bind_text64(
      handle, Int32(truncatingIfNeeded: index), start.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), ownership.destructor,
      UInt8(SQLITE_UTF8))
    if code != SQLiteResultCode.ok { throw refused(code, index: index) }
  }

  /// Binds bytes as a data value. Zero bytes are the empty value, not null.
  @inline(__always)
  func bindBlob(_ bytes: UnsafeRawBufferPointer, _ ownership: BoundBytes, at index: Int) throws(StoreError) {
    let start = bytes.baseAddress ?? Self.noBytes
    let code = sqlite3_bind_blob64(handle, Int32(truncatingIfNeeded: index), start, UInt64(bytes.count), ownership.destructor)
    if code != SQLiteResultCode.ok { throw refused(code, index: index) }
  }

  /// Binds a copy of the text, or null.
  func bind(_ value: String?, at index: Int) throws(StoreError) {
    if let value { try bind(value, at: index) } else { bindNull(at: index) }
  }

  /// Binds a copy of the bytes as a data value, or null.
  func bind(_ value: [UInt8]?, at index: Int) throws(StoreError) {
    if let value { try bind(value, at: index) } else { bindNull(at: index) }
  }

  /// Binds a copy of the text.
  func bind(_ value: String, at index: Int) throws(StoreError) {
    var value = value
    let result: Result<Void, StoreError> = value.withUTF8 { bytes in
      do throws(StoreError) { return .success(try bindText(UnsafeRawBufferPointer(bytes), .copied, at: index)) } catch {
        return .failure(error)
      }
    }
    try result.get()
  }

  /// Binds a copy of the bytes as a data value.
  func bind(_ value: [UInt8], at index: Int) throws(StoreError) {
    let result: Result<Void, StoreError> = value.withUnsafeBytes { bytes in
      do throws(StoreError) { return .success(try bindBlob(bytes, .copied, at: index)) } catch { return .failure(error) }
    }
    try result.get()
  }

  @inline(never)
  private func bindingFailed(_ code: Int32, index: Int) -> Never {
    preconditionFailure("Parameter \(index) doesn't exist, or the statement is running and wasn't reset (\(code)): \(sql)")
  }

  /// The pointer of an empty value, because SQLite treats a null pointer as null. Nothing is read from it.
  private static var noBytes: UnsafeRawPointer { UnsafeRawPointer(bitPattern: 1)! }
}

// MARK: - Columns

/// The storage class of a value in a row.
enum SQLiteColumnType: Int32 {
  case integer = 1
  case float = 2
  case text = 3
  case blob = 4
  case null = 5
}

/// Columns are numbered from 0, as in SQLite. Read them only after ``step()`` returned true. Reading a value as another type converts it,
/// as in SQLite; check ``type(_:)`` first if that matters. Pointers are valid until the next step, the next reset, or another read of the
/// same column.
extension SQLiteStatement {
  @inline(__always)
  func type(_ column: Int) -> SQLiteColumnType {
    SQLiteColumnType(rawValue: sqlite3_column_type(handle, Int32(truncatingIfNeeded: column))) ?? .null
  }

  @inline(__always)
  func isNull(_ column: Int) -> Bool {
    sqlite3_column_type(handle, Int32(truncatingIfNeeded: column)) == SQLiteColumnType.null.rawValue
  }

  @inline(__always)
  func int64(_ column: Int) -> Int64 { sqlite3_column_int64(handle, Int32(truncatingIfNeeded: column)) }

  @inline(__always)
  func key(_ column: Int) -> ObjectKey { ObjectKey(int64(column)) }

  @inline(__always)
  func double(_ column: Int) -> Double { sqlite3_column_double(handle, Int32(truncatingIfNeeded: column)) }

  /// The UTF-8 bytes of a text, as stored in the file. They may be invalid UTF-8.
  @inline(__always)
  func text(_ column: Int) -> UnsafeRawBufferPointer {
    // Read the pointer first: that may convert the value, and the length is that of the converted value.
    let start = sqlite3_column_text(handle, Int32(truncatingIfNeeded: column))
    return bytes(column, from: UnsafeRawPointer(start))
  }

  /// The bytes of a data value.
  @inline(__always)
  func blob(_ column: Int) -> UnsafeRawBufferPointer {
    bytes(column, from: sqlite3_column_blob(handle, Int32(truncatingIfNeeded: column)))
  }

  @inline(__always)
  private func bytes(_ column: Int, from start: UnsafeRawPointer?) -> UnsafeRawBufferPointer {
    guard let start else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, Int32(truncatingIfNeeded: column))))
  }

  /// A text as a string, with invalid bytes replaced. For metadata and tests; rows keep the bytes.
  func string(_ column: Int) -> String { String(decoding: text(column), as: UTF8.self) }

  /// The name of a result column.
  func columnName(_ column: Int) -> String {
    sqlite3_column_name(handle, Int32(truncatingIfNeeded: column)).map { String(cString: $0) } ?? ""
  }
}
