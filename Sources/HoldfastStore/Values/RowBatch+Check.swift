extension RowBatch {
  /// Checks that the rows have the layout of an entity, or of one of its subentities.
  ///
  /// The framework checks each answer. A store that reads the rows of another store calls this before it uses them: code for the slots of
  /// an entity reads memory that rows with another layout don't have.
  ///
  /// - Parameters:
  ///   - entity: The index of the entity that was requested.
  ///   - model: The model.
  /// - Throws: ``StoreError`` with code ``StoreError/Code/damaged`` if they don't.
  public func checkLayout(of entity: EntityIndex, in model: ManagedObjectModel) throws(StoreError) {
    let isFitting = model.entities[entity].familyIndexes.contains { model.entities[$0].layout == layout }
    if isFitting { return }
    throw StoreError(
      .damaged, operation: "read rows",
      reason: "The store returned rows whose layout isn't that of the entity \(model.entities[entity].name) (rule F5).")
  }
}
