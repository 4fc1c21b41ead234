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
      file.pointee.pMethods = IndexlessFile.tables.changed(methods)
      return code
    }
  }

  private static let tables = MethodTables { makeMethods(like: $0) }

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

/// Reports the log of a read-only database as empty if it has a header and no page.
///
/// A process that is killed while it begins the first commit leaves such a log. If the log's index isn't in use either, SQLite makes one in
/// memory, into which it copies a header only with pages. Then it finds that the headers differ, and tries again for ten seconds
/// (`walBeginShmUnreliable`).
enum HeaderOnlyLog {
  private static let headerByteCount: Int64 = 32

  static func attach(to file: UnsafeMutablePointer<sqlite3_file>) {
    if let methods = file.pointee.pMethods { file.pointee.pMethods = tables.changed(methods) }
  }

  /// Each changed table is followed by the address of the original.
  private static let tables = MethodTables { original in
    guard let original else { return nil }
    let stride = MemoryLayout<sqlite3_io_methods>.stride
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: stride + MemoryLayout<UnsafeRawPointer>.stride, alignment: MemoryLayout<sqlite3_io_methods>.alignment)
    var methods = original.pointee
    methods.xFileSize = { file, size in
      guard let file, let size, let methods = file.pointee.pMethods,
        let original = UnsafeRawPointer(methods).load(
          fromByteOffset: MemoryLayout<sqlite3_io_methods>.stride, as: UnsafePointer<sqlite3_io_methods>?.self)
      else { return SQLITE_IOERR }
      let code = original.pointee.xFileSize(file, size)
      if code == SQLiteResultCode.ok && size.pointee <= HeaderOnlyLog.headerByteCount { size.pointee = 0 }
      return code
    }
    memory.initializeMemory(as: sqlite3_io_methods.self, to: methods)
    memory.storeBytes(of: original, toByteOffset: stride, as: UnsafePointer<sqlite3_io_methods>.self)
    return UnsafePointer(memory.assumingMemoryBound(to: sqlite3_io_methods.self))
  }
}

/// Changed copies of method tables. SQLite has only a few of these tables, and they never change.
private final class MethodTables: Sendable {
  /// The addresses of the copies, by the addresses of the originals. The mutex protects the dictionary.
  private let tables = Mutex<[UInt: UInt]>([:])
  private let make: @Sendable (UnsafePointer<sqlite3_io_methods>?) -> UnsafePointer<sqlite3_io_methods>?

  init(_ make: @escaping @Sendable (UnsafePointer<sqlite3_io_methods>?) -> UnsafePointer<sqlite3_io_methods>?) { self.make = make }

  func changed(_ original: UnsafePointer<sqlite3_io_methods>) -> UnsafePointer<sqlite3_io_methods>? {
    let address = UInt(bitPattern: original)
    let changed = tables.withLock { tables in
      if let known = tables[address] { return known }
      let copy = UInt(bitPattern: make(UnsafePointer(bitPattern: address)))
      tables[address] = copy
      return copy
    }
    return UnsafePointer(bitPattern: changed)
  }
}
