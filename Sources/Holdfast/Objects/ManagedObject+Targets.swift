import HoldfastStore

/// The keys of a to-many relationship's destinations, from memory or from the store.
extension ManagedObject {
  /// The keys of a to-many relationship's destinations, read if they aren't in memory. Includes objects being deleted; callers filter them.
  ///
  /// - Parameter readsTargets: Whether the caller is about to read the destinations themselves.
  final func targets(_ index: Int, readsTargets: Bool = false) -> TargetKeys {
    if let toMany, toMany[index].isKnown { return .list(toMany[index].keys) }
    if index < 0 { return transientTargets(index) }
    // The object may change the list while it is awakened.
    _ = readRow
    if isInaccessible { return .list([]) }
    if let toMany, toMany[index].base != .untouched { return context.holdingAwakening { ownTargets(toMany, index, readsTargets) } }
    return isInserted ? .list([]) : storedTargets(index, readsTargets) ?? .list([])
  }

  /// The keys of a to-many relationship's destinations, with recorded changes. Awakening is held, because awakened objects can make this
  /// one a fault, or change the list.
  private func ownTargets(_ states: ToManyStates, _ index: Int, _ readsTargets: Bool) -> TargetKeys {
    if !states[index].isKnown {
      // Keys that the store can't return now stay unknown, and recorded changes are kept.
      if plan.toMany[index].isOrdered {
        guard orderedList(index) != nil else { return .list([]) }
      } else {
        guard let stored = storedTargets(index, readsTargets) else { return .list([]) }
        fire(index, stored.withKeys { LinkList(copying: $0) })
      }
    }
    return .list(states[index].keys)
  }

  /// The number of keys of a to-many relationship's destinations; as ``targets(_:readsTargets:)``, without copying a list.
  final func targetCount(_ index: Int) -> Int {
    if let toMany, toMany[index].isKnown { return Int(toMany[index].contents.count) }
    return targets(index).count
  }

  /// The keys of a to-many relationship's destinations, as ``targets(_:readsTargets:)``. Of a list in memory, which would be copied, only
  /// the first ones, beginning with one that isn't being deleted.
  final func leadingTargets(_ index: Int, readsTargets: Bool = false) -> TargetKeys {
    guard let toMany, toMany[index].isKnown, toMany[index].order == nil else { return targets(index, readsTargets: readsTargets) }
    let context = self.context, destination = plan.toMany[index].destination, hasDeleted = context.hasDeleted(destination)
    return toMany[index].contents.withKeys { keys in
      let start = hasDeleted ? keys.firstIndex { !context.isDeleted(destination, $0) } ?? keys.count : 0
      return .list(Array(keys[start..<min(start + RowGroup.size, keys.count)]))
    }
  }

  /// Whether a to-many relationship's destinations include a key. A list in memory has an index.
  final func hasTarget(_ index: Int, _ key: ObjectKey) -> Bool {
    if let toMany, toMany[index].isKnown { return toMany[index].contents.contains(key) }
    return targets(index).withKeys { $0.contains(key) }
  }

  /// Sets the destinations from the store's answer.
  final func fire(_ index: Int, _ keys: LinkList) {
    let states = toManyStates(), children = states[index].isChanged ? context.children : nil
    let former = children.map { _ in unsavedState }
    if states[index].fire(keys) { return }
    context.changes.hasDroppedLinkRecords = true
    if let former { children?.noteDroppedRecords(of: self, before: former) }
  }

  /// The store's answer, for all siblings at once; nil if the store fails.
  final func storedTargets(_ index: Int, _ readsTargets: Bool) -> TargetKeys? {
    _ = readRow
    guard !isInaccessible, let group else { return nil }
    // Awakened destinations can make this object a fault, which is then read in another group.
    return context.holdingAwakening { storedTargets(index, in: group, readsTargets) }
  }

  private func storedTargets(_ index: Int, in group: RowGroup, _ readsTargets: Bool) -> TargetKeys? {
    if group.answer(index) == nil, context.answersAlone(group, index) { return targetsAlone(index) }
    let siblings = group.answer(index) ?? context.fireToMany(group, plan.toMany[index], of: self, readsTargets: readsTargets)
    guard let siblings, let answer = siblings.answer else { return group.isAnsweredAlone ? targetsAlone(index) : nil }
    // With several stores, the object's store may have been removed, so that it wasn't queried.
    if context.places.count > 1, context.isOfRemovedStore(objectKey) {
      context.noteUnread(id, PersistenceError.missingStore([id]))
      return nil
    }
    return .answer(siblings, Int(answer.offsets[Int(position)])..<Int(answer.offsets[Int(position) + 1]))
  }

  /// The destinations of this object without its siblings, kept as the object's own list.
  private func targetsAlone(_ index: Int) -> TargetKeys? {
    guard let answer = context.relationship(plan.toMany[index], of: self) else { return nil }
    // As behind the request for a group. The rows of a store in memory aren't read ahead.
    if !context.places.hasResidentRow(objectKey) { context.discardGroupsBeforeOtherSaves() }
    fire(index, LinkList(answer.targets[...]))
    if plan.toMany[index].isOrdered { setOrder(index, answer.targets[...], answer.orderKeys?[...]) }
    return .list(answer.targets)
  }
}
