import HoldfastStore

/// Transient attributes: values that are kept only in memory.
///
/// They are stored after the states of the object's to-many relationships, in a block that is allocated on demand. Objects of entities
/// without transient attributes need no extra memory.
extension ManagedObject {
  /// The value of a transient attribute, of any type, for the accessors of typed subclasses:
  ///
  /// ```swift
  /// var score: Double {
  ///   get { self[transient: Slot.score] ?? 0 }
  ///   set { self[transient: Slot.score] = newValue }
  /// }
  /// ```
  ///
  /// New objects start with the model's default. Turning an object into a fault discards the value. Saves, rollbacks, refreshes that merge
  /// changes, and merges of what others have saved keep it. Reading or writing the value of a fault first reads the row, so that
  /// ``awakeFromFetch()`` can set it.
  ///
  /// Setting a value marks the object as changed, as in Core Data, except in `awakeFromFetch()`. A save in which only transient values
  /// changed calls `willSave` and `didSave` but sends no request to a store. A value that was set with another Swift type reads as nil.
  public final subscript<Value>(transient index: Int) -> Value? {
    get {
      guard hasTransientSlot(index) else { return nil }
      guard let value = presentTransient(index) else { return nil }
      if let value = value as? Value { return value }
      // Defaults and values set by name are stored as `StoreValue`.
      guard let said = value as? StoreValue, let type = Value.self as? any AttributeValue.Type, let value = type.said(by: said) as? Value
      else { return nil }
      toMany?[transient: index, plan] = value
      return value
    }
    set { if hasTransientSlot(index) { setTransient(index, newValue) } }
  }

  // MARK: By name

  /// The value of a transient attribute.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/wrongType`` when a `StoreValue` can't represent the Swift value.
  final func transientValue(_ attribute: ManagedObjectModel.TransientAttribute) throws -> StoreValue {
    let said = transientStoreValue(attribute)
    if !hasTransient(attribute.index) { return .null }
    if let said = attribute.type.isUntyped ? said : said?.ofObject(in: attribute.type) { return said }
    throw PersistenceError(
      .wrongType, objectID: id, property: attribute.name,
      reason: "The transient value can't be converted to \(attribute.type.rawValue). Read it through the property of its class.")
  }

  /// The value that was set, in the attribute's type if this can represent it, otherwise in the type of its Swift value; nil when a
  /// `StoreValue` can't represent it.
  final func transientStoreValue(_ attribute: ManagedObjectModel.TransientAttribute) -> StoreValue? {
    guard let value = presentTransient(attribute.index) else { return nil }
    let said = (value as? StoreValue) ?? (value as? any AttributeValue)?.storeValue
    return said.map { $0.ofProperty(in: attribute.type) ?? $0 }
  }

  /// The value converted to the attribute's type. Changes nothing.
  final func fitting(_ value: StoreValue, _ attribute: ManagedObjectModel.TransientAttribute) throws -> StoreValue {
    if let fitting = attribute.type.isUntyped ? value : value.ofObject(in: attribute.type) { return fitting }
    throw PersistenceError(
      .wrongType, objectID: id, property: attribute.name, reason: "The value isn't of type \(attribute.type.rawValue).")
  }

  /// Sets a transient attribute to a value of its type.
  final func setTransient(_ attribute: ManagedObjectModel.TransientAttribute, _ value: StoreValue) {
    setTransient(attribute.index, value == .null ? nil : value)
  }

  /// Whether a transient attribute has a value.
  final func hasTransient(_ index: Int) -> Bool { toMany?[transient: index, plan] != nil }

  // MARK: Storage

  /// The value in memory. If it is the temporary ID of an object that was saved since, it is replaced by the permanent one.
  private func presentTransient(_ index: Int) -> Any? {
    _ = readRow
    guard let value = toMany?[transient: index, plan] else { return nil }
    // Finding an ID in a value of any type takes longer than reading the value.
    if !context.temporaryIDs.areFollowed { return value }
    guard let id = ManagedObject.temporaryID(in: value), case .objectID(let present) = context.present(.objectID(id)), present != id else {
      return value
    }
    // In the type in which it was set. A value of another type would read as nil.
    let replacement: Any = value is StoreValue ? StoreValue.objectID(present) : present
    toMany?[transient: index, plan] = replacement
    return replacement
  }

  private static func temporaryID(in value: Any) -> ManagedObjectID? {
    let id: ManagedObjectID?
    if case .objectID(let named)? = value as? StoreValue { id = named } else { id = value as? ManagedObjectID }
    return id?.isTemporaryID == true ? id : nil
  }

  private func setTransient(_ index: Int, _ value: Any?) {
    _ = readRow
    if let value, let id = ManagedObject.temporaryID(in: value) { context.follow(id) }
    if !flags.contains(.awakening) { context.noteChange(self) }
    if value == nil && toMany == nil { return }
    toManyStates()[transient: index, plan] = value
  }

  /// Sets a new object's transient attributes to the model's defaults.
  final func setTransientDefaults() {
    for attribute in entity.transientAttributes {
      guard let value = attribute.defaultValue, value != .null else { continue }
      toManyStates()[transient: attribute.index, plan] = value
    }
  }

  /// Discards all values, when the object becomes a fault or is removed from the context.
  final func forgetTransients() {
    guard plan.transientCount > 0, let toMany else { return }
    for index in 0..<plan.transientCount { toMany[transient: index, plan] = nil }
  }
}

extension AttributeType {
  /// Whether a transient attribute of this type accepts values of any Swift type.
  var isUntyped: Bool { self == .undefined || self == .transformable || self == .composite }
}

extension AttributeValue {
  /// Converts a `StoreValue` to this type; nil when it can't. Builds a temporary row.
  static func said(by value: StoreValue) -> Self? {
    guard value != .null, let type = attributeTypes.types.first(where: { value.ofObject(in: $0) != nil }) else { return nil }
    let builder = RowBatchBuilder(layout: RowLayout([.attribute(type)]), idPrefix: nil)
    builder.beginRow(key: 0, version: 0)
    guard builder.append(ofObject: value, in: type) else { return nil }
    builder.endRow()
    let row = builder.seal()
    return withExtendedLifetime(row) { loadPresent(row.pointer(0), 0) }
  }
}
