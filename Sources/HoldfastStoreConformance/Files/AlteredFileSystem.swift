package import HoldfastFiles
import Synchronization

/// A file system that makes of the saver's calls one of the recipes that lose data: tests of power losses have to catch each.
package final class AlteredFileSystem: StoreFileSystem {
  package enum Mistake: CaseIterable, Sendable {
    /// Contents are never synchronized.
    case noSynchronization
    /// Contents are synchronized only once the file has its name.
    case synchronizationAfterRenaming
    /// The folder is never synchronized.
    case noFolderSynchronization
    /// The store's own file is overwritten.
    case writingInPlace
  }

  private let base: any StoreFileSystem
  private let mistake: Mistake
  private let storeName: String
  /// What the mistake remembers between two calls: the folder, and the file whose synchronization was put off. Guarded because
  /// calls come from any thread.
  private let memory = Mutex<(folder: StoreFileHandle?, postponed: StoreFileHandle?)>((nil, nil))

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
    if mistake == .writingInPlace { return }
    try base.rename(name, to: newName, in: directory)
    if let file = memory.withLock({ $0.postponed }) { try base.synchronize(file) }
  }

  package func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    guard mistake == .writingInPlace else { return try base.create(name, in: directory) }
    let file = try base.openLockFile(storeName, in: directory)
    try base.setSize(0, of: file)
    return file
  }

  package func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle {
    let folder = try base.openDirectory(path)
    memory.withLock { $0.folder = folder }
    return folder
  }

  // MARK: Passed on

  package func openDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openDirectory(name, in: directory)
  }
  package func makeDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.makeDirectory(name, in: directory)
  }

  package var nameSpace: String { base.nameSpace }
  package func resolve(_ path: String) throws(FileSystemError) -> ResolvedFilePath { try base.resolve(path) }
  package func openForReading(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openForReading(name, in: directory)
  }
  package func openLockFile(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openLockFile(name, in: directory)
  }
  package func read(_ file: StoreFileHandle, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(FileSystemError) -> Int {
    try base.read(file, at: offset, into: buffer)
  }
  package func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(FileSystemError) -> Int {
    try base.write(file, at: offset, bytes)
  }
  package func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus { try base.status(of: file) }
  package func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try base.status(of: name, in: directory)
  }
  package func setPermissions(_ permissions: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try base.setPermissions(permissions, of: file)
  }
  package func setOwner(_ owner: UInt32?, group: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try base.setOwner(owner, group: group, of: file)
  }
  package func copyAttributes(of name: String, in directory: StoreFileHandle, to file: StoreFileHandle) throws(FileSystemError) {
    try base.copyAttributes(of: name, in: directory, to: file)
  }
  package func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError) { try base.allocate(byteCount, for: file) }
  package func setSize(_ byteCount: Int64, of file: StoreFileHandle) throws(FileSystemError) { try base.setSize(byteCount, of: file) }
  package func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.link(name, to: newName, in: directory)
  }
  package func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) { try base.unlink(name, in: directory) }
  package func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String] { try base.names(in: directory) }
  package func lock(_ file: StoreFileHandle, timeout: Double) throws(FileSystemError) { try base.lock(file, timeout: timeout) }
  package func unlock(_ file: StoreFileHandle) throws(FileSystemError) { try base.unlock(file) }
  package func close(_ file: StoreFileHandle) throws(FileSystemError) { try base.close(file) }
}
