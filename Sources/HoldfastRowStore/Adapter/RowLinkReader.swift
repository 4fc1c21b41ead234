/// Finds the destinations of a to-many relationship in a snapshot of a row store.
struct RowLinkReader<Store: RowStore> {
  private let store: Store
  private let snapshot: Store.Snapshot
  private let model: ManagedObjectModel
  private let options: RequestOptions

  /// A destination of a source, with its entity if a row contains the link.
  private struct Target {
    var key: ObjectKey
    var entity: EntityIndex?
  }

  init(_ store: Store, _ snapshot: Store.Snapshot, _ model: ManagedObjectModel, _ options: RequestOptions) {
    self.store = store
    self.snapshot = snapshot
    self.model = model
    self.options = options
  }

  func answer(_ relationship: ManagedObjectModel.Relationship, _ sources: [ObjectKey]) throws -> RelationshipAnswer {
    let existing = try existingKeys(model.entities[relationship.entityIndex], Set(sources))
    let wanted = Set(existing.keys)
    var targets = try relationship.isManyToMany ? linked(relationship, wanted) : pointing(relationship, wanted)
    let orders = relationship.isOrdered ? try orderKeys(relationship, wanted) : [:]
    if relationship.isManyToMany { try addEntities(to: &targets, model.entities[relationship.destinationIndex]) }
    var offsets: [Int32] = [0], keys: [ObjectKey] = [], entities: [EntityIndex] = [], orderKeys: [Int64] = []
    for source in sources {
      for target in targets[source] ?? [] {
        keys.append(target.key)
        entities.append(target.entity ?? relationship.destinationIndex)
        orderKeys.append(orders[SaveRequest.Link(source: source, target: target.key)] ?? .max)
      }
      offsets.append(Int32(keys.count))
    }
    let isUniform = entities.allSatisfy { $0 == relationship.destinationIndex }
    return RelationshipAnswer(
      offsets: offsets, targets: keys, entities: isUniform ? nil : entities, orderKeys: relationship.isOrdered ? orderKeys : nil)
  }

  /// The entities of the objects that exist, by key.
  private func existingKeys(_ entity: ManagedObjectModel.Entity, _ keys: Set<ObjectKey>) throws -> [ObjectKey: EntityIndex] {
    var query = RowQuery(model.concreteEntities(of: entity), of: entity, options: options)
    query.keys = keys
    var found: [ObjectKey: EntityIndex] = [:]
    try store.forEachRow(query, in: snapshot) { row, entity in
      found[row.key] = entity.index
      return .more
    }
    return found
  }

  /// The destinations whose to-one relationship references the sources.
  private func pointing(_ relationship: ManagedObjectModel.Relationship, _ sources: Set<ObjectKey>) throws -> [ObjectKey: [Target]] {
    guard let inverse = model.inverse(of: relationship) else { return [:] }
    let entity = model.entities[inverse.entityIndex]
    var query = RowQuery(model.concreteEntities(of: entity), of: entity, options: options)
    query.references = RowQuery.References(slot: inverse.slot, keys: sources)
    var targets: [ObjectKey: [Target]] = [:]
    try store.forEachRow(query, in: snapshot) { row, entity in
      if let source = row.target(in: inverse.slot) { targets[source, default: []].append(Target(key: row.key, entity: entity.index)) }
      return .more
    }
    return targets
  }

  /// The destinations in links, from either side.
  private func linked(_ relationship: ManagedObjectModel.Relationship, _ sources: Set<ObjectKey>) throws -> [ObjectKey: [Target]] {
    var targets: [ObjectKey: [Target]] = [:]
    if relationship.storesLinks {
      for link in try links(relationship, sources: sources) { targets[link.source, default: []].append(Target(key: link.target)) }
    } else if let inverse = model.inverse(of: relationship) {
      for link in try links(inverse, targets: sources) { targets[link.target, default: []].append(Target(key: link.source)) }
    }
    return targets
  }

  private func links(
    _ relationship: ManagedObjectModel.Relationship, sources: Set<ObjectKey>? = nil, targets: Set<ObjectKey>? = nil
  ) throws -> [StoredLink] {
    let query = LinkQuery(relationship: model.linkName(relationship), sources: sources, targets: targets, options: options)
    return try store.selectedLinks(query, in: snapshot)
  }

  private func orderKeys(_ relationship: ManagedObjectModel.Relationship, _ sources: Set<ObjectKey>) throws -> [SaveRequest.Link: Int64] {
    let links = try links(relationship, sources: sources)
    return Dictionary(
      links.map { (SaveRequest.Link(source: $0.source, target: $0.target), $0.order) }, uniquingKeysWith: { first, _ in first })
  }

  /// Looks up the concrete entities of linked objects, if there can be several.
  private func addEntities(to targets: inout [ObjectKey: [Target]], _ destination: ManagedObjectModel.Entity) throws {
    if destination.familyIndexes.count == 1 { return }
    let entities = try existingKeys(destination, Set(targets.values.joined().map(\.key)))
    for source in Array(targets.keys) {
      targets[source] = targets[source]?.map { Target(key: $0.key, entity: entities[$0.key]) }
    }
  }
}
