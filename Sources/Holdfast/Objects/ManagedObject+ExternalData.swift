import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Values in external files, read on demand.
extension ManagedObject {
  /// The bytes in the file that a row of the object names. Each call reads the file again, so keep the result as long as you need it.
  ///
  /// If the file is unreadable, returns nil and sets ``ManagedObjectContext/faultError``; ``value(forKey:)`` throws the error.
  @usableFromInline final func dataInFile(_ slot: SlotIndex, _ row: RowPointer) -> Data? {
    do {
      return try externalData(slot, row)
    } catch {
      context.noteUnread(id, error)
      return nil
    }
  }

  /// The same as an array; empty if the file is unreadable.
  @usableFromInline final func bytesInFile(_ slot: SlotIndex, _ row: RowPointer) -> [UInt8] {
    dataInFile(slot, row).map { Array($0) } ?? []
  }

  /// The bytes in the file that a row of the object names; nil if the row names none.
  final func externalData(_ slot: SlotIndex, _ row: RowPointer) throws -> Data? {
    guard let id = row.externalID(slot) else { return nil }
    context.checkIsolation()
    let request = ExternalDataRequest(entity: flags.entityIndex, slot: slot, key: objectKey, id: id)
    return try context.persistentStoreCoordinator.externalData(request, context.requests.ofOthers)
  }

  /// The value of an attribute in a row of the object, read from its external file if it has one.
  final func attributeValue(_ slot: SlotIndex, _ row: RowPointer) throws -> StoreValue {
    // A wider property can set a number that doesn't fit. The next save refuses it.
    let value = row.exactValue(slot, entity.layout.columns[slot])
    guard case .externalData = value else { return value }
    return try externalData(slot, row).map { .data($0) } ?? .null
  }
}
