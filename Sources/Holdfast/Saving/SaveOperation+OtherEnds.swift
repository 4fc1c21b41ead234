import HoldfastStore

/// Finds the objects whose relationships lose deleted objects, for the notifications of a save.
///
/// The store removes these links itself, so the context may not have read the objects. They are found through the rows and links of the
/// deleted objects, only when a notification will be sent. This takes at most one request for each to-many relationship and 1,024 deleted
/// objects. Owners of relationships without an inverse are found by a fetch. Children find deleted objects in their lists themselves, but
/// not those that another owner has taken.
extension SaveOperation {
  func findOtherEnds() throws {
    let isHeard = self.isHeard
    let hasChildren = context.children.map { !$0.isEmpty } ?? false
    for part in parts { part.namesOtherEnds = isHeard }
    if !isHeard && !hasChildren { return }
    for part in parts { part.otherEnds = try (isHeard ? otherEnds(part.deleted) : []) + ownersWithoutInverse(part) }
  }

  /// The owners of to-many relationships without an inverse that lose an object. Only a fetch can find them.
  ///
  /// They lose deleted objects, and objects that are added to another owner.
  private func ownersWithoutInverse(_ part: StoreChanges) throws -> [ManagedObjectID] {
    var lost: [ManagedObjectModel.Relationship: Set<ObjectKey>] = [:]
    for object in part.deleted {
      for relationship in object.entity.linksWithoutInverse { lost[relationship, default: []].insert(object.objectKey) }
    }
    for changes in part.request.links {
      let relationship = context.entities[changes.entity].relationships[changes.relationship]
      if relationship.hasTargetsToItself { lost[relationship, default: []].formUnion(changes.added.lazy.map(\.target)) }
    }
    return try lost.flatMap { relationship, targets -> [ManagedObjectID] in
      var owners: Set<ObjectKey> = []
      try part.fetchOwners(of: targets, relationship).forEach { batch, index in owners.insert(batch.pointer(index).key) }
      return try context.existingIDs(relationship.entityIndex, owners)
    }
  }

  private func otherEnds(_ deleted: ContiguousArray<ManagedObject>) throws -> [ManagedObjectID] {
    var byEntity: [EntityIndex: [ManagedObject]] = [:]
    for object in deleted { byEntity[object.flags.entityIndex, default: []].append(object) }
    var keys: [EntityIndex: Set<ObjectKey>] = [:]
    for (entity, objects) in byEntity.sorted(by: { $0.key < $1.key }) {
      for relationship in context.entities[entity].relationships where context.graph.model.inverse(of: relationship) != nil {
        keys[relationship.destinationIndex, default: []].formUnion(try targets(of: objects, relationship))
      }
    }
    return try keys.sorted { $0.key < $1.key }.flatMap { try context.existingIDs($0.key, $0.value) }
  }

  /// The keys of the objects that a relationship of deleted objects referenced in the store.
  private func targets(of objects: [ManagedObject], _ relationship: ManagedObjectModel.Relationship) throws -> [ObjectKey] {
    if !relationship.isToMany {
      return objects.compactMap { $0.committedRow?.destinationKey(relationship.slot) }
    }
    let request = RelationshipRequest(
      entity: relationship.entityIndex, relationship: relationship.index, sources: objects.map(\.objectKey).sorted())
    var found: [ObjectKey] = []
    let reader = StoreReader(coordinator.storeSet, .latest, options)
    defer { reader.end() }
    try reader.relationships(request) { found += $1 }
    return found
  }
}

extension ContextCore {
  /// The IDs of saved objects, sorted by key, without deleted ones.
  ///
  /// For an entity with subentities, it reads the rows of unregistered objects to find their entities.
  func existingIDs(_ entity: EntityIndex, _ keys: some Sequence<ObjectKey>) throws -> [ManagedObjectID] {
    let existing = keys.filter { $0 >= 0 && !isDeleted(entity, $0) }.sorted()
    if graph.entities[entity].family.count == 1 { return existing.map { objectID(entity, $0) } }
    let entities = try storedEntities(of: existing.filter { registered(entity, $0) == nil }, entity, requests.ofOthers)
    return existing.compactMap { key in registered(entity, key)?.id ?? entities[key].map { objectID($0, key) } }
  }

  /// The concrete entities of stored objects. Reads their rows: one request for each 1,024 objects.
  ///
  /// Without a save, a pinned context has the objects of its generation.
  ///
  /// - Parameter keys: The keys of objects of an entity and its subentities, ascending.
  func storedEntities(of keys: [ObjectKey], _ entity: EntityIndex, _ options: RequestOptions) throws -> [ObjectKey: EntityIndex] {
    var entities: [ObjectKey: EntityIndex] = [:]
    for window in keys.windows(of: RowGroup.size) {
      let rows = try persistentStoreCoordinator.rows(FaultRequest(entity: entity, keys: Array(window)), in: pinnedStores(), options)
      try rows.forEach { batch, index in
        entities[batch.pointer(index).key] = try persistentStoreCoordinator.checkedEntityIndex(of: batch)
      }
    }
    return entities
  }
}

extension StoreChanges {
  /// Fetches the stored objects whose relationship references one of some objects. Without an inverse, only a fetch can find them.
  func fetchOwners(of targets: some Sequence<ObjectKey>, _ relationship: ManagedObjectModel.Relationship) throws -> RowCollector {
    let entity = context.entities[relationship.entityIndex], path = PropertyPath(relationship.name), collector = RowCollector()
    for keys in targets.filter({ $0 >= 0 }).sorted().windows(of: StoreChanges.maximumListCount) {
      let ids = keys.map { StoreValue.objectID(store.prefixes[relationship.destinationIndex].withKey($0)) }
      let predicate = relationship.isToMany ? QueryExpression.any(path, .membership(.object, ids)) : .membership(.property(path), ids)
      try collector.append(fetched(FetchQuery(entity: entity, predicate: predicate, options: options)))
    }
    return collector
  }

  /// The rows of one request. The coordinator repeats a request in another form only while it hasn't delivered any row.
  func fetched(_ query: FetchQuery) throws -> RowCollector {
    let rows = RowCollector()
    try coordinator.fetch(query, from: store, into: rows)
    return rows
  }

  /// The maximum number of keys in a list of a predicate.
  private static let maximumListCount = 4096

  /// The objects that a reader of the store sees changed by the save, without new and deleted ones.
  ///
  /// These are objects whose rows were written, owners of changed to-many relationships, objects that lost a deleted object, and objects
  /// with changed derived attributes.
  func updatedIDs() -> [ManagedObjectID] {
    let rows = Set(published.lazy.flatMap(\.objects).map { ObjectIdentifier($0) })
    var ids = updated.filter { rows.contains(ObjectIdentifier($0)) || changesTargets($0) }.map(\.id)
    var known = Set(ids).union(inserted.lazy.map { self.savedID($0) })
    for id in otherEnds where known.insert(id).inserted { ids.append(id) }
    for (entity, keys) in derived?.refreshed ?? [] {
      for key in keys where known.insert(context.objectID(entity, key)).inserted { ids.append(context.objectID(entity, key)) }
    }
    return ids
  }

  /// The ID that an object has after the save.
  func savedID(_ object: ManagedObject) -> ManagedObjectID {
    context.objectID(object.flags.entityIndex, permanent(object.objectKey))
  }

  /// Whether the destinations of a to-many relationship change. Objects that aren't saved are ignored.
  private func changesTargets(_ object: ManagedObject) -> Bool {
    guard let states = object.toMany else { return false }
    return object.entity.toManyRelationships.contains { relationship in
      let state = states[relationship.toManyIndex], destination = relationship.destinationIndex
      // New objects that are deleted aren't saved, and can have permanent keys.
      return state.isMoved || !state.removed.isEmpty || state.added.contains { permanent($0) >= 0 && !context.isDeleted(destination, $0) }
    }
  }
}
