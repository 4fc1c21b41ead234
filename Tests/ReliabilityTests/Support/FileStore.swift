import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastXMLStore

/// A kind of store with a file, for tests that run on several kinds.
///
/// To add a whole-file store, add a case, and a line in ``wholeFile`` and ``description(at:_:)``.
enum FileStore: Codable, Hashable, Sendable {
  case sqlite(SQLiteStoreOptions.JournalMode)
  case json
  case xml
  case binary

  /// The stores whose single file each save replaces.
  static let wholeFile: [FileStore] = [.json, .xml, .binary]
  /// Those whose saves copy unchanged parts of the file.
  static let copying: [FileStore] = [.binary]
  static let all = [.sqlite(.wal)] + wholeFile

  /// A whole-file store, with the options that all whole-file stores share.
  func description(at path: String, _ options: WholeFileOptions) -> StoreDescription {
    switch self {
    case .sqlite: preconditionFailure("SQLite stores have no whole-file options.")
    case .json: .json(at: path, options: JSONStoreOptions(wholeFile: options))
    case .xml: .xml(at: path, options: XMLStoreOptions(wholeFile: options))
    case .binary: .binary(at: path, options: BinaryStoreOptions(wholeFile: options))
    }
  }

  func description(at path: String) -> StoreDescription {
    // A short log, so that checkpoints are interrupted too.
    if case .sqlite(let journal) = self { return .sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal, checkpointPages: 20)) }
    return description(at: path, WholeFileOptions())
  }

  /// A whole-file store with file options.
  func description(at path: String, file: DurableFileOptions) -> StoreDescription { description(at: path, WholeFileOptions(file: file)) }

  /// A whole-file store that opens even if its file was edited by hand.
  func unverified(at path: String) -> StoreDescription { description(at: path, WholeFileOptions(allowsUnverified: true)) }

  /// Any store, with values in external files.
  func description(at path: String, _ options: ExternalDataOptions, isReadOnly: Bool = false) -> StoreDescription {
    if case .sqlite = self { return .sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: isReadOnly, externalData: options)) }
    return description(at: path, WholeFileOptions(file: DurableFileOptions(isReadOnly: isReadOnly), externalData: options))
  }

  /// A whole-file store's file with zeros instead of the random numbers of the open stores that saved it, and of the digests over them.
  func withoutLineage(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    func clear(_ range: Range<Int>) { for place in range { bytes[place] = 0 } }
    func number(at place: Int) -> Int { (0..<8).reduce(0) { $0 | Int(bytes[place + $1]) << (8 * $1) } }
    func clearText(after mark: String, before end: String) {
      guard let start = bytes.firstRange(of: Array(mark.utf8)), let end = bytes[start.upperBound...].firstRange(of: Array(end.utf8)) else {
        return
      }
      clear(start.upperBound..<end.lowerBound)
    }
    switch self {
    case .sqlite: preconditionFailure("SQLite files have no lineage.")
    case .json:
      clearText(after: "\"lineage\":\"", before: "\"")
      clear(bytes.count - 24..<bytes.count)
    case .xml:
      clearText(after: "_HoldfastLineage</key>", before: "</data>")
      clear(bytes.count - 24..<bytes.count)
    case .binary:
      // The store information is the first section, after the header of 32 bytes. Its entry begins the directory, which precedes the footer
      // of 64 bytes. Format.md has the fields.
      let footer = bytes.count - 64, directory = number(at: footer)
      clear(32..<32 + number(at: directory + 16))
      clear(directory + 24..<directory + 32)
      clear(footer + 40..<footer + 56)
    }
    return bytes
  }

  /// Damage of a closed file that the stack doesn't report, or files left beside it; nil if there are none.
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
