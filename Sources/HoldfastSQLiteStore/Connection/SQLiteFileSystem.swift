import CSQLite
import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// A virtual file system of SQLite that forwards every call to the system's own, except two:
///
/// - A full path name is the name as given. SQLite's own file system resolves symbolic links in a name, so it would replace
///   `/proc/self/fd/N/NAME` by the long path that ``SQLiteFileName`` avoids. Names that come here are resolved and checked already.
/// - A temporary file goes where ``placingTemporaryFiles(_:_:)`` says.
///
/// It forwards to the original structure instead of copying it, because an application may have installed a file system of its own
/// as the default, with fields behind those that SQLite knows.
enum SQLiteFileSystem {
  /// The name under which SQLite knows it.
  static let name = "holdfast"

  /// The maximum length of a path that SQLite's own file system opens, in bytes. The longest suffix is not part of it.
  static let longestSystemPath: Int = {
    guard let system = sqlite3_vfs_find(nil) else { return 0 }
    return Int(system.pointee.mxPathname) - SQLiteFileName.longestSuffix.utf8.count
  }()

  /// Registers the file system, once per process; false if SQLite refuses.
  static func register() -> Bool { isRegistered }

  private static let isRegistered: Bool = {
    guard let system = sqlite3_vfs_find(nil), let name = strdup(name) else { return false }
    // SQLite keeps the structure for as long as the process runs.
    let forwarding = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    forwarding.initialize(to: makeForwarding(to: system, name: name))
    return sqlite3_vfs_register(forwarding, 0) == SQLiteResultCode.ok
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
    vfs.xOpen = { vfs, path, file, flags, flagsOut in
      let system = SQLiteFileSystem.system(vfs)
      return system.pointee.xOpen(system, path ?? SQLiteFileSystem.temporaryNames?.next(), file, flags, flagsOut)
    }
    vfs.xDelete = { vfs, path, syncsFolder in
      let system = SQLiteFileSystem.system(vfs)
      return system.pointee.xDelete(system, path, syncsFolder)
    }
    vfs.xAccess = { vfs, path, flags, result in
      let system = SQLiteFileSystem.system(vfs)
      return system.pointee.xAccess(system, path, flags, result)
    }
  }

  private static func forwardServices(_ vfs: inout sqlite3_vfs) {
    // Without the functions that load libraries: every connection has extensions switched off.
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

  /// Gives the temporary files names that SQLite opens while `body` runs. It removes the names at once.
  static func placingTemporaryFiles(_ names: TemporaryNames, _ body: () throws(StoreError) -> Void) throws(StoreError) {
    var failure: StoreError?
    $temporaryNames.withValue(names) {
      do throws(StoreError) { try body() } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Bound to the thread that runs a statement, on which SQLite opens the files for it.
  @TaskLocal private static var temporaryNames: TemporaryNames?

  private static func system(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> UnsafeMutablePointer<sqlite3_vfs> {
    guard let system = vfs?.pointee.pAppData else { preconditionFailure("SQLite called a file system without naming it.") }
    return system.assumingMemoryBound(to: sqlite3_vfs.self)
  }
}

/// Names for SQLite's temporary files in a store's folder. They must stay until SQLite has closed the files.
///
/// `@unchecked Sendable` because only the thread that runs the statement uses it.
final class TemporaryNames: @unchecked Sendable {  // because one thread uses it
  private let name: SQLiteFileName
  private var given: [UnsafeMutablePointer<CChar>] = []

  init(beside name: SQLiteFileName) { self.name = name }

  deinit { for name in given { free(name) } }

  /// Another name, which no file has.
  func next() -> UnsafePointer<CChar>? {
    let text = name.beside(".holdfast-\(String(UInt64.random(in: .min ... .max), radix: 16)).tmp")
    guard let next = strdup(text) else { return nil }
    given.append(next)
    return UnsafePointer(next)
  }
}
