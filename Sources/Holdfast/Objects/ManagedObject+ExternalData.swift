#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Values that lie in files of their own, which are read when somebody asks for them and not before.
extension ManagedObject {
  /// The bytes in the file that a row of the object names. They are read anew each time, so keep them for as long as they are needed.
  ///
  /// When the file cannot be read there is no value, and ``ManagedObjectContext/faultError`` has the reason; ``value(forKey:)`` throws it.
  @usableFromInline final func dataInFile(_ slot: Int, _ row: RowPointer) -> Data? {
    do {
      return try externalData(slot, row)
    } catch {
      managedObjectContext.noteUnread(id, error)
      return nil
    }
  }

  /// The bytes in the file that a row of the object names; nil when it names none.
  final func externalData(_ slot: Int, _ row: RowPointer) throws -> Data? {
    guard let id = row.externalID(slot) else { return nil }
    managedObjectContext.checkIsolation()
    let request = ExternalDataRequest(entity: Int(flags.entityIndex), slot: slot, key: objectKey, id: id)
    return try managedObjectContext.persistentStoreCoordinator.externalData(request)
  }

  /// The value of an attribute in a row of the object, from its file if it lies in one.
  final func attributeValue(_ slot: Int, _ row: RowPointer) throws -> StoreValue {
    let value = row.value(slot, entity.layout.columns[slot], idPrefix: id)
    guard case .externalData = value else { return value }
    return try externalData(slot, row).map { .data($0) } ?? .null
  }
}
