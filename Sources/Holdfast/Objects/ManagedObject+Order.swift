import HoldfastStore

extension ManagedObject {
  /// The ordered relationship with an index, for accessors of typed subclasses.
  public final func ordered<Destination: ManagedObject>(_ index: Int) -> OrderedRelationship<Destination> {
    OrderedRelationship(owner: self, index: toManyIndex(index, isOrdered: true))
  }

  /// The objects that an ordered relationship leads to, by its name.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/unknownProperty`` when the entity has no ordered relationship of that
  ///   name.
  public final func ordered(forKey key: String) throws -> OrderedRelationship<ManagedObject> {
    guard let relationship = entity.anyRelationship(named: key), relationship.isOrdered else {
      throw ContextError(.unknownProperty, objectID: id, property: key, reason: "\(entity.name) has no ordered relationship of this name.")
    }
    return OrderedRelationship(owner: self, index: relationship.toManyIndex)
  }

  /// The targets of an ordered relationship as a list that can be changed, read when it is not known; nil when the store
  /// fails.
  final func orderedList(_ index: Int) -> OrderedList? {
    if let list = toMany?[index].order { return list }
    if isInserted || index < 0 {
      let states = toManyStates()
      // A transient relationship may have had an order before the object was made again.
      if states[index].order == nil { states[index].setOrder(OrderedList(states[index].contents.keys)) }
      return states[index].order
    }
    let hasChanges = toMany?[index].isChanged ?? false
    switch storedTargets(index, false) {
    case nil: return nil
    // The object was answered alone, and has its list.
    case .list: return toMany?[index].order
    case .answer(let siblings, let range):
      guard let answer = siblings.answer else { return nil }
      answer.targets[range].withUnsafeBufferPointer { fire(index, $0) }
      setOrder(index, answer.targets[range], answer.orderKeys?[range], hasChanges: hasChanges)
    }
    return toMany?[index].order
  }

  /// Takes the order of targets that were just read, and lets what was recorded before follow.
  final func setOrder(_ index: Int, _ targets: ArraySlice<Int64>, _ orders: ArraySlice<Int64>?, hasChanges: Bool) {
    let list = OrderedList(targets, orders: orders), states = toManyStates()
    if hasChanges {
      for key in states[index].removed { list.remove(key) }
      for key in states[index].added where !list.contains(key) { list.append(key) }
    }
    states[index].setOrder(list)
  }

  /// Sees to it that a target of an ordered relationship that was removed, and is added again, does not get its old place
  /// when the targets are read.
  @inline(__always) final func letComeLast(_ index: Int, _ key: Int64) {
    if toMany?[index].isRemovedUnseen(key) == true, plan.toMany[index].isOrdered { _ = orderedList(index) }
  }

  /// Sees to it that the order of the others outlives the removal of a target: where they are known, or where this one waits
  /// with others that were added.
  final func keepOrder(_ index: Int, removing key: Int64) {
    guard plan.toMany[index].isOrdered, toMany?[index].order == nil else { return }
    if isInserted || toMany?[index].isKnown == true || toMany?[index].isAddedUnseen(key) == true { _ = orderedList(index) }
  }
}

extension RelationshipAnswer {
  /// The same with the targets of each source in ascending order of their order keys, ties by their keys.
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
