import HoldfastStore

/// A file in the support folder with the names of other files: `.holdfast-STOREUUID.0123456789abcdef.KIND`. It is locked while its writer uses it.
///
/// An incomplete last line means that writing the note was interrupted, so the file it names was never begun.
final class NoteFile {
  let name: String
  /// The complete lines that were read.
  let lines: [ArraySlice<UInt8>]
  private let file: LockedFile

  /// The maximum size of a note that is read, in bytes: about 2 million names.
  private static let maximumByteCount: Int64 = 256 << 20

  static func isOne(_ name: String, suffix: String) -> Bool { name.hasPrefix(".holdfast-") && name.hasSuffix(suffix) }

  static func prefix(_ storeUUID: String) -> String { ".holdfast-\(storeUUID)." }

  /// Writes a locked note and makes it and its name durable.
  init(
    _ text: String, of storeUUID: String, suffix: String, _ folders: ExternalDataFolder.OpenFolders, _ fileSystem: any StoreFileSystem
  ) throws(FileSystemError) {
    lines = []
    (name, file) = try Self.create(storeUUID, suffix, folders, fileSystem)
    do throws(FileSystemError) {
      try fileSystem.writeAll(Array(text.utf8), to: file.handle, at: 0)
      try fileSystem.synchronize(file.handle)
      try fileSystem.synchronizeFolder(folders.support.handle)
    } catch {
      try? fileSystem.unlink(name, in: folders.support.handle)
      throw error
    }
  }

  /// Creates a locked file. Another process may remove it as unfinished before it is locked; then another one is created.
  private static func create(
    _ storeUUID: String, _ suffix: String, _ folders: ExternalDataFolder.OpenFolders, _ fileSystem: any StoreFileSystem
  ) throws(FileSystemError) -> (String, LockedFile) {
    while true {
      let digits = String(UInt64.random(in: .min ... .max), radix: 16)
      let name = prefix(storeUUID) + String(repeating: "0", count: 16 - digits.utf8.count) + digits + suffix
      let file = LockedFile(try fileSystem.create(name, in: folders.support.handle), of: fileSystem)
      let own: FileNode
      do throws(FileSystemError) {
        try fileSystem.lock(file.handle, timeout: .seconds(5))
        own = try fileSystem.status(of: file.handle).identity.node
      } catch {
        try? fileSystem.unlink(name, in: folders.support.handle)
        throw error
      }
      do throws(FileSystemError) {
        if try fileSystem.status(of: name, in: folders.support.handle).identity.node == own { return (name, file) }
      } catch {
        if error.number == ErrorNumber.notFound { continue }
        try? fileSystem.unlink(name, in: folders.support.handle)
        throw error
      }
    }
  }

  /// Reads a note whose writer doesn't use it anymore; nil if it does, or the note is unreadable.
  ///
  /// - Parameter locks: Whether to lock the note. If not, its writer may use it. Defaults to true.
  init?(reading name: String, _ folders: ExternalDataFolder.OpenFolders, _ fileSystem: any StoreFileSystem, locks: Bool = true) {
    self.name = name
    guard let handle = try? fileSystem.openForReading(name, in: folders.support.handle) else { return nil }
    file = LockedFile(handle, of: fileSystem)
    guard let status = try? fileSystem.status(of: handle), status.kind == .regular,
      (0...Self.maximumByteCount).contains(status.identity.size),
      !locks || (try? fileSystem.lock(handle, timeout: .zero)) != nil,
      // Another process may have used and removed the note before it was locked. Others have been able to use its files again since.
      (try? fileSystem.status(of: name, in: folders.support.handle))?.identity.node == status.identity.node,
      let bytes = try? fileSystem.bytes(of: handle, at: 0, count: Int(status.identity.size))
    else { return nil }
    // The last line is incomplete if it has no line break.
    let end = (bytes.lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
    lines = bytes[..<end].split(separator: UInt8(ascii: "\n"))
  }

  /// Locks a note that was read without that. Waits for a process that uses it.
  func lock() throws(FileSystemError) { try file.lock() }
}

/// An open file that is unlocked and closed when the last reference is released.
private final class LockedFile {
  let handle: StoreFileHandle
  private let fileSystem: any StoreFileSystem
  private let processID = POSIXCall.processID

  init(_ handle: StoreFileHandle, of fileSystem: any StoreFileSystem) {
    self.handle = handle
    self.fileSystem = fileSystem
  }

  func lock() throws(FileSystemError) { try fileSystem.lock(handle, timeout: .seconds(10)) }

  deinit {
    // Unlocking in a forked child would release the parent's lock, too.
    if processID == POSIXCall.processID { try? fileSystem.unlock(handle) }
    try? fileSystem.close(handle)
  }
}
