import HoldfastStore

/// The purpose of a connection, which determines its settings.
enum ConnectionRole {
  /// Changes the file. A store has one writer.
  case writer
  /// Only reads, for one read view at a time.
  case reader
  /// Moves the log into the file while the writer holds the write lock.
  case checkpointer
  /// Rebuilds the file.
  case compactor
}

/// The SQL and the numbers that set up a connection.
///
/// Every setting is explicit, even SQLite's defaults, because distributions compile SQLite with different ones. A setting takes 1 to 2 µs.
/// The first one that needs the schema takes longer (80 µs for 20 tables and 20 indexes), but the first query would need that time anyway.
/// Settings that need the schema come last, after those that make reading a hostile file safer.
struct ConnectionSettings {
  /// A script to run before anything else.
  let script: String
  let busyTimeout: Duration
  let maximumValueBytes: Int32
  let statementLogging: SQLiteStoreOptions.StatementLogging

  init(options: SQLiteStoreOptions, role: ConnectionRole, isNewFile: Bool) {
    precondition(
      options.busyTimeout >= .zero && options.cacheBytes >= 0 && options.mmapBytes >= 0 && options.maximumValueBytes > 0
        && options.maximumReaders > 0 && options.readerTimeout >= .zero && options.maximumSnapshots > 0 && options.checkpointPages > 0
        && (options.maximumFileBytes ?? 1) > 0 && (options.requestTimeout ?? .zero) >= .zero && (options.maximumFetchByteCount ?? 0) >= 0,
      "A SQLite store's options contain a negative number, or 0 where at least 1 is needed.")
    busyTimeout = options.busyTimeout
    maximumValueBytes = Int32(clamping: options.maximumValueBytes)
    statementLogging = options.statementLogging

    var settings = [
      "cell_size_check=1",
      // No user data is written to a folder for temporary files. The compactor's temporary files are in the store's folder.
      "temp_store=\(role == .compactor ? 1 : 2)",
      "recursive_triggers=0",
      "case_sensitive_like=0",
      "secure_delete=0",
      "mmap_size=\(options.mmapBytes)",
      "journal_size_limit=\(64 << 20)",
    ]
    if isNewFile && role == .writer {
      // Only an empty file accepts these settings. Other programs use the same values.
      settings += ["page_size=\(Self.pageBytes)", "encoding='UTF-8'", "auto_vacuum=2"]
    }
    if role == .reader || options.isReadOnly { settings.append("query_only=1") }
    // The checkpointer moves pages without caching any.
    if role != .checkpointer { settings.append("cache_size=-\(options.cacheBytes >> 10)") }
    // Also for connections that don't write: the last connection to be closed syncs the file.
    let isRelaxed = Self.isRelaxed(options) && role != .compactor
    settings.append("synchronous=\(isRelaxed ? Self.relaxedSyncing : Self.fullSyncing)")
    #if canImport(Darwin)
      if !isRelaxed { settings += ["fullfsync=1", "checkpoint_fullfsync=1"] }
    #endif
    // Not joined(): its first call in a process creates types, which takes longer than SQLite takes to open the file.
    var script = ""
    for setting in settings { script += "PRAGMA \(setting);" }
    self.script = script
  }

  /// `EXTRA` is like `FULL`. Without a log, it also syncs the folder after the journal was removed. Otherwise the journal could reappear
  /// after a power loss, and the next opening would roll the save back (SQLite, *PRAGMA Statements*, "synchronous").
  static let fullSyncing = 3
  /// `NORMAL`: with a log, commits don't wait for the disk, but the log is synced before its pages are moved into the file.
  static let relaxedSyncing = 1

  /// The size of the pages of a new file.
  static let pageBytes = 4096
  /// The maximum number of columns of a table or of a query's rows.
  static let maximumColumns = 2000

  /// Whether commits return without waiting for the disk.
  static func isRelaxed(_ options: SQLiteStoreOptions) -> Bool { options.durability == .normal && options.journalMode == .wal }
}
