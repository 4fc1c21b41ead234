public import HoldfastFiles
import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

extension SimulatedFileSystem {
  private static let folder = "/"
  private static let folderNumber: UInt64 = 2

  // MARK: Opening

  /// Splits a path, which must be a slash and a name.
  public func resolve(_ path: String) throws(FileSystemError) -> ResolvedFilePath {
    try perform(.resolve, path) { _, _ in
      let name = String(path.drop { $0 == "/" })
      guard path.hasPrefix("/"), !name.isEmpty, !name.contains("/"), name != ".", name != ".." else { return .failure(.init(ENOENT)) }
      return .success(ResolvedFilePath(folder: Self.folder, name: name))
    }
  }

  /// Opens the root folder.
  public func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle {
    try perform(.openDirectory, path) { state, _ in
      path == Self.folder ? .success(state.opened(.folder(""), path)) : .failure(.init(ENOENT))
    }
  }

  /// Opens an existing folder.
  public func openDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try perform(.openDirectory, name) { state, _ in
      let path = state.path(name, directory)
      return state.file(named: path).flatMap { file in
        state.disk.files[file]?.isFolder == true ? .success(state.opened(.folder(path + "/"), name)) : .failure(.init(ENOTDIR))
      }
    }
  }

  /// Creates a folder with mode 0700.
  public func makeDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try perform(.makeDirectory, name) { state, _ -> Result<Void, ErrorCode> in
      let path = state.path(name, directory)
      guard state.disk.entries[path] == nil else { return .failure(.init(EEXIST)) }
      state.change(.makeFolder(name: path, file: state.disk.newNumber()))
      return .success(())
    }
  }

  /// Opens an existing file.
  public func openForReading(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try perform(.openForReading, name) { state, _ in state.file(named: state.path(name, directory)).map { state.opened(.file($0), name) } }
  }

  /// Creates a file with mode 0600.
  public func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try perform(.create, name) { state, _ in
      let path = state.path(name, directory)
      guard state.disk.entries[path] == nil else { return .failure(.init(EEXIST)) }
      return .success(state.opened(.file(state.makeFile(path)), name))
    }
  }

  /// Opens a file, and creates it with mode 0600 if it doesn't exist.
  public func openLockFile(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try perform(.openLockFile, name) { state, _ in
      let path = state.path(name, directory)
      let file = state.disk.entries[path] ?? state.makeFile(path)
      return .success(state.opened(.file(file), name))
    }
  }

  /// Closes a file and releases its lock, even if an injected fault makes the call fail.
  public func close(_ file: StoreFileHandle) throws(FileSystemError) {
    defer { letGo(file) }
    try perform(.close, file.name) { state, _ in state.open[file.number].map { _ in .success(()) } ?? .failure(.init(EBADF)) }
  }

  // MARK: Contents

  /// Reads bytes.
  public func read(_ file: StoreFileHandle, at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError) {
    let room = output.freeCapacity
    let bytes = try perform(.read, file.name) { state, effect in
      state.file(file).map { number in
        let bytes = state.disk.files[number]?.bytes ?? []
        let start = min(max(Int(offset), 0), bytes.count)
        return bytes[start..<start + state.plan.share(of: min(room, bytes.count - start), effect)]
      }
    }
    output.append(contentsOf: bytes)
  }

  /// Writes bytes.
  public func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: RawSpan) throws(FileSystemError) -> Int {
    let bytes = bytes.withUnsafeBytes { Array($0) }
    return try perform(.write, file.name) { state, effect in
      state.file(file).map { number in
        let count = state.plan.share(of: bytes.count, effect)
        state.change(.write(file: number, offset: Int(offset), bytes: Array(bytes[..<count])))
        return count
      }
    }
  }

  /// Truncates or extends a file.
  public func setSize(_ byteCount: Int64, of file: StoreFileHandle) throws(FileSystemError) {
    try perform(.setSize, file.name) { state, _ in
      state.file(file).map { state.change(.setSize(file: $0, size: Int(byteCount))) }
    }
  }

  /// Succeeds without doing anything.
  public func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError) {
    try perform(.allocate, file.name) { state, _ in state.file(file).map { _ in () } }
  }

  /// Records that the contents of a file or the names in a folder are durable.
  public func synchronize(_ file: StoreFileHandle) throws(FileSystemError) {
    try perform(.synchronize, file.name, synchronizing: file) { state, _ -> Result<Void, ErrorCode> in
      switch state.open[file.number] {
      case .file(let number): state.recording?.events.append(.synchronized(number))
      case .folder(let path): state.recording?.events.append(.synchronizedFolder(path))
      case nil: return .failure(.init(EBADF))
      }
      return .success(())
    }
  }

  // MARK: Status and access

  /// The status of an open file or folder. The root folder has mode 0755 and belongs to root.
  public func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try perform(.status, file.name) { state, _ in
      if case .folder(let prefix)? = state.open[file.number] {
        if !prefix.isEmpty { return state.file(named: String(prefix.dropLast())).flatMap { state.status($0) } }
        let identity = FileIdentity(device: 1, inode: Self.folderNumber, size: 0, modified: 0, changed: 0)
        return .success(StoreFileStatus(kind: .directory, identity: identity, permissions: 0o755, owner: 0, group: 0))
      }
      return state.file(file).flatMap { state.status($0) }
    }
  }

  /// The status of the file with a name.
  public func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try perform(.statusOfName, name) { state, _ in state.file(named: state.path(name, directory)).flatMap { state.status($0) } }
  }

  /// Sets the permissions.
  public func setPermissions(_ permissions: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try perform(.setPermissions, file.name) { state, _ in
      state.file(file).map { number in
        let old = state.disk.files[number] ?? SimulatedDisk.File()
        state.change(.setAccess(file: number, permissions: permissions & 0o7777, owner: old.owner, group: old.group))
      }
    }
  }

  /// Sets the owner and group.
  public func setOwner(_ owner: UInt32?, group: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try perform(.setOwner, file.name) { state, _ in
      state.file(file).map { number in
        let old = state.disk.files[number] ?? SimulatedDisk.File()
        state.change(.setAccess(file: number, permissions: old.permissions, owner: owner ?? old.owner, group: group))
      }
    }
  }

  /// Succeeds without doing anything, because there are no further attributes.
  public func copyAttributes(of name: String, in directory: StoreFileHandle, to file: StoreFileHandle) throws(FileSystemError) {
    try perform(.copyAttributes, name) { state, _ in state.file(named: state.path(name, directory)).map { _ in () } }
  }

  // MARK: Names

  /// Renames a file.
  public func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try perform(.rename, name) { state, _ in
      let (name, newName) = (state.path(name, directory), state.path(newName, directory))
      return state.file(named: name).map { number in
        let replaced = state.disk.entries[newName]
        state.change(.rename(name: name, newName: newName, file: number))
        state.discardIfUnused(replaced)
      }
    }
  }

  /// Adds a name for a file.
  public func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try perform(.link, newName) { state, _ -> Result<Void, ErrorCode> in
      let (name, newName) = (state.path(name, directory), state.path(newName, directory))
      guard state.disk.entries[newName] == nil else { return .failure(.init(EEXIST)) }
      return state.file(named: name).map { state.change(.link(newName: newName, file: $0)) }
    }
  }

  /// Removes a name.
  public func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try perform(.unlink, name) { state, _ in
      let name = state.path(name, directory)
      return state.file(named: name).map { number in
        state.change(.unlink(name: name))
        state.discardIfUnused(number)
      }
    }
  }

  /// The names in a folder.
  public func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String] {
    try perform(.names, directory.name) { state, _ in
      let prefix = state.path("", directory)
      return .success(
        state.disk.entries.keys.compactMap { path in
          guard path.hasPrefix(prefix) else { return nil }
          let name = path.dropFirst(prefix.count)
          return name.contains("/") ? nil : String(name)
        })
    }
  }

  // MARK: Locks

  /// Acquires the lock, or waits for it. Each attempt counts as a call.
  public func lock(_ file: StoreFileHandle, timeout: Duration) throws(FileSystemError) {
    let end = Self.seconds() + timeout / .seconds(1)
    while true {
      let isTaken = try perform(.lock, file.name) { state, _ in
        state.file(file).map { number in
          guard state.locks[number] == nil || state.locks[number] == file.number else { return false }
          state.locks[number] = file.number
          return true
        }
      }
      if isTaken { return }
      guard Self.seconds() < end else { throw FileSystemError(.lock, name: file.name, number: ETIMEDOUT) }
      usleep(500)
    }
  }

  /// Releases the lock.
  public func unlock(_ file: StoreFileHandle) throws(FileSystemError) {
    try perform(.unlock, file.name) { state, _ in
      state.file(file).map { number in
        if state.locks[number] == file.number { state.locks[number] = nil }
      }
    }
  }

  private static func seconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

extension SimulatedFileSystem.State {
  fileprivate mutating func makeFile(_ name: String) -> UInt64 {
    let file = disk.newNumber()
    change(.create(name: name, file: file))
    return file
  }
}

extension OutputRawSpan {
  /// Appends bytes. Requires capacity for all of them.
  package mutating func append(contentsOf bytes: some Collection<UInt8>) {
    precondition(bytes.count <= freeCapacity, "The output has no room for \(bytes.count) bytes.")
    withUnsafeMutableBytes { memory, count in
      memory[count...].copyBytes(from: bytes)
      count += bytes.count
    }
  }
}
