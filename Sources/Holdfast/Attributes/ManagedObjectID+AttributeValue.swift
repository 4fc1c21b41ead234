public import HoldfastStore

/// An attribute can hold the ID of an object of any store. Unlike a relationship it has no inverse, and nobody clears it when the
/// object is deleted.
///
/// The temporary ID of a new object may be set: the save that saves the object replaces it by the permanent one. A save that would
/// keep a temporary ID of anything else is refused with ``ContextError/Code/unsavedObjectID``.
extension ManagedObjectID: AttributeValue {
  /// IDs of objects.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.objectID] }
  /// Reads a slot; an ID that no object has for none and for text that is no ID.
  public static func load(_ row: RowPointer, _ slot: Int) -> ManagedObjectID { loadPresent(row, slot) ?? nobody }
  /// Reads a slot; nil for text that is no ID.
  public static func loadPresent(_ row: RowPointer, _ slot: Int) -> ManagedObjectID? { ManagedObjectID(rowBytes: row.bytes(slot)) }
  /// Writes a slot.
  public func store(in object: ManagedObject, _ slot: Int) { withRowBytes { object.setBytes(slot, $0) } }
  /// The ID of an object.
  public var storeValue: StoreValue { .objectID(self) }

  private static let nobody = ManagedObjectID(storeNumber: 0, rootNumber: 0, entityNumber: 0, key: .min)
}
