import HoldfastStore

extension ManagedObject {
  /// The ordered relationship with an index, for accessors of typed subclasses. Traps if the entity doesn't have it.
  public final func ordered<Destination: ManagedObject>(_ index: Int) -> OrderedToMany<Destination> {
    OrderedToMany(owner: self, index: toManyIndex(index, isOrdered: true))
  }

  /// The destination objects of an ordered relationship, by its name.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/unknownProperty`` if the entity has no ordered relationship with that name.
  public final func ordered(forKey key: String) throws -> OrderedToMany<ManagedObject> {
    guard let relationship = entity.anyRelationship(named: key), relationship.isOrdered else {
      throw PersistenceError(
        .unknownProperty, objectID: id, property: key, reason: "\(entity.name) has no ordered relationship of this name.")
    }
    return OrderedToMany(owner: self, index: relationship.toManyIndex)
  }

  /// The destinations of an ordered relationship as a mutable list, read if necessary; nil if the store fails.
  final func orderedList(_ index: Int) -> OrderedList? {
    if let list = toMany?[index].order { return list }
    if isInserted || index < 0 {
      let states = toManyStates()
      // A transient relationship may have had an order before the object was recreated.
      if states[index].order == nil { states[index].setOrder(OrderedList(states[index].contents.keys)) }
      return states[index].order
    }
    if let toMany, toMany[index].base == .fired {
      // The list was saved empty, so all its destinations are new.
      setOrder(index, [], nil)
      return toMany[index].order
    }
    // The object may change the list while it is awakened.
    _ = readRow
    if isInaccessible { return nil }
    if let list = toMany?[index].order { return list }
    return context.holdingAwakening { readOrder(index) }
  }

  /// Reads the destinations of an ordered relationship. Awakening is held, because awakened objects can change the list.
  private func readOrder(_ index: Int) -> OrderedList? {
    switch storedTargets(index, false) {
    case nil: return nil
    // The object was queried alone and has its own list.
    case .list: break
    case .answer(let siblings, let range):
      guard let answer = siblings.answer else { return nil }
      fire(index, LinkList(answer.targets[range]))
      setOrder(index, answer.targets[range], answer.orderKeys?[range])
    }
    return toMany?[index].order
  }

  /// Sets the order of destinations that were just read, and applies recorded changes.
  final func setOrder(_ index: Int, _ targets: ArraySlice<ObjectKey>, _ orders: ArraySlice<Int64>?) {
    let list = OrderedList(targets, orders: orders), states = toManyStates()
    for key in states[index].removed { list.remove(key) }
    for key in states[index].added where !list.contains(key) { list.append(key) }
    states[index].setOrder(list)
  }

  /// Prevents a destination that was removed and is added again from regaining its former position when the destinations are read.
  @inline(__always) final func letComeLast(_ index: Int, _ key: ObjectKey) {
    if toMany?[index].isRemovedUnseen(key) == true, plan.toMany[index].isOrdered { _ = orderedList(index) }
  }

  /// Preserves the order of the other destinations when one is removed.
  ///
  /// Needed if they are in memory, or if this one was added while they weren't.
  final func keepOrder(_ index: Int, removing key: ObjectKey) {
    guard plan.toMany[index].isOrdered, toMany?[index].order == nil else { return }
    if isInserted || toMany?[index].isKnown == true || toMany?[index].isAddedUnseen(key) == true { _ = orderedList(index) }
  }
}

extension RelationshipAnswer {
  /// The same answer with each source's destinations sorted by their order keys, then by their keys.
  func inOrder() -> RelationshipAnswer {
    guard let orderKeys else { return self }
    var places = Array(targets.indices)
    for source in 0..<offsets.count - 1 {
      let range = Int(offsets[source])..<Int(offsets[source + 1])
      places[range].sort { (orderKeys[$0], targets[$0]) < (orderKeys[$1], targets[$1]) }
    }
    return RelationshipAnswer(
      offsets: offsets, targets: places.map { targets[$0] }, entities: entities.map { entities in places.map { entities[$0] } },
      orderKeys: places.map { orderKeys[$0] }, rows: rows)
  }
}
