import HoldfastStore

/// Copies of values reached through to-one relationships.
extension Deriving {
  /// Computes a copy for changed objects, and for objects whose path goes through a changed object.
  func follow(_ path: DerivationPlan.Path) throws {
    let led = try objectsLed(by: path)
    var keys = led.filter { savedObject(path.entity.index, $0)?.isDeleted != true }
    for object in savedObjects(of: path.entity.index) where isConcerned(object, path) { keys.insert(object.objectKey) }
    if keys.isEmpty { return }
    try stored.read(root: path.entity.rootIndex, keys.filter { savedObject(path.entity.index, $0) == nil })
    for (key, value) in try values(of: keys, path) { change(path, key, value) }
  }

  private func change(_ path: DerivationPlan.Path, _ key: ObjectKey, _ value: StoreValue) {
    if !isNew(path.entity.index, key) {
      guard let found = stored.row(root: path.entity.rootIndex, key), path.entity.familyIndexes.contains(found.entity) else { return }
      if found.row.value(path.attribute.slot, .attribute(path.attribute.type)) == value { return }
    }
    values.changes[path.number][key] = DerivedValues.Change(value: value, added: nil)
  }

  /// Whether the copy of a changed object must be recomputed.
  ///
  /// It must be if the object is new, if its relationship changed, or if the copy was set or is missing.
  private func isConcerned(_ object: ManagedObject, _ path: DerivationPlan.Path) -> Bool {
    guard let new = after(object) else { return false }
    guard let old = before(object) else { return true }
    let layout = object.entity.layout, first = path.hops[0].slot
    return Deriving.differ(old, new, first, layout) || Deriving.differ(old, new, path.attribute.slot, layout)
      || new.isPresent(first) && stored.row(root: path.entity.rootIndex, object.objectKey)?.row.isPresent(path.attribute.slot) == false
  }

  // MARK: Backwards

  /// The stored objects whose path goes through a changed value.
  private func objectsLed(by path: DerivationPlan.Path) throws -> Set<ObjectKey> {
    var keys: Set<ObjectKey> = [], again: Set<ObjectKey> = []
    for depth in path.hops.indices.reversed() {
      let slot = depth + 1 < path.hops.count ? path.hops[depth + 1].slot : path.source.slot
      again.removeAll()
      for object in savedObjects(of: path.hops[depth].destinationIndex) {
        // Objects can still reference one that is inserted again. Stores don't return the destinations of a missing object.
        if object.isInsertedAgain { again.insert(object.objectKey) }
        guard let old = before(object) else { continue }
        if after(object).map({ Deriving.differ(old, $0, slot, object.entity.layout) }) ?? true { keys.insert(object.objectKey) }
      }
      keys = try sources(of: keys, path.hops[depth]).union(fetchSources(of: again.sorted(), path.hops[depth]))
    }
    return keys
  }

  /// The stored objects whose to-one relationship references one of some keys.
  private func sources(of keys: Set<ObjectKey>, _ hop: ManagedObjectModel.Relationship) throws -> Set<ObjectKey> {
    let sorted = keys.filter { $0 >= 0 }.sorted()
    if sorted.isEmpty { return [] }
    var found: Set<ObjectKey> = []
    guard let inverse = part.coordinator.model.inverse(of: hop) else { return try fetchSources(of: sorted, hop) }
    if inverse.isToMany {
      let request = RelationshipRequest(entity: inverse.entityIndex, relationship: inverse.index, sources: sorted)
      try reader.relationships(request) { found.formUnion($1) }
    } else {
      let destination = hop.destinationIndex
      try stored.read(root: root(destination), sorted)
      for key in sorted { if let source = storedRow(destination, key)?.destinationKey(inverse.slot) { found.insert(source) } }
    }
    return found
  }

  /// The stored objects whose to-one relationship references one of some keys, found by a fetch. Their rows are read.
  func fetchSources(of keys: [ObjectKey], _ hop: ManagedObjectModel.Relationship) throws -> Set<ObjectKey> {
    try Set(stored.take(part.fetchOwners(of: keys, hop)))
  }

  // MARK: Forwards

  /// The values of the path for some objects after the save.
  private func values(of keys: Set<ObjectKey>, _ path: DerivationPlan.Path) throws -> [ObjectKey: StoreValue] {
    var (ends, entity) = (Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) }), path.entity.index)
    for hop in path.hops {
      ends = ends.compactMapValues { rowAfter(entity, $0)?.destinationKey(hop.slot) }
      entity = hop.destinationIndex
      try stored.read(root: root(entity), ends.values.filter { savedObject(entity, $0) == nil })
    }
    var found: [ObjectKey: StoreValue] = [:]
    for key in keys { found[key] = path.value(ends[key].flatMap { rowAfter(entity, $0) }) }
    return found
  }
}
