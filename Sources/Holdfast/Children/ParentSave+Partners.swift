import HoldfastStore

/// Reads what the commit needs at the other ends of changed links, before the commit.
extension ParentSave {
  /// Reads the ends of changed links that the commit needs, and ordered lists, so that the commit reads nothing.
  func readPartners(_ options: RequestOptions) throws {
    let all = ends, new = all.isEmpty ? [:] : insertedKeys
    let saved = all.filter { new[parent.graph.entities[$0.entity].root]?.contains($0.key) != true }
    try readFamilies(saved, options)
    partners = saved.filter(\.isPartner).compactMap { parent.target($0.entity, $0.key) }
    objects += partners
    try parent.fire(together: ContiguousArray(partners.filter(\.isFault)), options)
    try parent.refusingFaultErrors {
      for changes in request.orders {
        let relationship = parent.entities[changes.entity].relationships[changes.relationship]
        for source in Set(changes.links.map(\.source)) {
          guard let object = parent.registered(relationship.entityIndex, source) else { continue }
          _ = object.orderedList(relationship.toManyIndex)
        }
      }
    }
  }

  /// Creates objects whose entities only their rows determine. Otherwise the commit would send a request for each of them.
  private func readFamilies(_ ends: [End], _ options: RequestOptions) throws {
    var keys: [EntityIndex: Set<ObjectKey>] = [:]
    for end in ends where hasSubentities(end.entity) { keys[end.entity, default: []].insert(end.key) }
    // Faults of superentities leave the parent if their rows are of subentities. They couldn't record the links.
    let known = Set(keys.flatMap { entity, keys in keys.compactMap { parent.registered(entity, $0) } })
    let faults = known.filter { $0.isFault && !$0.isDeleted && hasSubentities($0.flags.entityIndex) }
    try parent.fire(together: ContiguousArray(faults), options)
    try parent.throwingFaultErrors {
      for (entity, keys) in keys.sorted(by: { $0.key < $1.key }) {
        for window in keys.sorted().windows(of: RowGroup.size) {
          parent.readAhead(entity, window)
          objects += window.compactMap { parent.target(entity, $0) }
        }
      }
    }
  }

  private func hasSubentities(_ entity: EntityIndex) -> Bool { parent.graph.entities[entity].family.count > 1 }

  /// An object at an end of a changed link.
  private struct End {
    let entity: EntityIndex
    let key: ObjectKey
    /// Whether the relationship is one-to-one, so that the object's row contains the link, too.
    var isPartner = false
  }

  /// The ends of changed links that the commit reads: it needs more than their keys.
  ///
  /// These are the new and the former destinations of one-to-one relationships, and objects of entities with subentities.
  private var ends: [End] {
    var ends: [End] = []
    for changes in request.entities {
      for relationship in parent.entities[changes.entity].relationships where !relationship.isToMany {
        let slot = relationship.slot, isPair = parent.graph.entities[changes.entity].toOne[slot].inverseSlot >= 0
        if !isPair && !hasSubentities(relationship.destinationIndex) { continue }
        func add(_ row: RowPointer) {
          if let key = row.destinationKey(slot) { ends.append(End(entity: relationship.destinationIndex, key: key, isPartner: isPair)) }
        }
        for batch in changes.inserted { for place in 0..<batch.count { add(batch.pointer(place)) } }
        for updated in changes.updated {
          for place in 0..<updated.rows.count where updated.isChanged(row: place, slot: slot) {
            add(updated.rows.pointer(place))
            if let former = parent.registered(changes.entity, updated.rows.pointer(place).key)?.row { add(former) }
          }
        }
      }
    }
    for changes in request.links {
      let relationship = parent.entities[changes.entity].relationships[changes.relationship]
      let (source, target) = (relationship.entityIndex, relationship.destinationIndex)
      if hasSubentities(source) { ends += (changes.added + changes.removed).map { End(entity: source, key: $0.source) } }
      if hasSubentities(target) { ends += (changes.added + changes.removed).map { End(entity: target, key: $0.target) } }
    }
    for link in removedLinks where hasSubentities(link.relationship.destinationIndex) {
      ends.append(End(entity: link.relationship.destinationIndex, key: link.target))
    }
    return ends
  }

  /// The keys of new objects by root entity.
  private var insertedKeys: [EntityIndex: Set<ObjectKey>] {
    var keys: [EntityIndex: Set<ObjectKey>] = [:]
    for changes in request.entities {
      let root = parent.graph.entities[changes.entity].root
      for batch in changes.inserted { keys[root, default: []].formUnion(batch.keys) }
    }
    return keys
  }
}
