import CHoldfastSQLite
import Foundation
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

extension Corpus {
  /// The `.mom` files, relative to the root.
  static let compiled = allFiles.filter { $0.hasSuffix(".mom") }
  /// The `.momd` folders, relative to the root.
  static let compiledBundles = Set(compiled.map { ($0 as NSString).deletingLastPathComponent }).sorted()
  /// The SQLite files, relative to the root.
  static let stores = allFiles.filter { file in
    guard file.hasPrefix("sqlite/"), let handle = FileHandle(forReadingAtPath: path(file)) else { return false }
    defer { try? handle.close() }
    return (try? handle.read(upToCount: 15)) == Data("SQLite format 3".utf8)
  }

  private static var allFiles: [String] {
    guard let root else { return [] }
    return ((try? FileManager.default.subpathsOfDirectory(atPath: root)) ?? []).sorted()
  }

  /// The model that a Core Data store contains: the cache and the property list of its metadata. The store and its log are copied first.
  static func store(_ file: String) throws -> (cache: [UInt8]?, metadata: PropertyList) {
    let folder = TemporaryFolder()
    for end in ["", "-wal"] where FileManager.default.fileExists(atPath: path(file) + end) {
      try FileManager.default.copyItem(atPath: path(file) + end, toPath: folder.file("store") + end)
    }
    var database: OpaquePointer?
    defer { sqlite3_close(database) }
    try #require(sqlite3_open_v2(folder.file("store"), &database, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK)
    let plist = try #require(blob(database, "SELECT Z_PLIST FROM Z_METADATA"))
    return (blob(database, "SELECT Z_CONTENT FROM Z_MODELCACHE"), try PropertyList(plist))
  }

  private static func blob(_ database: OpaquePointer?, _ query: String) -> [UInt8]? {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v2(database, query, -1, &statement, nil) == SQLITE_OK else { return nil }
    defer { sqlite3_finalize(statement) }
    guard sqlite3_step(statement) == SQLITE_ROW, let bytes = sqlite3_column_blob(statement, 0) else { return nil }
    return Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, 0))))
  }
}
