import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import TestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A store that an attacker changed, or put files beside.
enum HostileStore: String, CaseIterable, Codable {
  // Beside a SQLite store.
  case superJournal, shortJournal, pipeAsJournal, pipeAsLog
  // Schemas.
  case generatedColumn, longDefault, endlessTrigger, rewritingTrigger, view, fullTextTable, expressionIndex
  // Rows of SQLite.
  case largestKey, largestVersion, wrongTypes, zeroes, longMetadata, pathAsUUID, noCounters
  // Empty rows of an entity with very many attributes.
  case emptyRowsInJSON, emptyRowsInXML, emptyRowsInBinary
  // Other documents.
  case deepJSON, longTagInXML

  private enum Kind { case sqlite, json, xml, binary }

  private var kind: Kind {
    switch self {
    case .emptyRowsInJSON, .deepJSON: .json
    case .emptyRowsInXML, .longTagInXML: .xml
    case .emptyRowsInBinary: .binary
    default: .sqlite
    }
  }

  var fileName: String { "store.\(kind)" }

  var model: ManagedObjectModel {
    switch self {
    case .emptyRowsInJSON, .emptyRowsInXML, .emptyRowsInBinary: HostileStore.wideModel
    default: Harbour.model
    }
  }

  private static let wideModel = Harbour.made([
    EntityDescription("Wide", attributes: (0..<4000).map { AttributeDescription("a\($0)", .integer64, isOptional: true) }),
    EntityDescription("Journal", attributes: [AttributeDescription("saves", .integer64)]),
  ])

  func description(_ path: String, isReadOnly: Bool = false, maximumRowByteCount: Int? = nil) -> StoreDescription {
    let wholeFile = WholeFileOptions(maximumRowByteCount: maximumRowByteCount)
    switch kind {
    case .sqlite: return .sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: isReadOnly))
    case .json: return .json(at: path, isReadOnly: isReadOnly, options: JSONStoreOptions(wholeFile: wholeFile))
    case .xml: return .xml(at: path, isReadOnly: isReadOnly, options: XMLStoreOptions(wholeFile: wholeFile))
    case .binary: return .binary(at: path, isReadOnly: isReadOnly, options: BinaryStoreOptions(wholeFile: wholeFile))
    }
  }

  /// The error of opening the store for writing, reading it and saving; nil if all of that succeeds.
  var refusalOfWriting: StoreError.Code? {
    switch self {
    case .superJournal: .failed
    case .pipeAsJournal, .pipeAsLog: .notPermitted
    case .generatedColumn, .longDefault, .endlessTrigger, .rewritingTrigger, .view, .fullTextTable, .expressionIndex: .unsafeSchema
    case .wrongTypes: .wrongType
    case .emptyRowsInJSON, .emptyRowsInXML: .tooLarge
    case .emptyRowsInBinary: nil
    default: .damaged
    }
  }

  // MARK: Making

  func make(at path: String, victim: String) throws {
    switch self {
    case .emptyRowsInJSON: try makeEmptyRowsInJSON(path)
    case .emptyRowsInXML, .emptyRowsInBinary: try makeEmptyRows(path, count: 5000)
    default: try Harbour.makeFile(description(path))
    }
    switch self {
    case .superJournal: try TemporaryFolder.write(RollbackJournal.bytes(for: path, superJournal: victim), to: path + "-journal")
    case .shortJournal: try TemporaryFolder.write(RollbackJournal.bytes(for: path, pages: 1), to: path + "-journal")
    case .pipeAsJournal: mkfifo(path + "-journal", 0o600)
    case .pipeAsLog: mkfifo(path + "-wal", 0o600)
    case .deepJSON: try replace("\n\"metadata\":{", by: "\n\"metadata\":{\"x\":" + String(repeating: "[", count: 500_000), in: path)
    case .longTagInXML: try replace("<object ", by: "<object " + (0..<100_000).map { "a\($0)=\"\" " }.joined(), in: path)
    default: if let sql { try BareDatabase.change(path, sql) }
    }
  }

  /// Replaces the first occurrence of a text. The digest isn't updated: limits apply before it is compared.
  private func replace(_ old: String, by new: String, in path: String) throws {
    var text = String(decoding: try TemporaryFolder.read(path), as: UTF8.self)
    guard let place = text.range(of: old) else { throw CocoaError(.formatting) }
    text.replaceSubrange(place, with: new)
    try TemporaryFolder.write(Array(text.utf8), to: path)
  }

  private func makeEmptyRows(_ path: String, count: Int) throws {
    let context = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: description(path, maximumRowByteCount: .max)))
    for _ in 0..<count { _ = try context.insert(entityNamed: "Wide") }
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  /// Rows that take a gigabyte, in a file of less than one megabyte.
  private func makeEmptyRowsInJSON(_ path: String) throws {
    try makeEmptyRows(path, count: 1)
    var text = String(decoding: try TemporaryFolder.read(path), as: UTF8.self)
    let row = "{\"$key\":1}"
    guard let place = text.range(of: row), let seal = text.range(of: ",\n\"digest\"") else { throw CocoaError(.formatting) }
    text = String(text[..<seal.lowerBound])
    text.replaceSubrange(place, with: (1...32_000).map { "{\"$key\":\($0)}" }.joined(separator: ",\n"))
    let digest = Array(text.utf8).withUnsafeBytes { ContentDigest.value(of: $0) }
    let digits = String(digest, radix: 16)
    text += ",\n\"digest\":\"xxh64:" + String(repeating: "0", count: 16 - digits.count) + digits + "\"}\n"
    try TemporaryFolder.write(Array(text.utf8), to: path)
  }

  private var sql: String? {
    switch self {
    case .generatedColumn:
      "DROP TABLE ZJOURNAL; CREATE TABLE ZJOURNAL (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZSAVES AS (hex(zeroblob(100000000)))); "
        + "INSERT INTO ZJOURNAL (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1)"
    case .longDefault:
      "ALTER TABLE ZSHIP RENAME COLUMN ZLOG TO other; ALTER TABLE ZSHIP ADD COLUMN ZLOG VARCHAR DEFAULT '"
        + String(repeating: "x", count: 500_000)
        + "'"
    case .endlessTrigger:
      "CREATE TRIGGER t AFTER INSERT ON ZJOURNAL BEGIN INSERT INTO ZBERTH (Z_OPT) SELECT count(*) FROM "
        + (0..<20).map { "ZSHIP s\($0)" }.joined(separator: ", ") + "; END"
    case .rewritingTrigger: "CREATE TRIGGER t AFTER INSERT ON ZJOURNAL BEGIN UPDATE ZSHIP SET ZNAME = 'mine'; END"
    case .view: "DROP TABLE ZJOURNAL; CREATE VIEW ZJOURNAL AS SELECT 1 AS Z_PK, 2 AS Z_ENT, 1 AS Z_OPT, 7 AS ZSAVES"
    case .fullTextTable: "DROP TABLE ZJOURNAL; CREATE VIRTUAL TABLE ZJOURNAL USING fts5(Z_PK, Z_ENT, Z_OPT, ZSAVES)"
    // Large for the row that the test inserts, and empty for that of the file, in which the index would take 200 MB.
    case .expressionIndex: "CREATE INDEX i ON ZJOURNAL (hex(zeroblob(100000000 * (ZSAVES < 12))))"
    case .largestKey: "UPDATE Z_PRIMARYKEY SET Z_MAX = 9223372036854775807; UPDATE ZSHIP SET Z_PK = 9223372036854775807 WHERE Z_PK = 5"
    case .largestVersion: "UPDATE ZJOURNAL SET Z_OPT = 9223372036854775807; UPDATE ZSHIP SET Z_OPT = -5"
    case .wrongTypes: "UPDATE ZSHIP SET ZNAME = x'ff', ZTONS = 'zz', ZUID = x'02', ZPLAN = 7"
    case .zeroes: "UPDATE Z_METADATA SET Z_PLIST = zeroblob(1000000)"
    case .longMetadata: "UPDATE Z_METADATA SET Z_PLIST = CAST('bplist00' AS BLOB) || zeroblob(50000000)"
    case .pathAsUUID: "UPDATE Z_METADATA SET Z_UUID = '../../etc/passwd'"
    case .noCounters: "DELETE FROM Z_PRIMARYKEY"
    default: nil
    }
  }
}
