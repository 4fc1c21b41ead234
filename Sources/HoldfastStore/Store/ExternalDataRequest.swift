#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A request for a value in an external file; see ``StoreValue/externalData(_:)``.
public struct ExternalDataRequest: Sendable, Hashable, Codable {
  /// The index of the concrete entity.
  public var entity: Int
  /// The slot of the attribute.
  public var slot: Int
  /// The object's key.
  public var key: Int64
  /// The file name in the row.
  public var id: UUID

  /// Creates a request.
  public init(entity: Int, slot: Int, key: Int64, id: UUID) {
    self.entity = entity
    self.slot = slot
    self.key = key
    self.id = id
  }

  /// A phrase for errors: entity, attribute, key and file name.
  public func description(in model: ManagedObjectModel) -> String {
    guard model.entities.indices.contains(entity), model.entities[entity].slots.indices.contains(slot) else {
      return "read the external file \(id.uuidString)"
    }
    let entity = model.entities[entity]
    return "read \(entity.name).\(entity.slots[slot].name) of the object with key \(key) from its external file \(id.uuidString)"
  }
}
