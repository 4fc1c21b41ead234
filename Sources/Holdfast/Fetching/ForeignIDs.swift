import HoldfastStore

extension QueryExpression {
  /// Returns the expression with foreign object IDs replaced by an ID that matches no object.
  ///
  /// An ID is foreign if its store is unknown, or if its entity can't match the other operand.
  ///
  /// Stores compare only keys. Without this, object 7 of another store or entity would equal the object 7 that a relationship references.
  /// In the returned expression, IDs contain the coordinator's keys (see ``StackKey``).
  func withoutForeignIDs(_ entity: ManagedObjectModel.Entity, _ coordinator: PersistentStoreCoordinator) -> QueryExpression {
    let places = coordinator.places
    return replacingIDs(entity, coordinator.model) { id, target in
      if id.isTemporaryID { return id }
      guard let prefix = places.prefix(target.index, ofStore: id.storeNumber), let key = places.key(of: id),
        prefix.rootNumber == id.rootNumber
      else { return id.withKey(.min) }
      return id.withKey(key)
    }
  }

  /// Returns the expression with other IDs of objects and of to-one destinations.
  ///
  /// IDs that are compared with an attribute stay unchanged, because an attribute contains the ID itself, not a key.
  ///
  /// - Parameters:
  ///   - entity: The entity that is queried.
  ///   - model: The model.
  ///   - replacement: Returns the new ID, given an ID and the entity of the objects with which it is compared.
  func replacingIDs(
    _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel,
    _ replacement: (ManagedObjectID, ManagedObjectModel.Entity) -> ManagedObjectID
  ) -> QueryExpression {
    if !mentionsIDs { return self }
    return withoutActuallyEscaping(replacement) { ObjectIDs(model: model, replacement: $0).replaced(self, entity) }
  }

  private var mentionsIDs: Bool {
    contains { expression in
      switch expression {
      case .constant(.objectID): true
      case .membership(_, let list): list.contains { if case .objectID = $0 { true } else { false } }
      default: false
      }
    }
  }
}

/// Replaces the IDs in an expression that are compared with objects.
private struct ObjectIDs {
  let model: ManagedObjectModel
  let replacement: (ManagedObjectID, ManagedObjectModel.Entity) -> ManagedObjectID

  func replaced(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> QueryExpression {
    switch expression {
    case .comparison(let left, let op, let right, let folding):
      return .comparison(replaced(left, comparedWith: right, entity), op, replaced(right, comparedWith: left, entity), folding)
    case .membership(let value, let list):
      guard let target = target(of: value, entity) else { return .membership(replaced(value, entity), list) }
      return .membership(value, list.map { replaced($0, target) })
    case .between(let value, let lower, let upper): return .between(replaced(value, entity), lower, upper)
    case .and(let parts): return .and(parts.map { replaced($0, entity) })
    case .or(let parts): return .or(parts.map { replaced($0, entity) })
    case .not(let part): return .not(replaced(part, entity))
    case .any(let path, let part): return .any(path, destination(of: path, entity).map { replaced(part, $0) } ?? part)
    case .all(let path, let part): return .all(path, destination(of: path, entity).map { replaced(part, $0) } ?? part)
    case .constant, .property, .object, .count, .remainder, .literal: return expression
    }
  }

  /// An operand can also be a condition, which can contain IDs itself.
  private func replaced(
    _ operand: QueryExpression, comparedWith other: QueryExpression, _ entity: ManagedObjectModel.Entity
  ) -> QueryExpression {
    guard case .constant(let value) = operand, let target = target(of: other, entity) else { return replaced(operand, entity) }
    return .constant(replaced(value, target))
  }

  private func replaced(_ value: StoreValue, _ target: ManagedObjectModel.Entity) -> StoreValue {
    if case .objectID(let id) = value { .objectID(replacement(id, target)) } else { value }
  }

  /// The entity of the object that an expression references. Nil if the expression isn't an object or a relationship path.
  private func target(of value: QueryExpression, _ entity: ManagedObjectModel.Entity) -> ManagedObjectModel.Entity? {
    switch value {
    case .object: entity
    case .property(let path): destination(of: path, entity)
    default: nil
    }
  }

  /// The destination entity of a path of relationships.
  ///
  /// Nil when the path ends at an attribute or doesn't exist; executing the query reports an invalid path.
  private func destination(of path: PropertyPath, _ entity: ManagedObjectModel.Entity) -> ManagedObjectModel.Entity? {
    var current = entity
    for name in path.names {
      guard let relationship = current.relationship(named: name) else { return nil }
      current = model.destination(of: relationship)
    }
    return current
  }
}
