import CHoldfastSQLite
import HoldfastStore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The SQLite virtual file system of every connection. It forwards calls to the default file system, with these exceptions:
///
/// - A super-journal is never opened. SQLite deletes the file that a journal names as its super-journal, and the journal is untrusted.
/// - A journal or log is opened only if it passes the checks of ``CompanionFiles``. Opening a store runs them first, for a clear error.
///   Running them again covers files created since then.
/// - Only journals and logs of open databases are deleted, and never those of read-only databases. A deletion doesn't fail if the file
///   system can't sync folders.
/// - A read-only database's log is opened read-only, so SQLite doesn't create one. Without pages, it counts as empty; see ``HeaderOnlyLog``.
/// - A full path name is the given name. SQLite's own file system resolves symbolic links in a name. It would replace
///   `/proc/self/fd/N/NAME` with the long path that ``SQLiteFileName`` avoids. Names are resolved and checked before they get here.
/// - A temporary file is created where ``placingTemporaryFiles(_:_:)`` specifies.
///
/// It forwards to the original structure instead of copying it. An application may have installed its own default file system, with
/// additional fields after SQLite's.
enum SQLiteFileSystem {
  /// The name under which SQLite knows it.
  static let name = "holdfast"
  /// The name of a file system that reads a log without its index: SQLite keeps the index in memory and creates no file. Only for files
  /// that no process has open.
  static let nameWithoutIndex = "holdfast-without-index"

  /// The maximum length of a path that SQLite's own file system opens, in bytes, without the longest suffix.
  static let longestSystemPath: Int = {
    guard let system = sqlite3_vfs_find(nil) else { return 0 }
    return Int(system.pointee.mxPathname) - SQLiteFileName.longestSuffix.utf8.count
  }()

  /// Registers the file systems once per process. Returns false if SQLite refuses.
  static func register() -> Bool { isRegistered }

  private static let isRegistered: Bool = {
    guard let system = sqlite3_vfs_find(nil), let name = strdup(name), let nameWithoutIndex = strdup(nameWithoutIndex) else { return false }
    // SQLite keeps the structures for as long as the process runs.
    let forwarding = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 2)
    forwarding.initialize(to: makeForwarding(to: system, name: name))
    (forwarding + 1).initialize(to: makeForwarding(to: system, name: nameWithoutIndex))
    IndexlessFile.attach(to: &forwarding[1])
    return sqlite3_vfs_register(forwarding, 0) == SQLiteResultCode.ok && sqlite3_vfs_register(forwarding + 1, 0) == SQLiteResultCode.ok
  }()

  private static func makeForwarding(to system: UnsafeMutablePointer<sqlite3_vfs>, name: UnsafePointer<CChar>) -> sqlite3_vfs {
    var vfs = sqlite3_vfs()
    // Version 3 adds replacing system calls, which only SQLite's own tests do.
    vfs.iVersion = min(system.pointee.iVersion, 2)
    vfs.szOsFile = system.pointee.szOsFile
    vfs.mxPathname = system.pointee.mxPathname
    vfs.zName = name
    vfs.pAppData = UnsafeMutableRawPointer(system)
    forwardFiles(&vfs)
    forwardServices(&vfs)
    vfs.xFullPathname = { _, path, size, output in
      guard let path, let output else { return SQLiteResultCode.cannotOpen }
      let length = strlen(path)
      guard length < Int(size) else { return SQLiteResultCode.cannotOpen }
      memcpy(output, path, length + 1)
      return SQLiteResultCode.ok
    }
    return vfs
  }

  private static func forwardFiles(_ vfs: inout sqlite3_vfs) {
    vfs.xOpen = { SQLiteFileSystem.open($0, $1, $2, $3, $4) }
    vfs.xDelete = { vfs, path, syncsFolder in
      guard let path, SQLiteFileSystem.mayDelete(path) else { return SQLiteResultCode.cannotDelete }
      let system = SQLiteFileSystem.system(vfs)
      let code = system.pointee.xDelete(system, path, syncsFolder)
      // The file was deleted. Ignore the error if the file system can't sync folders at all.
      let canSync = ![EINVAL, ENOTSUP, EOPNOTSUPP, ENOSYS].contains(errno)
      return code == SQLiteResultCode.inputOutputSyncOfFolder && !canSync ? SQLiteResultCode.ok : code
    }
    vfs.xAccess = { vfs, path, flags, result in
      let system = SQLiteFileSystem.system(vfs)
      return system.pointee.xAccess(system, path, flags, result)
    }
  }

  private static func forwardServices(_ vfs: inout sqlite3_vfs) {
    // Omits the functions that load libraries, because every connection disables extensions.
    vfs.xRandomness = { vfs, count, output in
      let system = SQLiteFileSystem.system(vfs)
      return system.pointee.xRandomness(system, count, output)
    }
    vfs.xSleep = { vfs, microseconds in
      let system = SQLiteFileSystem.system(vfs)
      return system.pointee.xSleep(system, microseconds)
    }
    vfs.xCurrentTime = { vfs, output in
      let system = SQLiteFileSystem.system(vfs)
      return system.pointee.xCurrentTime(system, output)
    }
    vfs.xGetLastError = { vfs, count, output in
      let system = SQLiteFileSystem.system(vfs)
      return system.pointee.xGetLastError(system, count, output)
    }
    vfs.xCurrentTimeInt64 = { vfs, output in
      let system = SQLiteFileSystem.system(vfs)
      return system.pointee.xCurrentTimeInt64(system, output)
    }
  }

  static func open(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ path: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
    _ flagsOut: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    let system = system(vfs)
    var flags = flags
    if let path, !mayOpen(path, &flags) {
      // SQLite doesn't close a file without methods.
      file?.pointee.pMethods = nil
      return SQLiteResultCode.cannotOpen
    }
    let code = system.pointee.xOpen(system, path ?? temporaryNames?.next(), file, flags, flagsOut)
    if let file, code == SQLiteResultCode.ok, flags & SQLITE_OPEN_WAL != 0, flags & SQLITE_OPEN_READONLY != 0 {
      HeaderOnlyLog.attach(to: file)
    }
    return code
  }

  // MARK: What may be opened and deleted

  /// The open databases by the UTF-8 of the names passed to SQLite, with their numbers of connections. The mutex protects the dictionary.
  ///
  /// Strings are equal if only their Unicode normalization differs, but such names can be those of two files.
  private static let openDatabases = Mutex<[[UInt8]: OpenDatabases]>([:])

  private struct OpenDatabases {
    var connections: Int
    let owner: UInt32
    let isReadOnly: Bool
    let trustsAnyFile: Bool
  }

  /// Marks a database as open for a connection, until this object is released.
  final class OpenDatabase: Sendable {
    private let name: [UInt8]

    init(_ file: SQLiteFile, _ options: SQLiteStoreOptions) {
      name = Array(file.name.text.utf8)
      let name = name
      openDatabases.withLock { open in
        // A connection of a closed store may not be released yet. It opens no more files, so the latest options count.
        open[name] = OpenDatabases(
          connections: (open[name]?.connections ?? 0) + 1, owner: file.owner, isReadOnly: options.isReadOnly,
          trustsAnyFile: options.allowsSharedFolder)
      }
    }

    deinit {
      let name = name
      openDatabases.withLock { open in
        open[name]?.connections -= 1
        if open[name]?.connections == 0 { open[name] = nil }
      }
    }
  }

  /// Whether a file may be opened. For a read-only database, changes the flags so that no file is created.
  private static func mayOpen(_ path: UnsafePointer<CChar>, _ flags: inout Int32) -> Bool {
    if flags & SQLITE_OPEN_SUPER_JOURNAL != 0 { return false }
    guard flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0 else { return true }
    guard let (database, name) = database(of: path) else { return false }
    if database.isReadOnly { flags = flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) | SQLITE_OPEN_READONLY }
    if database.trustsAnyFile { return true }
    return CompanionFiles.suffixes.allSatisfy { CompanionFiles(databaseName: name).problem($0, owner: database.owner) == nil }
  }

  private static func mayDelete(_ path: UnsafePointer<CChar>) -> Bool { database(of: path).map { !$0.0.isReadOnly } ?? false }

  /// The open database to which a journal or log belongs.
  private static func database(of path: UnsafePointer<CChar>) -> (OpenDatabases, String)? {
    let path = String(cString: path)
    guard let suffix = CompanionFiles.suffix(of: path) else { return nil }
    let name = Array(path.utf8.dropLast(suffix.utf8.count))
    return openDatabases.withLock { $0[name] }.map { ($0, String(decoding: name, as: UTF8.self)) }
  }

  // MARK: Temporary files

  /// Sets the names under which SQLite opens temporary files while `body` runs. SQLite removes the names at once.
  static func placingTemporaryFiles<Failure: Error>(_ names: TemporaryNames, _ body: () throws(Failure) -> Void) throws(Failure) {
    var failure: Failure?
    $temporaryNames.withValue(names) {
      do throws(Failure) { try body() } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Bound to the thread that runs a statement. SQLite opens the statement's files on that thread.
  @TaskLocal private static var temporaryNames: TemporaryNames?

  private static func system(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> UnsafeMutablePointer<sqlite3_vfs> {
    guard let system = vfs?.pointee.pAppData else { preconditionFailure("SQLite called a file system without passing it.") }
    return system.assumingMemoryBound(to: sqlite3_vfs.self)
  }
}

/// Names for SQLite's temporary files in a store's folder. They must stay valid until SQLite has closed the files.
///
/// `@unchecked Sendable` because only the thread that runs the statement uses it.
final class TemporaryNames: @unchecked Sendable {  // because one thread uses it
  private let name: SQLiteFileName
  private var given: [UnsafeMutablePointer<CChar>] = []

  init(beside name: SQLiteFileName) { self.name = name }

  deinit { for name in given { free(name) } }

  /// Another unused file name.
  func next() -> UnsafePointer<CChar>? {
    let text = name.beside(".holdfast-\(String(UInt64.random(in: .min ... .max), radix: 16)).tmp")
    guard let next = strdup(text) else { return nil }
    given.append(next)
    return UnsafePointer(next)
  }
}
