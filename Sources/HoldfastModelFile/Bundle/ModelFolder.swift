internal import CHoldfastPOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// An open folder of model files. Symbolic links in it are errors, so no name refers to a file outside of it.
final class ModelFolder {
  /// The path, for messages.
  let path: String
  private let descriptor: Int32

  /// Opens the folder at a path. Symbolic links in the path are followed.
  convenience init(path: String, operation: String = "read the model") throws(ModelFileError) {
    let descriptor = retrying { holdfast_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) }
    guard descriptor >= 0 else { throw ModelFileError(errno, operation: operation, path: path) }
    self.init(path: path, descriptor)
  }

  private init(path: String, _ descriptor: Int32) {
    self.path = path
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  /// Opens a subfolder.
  func folder(_ name: String, operation: String = "read the model") throws(ModelFileError) -> ModelFolder {
    let found = retrying { holdfast_openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) }
    guard found >= 0 else { throw ModelFileError(errno, operation: operation, path: "\(path)/\(name)") }
    return ModelFolder(path: "\(path)/\(name)", found)
  }

  /// Creates a subfolder. Only its owner can access it.
  func makeFolder(_ name: String) throws(ModelFileError) {
    guard mkdirat(descriptor, name, 0o700) == 0 else { throw ModelFileError(errno, operation: "write the model", path: "\(path)/\(name)") }
  }

  /// The kind of the file with a name; nil if it doesn't exist. Doesn't follow links.
  func kind(of name: String) -> Kind? {
    var status = stat()
    guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return .file
    case S_IFDIR: return .folder
    default: return .other
    }
  }

  enum Kind { case file, folder, other }

  /// The names in the folder, sorted by their UTF-8 bytes.
  func names(limit: Int) throws(ModelFileError) -> [String] {
    let copy = retrying { holdfast_openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) }
    func failed() -> ModelFileError { ModelFileError(errno, operation: "read the model", path: path) }
    guard copy >= 0 else { throw failed() }
    guard let stream = fdopendir(copy) else {
      let error = failed()
      close(copy)
      throw error
    }
    defer { closedir(stream) }
    var names: [String] = []
    errno = 0
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." {
        guard names.count < limit else { throw ModelFileError(.tooLarge, path: path, reason: "The folder has more than \(limit) files.") }
        names.append(name)
      }
      errno = 0
    }
    // At the end of the folder, the number is unchanged.
    guard errno == 0 else { throw failed() }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// The bytes of a file in the folder.
  func read(_ name: String, limit: Int) throws(ModelFileError) -> [UInt8] {
    try ModelFolder.read(
      retrying { holdfast_openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0) }, path: "\(path)/\(name)", limit)
  }

  /// The bytes of the file at a path. Follows symbolic links.
  static func readFile(_ path: String, limit: Int) throws(ModelFileError) -> [UInt8] {
    try read(retrying { holdfast_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0) }, path: path, limit)
  }

  private static func read(_ file: Int32, path: String, _ limit: Int) throws(ModelFileError) -> [UInt8] {
    guard file >= 0 else { throw ModelFileError(errno, operation: "read the model", path: path) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw ModelFileError(errno, operation: "read the model", path: path) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw ModelFileError(.notAModel, path: path, reason: "It isn't a regular file.") }
    func tooLarge() -> ModelFileError {
      ModelFileError(.tooLarge, path: path, reason: "The file has \(status.st_size) bytes; the maximum is \(limit).")
    }
    guard status.st_size <= limit else { throw tooLarge() }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(status.st_size))
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = retrying { piece.withUnsafeMutableBytes { Self.posixRead(file, $0) } }
      guard count >= 0 else { throw ModelFileError(errno, operation: "read the model", path: path) }
      if count == 0 { return bytes }
      bytes += piece[..<count]
      // The file may have grown in the meantime.
      guard bytes.count <= limit else { throw tooLarge() }
    }
  }

  /// Replaces a file atomically: after a crash, it has either the old or the new contents. Keeps the permissions of the replaced file; only
  /// its owner can read and write a new file.
  func replace(_ name: String, with bytes: [UInt8]) throws(ModelFileError) {
    func failed(_ number: Int32) -> ModelFileError { ModelFileError(number, operation: "write the model", path: "\(path)/\(name)") }
    if kind(of: name) == .other || kind(of: name) == .folder {
      throw ModelFileError(
        .notAModel, operation: "write the model", path: "\(path)/\(name)", reason: "Something other than a regular file has this name.")
    }
    let temporary = ".\(name).holdfast-\(UInt64.random(in: 0...UInt64.max))"
    let file = retrying { holdfast_openat(descriptor, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600) }
    guard file >= 0 else { throw failed(errno) }
    var status = stat()
    if fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { fchmod(file, status.st_mode & 0o777) }
    let isWritten = ModelFolder.write(bytes, to: file) && holdfast_synchronize(file) == 0
    let number = errno
    guard close(file) == 0 && isWritten, renameat(descriptor, temporary, descriptor, name) == 0 else {
      let renameNumber = errno
      unlinkat(descriptor, temporary, 0)
      throw failed(isWritten ? renameNumber : number)
    }
    synchronize()
  }

  private static func write(_ bytes: [UInt8], to file: Int32) -> Bool {
    var place = 0
    while place < bytes.count {
      let count = retrying { bytes.withUnsafeBytes { Self.posixWrite(file, UnsafeRawBufferPointer(rebasing: $0[place...])) } }
      guard count > 0 else { return false }
      place += count
    }
    return true
  }

  /// Synchronizes the folder, so that created and renamed entries survive a power loss. Ignores failures, because some file systems can't
  /// synchronize folders.
  func synchronize() { _ = holdfast_synchronize(descriptor) }

  /// Renames a subfolder to its final name, which must be unused.
  func rename(_ name: String, to other: String) throws(ModelFileError) {
    guard renameat(descriptor, name, descriptor, other) == 0 else {
      throw ModelFileError(errno, operation: "write the model", path: "\(path)/\(other)")
    }
    synchronize()
  }

  /// Removes a subfolder and its contents. Ignores failures.
  func removeTree(_ name: String) {
    if let inner = try? folder(name) {
      for child in (try? inner.names(limit: Int.max)) ?? [] {
        if inner.kind(of: child) == .folder { inner.removeTree(child) } else { unlinkat(inner.descriptor, child, 0) }
      }
    }
    unlinkat(descriptor, name, AT_REMOVEDIR)
  }

  // Inside the class, `read` and `write` mean its own methods, so functions at file scope call those of the C library.
  private static func posixRead(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int { libraryRead(file, buffer) }
  private static func posixWrite(_ file: Int32, _ buffer: UnsafeRawBufferPointer) -> Int { libraryWrite(file, buffer) }
}

private func libraryRead(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int { read(file, buffer.baseAddress, buffer.count) }
private func libraryWrite(_ file: Int32, _ buffer: UnsafeRawBufferPointer) -> Int { write(file, buffer.baseAddress, buffer.count) }

/// Repeats a call while a signal interrupts it.
private func retrying<Number: SignedInteger>(_ call: () -> Number) -> Number {
  while true {
    let result = call()
    if result >= 0 || errno != EINTR { return result }
  }
}

extension ModelFileError {
  /// The error for a failed call. Only this initializer converts `errno` numbers to codes.
  init(_ number: Int32, operation: String, path: String) {
    let (code, advice): (Code, String) =
      switch number {
      case ENOENT: (.notFound, " Check the path.")
      case EACCES, EPERM, EROFS: (.notPermitted, " Check the permissions of the file and its folder.")
      case ENOTDIR: (.notAModel, " A component of the path is a file, or a symbolic link inside a model. Such links aren't followed.")
      case ELOOP: (.notAModel, " It is a symbolic link inside a model. Such links aren't followed.")
      default: (.inputOutput, "")
      }
    let hint = path.hasPrefix("file:") ? " This looks like a URL; pass the path only." : ""
    self.init(code, operation: operation, path: path, reason: "\(String(cString: strerror(number))) (errno \(number)).\(advice)\(hint)")
  }
}
