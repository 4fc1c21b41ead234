#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A value is wanted that lies in a file of its own, as a row says: see ``StoreValue/externalData(_:)``.
public struct ExternalDataRequest: Sendable, Hashable, Codable {
  /// The index of the concrete entity.
  public var entity: Int
  /// The slot of the attribute.
  public var slot: Int
  /// The object's key.
  public var key: Int64
  /// The name that the row has.
  public var id: UUID

  /// Makes a request.
  public init(entity: Int, slot: Int, key: Int64, id: UUID) {
    self.entity = entity
    self.slot = slot
    self.key = key
    self.id = id
  }

  /// The request as a phrase for errors: entity, attribute, key and name of the file.
  public func description(in model: ManagedObjectModel) -> String {
    guard model.entities.indices.contains(entity), model.entities[entity].slots.indices.contains(slot) else {
      return "read the file \(id.uuidString)"
    }
    let entity = model.entities[entity]
    return "read \(entity.name).\(entity.slots[slot].name) of the object with key \(key) from its file \(id.uuidString)"
  }
}
