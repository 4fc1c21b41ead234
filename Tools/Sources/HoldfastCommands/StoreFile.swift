import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
public import HoldfastStore
import HoldfastXMLStore

/// A store file, opened read-only. Its type is determined by the beginning of the file.
public struct StoreFile: Sendable {
  /// The path of the file.
  public let path: String
  /// The description that opens the store.
  public let description: StoreDescription
  /// Whether it is a SQLite file.
  let isSQLite: Bool

  /// Determines the type of store in a file.
  ///
  /// - Throws: ``CommandError`` if the file isn't a store.
  public init(path: String) throws(CommandError) {
    self.path = path
    let beginning = try StoreFile.beginning(of: path), text = StoreFile.firstCharacter(of: beginning)
    if beginning.starts(with: Array("SQLite format 3\0".utf8)) || beginning.isEmpty {
      var options = SQLiteStoreOptions()
      options.isReadOnly = true
      description = .sqlite(at: path, options: options)
      isSQLite = true
    } else if text == UInt8(ascii: "{") {
      description = .json(at: path, isReadOnly: true)
      isSQLite = false
    } else if text == UInt8(ascii: "<") {
      description = .xml(at: path, isReadOnly: true)
      isSQLite = false
    } else if beginning.starts(with: [0x89, 0x48, 0x46, 0x42]) {
      description = .binary(at: path, isReadOnly: true)
      isSQLite = false
    } else {
      throw CommandError(
        path: path, reason: "The file isn't a SQLite, JSON, XML or binary store. Check the path.")
    }
  }

  /// The same store, with a model that is derived from its objects; nil if it isn't an XML store.
  func derivingModel() -> StoreFile? {
    guard description.type == StoreDescription.xml(at: path).type else { return nil }
    return StoreFile(path: path, description: .xml(at: path, options: XMLStoreOptions(derivesModel: true)), isSQLite: false)
  }

  /// The same store, opened with a configuration of its model.
  func with(configuration: String?) -> StoreFile {
    StoreFile(path: path, description: description.with(configuration: configuration), isSQLite: isSQLite)
  }

  private init(path: String, description: StoreDescription, isSQLite: Bool) {
    (self.path, self.description, self.isSQLite) = (path, description, isSQLite)
  }

  /// Describes the store for writing. The file isn't created if it is missing.
  var writable: StoreDescription {
    if isSQLite { return .sqlite(at: path, options: SQLiteStoreOptions(createsIfMissing: false)) }
    switch description.type {
    case StoreDescription.json(at: path).type: return .json(at: path)
    case StoreDescription.xml(at: path).type: return .xml(at: path)
    default: return .binary(at: path)
    }
  }

  /// Whether a file begins like a JSON store, whose first member is its format.
  static func isJSONStore(_ path: String) throws(CommandError) -> Bool {
    String(decoding: try beginning(of: path), as: UTF8.self).contains("\"holdfast-json\"")
  }

  /// The first byte of a text after whitespace and after a UTF-8 byte order mark, with which an XML file can begin.
  private static func firstCharacter(of bytes: [UInt8]) -> UInt8? {
    let mark = Array("\u{FEFF}".utf8)
    return bytes.dropFirst(bytes.starts(with: mark) ? mark.count : 0).first { !" \t\r\n".utf8.contains($0) }
  }

  private static func beginning(of path: String) throws(CommandError) -> [UInt8] {
    switch FileKind(path) {
    case .file: break
    case .other: throw FileKind.noFile(path)
    case nil, .folder: throw CommandError(path: path, reason: "There is no file at this path. Check the path.")
    }
    do {
      let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      defer { try? handle.close() }
      return Array(try handle.read(upToCount: 256) ?? Data())
    } catch {
      throw CommandError(path: path, reason: "The file can't be read.", cause: error)
    }
  }

  /// The store's metadata.
  public func metadata() throws(CommandError) -> PersistentStoreMetadata {
    do { return try PersistentStoreCoordinator.metadata(for: description) } catch {
      throw CommandError(path: path, reason: "The store can't be read.", cause: error)
    }
  }

  /// The model in the store, and where it was found; nil if the store doesn't contain a readable model.
  public func keptModel() throws(CommandError) -> (model: ManagedObjectModel, place: String)? {
    do {
      guard let embedded = try PersistentStoreCoordinator.cachedModel(for: description) else {
        return isSQLite ? try CompiledModelSource.cachedModel(path).map { ($0, "model cache") } : nil
      }
      // Another program that migrates the file replaces its model cache, and keeps the embedded model.
      let found = try PersistentStoreCoordinator.metadata(for: description)
      if isSQLite, !found.isCompatible(with: embedded), let cached = try? CompiledModelSource.cachedModel(path),
        found.isCompatible(with: cached)
      {
        return (cached, "model cache")
      }
      return (embedded, "embedded")
    } catch {
      throw CommandError(path: path, reason: "The model in the store can't be read.", cause: error)
    }
  }

  func requiredModel() throws(CommandError) -> ManagedObjectModel {
    let entities = try metadata().entityVersionHashes.keys.sorted().joined(separator: ", ")
    if let kept = try keptModel() { return kept.model }
    throw CommandError(
      path: path,
      reason:
        "The store doesn't contain its model. Pass the model with --model\(entities.isEmpty ? "." : ": one with the entities \(entities).")"
    )
  }
}
