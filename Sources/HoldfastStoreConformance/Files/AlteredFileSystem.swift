package import HoldfastFiles
import Synchronization

/// A file system with one of several mistakes in the save protocol that lose data. Tests of power losses must detect each of them.
package final class AlteredFileSystem: ForwardingFileSystem {
  package enum Mistake: CaseIterable, Sendable {
    /// File contents are never synchronized.
    case noSynchronization
    /// File contents are synchronized only after the rename.
    case synchronizationAfterRenaming
    /// The folder is never synchronized.
    case noFolderSynchronization
    /// The store's file is overwritten in place.
    case writingInPlace
  }

  package let base: any StoreFileSystem
  private let mistake: Mistake
  private let storeName: String
  /// State between calls: the folder, and the file whose synchronization was postponed. Guarded because calls come from any thread.
  private let memory = Mutex<(folder: StoreFileHandle?, postponed: StoreFileHandle?)>((nil, nil))
  /// The result of getting the status of the store's file before it was overwritten; nil unless it is being overwritten. A save that
  /// overwrites its file doesn't take that for a change by another program.
  private let former = Mutex<Result<StoreFileStatus, FileSystemError>?>(nil)

  package init(_ base: any StoreFileSystem, _ mistake: Mistake, storeName: String = "store") {
    self.base = base
    self.mistake = mistake
    self.storeName = storeName
  }

  package func synchronize(_ file: StoreFileHandle) throws(FileSystemError) {
    let isFolder = memory.withLock { $0.folder == file }
    switch mistake {
    case .noSynchronization where !isFolder, .noFolderSynchronization where isFolder: return
    case .synchronizationAfterRenaming where !isFolder: memory.withLock { $0.postponed = file }
    default: try base.synchronize(file)
    }
  }

  package func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    if mistake == .writingInPlace { return former.withLock { $0 = nil } }
    try base.rename(name, to: newName, in: directory)
    if let file = memory.withLock({ $0.postponed }) { try base.synchronize(file) }
  }

  package func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    guard mistake == .writingInPlace else { return try base.create(name, in: directory) }
    let status: Result<StoreFileStatus, FileSystemError>
    do throws(FileSystemError) { status = .success(try base.status(of: storeName, in: directory)) } catch { status = .failure(error) }
    former.withLock { $0 = status }
    let file = try base.openLockFile(storeName, in: directory)
    try base.setSize(0, of: file)
    return file
  }

  package func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    guard name == storeName, let status = former.withLock({ $0 }) else { return try base.status(of: name, in: directory) }
    return try status.get()
  }

  package func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle {
    let folder = try base.openDirectory(path)
    memory.withLock { $0.folder = folder }
    return folder
  }
}
