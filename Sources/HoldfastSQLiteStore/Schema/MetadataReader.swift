import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads the row of `Z_METADATA`, which shows whether a database is an object store, and its model.
struct MetadataReader {
  let path: String
  /// The current operation, for errors.
  let operation: String

  /// The row's contents, and the findings in the file's schema.
  typealias Row = (uuid: String, plist: [UInt8], schema: SchemaCheck)

  /// The row; nil for a database without tables.
  func row(_ connection: SQLiteConnection) throws -> Row? {
    let schema = try SchemaCheck(reading: connection)
    try schema.checkSystemTables()
    guard let statement = try query(connection) else { return nil }
    guard try statement.step() else { throw damaged("The table Z_METADATA is empty.") }
    defer { statement.reset() }
    guard statement.type(2) == .integer, statement.int64(2) > 0 else { throw damaged("The metadata lacks the layout's version.") }
    guard statement.int64(2) == 1 else {
      throw StoreError(
        .newerFormat, operation: operation, path: path,
        reason: "The layout has version \(statement.int64(2)); this Holdfast supports up to 1. Update Holdfast.")
    }
    // Object IDs contain the UUID; with an empty one they would look like those of unsaved objects. Another program may have written it in
    // lower case.
    guard statement.type(0) == .text, let uuid = UUID(uuidString: statement.string(0)) else {
      throw damaged("The metadata lacks the store's UUID.")
    }
    return (uuid.uuidString, Array(statement.blob(1)), schema)
  }

  /// Throws `notAStore` if the database's texts aren't in UTF-8: rows are decoded, and texts are compared, without conversion.
  func checkEncoding(_ connection: SQLiteConnection) throws(StoreError) {
    guard let encoding = try connection.string("PRAGMA encoding"), encoding != "UTF-8" else { return }
    throw StoreError(
      .notAStore, operation: operation, path: path,
      reason: "The texts of the database are in \(encoding); those of a store are in UTF-8. Recover the objects with "
        + "repairPersistentStore(_:to:model:), which converts the texts.")
  }

  /// The decoded property list of a row.
  func record(_ row: Row) throws -> MetadataRecord {
    do { return try MetadataRecord(uuid: row.uuid, bytes: row.plist) } catch {
      throw StoreError(.damaged, operation: operation, path: path, reason: "The metadata can't be read.", cause: error)
    }
  }

  private func damaged(_ reason: String) -> StoreError { StoreError(.damaged, operation: operation, path: path, reason: reason) }

  /// The query for the metadata, or nil for a database without tables.
  private func query(_ connection: SQLiteConnection) throws -> SQLiteStatement? {
    do throws(StoreError) {
      return try connection.prepare("SELECT Z_UUID, Z_PLIST, Z_VERSION FROM Z_METADATA ORDER BY Z_VERSION LIMIT 1")
    } catch {
      guard let failure = error.cause as? SQLiteFailure, failure.primaryCode == SQLiteResultCode.error else { throw error }
      if try connection.int64("SELECT COUNT(*) FROM sqlite_master") == 0 { return nil }
      throw StoreError(
        .notAStore, operation: operation, path: path, reason: "The file is a SQLite database, but not a store. Check the path.",
        cause: error)
    }
  }
}
