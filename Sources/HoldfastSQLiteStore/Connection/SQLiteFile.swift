import HoldfastFiles
import HoldfastStore

/// A checked path for SQLite: absolute, without links, naming an existing regular file.
///
/// The checks use only `stat`. An existing file is never opened here, because closing a descriptor would release every lock that this
/// process holds on the file. SQLite's first read shows whether the file is a database.
struct SQLiteFile {
  static let opening = "open the store"

  /// The absolute path. Its leading slash keeps SQLite from reading it as a URI.
  let path: String
  /// The name under which SQLite opens the file.
  let name: SQLiteFileName
  /// The device and inode when the path was checked.
  let node: FileNode
  /// The file's owner.
  let owner: UInt32
  /// Whether the file is empty: just created, here or by another process.
  let isEmpty: Bool

  /// Finds the file of a store, or creates an empty one if the options allow it.
  ///
  /// Call it only through ``OpenFileRegistry/register(locating:)``, which explains why.
  ///
  /// - Parameter usedPaths: The paths of the files that this process has open. Where one of them was removed, no file is created.
  static func locate(_ path: String, options: SQLiteStoreOptions, besides usedPaths: [String] = []) throws(StoreError) -> SQLiteFile {
    try checkSpelling(path)
    let resolved = try resolve(path)
    let name = try SQLiteFileName(path: resolved)
    // A read-only store creates no files beside the database.
    if !options.isReadOnly { try name.checkSuffixes(path: resolved) }
    let creates = options.createsIfMissing && !options.isReadOnly
    let status = try status(of: resolved, creating: creates ? options : nil, besides: usedPaths), size = status.identity.size
    guard status.kind == .regular else {
      throw StoreError(.notAStore, operation: opening, path: resolved, reason: "There is \(status.kind.phrase) at the path, not a file.")
    }
    // SQLite treats a file of one byte as empty and would overwrite it.
    guard size != 1 else {
      throw StoreError(.notAStore, operation: opening, path: resolved, reason: "The file is too short to be a store.")
    }
    guard size > 0 || creates else {
      throw StoreError(
        .notAStore, operation: opening, path: resolved,
        reason: "The file is empty. To create a store in it, open it for writing, with createsIfMissing.")
    }
    let companions = CompanionFiles(databaseName: name.text)
    if !options.allowsSharedFolder {
      try checkFolder(resolved)
      try companions.check(path: resolved, owner: status.owner)
    }
    if !options.isReadOnly { try companions.checkJournal(path: resolved) }
    return SQLiteFile(path: resolved, name: name, node: status.identity.node, owner: status.owner, isEmpty: size == 0)
  }

  /// Throws if other users may replace files in the folder.
  private static func checkFolder(_ path: String) throws(StoreError) {
    let place = ResolvedFilePath(splitting: path), folder: StoreFileStatus
    do { folder = try OperatingSystem.status(of: place.folder, followsLinks: true) } catch { throw failure(error, path: path) }
    if let problem = FileTrust.problem(folderPermissions: folder.permissions, group: folder.group) {
      throw StoreError(.notPermitted, operation: opening, path: path, reason: problem)
    }
  }

  /// Throws if the path no longer names the checked file, because another process replaced it.
  ///
  /// Called after the first connection has opened the path.
  func checkIdentity() throws(StoreError) {
    let now: StoreFileStatus
    do { now = try OperatingSystem.status(of: path) } catch { throw Self.failure(error, path: path) }
    guard now.identity.node == node else {
      throw StoreError(
        .locked, operation: Self.opening, path: path, reason: "Another program replaced the file while it was being opened. Try again.",
        isRetryable: true)
    }
  }

  /// Refuses strings that can't be a path: the empty string, and names with a special meaning in SQLite.
  private static func checkSpelling(_ path: String) throws(StoreError) {
    let reason: String
    if path.isEmpty {
      reason = "The path is empty. Give the path of a file, or use `.memory()` for a store without a file."
    } else if path.utf8.contains(0) {
      reason = "The path contains a zero byte. Give the path of a file."
    } else if path == ":memory:" || path.hasPrefix("file::memory:") {
      reason = "A SQLite store needs a file. For a store without a file, use `.memory()` of HoldfastMemoryStore."
    } else if path.hasPrefix("file:") {
      reason =
        "This is a URL, not a path. Pass `url.path`, for example. For a file whose name begins with `file:`, write `./` before it."
    } else {
      return
    }
    throw StoreError(.invalidPath, operation: opening, path: path, reason: reason)
  }

  /// The absolute path without links: of the file if it exists, otherwise of its folder with the name appended.
  private static func resolve(_ path: String) throws(StoreError) -> String {
    do { return try POSIXFileSystem().resolve(path).path } catch {
      guard error.number == ErrorNumber.notFound, (try? OperatingSystem.status(of: path))?.kind == .symbolicLink else {
        throw failure(error, path: path)
      }
      throw StoreError(.notFound, operation: opening, path: path, reason: "The path is a symbolic link whose target doesn't exist.")
    }
  }

  /// The status of the path. First creates an empty file there if nothing exists and options are given.
  private static func status(
    of path: String, creating options: SQLiteStoreOptions?, besides usedPaths: [String]
  ) throws(StoreError) -> StoreFileStatus {
    do {
      return try OperatingSystem.status(of: path)
    } catch {
      guard error.number == ErrorNumber.notFound, let options else { throw failure(error, path: path) }
      // A store that is refused leaves no file.
      if !options.allowsSharedFolder { try checkFolder(path) }
      if usedPaths.contains(where: { OpenFileRegistry.isSame($0, path) }) {
        throw StoreError(
          .alreadyOpen, operation: opening, path: path,
          reason: "The file was removed, and this process still has it open. Close that store first.")
      }
      do {
        try OperatingSystem.createFile(at: path, permissions: options.filePermissions)
      } catch {
        // Another process was faster. Open its file.
        guard error.number == ErrorNumber.exists else { throw failure(error, path: path) }
      }
      return try status(of: path, creating: nil, besides: usedPaths)
    }
  }

  static func failure(_ error: FileSystemError, path: String) -> StoreError {
    if error.detail != nil { return StoreError(error, operation: opening, path: path) }
    let reason =
      switch error.number {
      case ErrorNumber.nameTooLong:
        "The path, or a name in it, is longer than the operating system allows: usually 4,095 bytes, and 255 for each name. "
          + "Use a shorter path."
      // Resolving `/` throws this error.
      case ErrorNumber.isDirectory: "There is a folder at the path, not a file."
      default: "The operating system reported: \(ErrorNumber.describe(error.number))."
      }
    return StoreError(error, operation: opening, path: path, reason: reason)
  }
}
