public import HoldfastFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

extension StoreFileSystem {
  /// The same file system, on which no file has room for more than so many bytes: writing more fails as it does on a full disk.
  /// For ``StorePlace/cramped`` of a store that lies in one file.
  public func withRoom(_ byteCount: Int64) -> any StoreFileSystem { CrampedFileSystem(base: self, room: byteCount) }
}

private struct CrampedFileSystem: StoreFileSystem {
  let base: any StoreFileSystem
  let room: Int64

  func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(FileSystemError) -> Int {
    if offset + Int64(bytes.count) > room { throw FileSystemError(.write, name: file.name, number: ENOSPC) }
    return try base.write(file, at: offset, bytes)
  }

  func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError) {
    if byteCount > room { throw FileSystemError(.allocate, name: file.name, number: ENOSPC) }
    try base.allocate(byteCount, for: file)
  }

  // MARK: Passed on

  func openDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openDirectory(name, in: directory)
  }
  func makeDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.makeDirectory(name, in: directory)
  }

  func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle { try base.openDirectory(path) }
  func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.create(name, in: directory)
  }
  func synchronize(_ file: StoreFileHandle) throws(FileSystemError) { try base.synchronize(file) }
  func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.rename(name, to: newName, in: directory)
  }
  var nameSpace: String { base.nameSpace }
  func resolve(_ path: String) throws(FileSystemError) -> ResolvedFilePath { try base.resolve(path) }
  func openForReading(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openForReading(name, in: directory)
  }
  func openLockFile(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openLockFile(name, in: directory)
  }
  func read(_ file: StoreFileHandle, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(FileSystemError) -> Int {
    try base.read(file, at: offset, into: buffer)
  }
  func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus { try base.status(of: file) }
  func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try base.status(of: name, in: directory)
  }
  func setPermissions(_ permissions: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try base.setPermissions(permissions, of: file)
  }
  func setOwner(_ owner: UInt32?, group: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try base.setOwner(owner, group: group, of: file)
  }
  func copyAttributes(of name: String, in directory: StoreFileHandle, to file: StoreFileHandle) throws(FileSystemError) {
    try base.copyAttributes(of: name, in: directory, to: file)
  }
  func setSize(_ byteCount: Int64, of file: StoreFileHandle) throws(FileSystemError) { try base.setSize(byteCount, of: file) }
  func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.link(name, to: newName, in: directory)
  }
  func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) { try base.unlink(name, in: directory) }
  func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String] { try base.names(in: directory) }
  func lock(_ file: StoreFileHandle, timeout: Double) throws(FileSystemError) { try base.lock(file, timeout: timeout) }
  func unlock(_ file: StoreFileHandle) throws(FileSystemError) { try base.unlock(file) }
  func close(_ file: StoreFileHandle) throws(FileSystemError) { try base.close(file) }
}
