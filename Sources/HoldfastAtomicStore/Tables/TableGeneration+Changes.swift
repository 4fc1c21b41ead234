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

  /// The generation of a file that was edited by hand or restored, in which each row that differs has a higher version than in a generation
  /// that was loaded before.
  ///
  /// An edit changes values and mostly no versions. A context that read the row before would overwrite it, and wouldn't refresh the object.
  /// An unchanged row keeps the version of that generation, which may result from reading the same edit before.
  ///
  /// - Parameter isOlder: Whether the file is an older version. Then the links of a row with a lower version may differ.
  func countingEdits(since old: TableGeneration, isOlder: Bool) throws -> TableGeneration {
    var request = SaveRequest()
    for entity in schema.model.entities where !entity.isAbstract {
      let derived = entity.derivedAttributes.map(\.slot), builder = RowBatchBuilder(entity: entity, identity: schema.identity)
      // No slot is marked as changed: only the versions are.
      let words = (entity.layout.slots.count + 63) / 64
      var changes = SaveRequest.EntityChanges(entity: entity.index), versions: [RowVersion] = []
      func endPage() {
        if versions.isEmpty { return }
        let none = [UInt64](repeating: 0, count: words * versions.count)
        changes.updated.append(
          SaveRequest.UpdatedRows(rows: builder.seal(), expectedVersions: versions, changedSlots: none, wordsPerRow: words))
        versions = []
      }
      forEachChange(since: old, of: entity.index, keys: TableLoader.keys) { before, after in
        guard let before, let after, after.version <= before.version else { return }
        let isSame = after.hasSameValues(as: before, entity.layout, butFor: derived)
        if isSame && after.version == before.version { return }
        builder.append(after, key: after.key, version: isSame && !isOlder ? before.version : before.version.next)
        versions.append(after.version)
        if builder.isFull { endPage() }
      }
      endPage()
      if !changes.updated.isEmpty { request.entities.append(changes) }
    }
    return request.entities.isEmpty ? self : try TableSave.next(request, after: self)
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
