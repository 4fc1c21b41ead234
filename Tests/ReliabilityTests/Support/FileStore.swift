import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastXMLStore

/// A kind of store that lies in a file, for tests that run on several.
enum FileStore: Codable, Hashable, Sendable {
  case sqlite(SQLiteStoreOptions.JournalMode)
  case json
  case xml
  case binary

  /// Those that are one file, replaced as a whole by each save.
  static let wholeFile: [FileStore] = [.json, .xml, .binary]

  func description(at path: String) -> StoreDescription {
    switch self {
    // A short log, so that moving it into the file is among what is interrupted.
    case .sqlite(let journal): .sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal, checkpointPages: 20))
    case .json: .json(at: path)
    case .xml: .xml(at: path)
    case .binary: .binary(at: path)
    }
  }

  /// The same on another file system, for those that are one file.
  func description(at path: String, file: DurableFileOptions) -> StoreDescription {
    switch self {
    case .sqlite: preconditionFailure("SQLite makes its own calls to the operating system.")
    case .json: .json(at: path, options: JSONStore.Options(wholeFile: WholeFileOptions(file: file)))
    case .xml: .xml(at: path, options: XMLStore.Options(wholeFile: WholeFileOptions(file: file)))
    case .binary: .binary(at: path, options: BinaryStore.Options(wholeFile: WholeFileOptions(file: file)))
    }
  }

  /// The same, opened although somebody changed it by hand.
  func unverified(at path: String) -> StoreDescription {
    let options = WholeFileOptions(allowsUnverified: true)
    return switch self {
    case .sqlite: preconditionFailure("SQLite has no digest of the whole file.")
    case .json: .json(at: path, options: JSONStore.Options(wholeFile: options))
    case .xml: .xml(at: path, options: XMLStore.Options(wholeFile: options))
    case .binary: .binary(at: path, options: BinaryStore.Options(wholeFile: options))
    }
  }

  /// What is wrong with a closed file or left beside it, besides what the stack tells; nil when nothing is.
  func fault(at path: String) throws -> String? {
    switch self {
    case .sqlite:
      let integrity = try BareDatabase(path).rows("PRAGMA integrity_check")
      return integrity == ["ok"] ? nil : "integrity_check: \(integrity)"
    case .json, .xml, .binary:
      let names = try FileManager.default.contentsOfDirectory(atPath: (path as NSString).deletingLastPathComponent)
      let left = names.filter { $0.hasSuffix(".tmp") }
      return left.isEmpty ? nil : "left behind: \(left)"
    }
  }
}
