public import HoldfastStore

/// Object IDs as attribute values.
///
/// An attribute can contain the ID of an object of any store. Unlike a relationship, it has no inverse and isn't cleared when the object
/// is deleted.
///
/// You can set the temporary ID of a new object. The save that saves this object replaces it with the permanent ID. A save with any
/// other temporary ID fails with ``PersistenceError/Code/unsavedObjectID``.
extension ManagedObjectID: AttributeValue {
  /// The attribute type for object IDs.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.objectID] }
  /// Reads a slot. An absent or invalid ID reads as an ID that no object has.
  public static func load(_ row: RowPointer, _ slot: SlotIndex) -> ManagedObjectID { loadPresent(row, slot) ?? nobody }
  /// Reads a slot; nil when the text isn't a valid ID.
  public static func loadPresent(_ row: RowPointer, _ slot: SlotIndex) -> ManagedObjectID? { ManagedObjectID(rowBytes: row.bytes(slot)) }
  /// Writes a slot.
  public func store(in object: ManagedObject, _ slot: SlotIndex) { withRowBytes { object.setBytes(slot, $0) } }
  /// The ID as a store value.
  public var storeValue: StoreValue { .objectID(self) }

  private static let nobody = ManagedObjectID(storeNumber: 0, rootNumber: 0, entityNumber: 0, key: .min)
}

extension StoreValue {
  /// The value of an object in an attribute's type; nil if the type can't represent it. Unlike a store, an object can have a temporary ID.
  func ofObject(in type: AttributeType) -> StoreValue? {
    if case .objectID = self, type == .objectID { return self }
    return converted(to: type)
  }
}

extension RowBatchBuilder {
  /// Appends an object's value of an attribute. Unlike a store's, it can be a temporary ID.
  ///
  /// - Returns: False if the value doesn't fit the type; nothing is appended then.
  func append(ofObject value: StoreValue, in type: AttributeType) -> Bool {
    guard case .objectID(let id) = value, type == .objectID else { return appendValue(value, .attribute(type)) }
    id.withRowBytes { append(bytes: $0) }
    return true
  }
}
