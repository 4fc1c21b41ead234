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
  /// Fetched objects have no transient values until they are set, so only new objects of the context are required to have them. Values that
  /// a `StoreValue` can't represent, and values of another kind than the attribute's, are left to the class's own validation. A number is
  /// checked even if the attribute's type can't represent it, because the Swift type may be wider.
  func failure(_ object: ManagedObject) -> PersistenceError? {
    guard object.hasTransient(attribute.index) else { return object.requiresTransients ? failure(.null, object) : nil }
    guard !attribute.type.isUntyped, let value = object.transientStoreValue(attribute) else { return nil }
    return failure(value, object)
  }

  func failure(_ value: StoreValue, _ object: ManagedObject) -> PersistenceError? {
    let builder = RowBatchBuilder(layout: layout, idPrefix: nil)
    builder.beginRow(key: 1, version: 1)
    guard append(value, to: builder) else { return nil }
    builder.endRow()
    let row = builder.seal()
    return withExtendedLifetime(row) { check.failure(row.pointer(0), object) }
  }

  private func append(_ value: StoreValue, to builder: RowBatchBuilder) -> Bool {
    if builder.appendValue(value, layout.columns[0]) { return true }
    switch (attribute.type, value) {
    case (.integer16, _), (.integer32, _), (.boolean, _):
      guard let number = value.integer else { return false }
      builder.append(integer: number)
      return true
    case (.float, .double(let number)):
      builder.append(real: number)
      return true
    default: return false
    }
  }
}

extension ManagedObject {
  /// Whether a save requires values of mandatory transient properties: the object was inserted in this context, and never saved.
  ///
  /// Those of an object that a child has inserted stay in the child. An object that is inserted again was fetched without them.
  final var requiresTransients: Bool { isInserted && !isInsertedAgain && !flags.contains(.insertedByChild) }
}
