import HoldfastStore
import Synchronization

/// The folder that a store's file lies in, open for as long as anybody uses the file, and the file's name in it.
///
/// All calls go through the folder's descriptor, so whoever replaces the folder meanwhile cannot lead a save elsewhere.
/// The last reference closes it and lets the file be opened again in this process.
final class OpenFolder: Sendable {
  let fileSystem: any StoreFileSystem
  let directory: StoreFileHandle
  /// The file's name in the folder.
  let name: String
  /// The file's whole path, without links, for messages.
  let path: String
  private let registration: OpenPathRegistry.Entry

  /// The most bytes that file systems allow for a name, less what the name of a temporary file adds.
  static let longestName = 255 - TemporaryName.addedByteCount

  /// Steps 1 and 2 of opening: finds the folder, opens it, and refuses what cannot or should not be a store's file.
  init(path: String, options: DurableFileOptions, operation: String) throws(StoreError) {
    fileSystem = options.fileSystem
    var known = path
    do throws(FileSystemError) {
      guard !path.isEmpty, !path.utf8.contains(0) else { throw FileSystemError(.resolve, name: "the path", number: ErrorNumber.invalid) }
      let place = try fileSystem.resolve(path)
      known = place.path
      guard options.isReadOnly || place.name.utf8.count <= Self.longestName else {
        throw FileSystemError(.resolve, name: place.name, number: ErrorNumber.nameTooLong)
      }
      name = place.name
      directory = try fileSystem.openDirectory(place.folder)
    } catch {
      throw StoreError(error, operation: operation, path: known)
    }
    self.path = known
    do throws(StoreError) {
      registration = try Self.checkedRegistration(fileSystem, directory, name, path: known, options: options, operation: operation)
    } catch {
      try? fileSystem.close(directory)
      throw error
    }
  }

  deinit {
    OpenPathRegistry.remove(registration)
    try? fileSystem.close(directory)
  }

  /// Whether this process is a fork of the one that opened the file.
  var isInherited: Bool { registration.processID != POSIXCall.processID }

  /// The error for any use of a store in a forked child.
  func inherited(operation: String) -> StoreError {
    StoreError(
      .failed, operation: operation, path: path,
      reason: "The process was forked after the store was opened. Open stores after the fork, or in a process that was started anew.")
  }

  /// The status of the file; nil when there is none.
  func status(operation: String) throws(StoreError) -> StoreFileStatus? {
    do throws(FileSystemError) {
      return try fileSystem.status(of: name, in: directory)
    } catch {
      guard error.number != ErrorNumber.notFound else { return nil }
      throw StoreError(error, operation: operation, path: path)
    }
  }

  /// The user that the file belongs to; nil when there is no file.
  var storeOwner: UInt32? { (try? fileSystem.status(of: name, in: directory))?.owner }

  /// Throws unless the status is that of a file that can be a store.
  func check(_ status: StoreFileStatus, operation: String) throws(StoreError) {
    try Self.check(status, path: path, operation: operation)
  }

  // MARK: Checks of opening

  private static func checkedRegistration(
    _ fileSystem: any StoreFileSystem, _ directory: StoreFileHandle, _ name: String, path: String, options: DurableFileOptions,
    operation: String
  ) throws(StoreError) -> OpenPathRegistry.Entry {
    let folder: StoreFileStatus
    var file: StoreFileStatus?
    do throws(FileSystemError) {
      folder = try fileSystem.status(of: directory)
      do throws(FileSystemError) { file = try fileSystem.status(of: name, in: directory) } catch {
        guard error.number == ErrorNumber.notFound else { throw error }
      }
    } catch {
      throw StoreError(error, operation: operation, path: path)
    }
    try check(folder: folder, path: path, options: options, operation: operation)
    if let file {
      try check(file, path: path, operation: operation)
      try check(owner: file.owner, path: path, options: options, operation: operation)
    }
    let entry = OpenPathRegistry.Entry(
      nameSpace: fileSystem.nameSpace, device: folder.identity.device, inode: folder.identity.inode, name: name,
      processID: POSIXCall.processID)
    guard OpenPathRegistry.add(entry) else {
      throw StoreError(
        .alreadyOpen, operation: operation, path: path,
        reason: "This process has the file open already. Use the store that is open, or close it first.")
    }
    return entry
  }

  private static func check(_ status: StoreFileStatus, path: String, operation: String) throws(StoreError) {
    let found: String
    switch status.kind {
    case .regular: return
    case .directory: found = "a folder"
    case .symbolicLink: found = "a symbolic link"
    case .other: found = "a pipe, a socket or a device"
    }
    throw StoreError(
      .notAStore, operation: operation, path: path, reason: "There is \(found) at the path. Give the path of a regular file.")
  }

  /// In a folder that others may write to, they may put another file in the store's place.
  private static func check(folder: StoreFileStatus, path: String, options: DurableFileOptions, operation: String) throws(StoreError) {
    guard !options.allowsSharedFolder, let problem = FileTrust.problem(folderPermissions: folder.permissions, group: folder.group)
    else { return }
    throw StoreError(.notPermitted, operation: operation, path: path, reason: problem)
  }

  private static func check(owner: UInt32, path: String, options: DurableFileOptions, operation: String) throws(StoreError) {
    guard options.requiresOwnFile, owner != 0, owner != POSIXCall.user else { return }
    throw StoreError(
      .notPermitted, operation: operation, path: path,
      reason: "The file belongs to another user, and the options ask for one's own. Copy the file, or change its owner.")
  }
}

/// Knows which files this process has open, and refuses a second opening of the same one.
///
/// Two openings would not see each other's unsaved contents, and each would take the other's save for that of another
/// program. Files are told apart by folder and name and not by inode, because each save puts another inode there.
enum OpenPathRegistry {
  struct Entry: Equatable, Sendable {
    var nameSpace: String
    var device: UInt64
    var inode: UInt64
    var name: String
    /// A forked child inherits the list, but may open the files anew: its locks are its own then.
    var processID: Int32
  }

  /// What is open, few enough for a list. Protects the list itself.
  private static let entries = Mutex<[Entry]>([])

  /// Adds an entry unless there is one like it.
  static func add(_ entry: Entry) -> Bool {
    entries.withLock {
      guard !$0.contains(entry) else { return false }
      $0.append(entry)
      return true
    }
  }

  static func remove(_ entry: Entry) {
    entries.withLock { entries in
      if let place = entries.firstIndex(of: entry) { entries.remove(at: place) }
    }
  }
}
