extension RowBatch {
  /// Refuses rows without the layout of an entity or one of its subentities, before they are read as such rows.
  ///
  /// Code for the slots of an entity reads memory that rows of other entities don't have.
  package func checkLayout(of entity: EntityIndex, in model: ManagedObjectModel) throws(StoreError) {
    let isFitting = model.entities[entity].familyIndexes.contains { model.entities[$0].layout == layout }
    if isFitting { return }
    throw StoreError(
      .damaged, operation: "read rows",
      reason: "The store returned rows whose layout isn't that of the entity \(model.entities[entity].name) (rule F5).")
  }
}
