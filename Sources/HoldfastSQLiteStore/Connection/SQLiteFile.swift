import HoldfastFiles
import HoldfastStore

/// A path that was checked and can be handed to SQLite: absolute, without links, naming a regular file that exists.
///
/// The checks use `stat` only. An existing file is never opened here, not even to look at its first bytes: closing
/// the descriptor again would drop every lock that this process holds on the file. Whether the file is a database at
/// all is for SQLite to say at its first read; that costs nothing extra and needs no descriptor of ours.
struct SQLiteFile {
  static let opening = "open the store"

  /// The absolute path. It begins with a slash, so SQLite never takes it for a URI.
  let path: String
  /// The name by which SQLite opens it.
  let name: SQLiteFileName
  /// The device and inode at the time of the check.
  let identity: FileIdentity
  /// The user that it belonged to.
  let owner: UInt32
  /// Whether the file has no byte yet: it was just created, or somebody else made an empty one.
  let isEmpty: Bool

  /// Finds the file of a store, and creates an empty one if the options say so.
  ///
  /// Call it through ``OpenFileRegistry/register(locating:)``, which says why.
  static func locate(_ path: String, options: SQLiteStoreOptions) throws(StoreError) -> SQLiteFile {
    try checkSpelling(path)
    let resolved = try resolve(path)
    let name = try SQLiteFileName(path: resolved)
    // A file that is only read gets no other beside it.
    if !options.isReadOnly { try name.checkSuffixes(path: resolved) }
    let creates = options.createsIfMissing && !options.isReadOnly
    let status = try status(of: resolved, creating: creates ? options.filePermissions : nil)
    guard status.kind == .regular else {
      throw StoreError(.notAStore, operation: opening, path: resolved, reason: "There is \(describe(status.kind)) at the path, not a file.")
    }
    // SQLite takes a file of one byte for an empty one, and would overwrite it.
    guard status.size != 1 else {
      throw StoreError(.notAStore, operation: opening, path: resolved, reason: "The file is too short to be a store.")
    }
    guard status.size > 0 || creates else {
      throw StoreError(.notAStore, operation: opening, path: resolved, reason: "The file is empty, and no new store was to be made.")
    }
    let companions = CompanionFiles(databaseName: name.text)
    if !options.allowsSharedFolder {
      try checkFolder(resolved)
      try companions.check(path: resolved, owner: status.owner)
    }
    if !options.isReadOnly { try companions.checkJournal(path: resolved) }
    return SQLiteFile(path: resolved, name: name, identity: status.identity, owner: status.owner, isEmpty: status.size == 0)
  }

  /// Throws if others may replace the files in the folder.
  private static func checkFolder(_ path: String) throws(StoreError) {
    let folder: FileStatus
    do { folder = try OperatingSystem.status(of: split(path).folder, followsLinks: true) } catch { throw failure(error, path: path) }
    if let problem = FileTrust.problem(folderPermissions: folder.permissions, group: folder.group) {
      throw StoreError(.notPermitted, operation: opening, path: path, reason: problem)
    }
  }

  /// Throws if the path no longer names the file that was checked, because somebody replaced it in the meantime.
  ///
  /// Called after the first connection has opened the path.
  func checkIdentity() throws(StoreError) {
    let now: FileStatus
    do { now = try OperatingSystem.status(of: path, followsLinks: false) } catch { throw Self.failure(error, path: path) }
    guard now.identity == identity else {
      throw StoreError(
        .locked, operation: Self.opening, path: path, reason: "Another program replaced the file at the same moment. Try again.",
        isRetryable: true)
    }
  }

  /// Refuses what can't be meant as a path: the empty one, and the names that have a meaning of their own in SQLite.
  private static func checkSpelling(_ path: String) throws(StoreError) {
    let reason: String
    if path.isEmpty {
      reason = "The path is empty. Give the path of a file, or use `.memory()` for a store without a file."
    } else if path.utf8.contains(0) {
      reason = "The path contains a zero byte. Give the path of a file."
    } else if path == ":memory:" || path.hasPrefix("file::memory:") {
      reason = "A SQLite store needs a file. For a store without a file use `.memory()` of HoldfastMemoryStore."
    } else if path.hasPrefix("file:") {
      reason =
        "This is a URL, and a path is needed: `url.path`, for example. For a file whose name begins with `file:`, write `./` before it."
    } else {
      return
    }
    throw StoreError(.invalidPath, operation: opening, path: path, reason: reason)
  }

  /// The absolute path without links: of the file if there is one, otherwise of its folder with the name added.
  private static func resolve(_ path: String) throws(StoreError) -> String {
    let reason: ErrorNumber
    do { return try OperatingSystem.realPath(of: path) } catch { reason = error }
    guard reason == .notFound else { throw failure(reason, path: path) }
    if let status = try? OperatingSystem.status(of: path, followsLinks: false), status.kind == .symbolicLink {
      throw StoreError(.notFound, operation: opening, path: path, reason: "The path is a symbolic link whose target does not exist.")
    }

    let (folder, name) = split(path)
    guard !name.isEmpty, name != ".", name != ".." else { throw failure(.notFound, path: path) }
    do {
      let parent = try OperatingSystem.realPath(of: folder)
      return parent.hasSuffix("/") ? parent + name : parent + "/" + name
    } catch { throw failure(error, path: path) }
  }

  static func split(_ path: String) -> (folder: String, name: String) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (".", path) }
    let folder = slash == path.startIndex ? "/" : String(path[..<slash])
    return (folder, String(path[path.utf8.index(after: slash)...]))
  }

  /// The status of the path, after an empty file was created there if there was nothing and permissions are given.
  private static func status(of path: String, creating permissions: UInt32?) throws(StoreError) -> FileStatus {
    do {
      return try OperatingSystem.status(of: path, followsLinks: false)
    } catch {
      guard error == .notFound, let permissions else { throw failure(error, path: path) }
      do {
        try OperatingSystem.createFile(at: path, permissions: permissions)
      } catch {
        // Another process was faster: then its file is the one to open.
        guard error == .exists else { throw failure(error, path: path) }
      }
      return try status(of: path, creating: nil)
    }
  }

  static func failure(_ number: ErrorNumber, path: String) -> StoreError {
    if number == .nameTooLong {
      return StoreError(
        .invalidPath, operation: opening, path: path,
        reason: "The path, or a name in it, is longer than the operating system allows: as a rule 4,095 bytes, and 255 for each name. "
          + "Use a shorter path.", cause: number)
    }
    let code: StoreError.Code =
      switch number {
      case .notFound, .notADirectory: .notFound
      case .accessDenied, .notPermitted, .readOnlyFileSystem: .notPermitted
      case .noSpace, .quotaExceeded: .diskFull
      default: .inputOutput
      }
    return StoreError(
      code, operation: opening, path: path, reason: "The operating system says: \(number).", cause: number,
      isRetryable: code == .diskFull)
  }

  private static func describe(_ kind: FileStatus.Kind) -> String {
    switch kind {
    case .regular: "a file"
    case .directory: "a folder"
    case .symbolicLink: "a symbolic link"
    case .other: "a pipe, a socket or a device"
    }
  }
}
