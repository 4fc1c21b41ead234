public import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The location of a value: an attribute of an object.
public struct ExternalDataPlace: Sendable, Hashable {
  /// The name of the concrete entity.
  public var entity: String
  /// The name of the attribute.
  public var attribute: String
  /// The object's key.
  public var key: ObjectKey

  /// Creates a place.
  public init(entity: String, attribute: String, key: ObjectKey) {
    self.entity = entity
    self.attribute = attribute
    self.key = key
  }
}

/// A locked file in which a save records the names of files that it writes or gives up: `.holdfast-STOREUUID.0123456789abcdef.save`
/// in the support folder.
///
/// On disk: do not change. One line for each name: the uppercase UUID, the key, the entity and the attribute, separated by tabs. An
/// incomplete line means that writing the note was interrupted, so the file it names was never begun.
final class ExternalDataNote {
  struct Entry: Equatable {
    var id: UUID
    var place: ExternalDataPlace
  }

  let name: String
  let entries: [Entry]
  private let file: LockedFile

  private static let suffix = ".save"
  /// The maximum size of a note that is read, in bytes: about 2 million names.
  private static let maximumByteCount: Int64 = 256 << 20

  static func isOne(_ name: String, of storeUUID: String) -> Bool {
    name.hasPrefix(prefix(storeUUID)) && name.hasSuffix(suffix) && name.utf8.count == prefix(storeUUID).utf8.count + 16 + suffix.utf8.count
  }

  private static func prefix(_ storeUUID: String) -> String { ".holdfast-\(storeUUID)." }

  /// Writes a locked note and makes it and its name durable.
  init(_ entries: [Entry], of storeUUID: String, _ folders: ExternalDataFolder.OpenFolders, _ fileSystem: any StoreFileSystem)
    throws(FileSystemError)
  {
    self.entries = entries
    (name, file) = try Self.create(storeUUID, folders, fileSystem)
    var text = ""
    for entry in entries { text += "\(entry.id.uuidString)\t\(entry.place.key)\t\(entry.place.entity)\t\(entry.place.attribute)\n" }
    do throws(FileSystemError) {
      try fileSystem.writeAll(Array(text.utf8).span.bytes, to: file.handle, at: 0)
      try fileSystem.synchronize(file.handle)
      try fileSystem.synchronize(folders.support.handle)
    } catch {
      try? fileSystem.unlink(name, in: folders.support.handle)
      throw error
    }
  }

  /// Creates a locked file. Another process may remove it as unfinished before it is locked; then another one is created.
  private static func create(
    _ storeUUID: String, _ folders: ExternalDataFolder.OpenFolders, _ fileSystem: any StoreFileSystem
  ) throws(FileSystemError) -> (String, LockedFile) {
    while true {
      let digits = String(UInt64.random(in: .min ... .max), radix: 16)
      let name = prefix(storeUUID) + String(repeating: "0", count: 16 - digits.utf8.count) + digits + suffix
      let file = LockedFile(try fileSystem.create(name, in: folders.support.handle), of: fileSystem)
      try fileSystem.lock(file.handle, timeout: .seconds(5))
      let own = try fileSystem.status(of: file.handle).identity.node
      do throws(FileSystemError) {
        if try fileSystem.status(of: name, in: folders.support.handle).identity.node == own { return (name, file) }
      } catch {
        guard error.number == ErrorNumber.notFound else { throw error }
      }
    }
  }

  /// Reads the note of a save that isn't running anymore; nil if the save is running or the note is unreadable.
  init?(reading name: String, _ folders: ExternalDataFolder.OpenFolders, _ fileSystem: any StoreFileSystem) {
    self.name = name
    guard let handle = try? fileSystem.openForReading(name, in: folders.support.handle) else { return nil }
    file = LockedFile(handle, of: fileSystem)
    guard let status = try? fileSystem.status(of: handle), status.kind == .regular,
      (0...Self.maximumByteCount).contains(status.identity.size),
      (try? fileSystem.lock(handle, timeout: .zero)) != nil,
      let bytes = try? fileSystem.bytes(of: handle, at: 0, count: Int(status.identity.size))
    else { return nil }
    // The last line is incomplete if it has no line break.
    let end = (bytes.lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
    entries = bytes[..<end].split(separator: UInt8(ascii: "\n")).compactMap { Self.entry($0) }
  }

  private static func entry(_ line: ArraySlice<UInt8>) -> Entry? {
    let parts = line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
    guard parts.count == 4, let id = parts[0].withUnsafeBytes({ ExternalDataName.id($0) }),
      let key = Int64(String(decoding: parts[1], as: UTF8.self))
    else { return nil }
    let place = ExternalDataPlace(
      entity: String(decoding: parts[2], as: UTF8.self), attribute: String(decoding: parts[3], as: UTF8.self), key: ObjectKey(key))
    return Entry(id: id, place: place)
  }
}

/// An open file that is unlocked and closed when the last reference is released.
private final class LockedFile {
  let handle: StoreFileHandle
  private let fileSystem: any StoreFileSystem

  init(_ handle: StoreFileHandle, of fileSystem: any StoreFileSystem) {
    self.handle = handle
    self.fileSystem = fileSystem
  }

  deinit {
    try? fileSystem.unlock(handle)
    try? fileSystem.close(handle)
  }
}
