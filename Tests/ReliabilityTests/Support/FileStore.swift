import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastXMLStore

/// A kind of store that lies in a file, for tests that run on several.
///
/// A new kind that is one file is a case, a line of ``wholeFile`` and a line of ``description(at:_:)``.
enum FileStore: Codable, Hashable, Sendable {
  case sqlite(SQLiteStoreOptions.JournalMode)
  case json
  case xml
  case binary

  /// Those that are one file, replaced as a whole by each save.
  static let wholeFile: [FileStore] = [.json, .xml, .binary]
  static let all = [.sqlite(.wal)] + wholeFile

  /// One that is one file, with options that all of those have.
  func description(at path: String, _ options: WholeFileOptions) -> StoreDescription {
    switch self {
    case .sqlite: preconditionFailure("SQLite makes its own calls to the operating system, and has no digest of the whole file.")
    case .json: .json(at: path, options: JSONStore.Options(wholeFile: options))
    case .xml: .xml(at: path, options: XMLStore.Options(wholeFile: options))
    case .binary: .binary(at: path, options: BinaryStore.Options(wholeFile: options))
    }
  }

  func description(at path: String) -> StoreDescription {
    // A short log, so that moving it into the file is among what is interrupted.
    if case .sqlite(let journal) = self { return .sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal, checkpointPages: 20)) }
    return description(at: path, WholeFileOptions())
  }

  /// The same on another file system, for those that are one file.
  func description(at path: String, file: DurableFileOptions) -> StoreDescription { description(at: path, WholeFileOptions(file: file)) }

  /// The same, opened although somebody changed it by hand.
  func unverified(at path: String) -> StoreDescription { description(at: path, WholeFileOptions(allowsUnverified: true)) }

  /// Any of them, with values in files of their own.
  func description(at path: String, _ options: ExternalDataOptions, isReadOnly: Bool = false) -> StoreDescription {
    if case .sqlite = self { return .sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: isReadOnly, externalData: options)) }
    return description(at: path, WholeFileOptions(file: DurableFileOptions(isReadOnly: isReadOnly), externalData: options))
  }

  /// What is wrong with a closed file or left beside it, besides what the stack tells; nil when nothing is.
  func fault(at path: String) throws -> String? {
    if case .sqlite = self {
      let integrity = try BareDatabase(path).rows("PRAGMA integrity_check")
      return integrity == ["ok"] ? nil : "integrity_check: \(integrity)"
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: (path as NSString).deletingLastPathComponent)
    let left = names.filter { $0.hasSuffix(".tmp") }
    return left.isEmpty ? nil : "left behind: \(left)"
  }
}
