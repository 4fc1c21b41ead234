import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The metadata and the model of a repaired file.
struct RecoveredMetadata {
  private(set) var model: ManagedObjectModel?
  private(set) var uuid: String
  /// What is lost. It is emptied when it was taken.
  var notes: [String] = []
  /// Whether the record has other hashes than those of its model.
  private var hasDamagedHashes = false
  /// The record in the file; nil if it is lost.
  private let record: MetadataRecord?

  /// Reads what was recovered.
  ///
  /// - Throws: `incompatibleModel` if the model isn't that of the file. `damaged` if the metadata is lost and there is no model.
  init(_ connection: SQLiteConnection, _ given: ManagedObjectModel?, _ path: String, hasLostMetadata: Bool) throws {
    let reader = MetadataReader(path: path, operation: RepairRequest.operation)
    // One byte can make the layout a newer one. With the model, it is clear that it isn't.
    let row = hasLostMetadata ? nil : try Self.unlessDamaged(acceptingNewer: given != nil) { try reader.row(connection) }
    let found = try? row.map { try reader.record($0) }
    if given == nil { try found?.checkLayout(path: path) }
    let kept = try? found?.model(path: path)
    if let found, let given {
      // A hash may be damaged, but not in the same way as the model. If none is, another program has migrated the file, and kept the model.
      do { try found.checkCompatibility(with: given, path: path) } catch {
        if kept?.versionDigest != given.versionDigest || found.hasHashes(ofOtherModelThan: given) { throw error }
        hasDamagedHashes = true
      }
    }
    model = given ?? kept.flatMap { kept in found?.isCompatible(with: kept) == true ? kept : nil }
    record = found
    uuid = row?.uuid ?? SaveOrigin.newID().uuidString
    if found == nil {
      guard model != nil else {
        throw StoreError(
          .damaged, operation: RepairRequest.operation, path: path,
          reason: "The store's metadata and model are lost. Pass the model with which the store was created.")
      }
      notes.append("The store's metadata is lost." + (row == nil ? " The new store has another UUID." : ""))
    }
  }

  private static func unlessDamaged<Result>(acceptingNewer: Bool, _ body: () throws -> Result?) throws -> Result? {
    do { return try body() } catch let error as StoreError where error.code == .damaged || acceptingNewer && error.code == .newerFormat {
      return nil
    }
  }

  /// Whether the metadata is lost, so that it isn't known which program laid out the file.
  var isLost: Bool { record == nil }

  /// Whether this framework certainly laid out the file.
  var isOwn: Bool { model.flatMap { record?.hasLayout(of: $0) } ?? false }

  /// Completes the metadata, and returns the tables of the model; nil if the model isn't known, or the file lacks some of its tables.
  mutating func complete(_ connection: SQLiteConnection) throws -> StoreSchema? {
    guard let model else { return nil }
    if hasDamagedHashes, var record {
      record.keep(model, try model.canonicalJSON())
      notes.append("A version hash in the metadata was damaged. It is that of the model now.")
      try write(record, connection)
    }
    if isOwn { return StoreSchema.predicted(model) }
    let schema: StoreSchema
    do { schema = try StoreSchema.read(model, from: connection, nil) } catch let error as StoreError where error.code == .damaged {
      notes.append("The file doesn't have the model's tables. \(error.reason)")
      if record == nil { try write(model, isOwn: false, connection) }
      return nil
    }
    if record == nil { try write(model, isOwn: schema.hasSameNames(as: .predicted(model)), connection) }
    return schema
  }

  private func write(_ model: ManagedObjectModel, isOwn: Bool, _ connection: SQLiteConnection) throws {
    var record = try MetadataRecord(uuid: uuid, new: model)
    if !isOwn { try record.migrate(to: model, hasOwnLayout: false) }
    try write(record, connection)
  }

  /// Replaces everything in the table, which may have rows that aren't metadata.
  private func write(_ record: MetadataRecord, _ connection: SQLiteConnection) throws {
    try connection.runScript("DELETE FROM Z_METADATA")
    try record.insert(connection)
  }
}

extension StoreSchema {
  /// Whether all tables and columns have the same names.
  func hasSameNames(as other: StoreSchema) -> Bool {
    tables == other.tables && links == other.links
      && model.orderedRelationships.allSatisfy { orderColumn($0) == other.orderColumn($0) }
  }
}
