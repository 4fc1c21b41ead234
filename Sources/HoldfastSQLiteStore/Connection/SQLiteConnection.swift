import CSQLite
import HoldfastStore

/// One connection to a SQLite file, set up for one role.
///
/// Opening an existing file changes nothing in it, so a store can look at it and refuse it; ``adoptJournalMode(_:)``
/// is the first step that may. A connection is closed by ``close()`` or when the last reference goes.
///
/// Not a pool and not thread-safe: one thread at a time, and ``interrupt()`` is the only exception.
///
/// `@unchecked Sendable` because a connection is handed from one user to the next by the reader pool's lock or by the
/// save lock, and SQLite without its own mutexes asks for no more than that.
final class SQLiteConnection: @unchecked Sendable {  // because the pool's or the save lock hands it over
  let role: ConnectionRole
  let state: ConnectionState
  @exclusivity(unchecked) private var cache = StatementCache()
  @exclusivity(unchecked) private var shapes = ShapeCache()
  /// The transaction that outlives the requests of a reader.
  @exclusivity(unchecked) var burst = ReadBurst()
  /// Keeps the file registered as open; nil once closed.
  private var registration: OpenFileRegistry.Registration?
  /// Whether ``files`` counts this connection.
  @exclusivity(unchecked) private var isNoted = false

  /// Opens the file and applies every setting.
  ///
  /// - Throws: `notAStore` if the file is something else, `damaged`, `notPermitted`, `locked`.
  init(
    file: SQLiteFile, options: SQLiteStoreOptions, role: ConnectionRole, registration: OpenFileRegistry.Registration?
  ) throws(StoreError) {
    try SQLiteLibrary.start()
    let settings = ConnectionSettings(options: options, role: role, isNewFile: file.isEmpty)
    state = try Self.open(file, options: options)
    self.role = role
    self.registration = registration
    do throws(StoreError) {
      try harden(settings)
      try runScript(settings.script)
      if !options.isReadOnly && sqlite3_db_readonly(state.handle, "main") == 1 {
        throw StoreError(
          .notPermitted, operation: state.operation, path: file.path,
          reason: "The file can be read but not written by this user. Open the store read-only, or change the permissions.")
      }
    } catch {
      close(checkpointing: false)
      throw options.isReadOnly ? (try? ReadOnlyPlace(file))?.explained(error) ?? error : error
    }
    state.statementsRun = 0
  }

  deinit { close() }

  // MARK: State

  var path: String { state.path }

  /// What is being done, as a verb phrase for errors: "save 12 rows of Person". Set it before a piece of work.
  var operation: String {
    get { state.operation }
    set { state.operation = newValue }
  }

  /// How many statements were begun since the connection was opened or the counter was set. Checkpoints do not count.
  var statementsRun: Int {
    get { state.statementsRun }
    set { state.statementsRun = newValue }
  }

  /// Whether a failure left the connection unusable; it can only be closed then.
  var isBroken: Bool { state.isBroken }
  var isClosed: Bool { state.isClosed }

  /// What watches the store's files; nil for a connection that belongs to no store, or was closed.
  var files: OpenedFiles? { registration?.files }

  /// Whether a transaction was begun and not ended.
  var isInTransaction: Bool { !state.isClosed && sqlite3_get_autocommit(state.handle) == 0 }

  /// How many rows the last insert, update or delete changed.
  var changes: Int { Int(sqlite3_changes(state.handle)) }

  /// The pages in the write-ahead log after this connection's last commit; 0 without a log.
  var pagesInLog: Int { Int(state.pagesInLog.pointee) }

  /// Stops the statements that are running; they fail with `cancelled`. May be called from any thread, at any time.
  func interrupt() { state.interrupt() }

  // MARK: Statements

  /// The statement for the text: compiled at its first use, kept afterwards.
  ///
  /// It may still have the bindings of its last use.
  func statement(_ sql: String) throws(StoreError) -> SQLiteStatement {
    try state.checkUsable()
    return try cache.statement(sql, state: state)
  }

  /// The statement of a shape; its SQL is only made when it is not known yet.
  func statement(_ shape: StatementShape, _ sql: () throws -> String) throws -> SQLiteStatement {
    try state.checkUsable()
    return try shapes.statement(shape, state: state, sql)
  }

  /// Compiles a statement that is not kept.
  func prepare(_ sql: String) throws(StoreError) -> SQLiteStatement { try SQLiteStatement(sql, state: state) }

  /// Runs a statement that is kept, without parameters and for its effect alone.
  func run(_ sql: String) throws(StoreError) { try statement(sql).run() }

  /// Runs several statements, separated by semicolons, for their effect alone. None is kept.
  func runScript(_ sql: String) throws(StoreError) {
    try state.checkUsable()
    var text = sql
    var failing: Range<Int> = 0..<0
    let code: Int32 = text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { characters in
        var position = 0
        while position < characters.count {
          let start = characters.baseAddress! + position
          var statement: OpaquePointer?
          var tail: UnsafePointer<CChar>?
          let compiled = sqlite3_prepare_v2(state.handle, start, Int32(clamping: characters.count - position), &statement, &tail)
          let length = tail.map { $0 - start } ?? 0
          failing = position..<position + length
          guard compiled == SQLiteResultCode.ok else { return compiled }
          position += length
          guard let statement else {
            if length == 0 { break }
            continue
          }
          state.statementsRun &+= 1
          var code: Int32
          repeat { code = sqlite3_step(statement) } while code == SQLiteResultCode.row
          let ended = sqlite3_finalize(statement)
          guard ended == SQLiteResultCode.ok else { return ended }
        }
        return SQLiteResultCode.ok
      }
    }
    guard code == SQLiteResultCode.ok else {
      let source = failing.isEmpty ? sql : String(decoding: Array(sql.utf8)[failing], as: UTF8.self)
      throw state.failure(code, sql: source)
    }
  }

  /// The first column of the first row as a number; nil if there is no row or it is null.
  func int64(_ sql: String) throws(StoreError) -> Int64? {
    let statement = try statement(sql)
    defer { statement.reset() }
    return try statement.step() && !statement.isNull(0) ? statement.int64(0) : nil
  }

  /// The first column of the first row as text; nil if there is no row or it is null.
  func string(_ sql: String) throws(StoreError) -> String? {
    let statement = try statement(sql)
    defer { statement.reset() }
    return try statement.step() && !statement.isNull(0) ? statement.string(0) : nil
  }

  /// Makes every kept statement ready again, so that none holds a read lock.
  func resetStatements() {
    cache.resetAll()
    shapes.resetAll()
  }

  /// The kept statements.
  var cachedStatementCount: Int { cache.count }

  // MARK: Closing

  /// Makes sure that the file is the one that the store opened, and counts the connection.
  func noteOpening() throws(StoreError) {
    try files?.opened(self)
    isNoted = true
  }

  /// Moves all of the log into the file that this connection has open, wherever that is now. Returns whether nothing is left in the log.
  ///
  /// It waits for the write lock and holds it, so no commit can come between. If another process keeps the lock for longer than the
  /// options say, SQLite moves what it can without the lock, and the log counts as not moved.
  func moveWholeLog() -> Bool {
    var inLog: Int32 = 0
    var moved: Int32 = 0
    return sqlite3_wal_checkpoint_v2(state.handle, "main", SQLITE_CHECKPOINT_TRUNCATE, &inLog, &moved) == SQLiteResultCode.ok
  }

  /// Ends the transaction if there is one, and closes the file. Has no effect when called again.
  ///
  /// The last connection to a file moves the log into it and deletes the log, under a lock that keeps everyone else
  /// out. With `checkpointing` false it leaves the log as it is, for a file that was refused, unless the log is empty: then
  /// opening the file has made it, and it goes.
  func close(checkpointing: Bool = true) {
    guard !state.isClosed else { return }
    // A forked child must not close: that would check-point and delete the log under the parent.
    guard !state.isInherited else { return state.markClosed() }

    let leavesLog = leavesLog(checkpointing)
    state.markClosed()
    cache.removeAll()
    shapes.removeAll()
    if leavesLog {
      _ = holdfast_sqlite3_db_config_flag(state.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    }
    if sqlite3_close(state.handle) == SQLiteResultCode.busy {
      // Somebody holds a statement. Its locks go now; the handle goes with the statement.
      var statement = sqlite3_next_stmt(state.handle, nil)
      while let running = statement {
        sqlite3_reset(running)
        statement = sqlite3_next_stmt(state.handle, running)
      }
      if sqlite3_get_autocommit(state.handle) == 0 { sqlite3_exec(state.handle, "ROLLBACK", nil, nil, nil) }
      sqlite3_close_v2(state.handle)
    }
    if isNoted { files?.closed() }
    registration = nil
  }

  /// A file that was refused keeps the pages of another process's log where they are. An empty log, which opening the file has made, is to be
  /// removed with its index, and only a checkpoint, of nothing, does that. A read-only store removes nothing.
  ///
  /// When the file was replaced, everything at its path is left alone.
  private func leavesLog(_ checkpointing: Bool) -> Bool {
    if state.isReadOnly { return true }
    if let files, !files.mayMoveLog(self) { return true }
    if checkpointing { return false }
    if state.isBroken { return true }
    let log = try? OperatingSystem.status(of: state.name.text + "-wal", followsLinks: false)
    return (log?.size ?? 0) != 0
  }
}

// MARK: - Opening

extension SQLiteConnection {
  private static func open(_ file: SQLiteFile, options: SQLiteStoreOptions) throws(StoreError) -> ConnectionState {
    // Not `SQLITE_OPEN_CREATE`: the file exists, and if another process deletes it at this moment, SQLite must not make another
    // one, which would have other permissions.
    guard options.isReadOnly else { return try open(file, file.name.text, SQLITE_OPEN_READWRITE, options) }
    let place = try ReadOnlyPlace(file)
    if place.hasLogWithoutIndex {
      let fileSystem = SQLiteFileSystem.nameWithoutIndex
      return try open(file, place.name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, options, place, fileSystem: fileSystem)
    }
    let state = try open(file, place.name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, options)
    // What can't be read now, SQLite itself reports when it reads.
    guard (try? state.hasLogOnDisk) == true, place.allowsImmutable else { return state }
    // Nothing was read through it yet, so it has no lock that closing it could drop.
    sqlite3_close(state.handle)
    state.markClosed()
    return try open(file, place.immutableName, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, options, place)
  }

  private static func open(
    _ file: SQLiteFile, _ name: String, _ flags: Int32, _ options: SQLiteStoreOptions, _ watchedPlace: ReadOnlyPlace? = nil,
    fileSystem: String = SQLiteFileSystem.name
  ) throws(StoreError) -> ConnectionState {
    precondition(file.path.utf8.first == UInt8(ascii: "/"), "SQLite is only given absolute paths.")
    guard SQLiteFileSystem.register() else {
      throw StoreError(.general, operation: SQLiteFile.opening, path: file.path, reason: "SQLite refused this framework's file system.")
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
    // For libraries that do not know the flag yet.
    sqlite3_extended_result_codes(handle, 1)
    return ConnectionState(
      handle: handle, file: file, database: database, isReadOnly: options.isReadOnly, watchedPlace: watchedPlace)
  }

  /// The settings that are not SQL, all before the file is read for the first time.
  private func harden(_ settings: ConnectionSettings) throws(StoreError) {
    let handle = state.handle
    sqlite3_busy_timeout(handle, settings.busyMilliseconds)

    for (flag, isOn) in Self.flags {
      let code = holdfast_sqlite3_db_config_flag(handle, flag, isOn ? 1 : 0)
      guard code == SQLiteResultCode.ok else { throw state.failure(code) }
    }
    state.watch.install(handle)
    for (limit, value) in Self.limits { sqlite3_limit(handle, limit, value) }
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, settings.maximumValueBytes)

    // No connection checkpoints on its own; `WriterCheckpoint` says why. The writer's hook, which takes the place of
    // the automatic checkpoint, notes how long the log is.
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

  /// A crafted file cannot run functions, views or extensions, and a misspelt name is an error instead of a text.
  /// Triggers stay on: derived attributes of the file format are triggers.
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

  /// Bounds for what a statement or a crafted file can make SQLite do. The same on every build, so that SQL that
  /// passes here passes elsewhere.
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
