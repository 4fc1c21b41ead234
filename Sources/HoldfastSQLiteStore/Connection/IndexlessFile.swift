import CHoldfastSQLite
import Synchronization

/// Opens a database with its log, but without the log's index, so that SQLite creates no index file.
///
/// The functions for shared memory report that an index exists and can't be used (`SQLITE_READONLY_CANTINIT`). SQLite then reads the log
/// into an index in memory (SQLite, *Write-Ahead Logging*, "Read-Only Databases"). It takes no locks on the log, so the caller has to check
/// that no process changes the files in the meantime: ``ReadOnlyPlace``.
enum IndexlessFile {
  /// Makes a file system open databases in this way.
  static func attach(to vfs: inout sqlite3_vfs) {
    vfs.xOpen = { vfs, path, file, flags, flagsOut in
      let code = SQLiteFileSystem.open(vfs, path, file, flags, flagsOut)
      guard code == SQLiteResultCode.ok, flags & SQLITE_OPEN_MAIN_DB != 0, let file, let methods = file.pointee.pMethods else {
        return code
      }
      file.pointee.pMethods = IndexlessFile.methods(like: methods)
      return code
    }
  }

  /// The addresses of the changed method tables, by the addresses of the originals. SQLite has only a few of these tables, and they never
  /// change. The mutex protects the dictionary.
  private static let tables = Mutex<[UInt: UInt]>([:])

  private static func methods(like original: UnsafePointer<sqlite3_io_methods>) -> UnsafePointer<sqlite3_io_methods>? {
    let address = UInt(bitPattern: original)
    let changed = tables.withLock { tables in
      if let known = tables[address] { return known }
      let copy = UInt(bitPattern: makeMethods(like: UnsafePointer(bitPattern: address)))
      tables[address] = copy
      return copy
    }
    return UnsafePointer(bitPattern: changed)
  }

  private static func makeMethods(like original: UnsafePointer<sqlite3_io_methods>?) -> UnsafePointer<sqlite3_io_methods>? {
    guard var methods = original?.pointee else { return nil }
    methods.xShmMap = { _, _, _, _, memory in
      memory?.pointee = nil
      return SQLiteResultCode.readOnlyCannotInitialise
    }
    methods.xShmLock = { _, _, _, _ in SQLiteResultCode.ok }
    methods.xShmBarrier = { _ in }
    methods.xShmUnmap = { _, _ in SQLiteResultCode.ok }
    let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    copy.initialize(to: methods)
    return UnsafePointer(copy)
  }
}
