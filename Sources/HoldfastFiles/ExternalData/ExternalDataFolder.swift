public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The files of values that are too large for rows: `.NAME_SUPPORT/_EXTERNAL_DATA/UUID` beside a store's file, as Core Data has them.
///
/// A file is written once, before the save that names it, and never changed. Its name is made of the sixteen bytes of a UUID, and
/// looked up in the opened folder without following links, so nothing that a store's file says can lead elsewhere.
///
/// What is guaranteed:
/// - A file is durable, and so is its name, before ``ExternalDataSave/init(_:model:folder:storedIDs:)`` returns; so a store
///   that commits after that names only files which are there.
/// - What a save that was given up or killed has written is removed, by ``ExternalDataSave/finish(_:)`` or by ``collect(_:)`` at the
///   next opening for writing. Before it writes or removes anything, each save notes the names in a file of its own in the support
///   folder, which is locked while the save goes on; so nobody looks through all files, or removes what somebody else is saving.
/// - What a save replaced or deleted is removed when it is committed and no ``ExternalDataPin`` is left that is older.
///
/// It does *not* know which rows there are; the store says.
public final class ExternalDataFolder: Sendable {
  /// The most bytes of a value in a row, and in a file.
  public let options: ExternalDataOptions
  let fileSystem: any StoreFileSystem
  private let path: String
  private let name: String
  let storeUUID: String
  private let permissions: UInt32
  private let allowsSharedFolder: Bool
  /// What is open, and what waits to be removed. Guarded because reads go on beside saves and views end on any thread.
  private let state: Mutex<State>

  private struct State {
    var folders: OpenFolders?
    /// How many saves have given files up: the moment at which a pin begins.
    var moment = 0
    var pins: [Int: Int] = [:]
    var waiting: [Waiting] = []
  }

  /// Files that were given up at a moment, and the note that names them.
  private struct Waiting {
    var moment: Int
    var ids: [UUID]
    var note: String
  }

  /// Makes the folder of a store's file; nothing is opened or made yet.
  ///
  /// - Parameters:
  ///   - path: the path of the store's file, without symbolic links.
  ///   - name: what stands for `NAME` in the folder's name.
  ///   - storeUUID: the store's UUID, by which it knows its own notes.
  ///   - options: which values go to files.
  ///   - permissions: those of files that are written.
  ///   - allowsSharedFolder: whether the folder may belong to somebody else than the process's user, root or the owner of the
  ///     store's file.
  ///   - fileSystem: where the store's file lies.
  public init(
    path: String, name: String, storeUUID: String, options: ExternalDataOptions, permissions: UInt32,
    allowsSharedFolder: Bool = false, fileSystem: any StoreFileSystem = POSIXFileSystem()
  ) {
    self.path = path
    self.name = ".\(name)_SUPPORT"
    self.storeUUID = storeUUID
    self.options = options
    self.permissions = permissions
    self.allowsSharedFolder = allowsSharedFolder
    self.fileSystem = fileSystem
    state = Mutex(State())
  }

  /// Removes what waits to be removed, and closes what is open. Older pins count no more.
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

  /// The bytes of a file.
  ///
  /// - Parameters:
  ///   - id: the file's name.
  ///   - operation: what is being done, for messages; it names the value.
  /// - Throws: ``/HoldfastStore/StoreError``: `missingExternalData` when there is no such file, `damaged` when it is no regular
  ///   file or its bytes are not those that it was named for, `tooLarge`, `notPermitted`, `inputOutput`.
  public func read(_ id: UUID, operation: String) throws(StoreError) -> Data {
    do throws(FileSystemError) {
      guard let folders = try folders(making: false) else {
        throw FileSystemError(.openDirectory, name: name, number: ErrorNumber.notFound)
      }
      let file = KeptFile(try fileSystem.openForReading(id.uuidString, in: folders.data.handle), of: fileSystem)
      return try contents(of: file.handle, id, operation)
    } catch {
      throw unreadable(id, operation, error)
    }
  }

  private func contents(of file: StoreFileHandle, _ id: UUID, _ operation: String) throws(FileSystemError) -> Data {
    let status = try fileSystem.status(of: file)
    guard status.kind == .regular else { throw FileSystemError(.openForReading, name: id.uuidString, number: ErrorNumber.tooManyLinks) }
    guard status.identity.size <= options.largestByteCount else {
      throw FileSystemError(.read, name: id.uuidString, number: ErrorNumber.tooLarge)
    }
    let count = Int(status.identity.size)
    // Uninitialised memory that the file fills: no byte is touched twice.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 16)
    var have = 0
    do throws(FileSystemError) {
      while have < count {
        let got = try fileSystem.read(file, at: Int64(have), into: UnsafeMutableRawBufferPointer(rebasing: buffer[have..<count]))
        guard got > 0 else { break }
        have += got
      }
      guard have == count, ExternalDataName.matches(id, UnsafeRawBufferPointer(rebasing: buffer[..<have])) else {
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
    switch error.number {
    case ErrorNumber.notFound:
      return failed(
        .missingExternalData,
        "There is no such file in \(name)/\(Self.dataName). Somebody may have saved another value or deleted the object since it was read: "
          + "refresh it. Otherwise the file is lost; take it from a copy, or set the value anew.")
    case ErrorNumber.wrongContents:
      return failed(
        .damaged,
        "The file's bytes are not those that it was named for: somebody or a fault has changed it. Take it from a copy, or set the value anew."
      )
    case ErrorNumber.tooLarge:
      return failed(
        .tooLarge,
        "The file has more than the \(options.largestByteCount) bytes that the options allow. Allow more if it is meant to be so large.")
    case ErrorNumber.tooManyLinks, ErrorNumber.notDirectory, ErrorNumber.isDirectory, ErrorNumber.noDevice:
      return failed(
        .damaged,
        "There is a link, a folder, a pipe or a device where a file has to be, which is not followed. Somebody has changed \(name).")
    default: return failure(error, operation: operation)
    }
  }

  /// The error for a call that failed.
  private func failure(_ error: FileSystemError, operation: String) -> StoreError {
    guard error.operation == .openDirectory && error.number == ErrorNumber.otherOwner else {
      return StoreError(error, operation: operation, path: path)
    }
    return StoreError(
      .notPermitted, operation: operation, path: path,
      reason: "The folder \(error.name) belongs to another user, who may have put it there. Remove it, or allow shared folders.",
      cause: error)
  }

  // MARK: Pins

  /// Keeps all files that are there now until the pin ends.
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

  /// Removes files that a committed save gave up, now or when nobody may read them any more.
  func giveUp(_ ids: [UUID], note: String) {
    state.withLock { state in
      state.waiting.append(Waiting(moment: state.moment, ids: ids, note: note))
      state.moment += 1
    }
    removeWaiting()
  }

  private func removeWaiting() {
    let free = state.withLock { state in
      let oldest = state.pins.keys.min() ?? .max
      let free = state.waiting.filter { $0.moment < oldest }
      state.waiting.removeAll { $0.moment < oldest }
      return free
    }
    // What cannot be removed now stays noted, and is removed at the next opening.
    for one in free { try? remove(one.ids, note: one.note) }
  }

  /// Removes files, and then the note that names them.
  func remove(_ ids: [UUID], note: String) throws(FileSystemError) {
    guard let folders = try folders(making: false) else { return }
    if !ids.isEmpty {
      for id in ids { try unlink(id.uuidString, in: folders.data.handle) }
      try fileSystem.synchronize(folders.data.handle)
    }
    try unlink(note, in: folders.support.handle)
  }

  private func unlink(_ name: String, in folder: StoreFileHandle) throws(FileSystemError) {
    do throws(FileSystemError) { try fileSystem.unlink(name, in: folder) } catch {
      if error.number != ErrorNumber.notFound { throw error }
    }
  }

  // MARK: Writing

  /// Writes a file and makes its bytes durable; its name is not yet.
  func write(_ bytes: UnsafeRawBufferPointer, as id: UUID, _ folders: OpenFolders) throws(FileSystemError) {
    let file = KeptFile(try fileSystem.create(id.uuidString, in: folders.data.handle), of: fileSystem)
    if permissions != 0o600 { try fileSystem.setPermissions(permissions, of: file.handle) }
    try fileSystem.allocate(Int64(bytes.count), for: file.handle)
    try fileSystem.writeAll(bytes, to: file.handle, at: 0)
    try fileSystem.synchronize(file.handle)
  }

  /// The error of a save that could not write.
  func unwritable(_ error: FileSystemError) -> StoreError {
    failure(error, operation: "write values to files of their own")
  }

  // MARK: What killed saves left

  /// Removes the files that no row names although a save noted them which was killed, failed to say how it ended, or had not yet
  /// removed what it gave up. Does nothing when there is no such note, however many files there are.
  ///
  /// - Parameter isNamed: whether a row of the store, as it is now, names the file at a place. A place that the model does not have
  ///   throws, and its file and note stay.
  public func collect(_ isNamed: (ExternalDataPlace, UUID) throws -> Bool) {
    guard let folders = try? folders(making: false), let names = try? fileSystem.names(in: folders.support.handle) else { return }
    for name in names where ExternalDataNote.isOne(name, of: storeUUID) {
      guard let note = ExternalDataNote(reading: name, folders, fileSystem) else { continue }
      guard let lost = try? note.entries.filter({ try !isNamed($0.place, $0.id) }).map(\.id) else { continue }
      try? remove(lost, note: name)
      // The lock goes with the last reference, after the files: whoever locks the note next finds none.
      withExtendedLifetime(note) {}
    }
  }

  // MARK: Folders

  static let dataName = "_EXTERNAL_DATA"

  /// The folders while they are open.
  final class OpenFolders: Sendable {
    let support: KeptFile
    let data: KeptFile

    init(support: KeptFile, data: KeptFile) {
      self.support = support
      self.data = data
    }
  }

  /// The open folders; nil when there are none and none are to be made.
  func folders(making: Bool) throws(FileSystemError) -> OpenFolders? {
    if let open = state.withLock({ $0.folders }) { return open }
    let place = try fileSystem.resolve(path)
    let base = KeptFile(try fileSystem.openDirectory(place.folder), of: fileSystem)
    guard let support = try folder(name, in: base, making), let data = try folder(Self.dataName, in: support, making) else { return nil }
    for folder in [support, data] where !allowsSharedFolder { try checkOwner(folder, place.name, base) }
    let opened = OpenFolders(support: support, data: data)
    return state.withLock { state in
      if let open = state.folders { return open }
      state.folders = opened
      return opened
    }
  }

  /// Throws when another user may have put a folder there.
  private func checkOwner(_ folder: KeptFile, _ store: String, _ base: KeptFile) throws(FileSystemError) {
    let status = try fileSystem.status(of: folder.handle)
    let problem = FileTrust.problem(
      folder.handle.name, isExpectedKind: true, owner: status.owner, linkCount: nil,
      storeOwner: (try? fileSystem.status(of: store, in: base.handle))?.owner)
    if problem != nil { throw FileSystemError(.openDirectory, name: folder.handle.name, number: ErrorNumber.otherOwner) }
  }

  private func folder(_ name: String, in parent: KeptFile, _ making: Bool) throws(FileSystemError) -> KeptFile? {
    do throws(FileSystemError) {
      return KeptFile(try fileSystem.openDirectory(name, in: parent.handle), of: fileSystem)
    } catch {
      guard error.number == ErrorNumber.notFound else { throw error }
      guard making else { return nil }
    }
    do throws(FileSystemError) { try fileSystem.makeDirectory(name, in: parent.handle) } catch {
      if error.number != ErrorNumber.exists { throw error }
    }
    let made = KeptFile(try fileSystem.openDirectory(name, in: parent.handle), of: fileSystem)
    try fileSystem.synchronize(parent.handle)
    return made
  }
}

/// Keeps files of a store that were there when it was made: what a read view holds. It ends with ``end()``, or when it is let go.
public final class ExternalDataPin: Sendable {
  private let folder: ExternalDataFolder
  private let moment: Int
  private let hasEnded = Atomic(false)

  init(_ folder: ExternalDataFolder, _ moment: Int) {
    self.folder = folder
    self.moment = moment
  }

  deinit { end() }

  /// Lets files go that were given up meanwhile. A second call does nothing.
  public func end() {
    if !hasEnded.exchange(true, ordering: .acquiringAndReleasing) { folder.unpin(moment) }
  }
}
