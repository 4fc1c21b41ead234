public import HoldfastAtomicStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// A file system on which no file has room for more than so many bytes: writing more fails as it does on a full disk. For
/// ``StorePlace/cramped`` of a store that lies in one file.
public struct CrampedFileSystem: StoreFileSystem {
  private let base: any StoreFileSystem
  private let room: Int64

  /// Makes a file system.
  ///
  /// - Parameters:
  ///   - base: where the files lie.
  ///   - room: how many bytes a file may have.
  public init(_ base: any StoreFileSystem = POSIXFileSystem(), room: Int64) {
    self.base = base
    self.room = room
  }

  public func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(FileSystemError) -> Int {
    if offset + Int64(bytes.count) > room { throw FileSystemError(.write, name: file.name, number: ENOSPC) }
    return try base.write(file, at: offset, bytes)
  }

  public func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError) {
    if byteCount > room { throw FileSystemError(.allocate, name: file.name, number: ENOSPC) }
    try base.allocate(byteCount, for: file)
  }

  // MARK: Passed on

  public func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle { try base.openDirectory(path) }
  public func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.create(name, in: directory)
  }
  public func synchronize(_ file: StoreFileHandle) throws(FileSystemError) { try base.synchronize(file) }
  public func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.rename(name, to: newName, in: directory)
  }
  public var nameSpace: String { base.nameSpace }
  public func resolve(_ path: String) throws(FileSystemError) -> ResolvedFilePath { try base.resolve(path) }
  public func openForReading(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openForReading(name, in: directory)
  }
  public func openLockFile(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openLockFile(name, in: directory)
  }
  public func read(_ file: StoreFileHandle, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(FileSystemError) -> Int {
    try base.read(file, at: offset, into: buffer)
  }
  public func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus { try base.status(of: file) }
  public func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try base.status(of: name, in: directory)
  }
  public func setPermissions(_ permissions: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try base.setPermissions(permissions, of: file)
  }
  public func setOwner(_ owner: UInt32?, group: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try base.setOwner(owner, group: group, of: file)
  }
  public func copyAttributes(of name: String, in directory: StoreFileHandle, to file: StoreFileHandle) throws(FileSystemError) {
    try base.copyAttributes(of: name, in: directory, to: file)
  }
  public func setSize(_ byteCount: Int64, of file: StoreFileHandle) throws(FileSystemError) { try base.setSize(byteCount, of: file) }
  public func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.link(name, to: newName, in: directory)
  }
  public func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) { try base.unlink(name, in: directory) }
  public func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String] { try base.names(in: directory) }
  public func lock(_ file: StoreFileHandle, timeout: Double) throws(FileSystemError) { try base.lock(file, timeout: timeout) }
  public func unlock(_ file: StoreFileHandle) throws(FileSystemError) { try base.unlock(file) }
  public func close(_ file: StoreFileHandle) throws(FileSystemError) { try base.close(file) }
}
