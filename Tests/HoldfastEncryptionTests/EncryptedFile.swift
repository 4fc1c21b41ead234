import HoldfastEncryption
import HoldfastFiles
import TestSupport

/// One file in a folder, accessed through a file system.
struct EncryptedFile {
  let fileSystem: any StoreFileSystem
  let folder: StoreFileHandle

  init(_ fileSystem: any StoreFileSystem, in folder: TemporaryFolder) throws {
    self.fileSystem = fileSystem
    self.folder = try fileSystem.openDirectory(folder.path)
  }

  /// Creates a file, runs `body`, and closes the file.
  func create<Result>(_ name: String = "file", _ body: (StoreFileHandle) throws -> Result) throws -> Result {
    let file = try fileSystem.create(name, in: folder)
    defer { try? fileSystem.close(file) }
    return try body(file)
  }

  /// Creates a file with contents.
  func create(_ name: String = "file", _ bytes: [UInt8]) throws {
    try create(name) { try fileSystem.writeAll(bytes, to: $0, at: 0) }
  }

  /// Opens a file, and reads all of it in pieces.
  func read(_ name: String = "file", pieces: Int = 1 << 20) throws -> [UInt8] {
    let file = try fileSystem.openForReading(name, in: folder)
    defer { try? fileSystem.close(file) }
    return try read(file, pieces: pieces)
  }

  func read(_ file: StoreFileHandle, pieces: Int = 1 << 20) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let piece = try fileSystem.bytes(of: file, at: Int64(bytes.count), count: pieces)
      bytes += piece
      if piece.count < pieces { return bytes }
    }
  }
}
