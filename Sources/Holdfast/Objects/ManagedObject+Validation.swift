public import HoldfastStore

extension ManagedObject {
  /// Validates a value before it is set, by the model's rules and the class's own (``validate(_:forKey:)``). Doesn't set it.
  ///
  /// ```swift
  /// static func ask(_ tie: ManagedObject, _ rating: Double) -> String? {
  ///   do {
  ///     try tie.validateValue(.double(rating), forKey: "rating")
  ///     return nil
  ///   } catch {
  ///     return (error as? PersistenceError)?.userMessage()  // "Rating may be at most 5."
  ///   }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value of an attribute, or the ID of a to-one relationship's destination.
  ///   - key: The name of the attribute or relationship; `home.latitude` for an element of a composite attribute.
  /// - Throws: ``PersistenceError`` with all failures that a save would report, with Core Data's codes; or with code
  ///   ``PersistenceError/Code/unknownProperty`` or ``PersistenceError/Code/wrongType`` if the value can't be set at all;
  ///   ``/HoldfastStore/StoreError`` if the class's method throws one.
  public final func validateValue(_ value: StoreValue, forKey key: String) throws {
    var failures = try failuresByModel(value, key)
    failures += try OwnRules.failures(self, key) { try validate(.single(value), forKey: key) }
    if !failures.isEmpty { throw PersistenceError.together(failures) }
  }

  private func failuresByModel(_ value: StoreValue, _ key: String) throws -> [PersistenceError] {
    let checks = context.graph.checks[entity.index]
    if case .transient(let attribute)? = entity.property(named: key) {
      if !attribute.type.isUntyped && value.ofObject(in: attribute.type) == nil { throw wrongType(key) }
      return checks.transients.filter { $0.attribute.name == key }.compactMap { $0.failure(value, self) }
    }
    if case .transientRelationship(let relationship)? = entity.property(named: key), !relationship.isToMany {
      try checkLeads(relationship, to: value)
      return value == .null && !relationship.isOptional ? [.missing(key, self)] : []
    }
    guard let slot = entity.slot(named: key) else {
      throw PersistenceError(
        .unknownProperty, objectID: id, property: key, reason: "\(entity.name) has no attribute or to-one relationship \(key).")
    }
    if let relationship = entity.relationship(inSlot: slot) { try checkLeads(relationship, to: value) }
    // Only stores name external files.
    if value.isExternal { throw wrongType(key) }
    // The model has no other rule for IDs in attributes, and a batch can't have a temporary one.
    if case .objectID = value, case .attribute(.objectID) = entity.layout.columns[slot] { return [] }
    let builder = RowBatchBuilder(layout: entity.layout, idPrefix: nil)
    builder.beginRow(key: 1, version: 1)
    for other in entity.slotIndexes {
      if other != slot {
        builder.appendNull()
      } else if !builder.appendValue(value, entity.layout.columns[slot]) {
        throw wrongType(key)
      }
    }
    builder.endRow()
    let batch = builder.seal()
    return checks.slots.filter { $0.slot == slot }.compactMap { $0.failure(batch[0].pointer, self) }
  }

  /// Throws unless a value is null or the ID of an object that a to-one relationship can reference.
  private func checkLeads(_ relationship: ManagedObjectModel.Relationship, to value: StoreValue) throws {
    if value == .null { return }
    let model = context.persistentStoreCoordinator.model
    // A row would take a whole number as a key.
    guard case .objectID(let target) = value,
      model.entity(named: target.entityName)?.isKind(of: model.destination(of: relationship)) == true
    else { throw wrongType(relationship.name) }
  }

  private func wrongType(_ key: String) -> PersistenceError {
    PersistenceError(.wrongType, objectID: id, property: key, reason: "The value isn't of the property's type.")
  }
}
