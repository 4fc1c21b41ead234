import CHoldfastSQLite
import HoldfastFiles
import HoldfastStore

/// A connection to a SQLite file, set up for one role.
///
/// Opening an existing file changes nothing in it, so a store can inspect and refuse it. ``adoptJournalMode(_:_:_:)`` is the first step that
/// may change it. A connection is closed by ``close()`` or when the last reference is released.
///
/// It isn't a pool and isn't thread-safe: only one thread may use it at a time.
///
/// `@unchecked Sendable` because the reader pool's lock or the save lock hands a connection from one user to the next. SQLite without its
/// own mutexes requires no more.
final class SQLiteConnection: @unchecked Sendable {  // because the pool's or the save lock hands it over
  let role: ConnectionRole
  let state: ConnectionState
  @exclusivity(unchecked) private var cache = StatementCache()
  @exclusivity(unchecked) private var shapes = ShapeCache()
  /// The transaction that outlasts a reader's requests.
  @exclusivity(unchecked) var burst = ReadBurst()
  /// Empty builders of former requests, by entity index; nil where there is none.
  @exclusivity(unchecked) var builders: [RowBatchBuilder?] = []
  /// Keeps the file registered as open; nil once closed.
  private var registration: OpenFileRegistry.Registration?
  /// Whether ``files`` counts this connection.
  @exclusivity(unchecked) private var isNoted = false

  /// Opens the file and applies every setting.
  ///
  /// - Throws: `notAStore` if the file isn't a SQLite database, `damaged`, `notPermitted`, `locked`.
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
      if role == .writer, let bytes = options.maximumFileBytes { try limitFile(to: bytes) }
      if !options.isReadOnly && sqlite3_db_readonly(state.handle, "main") == 1 {
        throw StoreError(
          .notPermitted, operation: state.operation, path: file.path,
          reason: "The file can be read but not written by this user. Open the store read-only, or change the file's permissions.")
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

  /// The current operation as a verb phrase for errors: "save 12 rows of Person". Set it before each operation.
  var operation: String {
    get { state.operation }
    set { state.operation = newValue }
  }

  /// The number of statements started since the connection was opened or the counter was set. Checkpoints don't count.
  var statementsRun: Int {
    get { state.statementsRun }
    set { state.statementsRun = newValue }
  }

  /// Runs statements without adding them to ``statementsRun``, because they aren't part of the request.
  func uncounted<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    let before = statementsRun
    defer { statementsRun = before }
    return try body()
  }

  /// Whether a failure made the connection unusable. It can then only be closed.
  var isBroken: Bool { state.isBroken }
  var isClosed: Bool { state.isClosed }

  /// Checks the store's files; nil for a connection without a store, or a closed one.
  var files: OpenedFiles? { registration?.files }

  /// Whether a transaction is open.
  var isInTransaction: Bool { !state.isClosed && sqlite3_get_autocommit(state.handle) == 0 }

  /// The number of rows that the last insert, update or delete changed.
  var changes: Int { Int(sqlite3_changes(state.handle)) }

  /// The pages in the write-ahead log after this connection's last commit; 0 without a log.
  var pagesInLog: Int { Int(state.pagesInLog.pointee) }

  // MARK: Statements

  /// The statement for the text, compiled at its first use and cached.
  ///
  /// It may still have the bindings of its last use.
  func statement(_ sql: String) throws(StoreError) -> SQLiteStatement {
    try state.checkUsable()
    return try cache.statement(sql, state: state)
  }

  /// The statement for a shape. Its SQL is created only if the shape isn't cached.
  ///
  /// Inlined, because a closure that is passed on copies the structs that it uses, in each request.
  @inline(__always)
  func statement(_ shape: StatementShape, _ sql: () throws -> String) throws -> SQLiteStatement {
    try state.checkUsable()
    return try shapes.statement(shape, state: state, sql)
  }

  /// Compiles a statement without caching it.
  func prepare(_ sql: String) throws(StoreError) -> SQLiteStatement { try SQLiteStatement(sql, state: state) }

  /// Runs a cached statement without parameters, and ignores its rows.
  func run(_ sql: String) throws(StoreError) { try statement(sql).run() }

  /// Runs several statements, separated by semicolons, and ignores their rows. Doesn't cache them.
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

  /// Runs one statement of a schema whose text comes from a file.
  ///
  /// - Throws: SQLite's error, also if the text contains more than one statement.
  func runDefinition(_ sql: String) throws(StoreError) {
    try state.checkUsable()
    let (compiled, statement, isWhole) = state.compile(sql)
    defer { sqlite3_finalize(statement) }
    guard compiled == SQLiteResultCode.ok, statement != nil, isWhole else {
      throw state.failure(compiled == SQLiteResultCode.ok ? SQLiteResultCode.error : compiled, sql: sql)
    }
    state.statementsRun &+= 1
    var code: Int32
    repeat { code = sqlite3_step(statement) } while code == SQLiteResultCode.row
    guard code == SQLiteResultCode.done else { throw state.failure(code, sql: sql) }
  }

  /// The first column of the first row as a number; nil if the column is null or there are no rows.
  func int64(_ sql: String) throws(StoreError) -> Int64? {
    let statement = try statement(sql)
    defer { statement.reset() }
    return try statement.step() && !statement.isNull(0) ? statement.int64(0) : nil
  }

  /// The first column of the first row as text; nil if the column is null or there are no rows.
  func string(_ sql: String) throws(StoreError) -> String? {
    let statement = try statement(sql)
    defer { statement.reset() }
    return try statement.step() && !statement.isNull(0) ? statement.string(0) : nil
  }

  /// Resets every cached statement, so that none holds a read lock.
  func resetStatements() {
    if state.runningCount == 0 { return }
    cache.resetAll()
    shapes.resetAll()
  }

  /// The number of cached statements.
  var cachedStatementCount: Int { cache.count }

  // MARK: Closing

  /// Checks that the file is the one that the store opened, and counts the connection.
  func noteOpening() throws(StoreError) {
    try files?.opened(self)
    isNoted = true
  }

  /// Moves the entire log into the file that this connection has open, wherever that file is now. Returns whether the log is empty then.
  ///
  /// It waits for the write lock and holds it, so no commit can happen in between. If another process keeps the lock for longer than the
  /// busy timeout, SQLite moves what it can without the lock, and this returns false.
  func moveWholeLog() -> Bool {
    var inLog: Int32 = 0
    var moved: Int32 = 0
    return sqlite3_wal_checkpoint_v2(state.handle, "main", SQLITE_CHECKPOINT_TRUNCATE, &inLog, &moved) == SQLiteResultCode.ok
  }

  /// Ends the open transaction, if any, and closes the file. Has no effect when called again.
  ///
  /// The last connection to a file moves the log into it and deletes the log, under an exclusive lock. If `checkpointing` is false, for a
  /// file that was refused, it leaves the log unchanged. An empty log is removed, because opening the file created it.
  func close(checkpointing: Bool = true) {
    guard !state.isClosed else { return }
    // A forked child must not close: that would checkpoint and delete the log while the parent uses it.
    guard !state.isInherited else { return state.markClosed() }

    let leavesLog = leavesLog(checkpointing)
    state.markClosed()
    cache.removeAll()
    shapes.removeAll()
    if leavesLog {
      _ = holdfast_sqlite3_db_config_flag(state.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    }
    if sqlite3_close(state.handle) == SQLiteResultCode.busy {
      // A statement is still in use. Release its locks now; the handle is released with the statement.
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

  /// Whether closing leaves the log unchanged.
  ///
  /// A refused file keeps the pages of another process's log. An empty log, created by opening the file, is removed together with its
  /// index. Only a checkpoint does that, even with nothing to move. A read-only store removes nothing.
  ///
  /// If the file was replaced, everything at its path stays unchanged.
  private func leavesLog(_ checkpointing: Bool) -> Bool {
    if state.isReadOnly { return true }
    if let files, !files.mayMoveLog(self) { return true }
    if checkpointing { return false }
    if state.isBroken { return true }
    let log = try? OperatingSystem.status(of: state.name.text + "-wal")
    return (log?.identity.size ?? 0) != 0
  }
}
