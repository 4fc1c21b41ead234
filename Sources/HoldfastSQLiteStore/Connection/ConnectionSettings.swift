/// What a connection is for; its settings follow from that.
enum ConnectionRole {
  /// The one connection of a store that changes the file.
  case writer
  /// A connection that only reads, for one read view at a time.
  case reader
  /// The connection that moves the log into the file while the writer holds the write lock.
  case checkpointer
  /// The connection that rebuilds the file.
  case compactor
}

/// The SQL and the numbers by which a connection is set up.
///
/// Every setting is stated, also where it is the usual default, because distributions compile SQLite with different
/// ones. A setting costs 1 to 2 µs; what costs is the first that needs the schema (80 µs for 20 tables and as many
/// indexes), and the first query would have to pay that anyway. So those come last, after the settings that make
/// reading a hostile file safer.
struct ConnectionSettings {
  /// One script, to be run before anything else.
  let script: String
  let busyMilliseconds: Int32
  let maximumValueBytes: Int32

  init(options: SQLiteStoreOptions, role: ConnectionRole, isNewFile: Bool) {
    precondition(
      options.busyTimeoutSeconds >= 0 && options.cacheBytes >= 0 && options.mmapBytes >= 0 && options.maximumValueBytes > 0
        && options.maximumReaders > 0 && options.readerTimeoutSeconds >= 0 && options.maximumSnapshots > 0 && options.checkpointPages > 0
        && (options.maximumFileBytes ?? 1) > 0 && (options.requestTimeoutSeconds ?? 0) >= 0 && (options.largestFetchBytes ?? 0) >= 0,
      "A SQLite store's options hold a negative number, or zero where at least one is needed.")
    busyMilliseconds = Self.busyMilliseconds(options)
    maximumValueBytes = Int32(clamping: options.maximumValueBytes)

    var settings = [
      "cell_size_check=1",
      // Nothing of the user's data goes to a folder for temporary files. The compactor's go to the store's folder.
      "temp_store=\(role == .compactor ? 1 : 2)",
      "recursive_triggers=0",
      "case_sensitive_like=0",
      "secure_delete=0",
      "mmap_size=\(options.mmapBytes)",
      "journal_size_limit=\(64 << 20)",
    ]
    if isNewFile && role == .writer {
      // Only an empty file takes these. They are what other programs write.
      settings += ["page_size=\(Self.pageBytes)", "encoding='UTF-8'", "auto_vacuum=2"]
    }
    if role == .reader || options.isReadOnly { settings.append("query_only=1") }
    // The checkpointer moves pages without keeping any.
    if role != .checkpointer { settings.append("cache_size=-\(options.cacheBytes >> 10)") }
    // Also where nothing is written: the connection that is closed last syncs the file.
    let isRelaxed = Self.isRelaxed(options) && role != .compactor
    settings.append("synchronous=\(isRelaxed ? 1 : Self.fullSyncing)")
    #if canImport(Darwin)
      if !isRelaxed { settings += ["fullfsync=1", "checkpoint_fullfsync=1"] }
    #endif
    if let bytes = options.maximumFileBytes, role == .writer {
      settings.append("max_page_count=\(max(1, bytes / Self.pageBytes))")
    }
    // Not joined(): the first of a process makes types for longer than SQLite takes to open the file.
    var script = ""
    for setting in settings { script += "PRAGMA \(setting);" }
    self.script = script
  }

  /// `EXTRA`: like `FULL`, and without a log the folder is synced too when the journal was removed. Otherwise a loss of power could bring
  /// the journal back, and the next one to open the file would take the save back (SQLite, *PRAGMA Statements*, "synchronous").
  static let fullSyncing = 3

  static let pageBytes = 4096
  /// How many columns a table, or the rows of a query, can have.
  static let maximumColumns = 2000

  /// Whether commits do not wait for the disk.
  static func isRelaxed(_ options: SQLiteStoreOptions) -> Bool { options.durability == .normal && options.journalMode == .wal }

  /// The time to wait for a lock, as SQLite counts it.
  static func busyMilliseconds(_ options: SQLiteStoreOptions) -> Int32 {
    Int32(min(options.busyTimeoutSeconds * 1000, Double(Int32.max)))
  }
}
