import CHoldfastSQLite
import HoldfastStore

/// The index of a write-ahead log in shared memory. SQLite documents its layout ("WAL-mode File Format", section 2.1).
///
/// Valid as long as the connection through which it was read has the log open.
struct LogIndex {
  private let memory: UnsafeRawPointer

  /// The first copy of the header: 48 bytes. Every commit, by any process, changes it before the commit ends.
  struct Header: Equatable {
    fileprivate let words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

    static func == (a: Header, b: Header) -> Bool {
      a.words.0 == b.words.0 && a.words.1 == b.words.1 && a.words.2 == b.words.2 && a.words.3 == b.words.3 && a.words.4 == b.words.4
        && a.words.5 == b.words.5
    }

    /// The number of commits since the index was created. It wraps around.
    var change: UInt32 { withUnsafeBytes(of: words) { $0.load(fromByteOffset: 8, as: UInt32.self) } }

    /// The random number that is also in the log's own header. It changes each time the log restarts.
    var salt: UInt64 { words.4 }

    /// The number of pages in the log.
    private var pages: UInt32 { withUnsafeBytes(of: words) { $0.load(fromByteOffset: 16, as: UInt32.self) } }

    /// Whether the log was begun again since a former header, and has no page since.
    ///
    /// A new log has no random number before its first commit.
    func beginsLogAgain(after former: Header) -> Bool { pages == 0 && salt != 0 && salt != former.salt }
  }

  /// The progress of checkpoints. Every checkpoint that writes to the database changes it before it writes.
  struct Checkpoints: Equatable {
    let salt: UInt64
    let pagesMoved: UInt32
    let pagesBegun: UInt32

    /// Whether a checkpoint is running or was interrupted.
    var isPending: Bool { pagesMoved < pagesBegun }
  }

  var header: Header {
    Header(words: memory.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64).self))
  }

  /// Whether there was no commit since the file got its log.
  var isOfNewLog: Bool { header.change == 0 && pages == 0 }

  /// The number of pages in the log.
  var pages: UInt32 { memory.load(fromByteOffset: 16, as: UInt32.self) }
  /// The number of the log's pages already moved into the database.
  var pagesMoved: UInt32 { memory.load(fromByteOffset: 96, as: UInt32.self) }

  /// The size of the log's header and its pages, in bytes.
  fileprivate var logByteCount: Int64 {
    let pageBytes = Int64(memory.load(fromByteOffset: 14, as: UInt16.self))
    // The number 1 is written for 65,536.
    return 32 + Int64(pages) * (24 + (pageBytes == 1 ? 65_536 : pageBytes))
  }

  var checkpoints: Checkpoints {
    Checkpoints(salt: header.salt, pagesMoved: pagesMoved, pagesBegun: memory.load(fromByteOffset: 128, as: UInt32.self))
  }

  /// The index of the log that a connection has open; nil if it has no log open. Requesting the index then would open it without SQLite's
  /// knowledge, and SQLite would never close it.
  init?(_ connection: ConnectionState) {
    guard connection.openFile(SQLITE_FCNTL_JOURNAL_POINTER) != nil, let file = connection.openFile(SQLITE_FCNTL_FILE_POINTER),
      file.pointee.pMethods.pointee.iVersion >= 2
    else { return nil }
    var region: UnsafeMutableRawPointer?
    let code = file.pointee.pMethods.pointee.xShmMap?(file, 0, LogIndex.regionBytes, 0, &region)
    guard code == SQLiteResultCode.ok, let region else { return nil }
    memory = UnsafeRawPointer(region)
  }

  /// The size of the regions that SQLite maps, in bytes.
  private static let regionBytes: Int32 = 32_768
}

extension ConnectionState {
  /// SQLite's handle for the database file (`SQLITE_FCNTL_FILE_POINTER`) or its log file (`SQLITE_FCNTL_JOURNAL_POINTER`).
  fileprivate func openFile(_ which: Int32) -> UnsafeMutablePointer<sqlite3_file>? {
    guard !isClosed else { return nil }
    var file: UnsafeMutablePointer<sqlite3_file>?
    let code = withUnsafeMutablePointer(to: &file) { sqlite3_file_control(handle, "main", which, $0) }
    guard code == SQLiteResultCode.ok, let file, file.pointee.pMethods != nil else { return nil }
    return file
  }

  /// Bytes of the database file or its log on the disk, whatever SQLite has in its cache; nil beyond the end.
  ///
  /// They are read through SQLite's descriptor. Closing another descriptor would release SQLite's locks.
  ///
  /// - Throws: The disk's error, usually `inputOutput`. Unreadable bytes aren't missing bytes.
  private func bytesOnDisk(_ which: Int32, at offset: Int64) throws(StoreError) -> UInt64? {
    guard let file = openFile(which), let read = file.pointee.pMethods.pointee.xRead else { return nil }
    var bytes: UInt64 = 0
    let code = read(file, &bytes, Int32(MemoryLayout<UInt64>.size), offset)
    if code == SQLiteResultCode.inputOutputShortRead { return nil }
    guard code == SQLiteResultCode.ok else { throw failure(code) }
    return bytes
  }

  /// Writes all pages of the log again, unchanged, so that the next synchronization of the log includes them.
  ///
  /// After a failed synchronization, the system may have marked pages as clean that never reached the disk. Opening the file again doesn't
  /// change that. Call it while the connection has the write lock, so that no process changes the pages.
  func rewriteLog() throws(StoreError) {
    guard let index = LogIndex(self), let file = openFile(SQLITE_FCNTL_JOURNAL_POINTER), let read = file.pointee.pMethods.pointee.xRead,
      let write = file.pointee.pMethods.pointee.xWrite, index.pages > 0
    else { return }
    let end = index.logByteCount
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    var offset: Int64 = 0
    while offset < end {
      let count = Int32(min(Int64(bytes.count), end - offset))
      var code = read(file, &bytes, count, offset)
      if code == SQLiteResultCode.ok { code = write(file, bytes, count, offset) }
      guard code == SQLiteResultCode.ok else { throw failure(code) }
      offset += Int64(count)
    }
  }

  /// Whether another connection is moving the log into the database at this moment.
  var isCheckpointRunning: Bool {
    guard let file = openFile(SQLITE_FCNTL_FILE_POINTER), let lock = file.pointee.pMethods.pointee.xShmLock else { return false }
    let checkpointLock: Int32 = 1
    guard lock(file, checkpointLock, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE) == SQLiteResultCode.ok else { return true }
    _ = lock(file, checkpointLock, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
    return false
  }

  /// Whether the file's header specifies a write-ahead log; nil for an empty or truncated file.
  var hasLogOnDisk: Bool? {
    get throws(StoreError) {
      try bytesOnDisk(SQLITE_FCNTL_FILE_POINTER, at: 16).map { UInt8(truncatingIfNeeded: UInt64(bigEndian: $0) >> 40) == 2 }
    }
  }

  /// The number of commits in the file's header; 0 for an empty or truncated file. With a log, not every commit changes it.
  var changeCounterOnDisk: UInt32 {
    get throws(StoreError) {
      try bytesOnDisk(SQLITE_FCNTL_FILE_POINTER, at: 24).map { UInt32(truncatingIfNeeded: UInt64(bigEndian: $0) >> 32) } ?? 0
    }
  }

  /// The random number in the header of the log; see ``LogIndex/Header/salt``.
  var logSaltOnDisk: UInt64? {
    get throws(StoreError) { try bytesOnDisk(SQLITE_FCNTL_JOURNAL_POINTER, at: 16) }
  }
}

extension SQLiteConnection {
  /// The index of the log; nil if there is none. Opens the log if another connection has converted the file since this one last read.
  var logIndex: LogIndex? {
    if let index = LogIndex(state) { return index }
    // A connection without locks has no index, and one in a transaction has the log open if there is one.
    if state.watchedPlace != nil || isInTransaction || state.openFile(SQLITE_FCNTL_JOURNAL_POINTER) != nil { return nil }
    // SQLite opens the log at the first read.
    _ = try? uncounted { () throws(StoreError) in try int64("PRAGMA schema_version") }
    return LogIndex(state)
  }

  /// Whether this connection has a write-ahead log open. It then keeps a lock, so no other process removes the log.
  var hasLogOpen: Bool {
    let mode = try? uncounted { () throws(StoreError) in try string("PRAGMA journal_mode") }
    return mode == SQLiteStoreOptions.JournalMode.wal.rawValue
  }
}
