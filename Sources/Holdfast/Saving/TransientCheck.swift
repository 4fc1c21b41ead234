import HoldfastStore

/// What a save checks of a transient attribute.
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

  /// What was fetched has no transient values until somebody sets them, so only new objects can be asked for them; a value that only
  /// its class can say is the class's to check.
  func failure(_ object: ManagedObject) -> ContextError? {
    guard object.hasTransient(attribute.index) else { return object.isInserted ? failure(.null, object) : nil }
    guard !attribute.type.isUntyped, let value = try? object.transientValue(attribute) else { return nil }
    return failure(value, object)
  }

  func failure(_ value: StoreValue, _ object: ManagedObject) -> ContextError? {
    let builder = RowBatchBuilder(layout: layout, idPrefix: nil)
    builder.beginRow(key: 1, version: 1)
    guard builder.appendValue(value, layout.columns[0]) else {
      return ContextError(.wrongType, objectID: object.id, property: attribute.name, reason: "The value is not of the property's type.")
    }
    builder.endRow()
    let row = builder.seal()
    return withExtendedLifetime(row) { check.failure(row.pointer(0), object) }
  }
}
