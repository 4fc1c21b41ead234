import HoldfastStore

/// Converts object IDs of a recorded store for the recording.
///
/// In the recording, they have the UUID ``storeUUID`` and a number as key, even if the store has text identifiers.
struct RecordedIDs: Sendable {
  static let storeUUID = "RECORDED"
  private let model: ManagedObjectModel
  private let storeNumber: UInt32
  private let identity: StoreIdentity

  init(_ model: ManagedObjectModel, storeNumber: UInt32) {
    self.model = model
    self.storeNumber = storeNumber
    identity = .intern(storeUUID: RecordedIDs.storeUUID, model: model)
  }

  /// Returns the ID in the recording. IDs of other stores don't change.
  ///
  /// A temporary ID matches no row and can't be encoded. It is replaced by the ID with key 0, which no row has, either.
  func id(_ id: ManagedObjectID) -> ManagedObjectID {
    guard id.storeNumber == storeNumber || id.isTemporaryID, let entity = model.entity(named: id.entityName) else { return id }
    return identity.objectID(entity: entity, key: max(id.key, 0))
  }
}

extension StoreValue {
  func mappingIDs(_ map: (ManagedObjectID) -> ManagedObjectID) -> StoreValue {
    if case .objectID(let id) = self { .objectID(map(id)) } else { self }
  }
}

extension QueryExpression {
  /// Whether a constant is an object ID.
  private var hasIDs: Bool {
    func isID(_ value: StoreValue) -> Bool { if case .objectID = value { true } else { false } }
    return contains { part in
      switch part {
      case .constant(let value): isID(value)
      case .between(_, let lower, let upper): isID(lower) || isID(upper)
      case .membership(_, let list): list.contains(where: isID)
      default: false
      }
    }
  }

  /// Returns the expression with other object IDs.
  func mappingIDs(_ map: (ManagedObjectID) -> ManagedObjectID) -> QueryExpression { hasIDs ? mapped(map) : self }

  private func mapped(_ map: (ManagedObjectID) -> ManagedObjectID) -> QueryExpression {
    switch self {
    case .constant(let value): .constant(value.mappingIDs(map))
    case .property, .object, .count, .literal: self
    case .remainder(let part, let divisor): .remainder(part.mapped(map), divisor)
    case .comparison(let left, let op, let right, let folding): .comparison(left.mapped(map), op, right.mapped(map), folding)
    case .between(let part, let lower, let upper): .between(part.mapped(map), lower.mappingIDs(map), upper.mappingIDs(map))
    case .membership(let part, let list): .membership(part.mapped(map), list.map { $0.mappingIDs(map) })
    case .and(let parts): .and(parts.map { $0.mapped(map) })
    case .or(let parts): .or(parts.map { $0.mapped(map) })
    case .not(let part): .not(part.mapped(map))
    case .any(let path, let part): .any(path, part.mapped(map))
    case .all(let path, let part): .all(path, part.mapped(map))
    }
  }
}

extension FetchPlan {
  /// Returns the plan with other object IDs in its predicate.
  func mappingIDs(_ map: (ManagedObjectID) -> ManagedObjectID) -> FetchPlan {
    var plan = self
    plan.predicate = predicate?.mappingIDs(map)
    return plan
  }
}

extension SaveRequest {
  /// Returns the request with other object IDs in its attributes.
  func mappingIDs(_ map: (ManagedObjectID) -> ManagedObjectID) throws -> SaveRequest {
    var request = self
    for index in request.entities.indices {
      request.entities[index].inserted = try entities[index].inserted.map { try $0.mappingIDs(map) }
      for part in entities[index].updated.indices {
        request.entities[index].updated[part].rows = try entities[index].updated[part].rows.mappingIDs(map)
      }
      for part in entities[index].derived.indices {
        request.entities[index].derived[part].rows = try entities[index].derived[part].rows.mappingIDs(map)
      }
    }
    return request
  }
}

extension RowBatch {
  /// Returns the rows with other object IDs in their attributes. Keys don't change.
  func mappingIDs(_ map: (ManagedObjectID) -> ManagedObjectID) throws -> RowBatch {
    guard layout.columns.contains(.attribute(.objectID)) else { return self }
    let builder = RowBatchBuilder(layout: layout, idPrefix: idPrefix)
    for index in 0..<count {
      let row = pointer(index)
      let values = layout.slots.map { row.value($0, layout.columns[$0]).mappingIDs(map) }
      try builder.append(key: row.key, version: row.version, values: values)
    }
    return builder.seal()
  }
}
