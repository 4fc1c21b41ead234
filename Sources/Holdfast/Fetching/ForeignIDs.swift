import HoldfastStore

extension QueryExpression {
  /// Returns the expression with foreign object IDs replaced by an ID that matches no object, and with all names of IDs in attributes.
  ///
  /// An ID is foreign if its store is unknown, or if its entity can't match the other operand.
  ///
  /// Stores compare only keys. Without this, object 7 of another store or entity would equal the object 7 that a relationship references.
  /// In the returned expression, IDs contain the coordinator's keys (see ``StackKey``).
  ///
  /// An attribute contains the URI of an ID. That of an object which wasn't read can have the name of a superentity, although both IDs are
  /// equal. Stores compare URIs, so an ID that is compared with an attribute becomes a list of its URIs.
  func withoutForeignIDs(_ entity: ManagedObjectModel.Entity, _ coordinator: PersistentStoreCoordinator) -> QueryExpression {
    let places = coordinator.places, model = coordinator.model
    return replacingIDs(entity, model, namesAll: true) { id, target in
      if id.isTemporaryID { return id }
      // An ID that was created before the store was opened doesn't contain the root of its entity.
      guard let prefix = places.prefix(target.index, ofStore: id.storeNumber), let key = places.key(of: id),
        prefix.rootNumber == id.rootNumber || model.entity(named: id.entityName)?.rootIndex == target.rootIndex
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
  ///   - namesAll: Whether an ID that is compared with an attribute becomes a list of all IDs that are equal to it. Defaults to false.
  ///   - replacement: Returns the new ID, given an ID and the entity of the objects with which it is compared.
  func replacingIDs(
    _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel, namesAll: Bool = false,
    _ replacement: (ManagedObjectID, ManagedObjectModel.Entity) -> ManagedObjectID
  ) -> QueryExpression {
    if !mentionsIDs { return self }
    return withoutActuallyEscaping(replacement) {
      ObjectIDs(model: model, namesAll: namesAll, replacement: $0).replaced(self, entity)
    }
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
  let namesAll: Bool
  let replacement: (ManagedObjectID, ManagedObjectModel.Entity) -> ManagedObjectID

  func replaced(_ expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> QueryExpression {
    switch expression {
    case .comparison(let left, let op, let right, let folding):
      if let named = named(left, op, right, entity) ?? named(right, op, left, entity) { return named }
      return .comparison(replaced(left, comparedWith: right, entity), op, replaced(right, comparedWith: left, entity), folding)
    case .membership(let value, let list):
      guard let target = target(of: value, entity) else { return .membership(replaced(value, entity), named(list, value)) }
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

  /// The comparison of an attribute with all IDs that are equal to a constant; nil if it is no such comparison, or there are no others.
  private func named(
    _ value: QueryExpression, _ op: ComparisonOperator, _ constant: QueryExpression, _ entity: ManagedObjectModel.Entity
  ) -> QueryExpression? {
    guard namesAll, case .constant(.objectID(let id)) = constant, op == .equalTo || op == .notEqualTo, case .property = value,
      target(of: value, entity) == nil
    else { return nil }
    let list = named([.objectID(id)], value)
    if list.count == 1 { return nil }
    return op == .equalTo ? .membership(value, list) : .not(.membership(value, list))
  }

  /// A list with which an attribute is compared, with all IDs that are equal to those in it.
  private func named(_ list: [StoreValue], _ value: QueryExpression) -> [StoreValue] {
    guard namesAll, case .property = value else { return list }
    // Most IDs of a list are of one entity.
    var last: [ManagedObjectID] = []
    return list.flatMap { element -> [StoreValue] in
      guard case .objectID(let id) = element else { return [element] }
      let isOfLast = last.contains { $0.entityNumber == id.entityNumber && $0.storeNumber == id.storeNumber }
      if !isOfLast { last = id.equalIDs }
      return last.map { .objectID($0.withKey(id.key)) }
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
    // Without a list of all names, which would be allocated.
    guard let first = entity.relationship(named: path.first) else { return nil }
    var current = model.destination(of: first)
    for name in path.rest {
      guard let relationship = current.relationship(named: name) else { return nil }
      current = model.destination(of: relationship)
    }
    return current
  }
}
