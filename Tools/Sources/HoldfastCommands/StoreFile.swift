import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
public import HoldfastStore
import HoldfastXMLStore

/// A store in a file, told from others by how the file begins. It is only read.
public struct StoreFile: Sendable {
  /// Where it is.
  public let path: String
  /// How it is opened.
  public let description: StoreDescription
  /// Whether it is a SQLite file.
  let isSQLite: Bool

  /// Finds out what kind of store a file is.
  ///
  /// - Throws: ``CommandError`` for a file that is none.
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
        path: path, reason: "It is neither a SQLite nor a JSON nor an XML nor a binary store's file, so no store that is known.")
    }
  }

  /// Whether a file begins as stores in JSON do, whose first member says what they are.
  static func isJSONStore(_ path: String) throws(CommandError) -> Bool {
    String(decoding: try beginning(of: path), as: UTF8.self).contains("\"holdfast-json\"")
  }

  /// The first byte of a text behind blanks, and behind the mark of UTF-8 with which an XML file may begin.
  private static func firstCharacter(of bytes: [UInt8]) -> UInt8? {
    let mark = Array("\u{FEFF}".utf8)
    return bytes.dropFirst(bytes.starts(with: mark) ? mark.count : 0).first { !" \t\r\n".utf8.contains($0) }
  }

  private static func beginning(of path: String) throws(CommandError) -> [UInt8] {
    switch FileKind(path) {
    case .file: break
    case .other: throw FileKind.noFile(path)
    case nil, .folder: throw CommandError(path: path, reason: "There is no file at this path.")
    }
    do {
      let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      defer { try? handle.close() }
      return Array(try handle.read(upToCount: 256) ?? Data())
    } catch {
      throw CommandError(path: path, reason: "It cannot be read.", cause: error)
    }
  }

  /// What the store tells of itself.
  public func metadata() throws(CommandError) -> PersistentStoreMetadata {
    do { return try PersistentStoreCoordinator.metadata(for: description) } catch {
      throw CommandError(path: path, reason: "It is no store that can be read.", cause: error)
    }
  }

  /// The model that the store keeps, and where: nil for a store that keeps none that can be read.
  public func keptModel() throws(CommandError) -> (model: ManagedObjectModel, place: String)? {
    do {
      if let model = try PersistentStoreCoordinator.cachedModel(for: description) { return (model, "embedded") }
      return isSQLite ? try CompiledModelSource.cachedModel(path).map { ($0, "model cache") } : nil
    } catch {
      throw CommandError(path: path, reason: "The model that it keeps cannot be read.", cause: error)
    }
  }

  func requiredModel() throws(CommandError) -> ManagedObjectModel {
    _ = try metadata()
    if let kept = try keptModel() { return kept.model }
    throw CommandError(path: path, reason: "It keeps no model of itself. Give the model's own file.")
  }
}
