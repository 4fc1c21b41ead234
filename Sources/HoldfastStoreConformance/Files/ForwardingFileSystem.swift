package import HoldfastFiles

/// A file system that forwards every call to another one, unless a conforming type overrides it.
package protocol ForwardingFileSystem: StoreFileSystem {
  /// The file system that receives the calls.
  var base: any StoreFileSystem { get }
}

extension ForwardingFileSystem {
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
  package func read(_ file: StoreFileHandle, at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError) {
    try base.read(file, at: offset, into: &output)
  }
  package func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: RawSpan) throws(FileSystemError) -> Int {
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
  package func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle { try base.openDirectory(path) }
  package func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.create(name, in: directory)
  }
  package func synchronize(_ file: StoreFileHandle) throws(FileSystemError) { try base.synchronize(file) }
  package func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.rename(name, to: newName, in: directory)
  }
}
