import CHoldfastSQLite
import HoldfastStore

extension SQLiteConnection {
  /// Opens the file without applying settings. A read-only file is opened so that nothing beside it is created; see ``ReadOnlyPlace``.
  static func open(_ file: SQLiteFile, options: SQLiteStoreOptions) throws(StoreError) -> ConnectionState {
    // Not `SQLITE_OPEN_CREATE`: the file exists. If another process deletes it at this moment, SQLite must not create another one, which
    // would have other permissions.
    guard options.isReadOnly else { return try open(file, file.name.text, SQLITE_OPEN_READWRITE, options) }
    let place = try ReadOnlyPlace(file)
    if place.hasLogWithoutIndex {
      let fileSystem = SQLiteFileSystem.nameWithoutIndex
      return try open(file, place.name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, options, place, fileSystem: fileSystem)
    }
    let state = try open(file, place.name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, options)
    // If it can't be read now, SQLite reports the error when it reads.
    guard (try? state.hasLogOnDisk) == true, place.allowsImmutable else { return state }
    // Nothing was read through this connection yet, so it holds no lock that closing could release.
    sqlite3_close(state.handle)
    state.markClosed()
    return try open(file, place.immutableName, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, options, place)
  }

  private static func open(
    _ file: SQLiteFile, _ name: String, _ flags: Int32, _ options: SQLiteStoreOptions, _ watchedPlace: ReadOnlyPlace? = nil,
    fileSystem: String = SQLiteFileSystem.name
  ) throws(StoreError) -> ConnectionState {
    precondition(file.path.utf8.first == UInt8(ascii: "/"), "SQLite must be given an absolute path.")
    guard SQLiteFileSystem.register() else {
      throw StoreError(.general, operation: SQLiteFile.opening, path: file.path, reason: "SQLite couldn't register Holdfast's file system.")
    }
    let database = SQLiteFileSystem.OpenDatabase(file, options)
    let flags = flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_PRIVATECACHE
    var handle: OpaquePointer?
    let code = sqlite3_open_v2(name, &handle, flags, fileSystem)
    guard code == SQLiteResultCode.ok, let handle else {
      let failure = SQLiteFailure(resultCode: code, connection: handle, sql: nil)
      sqlite3_close(handle)
      throw failure.storeError(operation: SQLiteFile.opening, path: file.path, isReadOnly: options.isReadOnly)
    }
    // For libraries that don't support the flag yet.
    sqlite3_extended_result_codes(handle, 1)
    return ConnectionState(
      handle: handle, file: file, database: database, isReadOnly: options.isReadOnly, watchedPlace: watchedPlace)
  }

  /// Applies the settings that aren't SQL, before the file is first read.
  func harden(_ settings: ConnectionSettings) throws(StoreError) {
    let handle = state.handle
    state.lockWait.limit = settings.busyTimeout
    state.lockWait.install(handle)

    for (flag, isOn) in Self.flags {
      let code = holdfast_sqlite3_db_config_flag(handle, flag, isOn ? 1 : 0)
      guard code == SQLiteResultCode.ok else { throw state.failure(code) }
    }
    state.watch.install(handle)
    StatementLog.install(handle, settings.statementLogging)
    for (limit, value) in Self.limits { sqlite3_limit(handle, limit, value) }
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, settings.maximumValueBytes)

    // No connection checkpoints automatically; `WriterCheckpoint` explains why. The writer's hook, which replaces the automatic checkpoint,
    // stores the length of the log.
    if role == .writer {
      sqlite3_wal_hook(
        handle,
        { pagesInLog, _, _, pages in
          pagesInLog?.assumingMemoryBound(to: Int32.self).pointee = pages
          return SQLiteResultCode.ok
        }, state.pagesInLog)
    } else {
      sqlite3_wal_autocheckpoint(handle, 0)
    }
  }

  /// Limits the size of the file, in bytes. Another program's file may have pages of another size, which SQLite knows after the settings
  /// that need the schema.
  func limitFile(to bytes: Int) throws(StoreError) {
    let pageBytes = try int64("PRAGMA page_size").map { Int($0) } ?? ConnectionSettings.pageBytes
    try runScript("PRAGMA max_page_count=\(max(1, bytes / pageBytes))")
  }

  /// A crafted file can't run functions, views or extensions, and a misspelt name is an error instead of a string literal. Triggers stay
  /// enabled, because Core Data's files maintain derived attributes with triggers.
  private static let flags: [(Int32, Bool)] = [
    (SQLITE_DBCONFIG_DEFENSIVE, true),
    (SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    (SQLITE_DBCONFIG_DQS_DML, false),
    (SQLITE_DBCONFIG_DQS_DDL, false),
    (SQLITE_DBCONFIG_ENABLE_TRIGGER, true),
    (SQLITE_DBCONFIG_ENABLE_VIEW, false),
    (SQLITE_DBCONFIG_ENABLE_FKEY, false),
    (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, false),
  ]

  /// Limits on what a statement or a crafted file can make SQLite do. They are the same on every build, so SQL that works here works
  /// everywhere.
  private static let limits: [(Int32, Int32)] = [
    (SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
    (SQLITE_LIMIT_COLUMN, Int32(ConnectionSettings.maximumColumns)),
    (SQLITE_LIMIT_EXPR_DEPTH, 200),
    (SQLITE_LIMIT_COMPOUND_SELECT, 50),
    (SQLITE_LIMIT_VDBE_OP, 25_000_000),
    (SQLITE_LIMIT_FUNCTION_ARG, 16),
    (SQLITE_LIMIT_ATTACHED, 0),
    (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    (SQLITE_LIMIT_VARIABLE_NUMBER, 32_766),
    (SQLITE_LIMIT_TRIGGER_DEPTH, 10),
    (SQLITE_LIMIT_WORKER_THREADS, 0),
  ]
}
