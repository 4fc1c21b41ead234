import HoldfastStore

extension TableGeneration {
  /// The objects that differ from an older generation, which may have been loaded separately. Nil if there are more than a limit.
  ///
  /// Takes time proportional to the number of rows, if the generations share no pages.
  func change(since old: TableGeneration, atMost limit: Int) -> StoreChange? {
    var change = StoreChange(), count = 0
    for entity in schema.model.entities where !entity.isAbstract {
      let prefix = schema.prefixes[entity.index], derived = entity.derivedAttributes.map(\.slot)
      forEachChange(since: old, of: entity.index, keys: TableLoader.keys) { before, after in
        if let before, let after {
          if before.version == after.version && after.hasSameValues(as: before, in: derived, entity.layout.kinds) { return }
          change.updated.append(prefix.withKey(after.key))
        } else if let after {
          change.inserted.append(prefix.withKey(after.key))
        } else if let before {
          change.deleted.append(prefix.withKey(before.key))
        }
        count += 1
      }
      if count > limit { return nil }
    }
    // A new owner takes an object from its former one, whose row doesn't change.
    for relationship in schema.model.entities.flatMap(\.ownRelationships) where relationship.hasTargetsToItself {
      let known = Set(change.inserted + change.updated)
      change.updated += ownersWithOtherTargets(relationship, since: old).filter { !known.contains($0) }
    }
    return change
  }

  private func ownersWithOtherTargets(_ relationship: ManagedObjectModel.Relationship, since old: TableGeneration) -> [ManagedObjectID] {
    var former: [ObjectKey: [ObjectKey]] = [:], owners: [ObjectKey] = []
    old.forEachTargets(of: relationship, sources: TableLoader.keys) { former[$0] = Array($1) }
    forEachTargets(of: relationship, sources: TableLoader.keys) { owner, targets in
      if former.removeValue(forKey: owner).map({ targets.elementsEqual($0) }) != true { owners.append(owner) }
    }
    let table = table(of: relationship.entityIndex)
    return (owners + former.keys.sorted()).compactMap { owner in
      let location = table.location(owner)
      return location.isNone ? nil : schema.prefixes[table.entity(location)].withKey(owner)
    }
  }
}
