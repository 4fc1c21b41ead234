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
    return change
  }
}
