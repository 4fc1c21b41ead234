#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The source of the package index.
public enum PackageSource: Hashable, Sendable {
  /// A file of control stanzas.
  case file(String)
  /// The machine's own index, as `apt-cache dumpavail` prints it.
  case aptCache

  /// Reads the source piece by piece. The pointer is valid only during the call.
  ///
  /// - Throws: ``PackageSourceError``, or an error from the closure.
  public func read(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    switch self {
    case .file(let path):
      guard let stream = fopen(path, "r") else { throw PackageSourceError.unreadable(path: path, errorNumber: errno) }
      defer { fclose(stream) }
      try read(stream, name: path, body)
    case .aptCache:
      guard let stream = popen("LC_ALL=C exec apt-cache dumpavail 2>/dev/null", "r") else { throw PackageSourceError.noAptCache }
      let result = Result { try read(stream, name: "apt-cache dumpavail", body) }
      let status = pclose(stream)
      try result.get()
      if status != 0 { throw PackageSourceError.noAptCache }
    }
  }

  /// Reads and parses the source.
  ///
  /// - Throws: ``PackageSourceError``, also if there are no packages.
  public func parse() throws -> PackageIndex {
    var parser = PackageIndexParser()
    try read { parser.consume($0) }
    let index = parser.finish()
    if index.count == 0 { throw PackageSourceError.empty(self) }
    return index
  }

  private func read(_ stream: UnsafeMutablePointer<FILE>, name: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = fread(buffer.baseAddress, 1, buffer.count, stream)
      if count == 0 { break }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
    if ferror(stream) != 0 { throw PackageSourceError.unreadable(path: name, errorNumber: errno) }
  }
}

/// An error that prevented reading the package index.
public enum PackageSourceError: Error, Hashable, CustomStringConvertible {
  /// The file can't be read.
  case unreadable(path: String, errorNumber: Int32)
  /// The machine has no working `apt-cache`.
  case noAptCache
  /// The source contains no packages.
  case empty(PackageSource)

  /// What failed, why, and what to do.
  public var description: String {
    switch self {
    case .unreadable(let path, let number):
      "Couldn't read the package index \(path): \(String(cString: strerror(number))). Pass a file of control stanzas."
    case .noAptCache:
      "Couldn't run apt-cache dumpavail on this machine. Pass a file of control stanzas with --packages FILE."
    case .empty(.aptCache):
      "apt-cache dumpavail returned no packages: the machine has no package lists yet. "
        + "Run apt-get update, which make compare does automatically, or pass a file with --packages FILE."
    case .empty(.file(let path)):
      "\(path) contains no packages: no stanza has a Package field. Pass a file of control stanzas."
    }
  }
}
