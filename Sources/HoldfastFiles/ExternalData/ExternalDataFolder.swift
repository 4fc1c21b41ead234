public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The folder of attribute values that are too large for rows.
///
/// Each value is a file `.NAME_SUPPORT/_EXTERNAL_DATA/UUID` next to the store's file, as in Core Data. A file is written once,
/// before the save that names it, and never changed. Its name is the text of a 16-byte UUID. It is looked up in the open folder
/// without following links, so no contents of a store's file can redirect access.
///
/// Guarantees:
/// - A file and its name are durable before ``ExternalDataSave/init(_:model:folder:storedIDs:)`` returns, so a committed save names
///   only existing files.
/// - Files of a save that was aborted or killed are removed, by ``ExternalDataSave/finish(_:)`` or by ``collect(_:)`` when the
///   store is next opened for writing, replaced or destroyed. Before a save writes or removes files, it records their names in a
///   note in the support folder. The note is locked until the save ends, so no process removes files of a running save or needs to
///   examine all files.
/// - Files of values that a save replaced or deleted are removed after its commit, once all older ``ExternalDataPin`` instances
///   have ended.
///
/// The store, not this class, knows which rows exist.
public final class ExternalDataFolder: Sendable {
  /// The threshold and the size limit of values.
  public let options: ExternalDataOptions
  let fileSystem: any StoreFileSystem
  /// The store's file, in whose open folder the files are; nil if the folder is found by the path.
  private let file: DurableFile?
  private let path: String
  private let name: String
  /// The name of the store's file.
  var storeName: String { ResolvedFilePath(splitting: path).name }
  let storeUUID: String
  private let permissions: UInt32
  private let allowsSharedFolder: Bool
  private let processID = POSIXCall.processID
  /// The open folders and the files to remove. Guarded because reads overlap with saves, and views end on any thread.
  private let state: Mutex<State>

  private struct State {
    var folders: OpenFolders?
    /// The number of saves that gave files up. A pin records it when it begins.
    var moment = 0
    var pins: [Int: Int] = [:]
    /// In the order of the saves.
    var waiting: [Waiting] = []
  }

  /// Files that a save gave up, and the note that contains their names.
  private struct Waiting {
    var moment: Int
    var ids: [UUID]
    var note: String
  }

  /// Creates an object for a store's folder. Opens and creates no files yet.
  ///
  /// - Parameters:
  ///   - path: The path of the store's file, without symbolic links.
  ///   - name: The text for `NAME` in the folder's name.
  ///   - storeUUID: The store's UUID, which identifies its notes.
  ///   - options: The options for external values.
  ///   - permissions: The permissions of new files.
  ///   - allowsSharedFolder: Whether the folder may belong to users other than the process's own, root and the owner of the store's
  ///     file. Defaults to false.
  ///   - fileSystem: The file system that contains the store's file.
  ///   - file: The store's file in this file system, if it is a ``DurableFile``. External files then follow it if its folder is moved.
  ///     Defaults to nil, which finds the folder by the path.
  public init(
    path: String, name: String, storeUUID: String, options: ExternalDataOptions, permissions: UInt32,
    allowsSharedFolder: Bool = false, fileSystem: any StoreFileSystem = POSIXFileSystem(), beside file: DurableFile? = nil
  ) {
    self.file = file
    self.path = path
    self.name = ".\(name)_SUPPORT"
    self.storeUUID = storeUUID
    self.options = options
    self.permissions = permissions
    self.allowsSharedFolder = allowsSharedFolder
    self.fileSystem = fileSystem
    state = Mutex(State())
  }

  /// Removes the files that are scheduled for removal, regardless of pins, and closes the folders.
  public func close() {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    for one in waiting { try? remove(one.ids, note: one.note) }
    let folders = state.withLock { state in
      defer { state.folders = nil }
      return state.folders
    }
    _ = folders
  }

  // MARK: Reading

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - id: The file's name.
  ///   - operation: The current operation as a verb phrase that names the value, for error messages.
  /// - Throws: ``/HoldfastStore/StoreError``: `missingExternalData` if the file doesn't exist; `damaged` if it isn't a regular file
  ///   or its bytes don't match the digest in its name; `tooLarge`, `notPermitted`, `inputOutput`.
  public func read(_ id: UUID, operation: String) throws(StoreError) -> Data {
    do throws(FileSystemError) { return try contents(of: id) } catch {
      // Another program may have replaced the folders, for example by those of a backup.
      if error.number == ErrorNumber.notFound, (try? closeReplacedFolders()) == true, let data = try? contents(of: id) { return data }
      throw unreadable(id, operation, error)
    }
  }

  private func contents(of id: UUID) throws(FileSystemError) -> Data {
    guard let folders = try folders(making: false) else {
      throw FileSystemError(.openDirectory, name: name, number: ErrorNumber.notFound)
    }
    let file = KeptFile(try fileSystem.openForReading(id.uuidString, in: folders.data.handle), of: fileSystem)
    return try contents(of: file.handle, id)
  }

  private func contents(of file: StoreFileHandle, _ id: UUID) throws(FileSystemError) -> Data {
    let status = try fileSystem.status(of: file)
    guard status.kind == .regular else { throw FileSystemError(.openForReading, name: id.uuidString, number: ErrorNumber.tooManyLinks) }
    guard status.identity.size <= options.maximumByteCount else {
      throw FileSystemError(.read, name: id.uuidString, number: ErrorNumber.tooLarge)
    }
    let count = Int(status.identity.size)
    // Uninitialized memory, which the file fills, so that each byte is written only once.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 16)
    let contents = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    do throws(FileSystemError) {
      guard try fileSystem.fill(contents, from: file, at: 0) == count, ExternalDataName.matches(id, UnsafeRawBufferPointer(contents)) else {
        throw FileSystemError(.read, name: id.uuidString, number: ErrorNumber.wrongContents)
      }
    } catch {
      buffer.deallocate()
      throw error
    }
    guard let base = buffer.baseAddress else { return Data() }
    return Data(bytesNoCopy: base, count: count, deallocator: .custom { base, _ in base.deallocate() })
  }

  private func unreadable(_ id: UUID, _ operation: String, _ error: FileSystemError) -> StoreError {
    func failed(_ code: StoreError.Code, _ reason: String) -> StoreError {
      StoreError(code, operation: operation, path: path, reason: reason, cause: error)
    }
    if error.detail != nil { return failure(error, operation: operation) }
    switch error.number {
    case ErrorNumber.notFound:
      return failed(
        .missingExternalData,
        "The file isn't in \(name)/\(Self.dataName). The value was replaced or the object deleted since it was read, or the file is "
          + "lost. Refresh the object. If that doesn't help, restore the file from a backup, or set the value again.")
    case ErrorNumber.wrongContents:
      return failed(
        .damaged,
        "The file's bytes don't match the digest in its name: it was changed or damaged. Restore it from a backup or set the value again."
      )
    case ErrorNumber.tooLarge:
      return failed(
        .tooLarge,
        "The file is larger than the limit of \(options.maximumByteCount) bytes. Raise ExternalDataOptions.maximumByteCount to read it.")
    case ErrorNumber.tooManyLinks, ErrorNumber.notDirectory, ErrorNumber.isDirectory, ErrorNumber.noDevice:
      return failed(
        .damaged,
        "The item isn't a regular file but a link, a folder, a pipe or a device, so it isn't read. Another program changed \(name).")
    default: return failure(error, operation: operation)
    }
  }

  /// The error for a failed call.
  func failure(_ error: FileSystemError, operation: String) -> StoreError {
    guard error.operation == .openDirectory && error.number == ErrorNumber.otherOwner else {
      return StoreError(error, operation: operation, path: path)
    }
    return StoreError(
      .notPermitted, operation: operation, path: path,
      reason: "The folder \(error.name) belongs to another user, who may have put it there. Remove it, or allow shared folders.",
      cause: error)
  }

  // MARK: Pins

  /// Keeps all current files until the pin ends.
  public func pin() -> ExternalDataPin {
    let moment = state.withLock { state in
      state.pins[state.moment, default: 0] += 1
      return state.moment
    }
    return ExternalDataPin(self, moment)
  }

  func unpin(_ moment: Int) {
    let isLast = state.withLock { state in
      let left = state.pins[moment, default: 1] - 1
      state.pins[moment] = left > 0 ? left : nil
      return left == 0 && !state.waiting.isEmpty
    }
    if isLast { removeWaiting() }
  }

  /// Removes files that a committed save gave up, as soon as no older pin exists.
  func giveUp(_ ids: [UUID], note: String) {
    state.withLock { state in
      state.waiting.append(Waiting(moment: state.moment, ids: ids, note: note))
      state.moment += 1
    }
    removeWaiting()
  }

  private func removeWaiting() {
    let free = state.withLock { state -> [Waiting] in
      let oldest = state.pins.keys.min() ?? .max
      // Each end of a request calls this, so it doesn't look at all saves that wait for a pin.
      guard let first = state.waiting.first, first.moment < oldest else { return [] }
      let count = state.waiting.firstIndex { $0.moment >= oldest } ?? state.waiting.count
      defer { state.waiting.removeFirst(count) }
      return Array(state.waiting[..<count])
    }
    // If removing fails, the note remains and the files are removed on the next opening.
    for one in free { try? remove(one.ids, note: one.note) }
  }

  /// Removes files, then the note that contains their names.
  func remove(_ ids: [UUID], note: String) throws(FileSystemError) {
    guard let folders = try folders(making: false) else { return }
    if !ids.isEmpty {
      for id in ids { try unlink(id.uuidString, in: folders.data.handle) }
      try fileSystem.synchronizeFolder(folders.data.handle)
    }
    try unlink(note, in: folders.support.handle)
  }

  /// Removes a file, if it exists. In a forked child, does nothing: the saves, views and changes that it inherits are its parent's, which
  /// still needs their files.
  func unlink(_ name: String, in folder: StoreFileHandle) throws(FileSystemError) {
    guard processID == POSIXCall.processID else { return }
    do throws(FileSystemError) { try fileSystem.unlink(name, in: folder) } catch {
      if error.number != ErrorNumber.notFound { throw error }
    }
  }

  // MARK: Writing

  /// Writes a file and makes its contents durable, but not its name.
  func write(_ bytes: RawSpan, as id: UUID, _ folders: OpenFolders) throws(FileSystemError) {
    let file = KeptFile(try fileSystem.create(id.uuidString, in: folders.data.handle), of: fileSystem)
    if permissions != 0o600 { try fileSystem.setPermissions(permissions, of: file.handle) }
    try fileSystem.allocate(Int64(bytes.byteCount), for: file.handle)
    try fileSystem.writeAll(bytes, to: file.handle, at: 0)
    try fileSystem.synchronize(file.handle)
  }

  /// The error of a save that couldn't write.
  func unwritable(_ error: FileSystemError) -> StoreError {
    failure(error, operation: "write values to separate files")
  }

  // MARK: Cleanup after killed saves

  /// Removes files of unfinished saves that no row names.
  ///
  /// A save is unfinished if it was killed, didn't report its outcome, or hasn't yet removed the files that it replaced or deleted. Does
  /// nothing if there are no notes, regardless of the number of files.
  ///
  /// - Parameter isNamed: Returns whether a current row names the file at a place. If the model doesn't contain the place, it must
  ///   throw; the file and its note then remain.
  public func collect(_ isNamed: (ExternalDataPlace, UUID) throws -> Bool) {
    guard let folders = try? folders(making: false), let names = try? fileSystem.names(in: folders.support.handle) else { return }
    for name in names where ExternalDataNote.isOne(name, of: storeUUID) {
      guard let note = ExternalDataNote(reading: name, folders, fileSystem) else { continue }
      guard let lost = try? note.entries.filter({ try !isNamed($0.place, $0.id) }).map(\.id) else { continue }
      try? remove(lost, note: name)
      // Keep the lock until the files are removed, so that the next process to lock the note finds none.
      withExtendedLifetime(note) {}
    }
  }

  // MARK: Folders

  static let dataName = "_EXTERNAL_DATA"

  /// The open folders.
  final class OpenFolders: Sendable {
    let support: KeptFile
    let data: KeptFile

    init(support: KeptFile, data: KeptFile) {
      self.support = support
      self.data = data
    }
  }

  /// Returns the open folders. If they don't exist, creates them or returns nil.
  ///
  /// - Parameter making: Whether files will be written. Folders that are missing or were replaced since they were opened are then created or
  ///   opened.
  func folders(making: Bool) throws(FileSystemError) -> OpenFolders? {
    if making { try closeReplacedFolders() }
    if let open = state.withLock({ $0.folders }) { return open }
    let base = try storeFolder()
    defer { withExtendedLifetime(base.keeper) {} }
    let store = allowsSharedFolder && making ? (try? fileSystem.status(of: base.storeName, in: base.handle)) : nil
    guard let support = try folder(name, in: base.handle, making, like: store) else { return nil }
    var found = try folder(Self.dataName, in: support.handle, false)
    if found == nil && making {
      // An attempt that failed or was killed may have made the support folder, and not its name durable. So it has no folder of files yet.
      try fileSystem.synchronizeFolder(base.handle)
      found = try folder(Self.dataName, in: support.handle, true, like: store)
      try fileSystem.synchronizeFolder(support.handle)
    }
    guard let data = found else { return nil }
    for folder in [support, data] where !allowsSharedFolder { try checkOwner(folder, base.storeName, base.handle) }
    let opened = OpenFolders(support: support, data: data)
    return state.withLock { state in
      if let open = state.folders { return open }
      state.folders = opened
      return opened
    }
  }

  /// Closes the open folders if another program has moved, removed or replaced one of them. New files in it would be lost.
  ///
  /// - Returns: Whether they were closed.
  @discardableResult
  private func closeReplacedFolders() throws(FileSystemError) -> Bool {
    guard let open = state.withLock({ $0.folders }) else { return false }
    let base: (handle: StoreFileHandle, storeName: String, keeper: any Sendable)
    do throws(FileSystemError) { base = try storeFolder() } catch {
      // The folder of the store's file was moved, and the folders in it as well.
      if error.number == ErrorNumber.notFound { return false }
      throw error
    }
    defer { withExtendedLifetime(base.keeper) {} }
    var isCurrent = try isInPlace(open.support, in: base.handle)
    if isCurrent { isCurrent = try isInPlace(open.data, in: open.support.handle) }
    if isCurrent { return false }
    state.withLock { state in
      if state.folders === open { state.folders = nil }
    }
    return true
  }

  /// Whether an open folder still has its name.
  private func isInPlace(_ folder: KeptFile, in parent: StoreFileHandle) throws(FileSystemError) -> Bool {
    let opened = try fileSystem.status(of: folder.handle).identity.node
    do throws(FileSystemError) { return try fileSystem.status(of: folder.handle.name, in: parent).identity.node == opened } catch {
      if error.number == ErrorNumber.notFound { return false }
      throw error
    }
  }

  /// The folder of the store's file, and the file's name there. The folder stays open at least as long as its keeper.
  private func storeFolder() throws(FileSystemError) -> (handle: StoreFileHandle, storeName: String, keeper: any Sendable) {
    // The file stays in its folder, even if that was moved and another folder is at the path.
    if let open = file?.openFolder { return (open.directory, open.name, open) }
    let place = try fileSystem.resolve(path)
    let opened = KeptFile(try fileSystem.openDirectory(place.folder), of: fileSystem)
    return (opened.handle, place.name, opened)
  }

  /// Throws if another user may have created a folder.
  private func checkOwner(_ folder: KeptFile, _ store: String, _ base: StoreFileHandle) throws(FileSystemError) {
    let status = try fileSystem.status(of: folder.handle)
    let problem = FileTrust.problem(
      folder.handle.name, isExpectedKind: true, owner: status.owner, linkCount: nil,
      storeOwner: (try? fileSystem.status(of: store, in: base))?.owner)
    if problem != nil { throw FileSystemError(.openDirectory, name: folder.handle.name, number: ErrorNumber.otherOwner) }
  }

  /// Opens a folder. If it doesn't exist, makes it or returns nil. The name of a new folder isn't durable yet.
  ///
  /// - Parameter store: The status of the store's file, whose users may use a new folder if shared folders are allowed. Defaults to nil.
  private func folder(
    _ name: String, in parent: StoreFileHandle, _ making: Bool, like store: StoreFileStatus? = nil
  ) throws(FileSystemError) -> KeptFile? {
    do throws(FileSystemError) {
      return KeptFile(try fileSystem.openDirectory(name, in: parent), of: fileSystem)
    } catch {
      guard error.number == ErrorNumber.notFound else { throw error }
      guard making else { return nil }
    }
    do throws(FileSystemError) { try fileSystem.makeDirectory(name, in: parent) } catch {
      if error.number != ErrorNumber.exists { throw error }
    }
    let made = KeptFile(try fileSystem.openDirectory(name, in: parent), of: fileSystem)
    if allowsSharedFolder { SharedAccess.extend(made.handle, like: store, permissions: permissions, fileSystem) }
    return made
  }
}

/// Keeps the current files of a store for a read view.
///
/// The pin ends with ``end()``, or when it is released.
public final class ExternalDataPin: Sendable {
  private let folder: ExternalDataFolder
  private let moment: Int
  private let hasEnded = Atomic(false)

  init(_ folder: ExternalDataFolder, _ moment: Int) {
    self.folder = folder
    self.moment = moment
  }

  deinit { end() }

  /// Allows removal of files that were replaced or deleted meanwhile. A second call does nothing.
  public func end() {
    if !hasEnded.exchange(true, ordering: .acquiringAndReleasing) { folder.unpin(moment) }
  }
}
