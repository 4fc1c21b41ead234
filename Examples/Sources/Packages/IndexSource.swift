import Foundation

/// The source of an index.
enum IndexSource {
  /// A file of control stanzas.
  case file(String)
  /// The package lists of this machine, as printed by `apt-cache dumpavail`.
  case aptCache

  /// Reads the index in chunks.
  func read(_ body: (Data) throws -> Void) throws {
    switch self {
    case .file(let path): try readFile(path, body)
    case .aptCache: try readAptCache(body)
    }
  }

  private func readFile(_ path: String, _ body: (Data) throws -> Void) throws {
    do {
      let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      defer { try? file.close() }
      try readToEnd(file, body)
    } catch let error as CocoaError {
      throw SourceError.unreadable(path, error.localizedDescription)
    }
  }

  private func readAptCache(_ body: (Data) throws -> Void) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["apt-cache", "dumpavail"]
    process.standardError = FileHandle.nullDevice
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    try readToEnd(output.fileHandleForReading, body)
    process.waitUntilExit()
    if process.terminationStatus != 0 { throw SourceError.noAptCache }
  }

  private func readToEnd(_ file: FileHandle, _ body: (Data) throws -> Void) throws {
    while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { try body(piece) }
  }
}

/// The reason why an index couldn't be read.
enum SourceError: Error, CustomStringConvertible {
  case unreadable(String, String)
  case noAptCache
  case empty(IndexSource)

  var description: String {
    switch self {
    case .unreadable(let path, let reason): "Could not read the package index \(path): \(reason) Give a file of control stanzas."
    case .noAptCache: "Could not run apt-cache dumpavail on this machine. Give a file of control stanzas with --from FILE."
    case .empty(.file(let path)): "\(path) contains no packages: no stanza has a Package field. Give a file of control stanzas."
    case .empty(.aptCache):
      "apt-cache dumpavail printed no packages. Run apt-get update first, or give a file of control stanzas with --from FILE."
    }
  }
}
