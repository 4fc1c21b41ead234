import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads all rows of a repaired file as a store does, and clears the values that it couldn't read.
struct RecoveredValues {
  private let schema: StoreSchema
  private let connection: SQLiteConnection

  init(_ schema: StoreSchema, _ connection: SQLiteConnection) { (self.schema, self.connection) = (schema, connection) }

  /// A value in a separate file.
  struct ExternalValue {
    let entity: EntityIndex
    let slot: SlotIndex
    let key: ObjectKey
    let id: UUID
  }

  private struct Fault {
    let key: ObjectKey
    let hasInvalidVersion: Bool
    let slots: [SlotIndex]
  }

  /// Clears values that can't be read, and removes rows with invalid keys.
  ///
  /// - Returns: The values in separate files.
  func check(_ report: inout RepairReport) throws -> [ExternalValue] {
    var external: [ExternalValue] = []
    for entity in schema.model.entities where !entity.isAbstract {
      let name = SQLName.quoted(schema.tables[entity.index].name), number = schema.tables[entity.index].number
      // SQLite's keys may be negative, those of objects aren't.
      try connection.runScript("DELETE FROM \(name) WHERE Z_PK < 0 AND Z_ENT = \(number)")
      report.unreadableCount += connection.changes
      for fault in try faults(entity, &external) {
        if fault.hasInvalidVersion {
          report.suspectCount += 1
          try connection.runScript("UPDATE \(name) SET Z_OPT = 1 WHERE Z_PK = \(fault.key.rawValue)")
        }
        for slot in fault.slots { try clear(entity, slot, fault.key, &report) }
      }
    }
    return external
  }

  private func faults(_ entity: ManagedObjectModel.Entity, _ external: inout [ExternalValue]) throws -> [Fault] {
    let table = schema.tables[entity.index]
    let columns = table.columns.map { ", \(SQLName.quoted($0))" }.joined()
    let select = try connection.prepare(
      "SELECT Z_PK, Z_OPT\(columns) FROM \(SQLName.quoted(table.name)) WHERE Z_ENT = \(table.number)")
    let decoder = RowDecoder(entity: entity, table: table, path: connection.path)
    let builder = RowBatchBuilder(layout: entity.layout, idPrefix: nil)
    var faults: [Fault] = []
    while try select.step() {
      let key = select.key(0)
      for slot in entity.externalSlots where select.type(slot.rawValue + 2) == .blob {
        if let id = MarkedColumn.file(select.blob(slot.rawValue + 2)) {
          external.append(ExternalValue(entity: entity.index, slot: slot, key: key, id: id))
        }
      }
      let isReadable = decoder.isReadable(select, builder)
      if builder.isFull { _ = builder.seal() }
      if isReadable { continue }
      faults.append(
        Fault(
          key: key, hasInvalidVersion: !decoder.hasValidVersion(select), slots: decoder.unreadableSlots(select, builder)))
    }
    return faults
  }

  /// Copies external files, and clears values whose files are missing or damaged.
  ///
  /// - Throws: Errors of the new file's folder.
  func addFiles(
    _ values: [ExternalValue], from damaged: ExternalDataFolder, as change: ExternalDataChange, _ request: RequestOptions,
    _ report: inout RepairReport
  ) throws {
    for value in values {
      try request.check(RepairRequest.operation)
      do throws(StoreError) { _ = try damaged.read(value.id, operation: RepairRequest.operation) } catch {
        guard [.missingExternalData, .damaged, .tooLarge].contains(error.code) else { throw error }
        try clear(schema.model.entities[value.entity], value.slot, value.key, &report)
        continue
      }
      try change.add([value.id], from: damaged, operation: RepairRequest.operation)
    }
  }

  private func clear(_ entity: ManagedObjectModel.Entity, _ slot: SlotIndex, _ key: ObjectKey, _ report: inout RepairReport) throws {
    let table = schema.tables[entity.index]
    try connection.runScript(
      "UPDATE \(SQLName.quoted(table.name)) SET \(SQLName.quoted(table.columns[slot])) = NULL WHERE Z_PK = \(key.rawValue)")
    report.lostValueCounts["\(entity.name).\(entity.slots[slot].name)", default: 0] += 1
  }
}
