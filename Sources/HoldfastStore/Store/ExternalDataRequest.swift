#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A request for a value in an external file; see ``StoreValue/externalData(_:)``.
///
/// A store that declares ``StoreCapabilities/externalData`` answers it.
///
/// *Requires*: A row that the store delivered contains the file name in that slot.
///
/// *Behaviour*
/// - **X1**: Returns the bytes that were saved. They stay readable while the row is unchanged. If another save replaces or deletes the value,
///   they stay readable while a view that began before that save is in use.
/// - **X2**: Throws if the file is missing or its contents don't match its name; never returns other bytes. The other values of the row stay
///   readable.
///
/// *Errors*: `missingExternalData`, `damaged`, `tooLarge`, `notPermitted`, `inputOutput`, `notOpen`.
public struct ExternalDataRequest: StoreRequest {
  /// The index of the concrete entity.
  public var entity: EntityIndex
  /// The slot of the attribute.
  public var slot: SlotIndex
  /// The object's key.
  public var key: ObjectKey
  /// The file name in the row.
  public var id: UUID

  /// Creates a request.
  public init(entity: EntityIndex, slot: SlotIndex, key: ObjectKey, id: UUID) {
    self.entity = entity
    self.slot = slot
    self.key = key
    self.id = id
  }

  /// The bytes of the value.
  public typealias Answer = Data
  /// A verb phrase for errors.
  public static var operation: String { "read a value from its external file" }

  /// A phrase for errors: entity, attribute, key and file name.
  public func description(in model: ManagedObjectModel) -> String {
    guard model.entityIndexes.contains(entity), model.entities[entity].slotIndexes.contains(slot) else {
      return "read the external file \(id.uuidString)"
    }
    let entity = model.entities[entity]
    return "read \(entity.name).\(entity.slots[slot].name) of the object with key \(key) from its external file \(id.uuidString)"
  }
}
