import HoldfastStore
import Synchronization

/// The open folder of a store's file, and the file's name in it.
///
/// All calls use the folder's descriptor, so replacing the folder meanwhile can't redirect a save. Releasing the last reference
/// closes the folder and allows this process to open the file again.
final class OpenFolder: Sendable {
  let fileSystem: any StoreFileSystem
  let directory: StoreFileHandle
  /// The file's name in the folder.
  let name: String
  /// The file's full path without symbolic links, for messages.
  let path: String
  private let registration: OpenPathRegistry.Entry

  /// The maximum length of a file name in bytes, minus the addition for a temporary file.
  static let maximumNameByteCount = 255 - TemporaryName.addedByteCount

  /// Steps 1 and 2 of opening: finds and opens the folder, and throws if the file can't or mustn't be a store.
  init(path: String, options: DurableFileOptions, operation: String) throws(StoreError) {
    fileSystem = options.fileSystem
    var known = path
    do throws(FileSystemError) {
      guard !path.isEmpty, !path.utf8.contains(0) else { throw FileSystemError(.resolve, name: "the path", number: ErrorNumber.invalid) }
      let place = try fileSystem.resolve(path)
      known = place.path
      guard options.isReadOnly || place.name.utf8.count <= Self.maximumNameByteCount else {
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

  /// Whether this process was forked from the one that opened the file.
  var isInherited: Bool { registration.processID != POSIXCall.processID }

  /// The error for using a store in a forked child process.
  func inherited(operation: String) -> StoreError {
    StoreError(
      .failed, operation: operation, path: path,
      reason: "The process was forked after the store was opened. Open stores after the fork, or in a newly started process.")
  }

  /// The status of the file; nil if it doesn't exist.
  func status(operation: String) throws(StoreError) -> StoreFileStatus? {
    do throws(FileSystemError) {
      return try fileSystem.status(of: name, in: directory)
    } catch {
      guard error.number != ErrorNumber.notFound else { return nil }
      throw StoreError(error, operation: operation, path: path)
    }
  }

  /// The owner of the file; nil if it doesn't exist.
  var storeOwner: UInt32? { (try? fileSystem.status(of: name, in: directory))?.owner }

  /// Throws unless the status is that of a possible store file. Another user may have replaced the file since it was opened.
  func check(_ status: StoreFileStatus, options: DurableFileOptions, operation: String) throws(StoreError) {
    try Self.check(status, path: path, operation: operation)
    try Self.check(owner: status.owner, path: path, options: options, operation: operation)
  }

  // MARK: Checks on opening

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
      nameSpace: fileSystem.nameSpace, folder: folder.identity.node, name: name, processID: POSIXCall.processID)
    guard OpenPathRegistry.add(entry) else {
      throw StoreError(
        .alreadyOpen, operation: operation, path: path,
        reason: "The file is already open in this process. Use the open store, or close it first.")
    }
    return entry
  }

  private static func check(_ status: StoreFileStatus, path: String, operation: String) throws(StoreError) {
    guard status.kind != .regular else { return }
    throw StoreError(
      .notAStore, operation: operation, path: path,
      reason: "There is \(status.kind.phrase) at the path. Pass the path of a regular file.")
  }

  /// If other users can write to the folder, they can replace the store's file.
  private static func check(folder: StoreFileStatus, path: String, options: DurableFileOptions, operation: String) throws(StoreError) {
    guard !options.allowsSharedFolder, let problem = FileTrust.problem(folderPermissions: folder.permissions, group: folder.group)
    else { return }
    throw StoreError(.notPermitted, operation: operation, path: path, reason: problem)
  }

  private static func check(owner: UInt32, path: String, options: DurableFileOptions, operation: String) throws(StoreError) {
    guard options.requiresOwnFile, owner != 0, owner != POSIXCall.user else { return }
    throw StoreError(
      .notPermitted, operation: operation, path: path,
      reason: "The file belongs to another user, and the options require an own file. Copy the file or change its owner.")
  }
}

/// The files that are open in this process. Prevents opening a file twice.
///
/// Two open stores wouldn't see each other's unsaved changes, and would treat each other's saves as those of another program. Files
/// are identified by folder and name, not by inode, because each save changes the inode.
enum OpenPathRegistry {
  struct Entry: Equatable, Sendable {
    var nameSpace: String
    var folder: FileNode
    var name: String
    /// A forked child inherits the list, but may open the files again: its locks are its own then.
    var processID: Int32

    static func == (a: Entry, b: Entry) -> Bool {
      a.folder == b.folder && a.processID == b.processID && a.nameSpace == b.nameSpace && isSame(a.name, b.name)
    }

    /// Whether two names in a folder are those of one file. Darwin ignores their Unicode normalization, as Swift's `==` does.
    private static func isSame(_ a: String, _ b: String) -> Bool {
      #if canImport(Darwin)
        return a == b
      #else
        return a.utf8.elementsEqual(b.utf8)
      #endif
    }
  }

  /// The open files, few enough for an array.
  private static let entries = Mutex<[Entry]>([])

  /// Adds an entry unless an equal one exists.
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
