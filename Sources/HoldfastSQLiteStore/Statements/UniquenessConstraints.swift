import HoldfastStore

/// Finds the rows that violate uniqueness constraints, in the second attempt of a save.
struct UniquenessConstraints {
  let store: OpenStore
  let writer: SQLiteConnection

  /// The constraints that a row would violate, with the rows that have the same values.
  func conflicts(of row: RowPointer, _ entity: ManagedObjectModel.Entity) throws -> [ConstraintConflict] {
    var conflicts: [ConstraintConflict] = []
    let binder = RowBinder(entity: entity, store)
    for (place, slots) in entity.uniqueSlots.enumerated() where slots.allSatisfy({ row.isPresent($0) }) {
      let family = store.ofEntities(declaring(constraint: place, of: entity).concreteIndexes, alias: "t0")
      let tests = slots.enumerated().map { place, slot in "\(store.column(entity.index, slot)) = ?\(place + 2)" }.joined(separator: " AND ")
      let statement = try writer.statement(
        "SELECT Z_PK, Z_ENT FROM \(store.table(entity.index)) AS t0 WHERE \(tests) AND Z_PK <> ?1\(family)")
      statement.bind(row.key, at: 1)
      for (place, slot) in slots.enumerated() { try binder.bind(row, slot: slot, to: statement, at: place + 2) }
      defer {
        statement.reset()
        statement.clearBindings()
      }
      guard try statement.step() else { continue }
      conflicts.append(
        ConstraintConflict(
          objectID: store.identity.objectID(entity: entity, key: row.key),
          existing: store.identity.objectID(entity: self.entity(numbered: statement.int64(1)) ?? entity, key: statement.key(0)),
          constraint: entity.uniquenessConstraints[place]))
    }
    return conflicts
  }

  /// The entity that declares a constraint, which applies among all its objects.
  private func declaring(constraint place: Int, of entity: ManagedObjectModel.Entity) -> ManagedObjectModel.Entity {
    var entity = entity
    while place < entity.inheritedConstraintCount, let above = entity.superentityIndex { entity = store.model.entities[above] }
    return entity
  }

  private func entity(numbered number: Int64) -> ManagedObjectModel.Entity? {
    store.schema.entity(numbered: number).map { store.model.entities[$0] }
  }

  /// Clears the changed values of constrained columns in all updated rows, so that rows can exchange values. The updates then write the new
  /// values.
  ///
  /// A value that is derived again can be the stored one. It stays, so that no other row gets it.
  func clear(_ changes: SaveRequest.EntityChanges) throws {
    let entity = try store.entity(changes.entity), binder = RowBinder(entity: entity, store)
    let constrained = Set(entity.uniqueSlots.joined())
    for updated in changes.updated {
      for index in 0..<updated.rows.count {
        let row = updated.rows.pointer(index), slots = constrained.filter { updated.isChanged(row: index, slot: $0) }.sorted()
        if slots.isEmpty { continue }
        let assignments = slots.enumerated().map { place, slot in
          let name = store.column(entity.index, slot)
          return "\(name) = CASE WHEN \(name) = ?\(place + 2) THEN \(name) END"
        }
        let statement = try writer.statement(
          "UPDATE \(store.table(entity.index)) SET \(assignments.joined(separator: ", ")) WHERE Z_PK = ?1")
        defer { statement.clearBindings() }
        statement.bind(row.key, at: 1)
        for (place, slot) in slots.enumerated() { try binder.bind(row, slot: slot, to: statement, at: place + 2) }
        try statement.run()
      }
    }
  }
}
