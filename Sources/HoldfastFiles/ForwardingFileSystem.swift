/// A file system that forwards every call to another one.
///
/// A conforming type implements the calls that it observes or changes, and inherits the others. A method whose signature differs from the
/// requirement is never called. The compiler doesn't report it, so test that each method is reached.
public protocol ForwardingFileSystem: StoreFileSystem {
  /// The file system that receives the calls.
  var base: any StoreFileSystem { get }
}

extension ForwardingFileSystem {
  /// The name space of the other file system.
  public var nameSpace: String { base.nameSpace }

  /// Forwards the call.
  public func resolve(_ path: String) throws(FileSystemError) -> ResolvedFilePath { try base.resolve(path) }

  /// Forwards the call.
  public func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle { try base.openDirectory(path) }

  /// Forwards the call.
  public func openDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openDirectory(name, in: directory)
  }

  /// Forwards the call.
  public func makeDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.makeDirectory(name, in: directory)
  }

  /// Forwards the call.
  public func openForReading(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openForReading(name, in: directory)
  }

  /// Forwards the call.
  public func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.create(name, in: directory)
  }

  /// Forwards the call.
  public func openLockFile(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try base.openLockFile(name, in: directory)
  }

  /// Forwards the call.
  public func read(_ file: StoreFileHandle, at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError) {
    try base.read(file, at: offset, into: &output)
  }

  /// Forwards the call.
  public func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: RawSpan) throws(FileSystemError) -> Int {
    try base.write(file, at: offset, bytes)
  }

  /// Forwards the call.
  public func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus { try base.status(of: file) }

  /// Forwards the call.
  public func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try base.status(of: name, in: directory)
  }

  /// Forwards the call.
  public func setPermissions(_ permissions: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try base.setPermissions(permissions, of: file)
  }

  /// Forwards the call.
  public func setOwner(_ owner: UInt32?, group: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try base.setOwner(owner, group: group, of: file)
  }

  /// Forwards the call.
  public func copyAttributes(of name: String, in directory: StoreFileHandle, to file: StoreFileHandle) throws(FileSystemError) {
    try base.copyAttributes(of: name, in: directory, to: file)
  }

  /// Forwards the call.
  public func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError) { try base.allocate(byteCount, for: file) }

  /// Forwards the call.
  public func setSize(_ byteCount: Int64, of file: StoreFileHandle) throws(FileSystemError) { try base.setSize(byteCount, of: file) }

  /// Forwards the call.
  public func synchronize(_ file: StoreFileHandle) throws(FileSystemError) { try base.synchronize(file) }

  /// Forwards the call.
  public func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.rename(name, to: newName, in: directory)
  }

  /// Forwards the call.
  public func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.link(name, to: newName, in: directory)
  }

  /// Forwards the call.
  public func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) { try base.unlink(name, in: directory) }

  /// Forwards the call.
  public func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String] { try base.names(in: directory) }

  /// Forwards the call.
  public func lock(_ file: StoreFileHandle, timeout: Duration) throws(FileSystemError) { try base.lock(file, timeout: timeout) }

  /// Forwards the call.
  public func unlock(_ file: StoreFileHandle) throws(FileSystemError) { try base.unlock(file) }

  /// Forwards the call.
  public func close(_ file: StoreFileHandle) throws(FileSystemError) { try base.close(file) }
}
