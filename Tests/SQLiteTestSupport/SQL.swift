import CHoldfastSQLite

/// Plain SQLite, for what a test wants to know of a file or change in it.
package enum SQL {
  /// Why a statement failed.
  package struct Failure: Error {
    package let message: String
  }

  /// Runs one statement in a connection of its own, and returns its rows as text.
  package static func rows(_ path: String, _ text: String) throws -> [[String]] {
    var handle: OpaquePointer?
    defer { sqlite3_close(handle) }
    func check(_ result: Int32) throws {
      if result != SQLITE_OK { throw Failure(message: "\(text): \(sqlite3_errmsg(handle).map { String(cString: $0) } ?? "\(result)")") }
    }
    try check(sqlite3_open(path, &handle))
    var statement: OpaquePointer?
    try check(sqlite3_prepare_v2(handle, text, -1, &statement, nil))
    defer { sqlite3_finalize(statement) }
    var rows: [[String]] = []
    while sqlite3_step(statement) == SQLITE_ROW {
      rows.append(
        (0..<sqlite3_column_count(statement)).map { column in
          sqlite3_column_text(statement, column).map { String(cString: $0) } ?? "NULL"
        })
    }
    return rows
  }

  /// Runs statements, separated by semicolons, in a connection of its own.
  package static func run(_ path: String, _ script: String) throws {
    var handle: OpaquePointer?
    defer { sqlite3_close(handle) }
    guard sqlite3_open(path, &handle) == SQLITE_OK, sqlite3_exec(handle, script, nil, nil, nil) == SQLITE_OK else {
      throw Failure(message: sqlite3_errmsg(handle).map { String(cString: $0) } ?? "SQLite has too little memory.")
    }
  }
}
