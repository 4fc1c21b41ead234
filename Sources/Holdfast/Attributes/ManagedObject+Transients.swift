import HoldfastStore

/// Transient attributes: values that live in memory only.
///
/// They lie behind the states of the object's to-many relationships, in a block that an object has only when it needs one: objects of
/// entities without transient attributes pay nothing.
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
  /// New objects begin with the default of the model. The value goes when the object becomes a fault; a refresh that merges changes, a
  /// save and a rollback keep it. Reading and writing gives a fault its row first, so that ``awakeFromFetch()`` can set it.
  ///
  /// Setting one makes the object a changed one, as in Core Data, except in `awakeFromFetch()`. A save in which only
  /// transient values changed calls `willSave` and `didSave`, and asks no store. A value that was set as another type reads as nil.
  public final subscript<Value>(transient index: Int) -> Value? {
    get {
      guard hasTransientSlot(index) else { return nil }
      _ = readRow
      guard let values = transientValues, let value = values[index] else { return nil }
      if let value = value as? Value { return value }
      // Defaults, and what was set by name.
      guard let said = value as? StoreValue, let type = Value.self as? any AttributeValue.Type, let value = type.said(by: said) as? Value
      else { return nil }
      values[index] = value
      return value
    }
    set { if hasTransientSlot(index) { setTransient(index, newValue) } }
  }

  // MARK: By name

  /// The value of a transient attribute.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/wrongType`` for a value that only Swift can say.
  final func transientValue(_ attribute: ManagedObjectModel.TransientAttribute) throws -> StoreValue {
    _ = readRow
    guard let value = transientValues?[attribute.index] else { return .null }
    let said = (value as? StoreValue) ?? (value as? any AttributeValue)?.storeValue
    if let said = attribute.type.isUntyped ? said : said?.converted(to: attribute.type) { return said }
    throw ContextError(
      .wrongType, objectID: id, property: attribute.name,
      reason: "The transient value is no \(attribute.type.rawValue) that can be said without its class; read the property of the class.")
  }

  final func setTransient(_ attribute: ManagedObjectModel.TransientAttribute, _ value: StoreValue) throws {
    guard let fitting = attribute.type.isUntyped ? value : value.converted(to: attribute.type) else {
      throw ContextError(.wrongType, objectID: id, property: attribute.name, reason: "The value is not a \(attribute.type.rawValue).")
    }
    setTransient(attribute.index, fitting == .null ? nil : fitting)
  }

  /// Whether a transient attribute has a value.
  final func hasTransient(_ index: Int) -> Bool { transientValues?[index] != nil }

  // MARK: Where they lie

  private func setTransient(_ index: Int, _ value: Any?) {
    _ = readRow
    if !flags.contains(.awakening) { managedObjectContext.noteChange(self) }
    if value == nil && toMany == nil { return }
    _ = toManyStates()
    transientValues?[index] = value
  }

  /// The values by index; nil for an object that has no block yet.
  private final var transientValues: UnsafeMutablePointer<Any?>? {
    toMany.map { ToManyState.transientValues(behind: $0, plan.toManyCount) }
  }

  /// Gives a new object the defaults of the model.
  final func setTransientDefaults() {
    for attribute in entity.transientAttributes {
      guard let value = attribute.defaultValue, value != .null else { continue }
      _ = toManyStates()
      transientValues?[attribute.index] = value
    }
  }

  /// Forgets all values: the object becomes a fault, or leaves the graph.
  final func forgetTransients() {
    guard plan.transientCount > 0, let values = transientValues else { return }
    for index in 0..<plan.transientCount { values[index] = nil }
  }
}

extension ToManyState {
  /// How many states take as much memory as transient values.
  static func count(holding transientCount: Int) -> Int {
    (transientCount * MemoryLayout<Any?>.stride + MemoryLayout<ToManyState>.stride - 1) / MemoryLayout<ToManyState>.stride
  }

  /// The transient values that lie behind an object's states.
  static func transientValues(behind states: UnsafeMutablePointer<ToManyState>, _ count: Int) -> UnsafeMutablePointer<Any?> {
    UnsafeMutableRawPointer(states + max(1, count)).assumingMemoryBound(to: Any?.self)
  }
}

extension AttributeType {
  /// Whether a transient attribute of the type has values of any Swift type.
  var isUntyped: Bool { self == .undefined || self == .transformable || self == .composite }
}

extension AttributeValue {
  /// The value of this type that a value of the boundary says; nil for none. Takes as long as making a row.
  static func said(by value: StoreValue) -> Self? {
    guard value != .null, let type = attributeTypes.types.first(where: { value.converted(to: $0) != nil }) else { return nil }
    let column = ColumnType.attribute(type), builder = RowBatchBuilder(layout: RowLayout([column]), idPrefix: nil)
    builder.beginRow(key: 0, version: 0)
    guard builder.appendValue(value, column) else { return nil }
    builder.endRow()
    let row = builder.seal()
    return withExtendedLifetime(row) { loadPresent(row.pointer(0), 0) }
  }
}
