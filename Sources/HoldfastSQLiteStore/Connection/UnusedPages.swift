import HoldfastStore

/// Returns unused pages to the file system.
///
/// Deleted rows leave unused pages in the file, which later rows fill. If a save leaves more than 4 MiB and more than a quarter of the file
/// unused, all unused pages are returned after the commit. Each transaction returns at most 16 MiB, and other processes can write between
/// transactions. Returning pages takes about a third of the time of the deletion. A file of another program without incremental auto-vacuum
/// keeps its size.
///
/// An error doesn't make a save fail. Pages that couldn't be returned are returned after a later save.
struct UnusedPages {
  /// The number of pages that may stay unused.
  static let tolerated: Int64 = 1024
  /// The number of pages that one transaction returns.
  static let slice = 4096

  /// Whether a transaction leaves enough unused pages to return them. Call it before the commit, when it takes a tenth of a microsecond.
  static func areMany(on writer: SQLiteConnection) -> Bool {
    writer.uncounted {
      guard let unused = try? writer.int64("PRAGMA freelist_count"), unused > tolerated else { return false }
      guard let all = try? writer.int64("PRAGMA page_count"), unused > all / 4 else { return false }
      return (try? writer.int64("PRAGMA auto_vacuum")) == incremental
    }
  }

  private static let incremental: Int64 = 2

  /// Returns all unused pages, unless another process writes. After each transaction, `continues` may shorten the log. It returns whether
  /// to continue with another transaction.
  static func giveBack(on writer: SQLiteConnection, continues: () -> Bool) throws(StoreError) {
    try writer.uncounted { () throws(StoreError) in
      // Stop without progress, whatever a damaged file contains.
      var before = Int64.max
      while let unused = try giveBackSlice(on: writer, ifFewerThan: before), continues() { before = unused }
    }
  }

  /// Returns the pages of one transaction to the file system. The result is the number of pages that were unused; nil if there was nothing
  /// to do.
  private static func giveBackSlice(on writer: SQLiteConnection, ifFewerThan before: Int64) throws(StoreError) -> Int64? {
    // Another process that wants to write has precedence; the next save tries again.
    try writer.withBusyTimeout(.zero) { () throws(StoreError) in
      guard let unused = try writer.int64("PRAGMA freelist_count"), unused > 0, unused < before else { return nil }
      try writer.begin(.immediate)
      try writer.runScript("PRAGMA incremental_vacuum(\(slice))")
      try writer.commit()
      return unused
    }
  }
}
