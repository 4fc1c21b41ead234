import HoldfastStore

/// Gives pages that hold nothing back to the file system.
///
/// Deleted rows leave unused pages in the file, which later rows fill. The rule: a save that leaves more than 4 MiB and more than a
/// quarter of the file unused gives all of it back, after it was committed, in transactions of at most 16 MiB, between which other
/// processes can write. Giving back takes about a third of the time of the deletion itself. A file without incremental auto-vacuum, as
/// another program may have made it, keeps its size.
///
/// Nothing here makes a save fail: what could not be given back is given back after a later one.
struct UnusedPages {
  /// The number of pages that stay unused without harm.
  static let tolerated: Int64 = 1024
  /// The number of pages that one transaction gives back.
  static let slice = 4096

  /// Whether a transaction leaves so many pages unused that they are given back. To be called before it is committed, where the
  /// answer costs a tenth of a microsecond.
  static func areMany(on writer: SQLiteConnection) -> Bool {
    uncounted(writer) {
      guard let unused = try? writer.int64("PRAGMA freelist_count"), unused > tolerated else { return false }
      guard let all = try? writer.int64("PRAGMA page_count"), unused > all / 4 else { return false }
      return (try? writer.int64("PRAGMA auto_vacuum")) == incremental
    }
  }

  private static let incremental: Int64 = 2

  /// Gives back all unused pages, unless another process writes. After each transaction `continues` may shorten the log, and says
  /// whether there is to be another one.
  static func giveBack(on writer: SQLiteConnection, _ options: SQLiteStoreOptions, continues: () -> Bool) {
    uncounted(writer) {
      do throws(StoreError) {
        // Never without progress, whatever a damaged file says.
        var before = Int64.max
        while let unused = try giveBackSlice(on: writer, options, ifFewerThan: before), continues() { before = unused }
      } catch {
        writer.rollback()
      }
    }
  }

  /// Gives back as much as one transaction may. Returns how many pages were unused; nil if nothing was to be done.
  private static func giveBackSlice(
    on writer: SQLiteConnection, _ options: SQLiteStoreOptions, ifFewerThan before: Int64
  ) throws(StoreError) -> Int64? {
    // Another process that wants to write goes first; the next save tries again.
    try writer.withBusyTimeout(milliseconds: 0, restoring: options) { () throws(StoreError) in
      guard let unused = try writer.int64("PRAGMA freelist_count"), unused > 0, unused < before else { return nil }
      try writer.begin(.immediate)
      try writer.runScript("PRAGMA incremental_vacuum(\(slice))")
      try writer.commit()
      return unused
    }
  }

  /// Runs statements that are not part of what a caller asked for.
  private static func uncounted<Result>(_ writer: SQLiteConnection, _ body: () -> Result) -> Result {
    let statementsRun = writer.statementsRun
    defer { writer.statementsRun = statementsRun }
    return body()
  }
}
