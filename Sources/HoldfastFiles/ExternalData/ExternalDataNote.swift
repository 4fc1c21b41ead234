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

/// The record of the files that a save writes or gives up: `.holdfast-STOREUUID.0123456789abcdef.save` in the support folder.
///
/// On disk: do not change. One line for each name: the uppercase UUID, the key, the entity and the attribute, separated by tabs.
final class ExternalDataNote {
  struct Entry: Equatable {
    var id: UUID
    var place: ExternalDataPlace
  }

  let entries: [Entry]
  private let file: NoteFile

  var name: String { file.name }

  private static let suffix = ".save"

  static func isOne(_ name: String, of storeUUID: String) -> Bool {
    NoteFile.isOne(name, suffix: suffix) && name.hasPrefix(NoteFile.prefix(storeUUID))
      && name.utf8.count == NoteFile.prefix(storeUUID).utf8.count + 16 + suffix.utf8.count
  }

  /// Writes a locked note and makes it and its name durable.
  init(_ entries: [Entry], of storeUUID: String, _ folders: ExternalDataFolder.OpenFolders, _ fileSystem: any StoreFileSystem)
    throws(FileSystemError)
  {
    self.entries = entries
    var text = ""
    for entry in entries { text += "\(entry.id.uuidString)\t\(entry.place.key)\t\(entry.place.entity)\t\(entry.place.attribute)\n" }
    file = try NoteFile(text, of: storeUUID, suffix: Self.suffix, folders, fileSystem)
  }

  /// Reads the note of a save that isn't running anymore; nil if the save is running or the note is unreadable.
  init?(reading name: String, _ folders: ExternalDataFolder.OpenFolders, _ fileSystem: any StoreFileSystem) {
    guard let file = NoteFile(reading: name, folders, fileSystem) else { return nil }
    self.file = file
    entries = file.lines.compactMap { Self.entry($0) }
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
