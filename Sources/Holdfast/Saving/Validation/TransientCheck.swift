import HoldfastStore

/// The checks of a save on a transient attribute.
struct TransientCheck: Sendable {
  let attribute: ManagedObjectModel.TransientAttribute
  private let check: SlotCheck
  private let layout: RowLayout

  /// Nil when there is nothing to check.
  init?(_ attribute: ManagedObjectModel.TransientAttribute) {
    guard let check = SlotCheck(attribute) else { return nil }
    self.attribute = attribute
    self.check = check
    layout = RowLayout([.attribute(attribute.type)])
  }

  /// The failure of an object's transient value; nil when it is valid.
  ///
  /// Fetched objects have no transient values until they are set, so only new objects are required to have them. Values that a `StoreValue`
  /// can't represent are left to the class's own validation.
  func failure(_ object: ManagedObject) -> PersistenceError? {
    guard object.hasTransient(attribute.index) else { return object.isInserted ? failure(.null, object) : nil }
    guard !attribute.type.isUntyped, let value = try? object.transientValue(attribute) else { return nil }
    return failure(value, object)
  }

  func failure(_ value: StoreValue, _ object: ManagedObject) -> PersistenceError? {
    let builder = RowBatchBuilder(layout: layout, idPrefix: nil)
    builder.beginRow(key: 1, version: 1)
    guard builder.appendValue(value, layout.columns[0]) else {
      return PersistenceError(.wrongType, objectID: object.id, property: attribute.name, reason: "The value isn't of the property's type.")
    }
    builder.endRow()
    let row = builder.seal()
    return withExtendedLifetime(row) { check.failure(row.pointer(0), object) }
  }
}
