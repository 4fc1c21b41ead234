import CHoldfastSQLite

/// A SQLite connection without the framework, used to act as another program or to damage files.
final class BareDatabase {
  struct Failure: Error, CustomStringConvertible { var description: String }

  private var handle: OpaquePointer?

  init(_ path: String) throws {
    guard sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK else { throw failure("open") }
    sqlite3_busy_timeout(handle, 5000)
  }

  deinit { close() }

  func close() {
    sqlite3_close(handle)
    handle = nil
  }

  private func failure(_ sql: String) -> Failure {
    Failure(description: "\(handle.flatMap { sqlite3_errmsg($0) }.map { String(cString: $0) } ?? "no handle") in: \(sql)")
  }

  /// Runs statements.
  func run(_ sql: String) throws {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure(sql) }
  }

  /// Each row as text, with its columns separated by bars.
  func rows(_ sql: String) throws -> [String] {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else { throw failure(sql) }
    defer { sqlite3_finalize(statement) }
    var rows: [String] = []
    while true {
      let code = sqlite3_step(statement)
      if code == SQLITE_DONE { return rows }
      guard code == SQLITE_ROW else { throw failure(sql) }
      let values = (0..<sqlite3_column_count(statement)).map { column in
        sqlite3_column_text(statement, column).map { String(cString: $0) } ?? "null"
      }
      rows.append(values.joined(separator: "|"))
    }
  }

  /// Sets a blob.
  func set(_ bytes: [UInt8], _ sql: String) throws {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else { throw failure(sql) }
    defer { sqlite3_finalize(statement) }
    _ = bytes.withUnsafeBytes { sqlite3_bind_blob64(statement, 1, $0.baseAddress, UInt64($0.count), nil) }
    guard sqlite3_step(statement) == SQLITE_DONE else { throw failure(sql) }
  }

  /// Opens a file, runs statements and closes it.
  static func change(_ path: String, _ sql: String) throws {
    let database = try BareDatabase(path)
    defer { database.close() }
    try database.run(sql)
  }

  /// Restores a backup with SQLite's backup functions, into a database that other programs may have open.
  static func restore(_ path: String, from backup: String) throws {
    let target = try BareDatabase(path), source = try BareDatabase(backup)
    defer {
      source.close()
      target.close()
    }
    guard let copy = sqlite3_backup_init(target.handle, "main", source.handle, "main") else { throw target.failure("backup") }
    let code = sqlite3_backup_step(copy, -1)
    guard sqlite3_backup_finish(copy) == SQLITE_OK, code == SQLITE_DONE else { throw target.failure("backup") }
  }
}
