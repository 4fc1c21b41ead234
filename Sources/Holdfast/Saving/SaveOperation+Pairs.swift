import HoldfastStore

/// A one-to-one relationship is stored in two rows. Both must agree when they are saved, whenever each was read.
extension SaveOperation {
  /// Updates the other ends of changed one-to-one relationships. Usually they are consistent already.
  ///
  /// They aren't when an end was read before another context or process linked it, or when its unsaved change outlasts another save.
  func completePairs() throws {
    guard context.graph.hasPairs else { return }
    // Others may have deleted a former partner. Its version is compared, so this is a conflict, which a policy can resolve.
    try context.throwingFaultErrors {
      // The list grows during the loop.
      var place = 0
      while place < context.changes.objects.count {
        let object = context.changes.objects[place]
        place += 1
        if object.isDeleted || !object.flags.contains(.hasPrivateRow) { continue }
        for link in context.graph.pairs[object.flags.entityIndex] { complete(object, link) }
      }
    }
  }

  private func complete(_ object: ManagedObject, _ link: LinkPlan) {
    let ends = StoreChanges.changedEnds(of: object, link)
    for (key, isLinked) in [(ends.before, false), (ends.now, true)] {
      guard let key, let partner = context.formerTarget(link.destination, key) else { continue }
      partner.follow(link, of: object, isLinked: isLinked)
      // Keeps the object alive: the request needs its version.
      partners.append(partner)
    }
  }
}

extension StoreChanges {
  /// The keys that a one-to-one relationship referenced when it was read or saved, and references now; none when it is unchanged.
  static func changedEnds(of object: ManagedObject, _ link: LinkPlan) -> (before: ObjectKey?, now: ObjectKey?) {
    let now = object.row?.destinationKey(link.slot), before = object.isInserted ? nil : object.committedRow?.destinationKey(link.slot)
    return now == before ? (nil, nil) : (before, now)
  }

  /// Makes the store compare the versions of unchanged other ends of changed one-to-one relationships.
  ///
  /// As far as this context knows, they are consistent. If another context or process has changed one, the save would link only one end.
  ///
  /// Also compares the versions of objects that the program passed to `detectConflicts(for:)`.
  func lockUnchangedObjects() {
    guard context.graph.hasPairs || !context.merging.locked.isEmpty else { return }
    var saved = savedKeys(), locked: [EntityIndex: SaveRequest.KeyedRows] = [:]
    func lock(_ object: ManagedObject) {
      let entity = object.flags.entityIndex
      if !saved[context.graph.entities[entity].root, default: []].insert(object.objectKey).inserted { return }
      locked[entity, default: .init()].keys.append(object.objectKey)
      locked[entity, default: .init()].expectedVersions.append(object.committedRow?.version ?? 0)
    }
    for object in context.merging.locked
    where object.isLockable && coordinator.storeSet.store(ofKey: object.objectKey) === store { lock(object) }
    for object in inserted + updated where object.flags.contains(.hasPrivateRow) {
      for link in context.graph.pairs[object.flags.entityIndex] {
        let ends = StoreChanges.changedEnds(of: object, link), destination = link.destination
        for key in [ends.before, ends.now].compactMap({ $0 }) where key >= 0 {
          guard let partner = context.registered(destination, key), partner !== object, !partner.isDeleted && !partner.isInserted else {
            continue
          }
          lock(partner)
        }
      }
    }
    for (entity, rows) in locked.sorted(by: { $0.key < $1.key }) { add(rows, entity) }
  }

  /// The keys of rows whose versions are compared anyway, by root entity.
  private func savedKeys() -> [EntityIndex: Set<ObjectKey>] {
    var keys: [EntityIndex: Set<ObjectKey>] = [:]
    for changes in request.entities {
      let root = context.graph.entities[changes.entity].root
      for updated in changes.updated { keys[root, default: []].formUnion(updated.rows.keys) }
      keys[root, default: []].formUnion(changes.deleted.keys)
    }
    return keys
  }

  private func add(_ locked: SaveRequest.KeyedRows, _ entity: EntityIndex) {
    let order = locked.keys.indices.sorted { locked.keys[$0] < locked.keys[$1] }
    let place = request.place(of: entity)
    request.entities[place].locked.keys = order.map { locked.keys[$0] }
    request.entities[place].locked.expectedVersions = order.map { locked.expectedVersions[$0] }
  }
}
