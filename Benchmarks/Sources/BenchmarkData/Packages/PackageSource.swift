#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Where the package index comes from.
public enum PackageSource: Hashable, Sendable {
  /// A file of control stanzas.
  case file(String)
  /// The machine's own index, as `apt-cache dumpavail` prints it.
  case aptCache

  /// Reads all of it, piece by piece; a pointer is valid during its call only.
  ///
  /// - Throws: ``PackageSourceError``, or what the closure throws.
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

  /// Reads and parses all of it.
  ///
  /// - Throws: ``PackageSourceError``, also when there is no package in it.
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

/// Why there is no package index.
public enum PackageSourceError: Error, Hashable, CustomStringConvertible {
  /// The file cannot be read.
  case unreadable(path: String, errorNumber: Int32)
  /// The machine has no working `apt-cache`.
  case noAptCache
  /// It was read and has no package.
  case empty(PackageSource)

  /// One or two sentences: what failed, why, what to do.
  public var description: String {
    switch self {
    case .unreadable(let path, let number):
      "Could not read the package index \(path): \(String(cString: strerror(number))). Give a file of control stanzas."
    case .noAptCache:
      "Could not run apt-cache dumpavail on this machine. Give a file of control stanzas with --packages FILE."
    case .empty(.aptCache):
      "apt-cache dumpavail gives no package: the machine has no package lists yet. "
        + "Run apt-get update, which make compare does by itself, or give a file with --packages FILE."
    case .empty(.file(let path)):
      "There is no package in \(path): no stanza has a Package field. Give a file of control stanzas."
    }
  }
}
