import HoldfastStore

/// Transient relationships: links that exist only in memory.
///
/// Each is a list of keys, like those of to-many relationships and stored with them, with a negative to-many index; to-one relationships
/// too. The list is initially empty and always in memory, so it is never read, and saves ignore it. Invariants:
///
/// 1. Both ends of a link with an inverse contain each other's key.
/// 2. The list of a to-one relationship contains at most one key.
/// 3. A released object moves its links to the context's ``ParkedLinks``. The next object of its key takes them.
extension ManagedObject {
  // MARK: Accessors

  /// The destination of a transient to-one relationship, for accessors of typed subclasses. May be a fault.
  ///
  /// Sends no store request, unless the class overrides ``awakeFromFetch()``, which may set the relationship: then a fault is fired first.
  public final func transientToOne<Destination: ManagedObject>(_ index: Int) -> Destination? {
    if isProbe(.transientLink(index)) { return probeDestination() }
    readForAwakening()
    return transientTarget(checked(index, isToOne: true)).map { $0.typed() }
  }

  /// Sets a transient to-one relationship and its inverse, for accessors of typed subclasses.
  ///
  /// Sends no store request, neither now nor in the next save.
  public final func setTransientToOne(_ index: Int, _ target: ManagedObject?) {
    if isProbe(.transientLink(index)) { return }
    setTransientTarget(checked(index, isToOne: true), target)
  }

  /// A transient to-many relationship, for accessors of typed subclasses.
  public final func transientToMany<Destination: ManagedObject>(_ index: Int) -> ToMany<Destination> {
    readForAwakening()
    return ToMany(owner: self, index: checked(index, isToOne: false))
  }

  /// A transient ordered relationship, for accessors of typed subclasses.
  public final func transientOrdered<Destination: ManagedObject>(_ index: Int) -> OrderedToMany<Destination> {
    readForAwakening()
    let place = checked(index, isToOne: false)
    if !flags.contains(.probe) && !plan.toMany[place].isOrdered {
      trap("transient relationship \(index) as an ordered one", "it has no order")
    }
    return OrderedToMany(owner: self, index: place)
  }

  /// The to-many index of a transient relationship. Traps if the entity has no such relationship.
  private func checked(_ index: Int, isToOne: Bool) -> Int {
    let plan = plan
    let exists = index >= 0 && index < plan.transientLinkCount && plan.toMany[-1 - index].isTransientToOne == isToOne
    // Every entity has memory for at least one to-many relationship, so index 0 is always safe.
    if isProbe(.transientLink(index)) { return exists ? -1 - index : 0 }
    if !exists { trap("transient \(isToOne ? "to-one" : "to-many") relationship \(index)", "it has none with this index") }
    return -1 - index
  }

  /// Fires a fault if its class may set transient relationships when the object is awakened.
  final func readForAwakening() {
    let context = self.context
    if row == nil, context.bound.hooks(of: self).contains(.awakeFromFetch) { _ = readRow }
  }

  // MARK: Links

  /// The destinations of a transient relationship of an object without a list.
  final func transientTargets(_ index: Int) -> TargetKeys {
    if context.parkedLinks.entity(plan.root, objectKey) == nil { return .list([]) }
    return .list(toManyStates()[index].keys)
  }

  final func transientTarget(_ index: Int) -> ManagedObject? {
    let destination = plan.toMany[index].destination
    return targets(index).withKeys { $0.first }.flatMap { context.linkedTarget(destination, $0) }
  }

  final func setTransientTarget(_ index: Int, _ target: ManagedObject?) {
    readForAwakening()
    if let target {
      link(index, target)
    } else {
      context.holdingAwakening { cutLinks(index) }
    }
  }

  /// Removes the existing links of to-one ends before a link is added, at both ends.
  final func leaveFormerPartners(_ target: ManagedObject, _ index: Int, _ link: LinkPlan) {
    if link.isTransientToOne { cutLinks(index, except: target.objectKey) }
    if link.hasTransientToOneInverse { target.cutLinks(Int(link.inverseToManyIndex), except: objectKey) }
  }

  private func cutLinks(_ index: Int, except kept: ObjectKey? = nil) {
    let link = plan.toMany[index]
    for key in targets(index).withKeys({ Array($0) }) where key != kept {
      recordRemoval(index, key)
      if link.hasInverse, let partner = context.linked(link.destination, key) {
        partner.recordRemoval(Int(link.inverseToManyIndex), objectKey)
      }
      context.noteEndOfChange()
    }
  }

  // MARK: Their life

  /// Fills new lists with the parked links of the object's key.
  final func restoreTransientLinks(_ states: ToManyStates) {
    if flags.contains(.detached) { return }
    let former = context.parkedLinks.take(plan.root, objectKey), count = plan.transientLinkCount
    for (index, state) in zip((-count..<0).reversed(), former) { states[index] = state }
    for state in former.dropFirst(count) { state.destroy() }
  }

  /// Parks the links of an object being deallocated.
  final func giveUpTransientLinks(_ states: ToManyStates) {
    let indexes = (-plan.transientLinkCount..<0).reversed()
    // If another object is registered for the key, this one no longer represented it.
    let isReplaced = context.registered(plan.root, objectKey) != nil
    if flags.contains(.detached) || isReplaced || indexes.allSatisfy({ states[$0].contents.isEmpty }) {
      for index in indexes { states[index].destroy() }
    } else {
      context.parkedLinks.park(plan.root, objectKey, flags.entityIndex, indexes.map { states[$0] })
    }
  }

  /// Removes all links at both ends, because the object becomes a fault or leaves the graph.
  ///
  /// - Parameter partnersAreRefreshed: Whether the objects at the other ends are reported as refreshed.
  final func forgetTransientLinks(partnersAreRefreshed: Bool = false) {
    let (count, context) = (plan.transientLinkCount, context)
    if count == 0 || toMany == nil && context.parkedLinks.entity(plan.root, objectKey) == nil { return }
    let states = toManyStates()
    for index in -count..<0 {
      let link = plan.toMany[index]
      for key in states[index].contents.keys where link.hasInverse {
        guard let partner = context.linked(link.destination, key), partner !== self else { continue }
        partner.keepOrder(Int(link.inverseToManyIndex), removing: objectKey)
        let isChanged = partner.toManyStates()[Int(link.inverseToManyIndex)].remove(objectKey)
        if isChanged && partnersAreRefreshed { context.observers?.noteRefresh(partner) }
      }
      states[index].destroy()
      states[index] = ToManyState(new: [])
    }
  }

  /// Removes links without inverse to new objects whose insertion was rolled back, or that were released with their context.
  ///
  /// - Parameter gone: The keys of the former by root entity. They can be permanent.
  final func dropLinks(to gone: [EntityIndex: Set<ObjectKey>]) {
    guard let toMany else { return }
    for index in -plan.transientLinkCount..<0 where !plan.toMany[index].hasInverse {
      let destination = plan.toMany[index].destination, keys = gone[context.graph.entities[destination].root] ?? []
      for key in toMany[index].contents.keys where keys.contains(key) || key < 0 && context.registered(destination, key) == nil {
        keepOrder(index, removing: key)
        _ = toMany[index].remove(key)
      }
    }
  }

  /// Whether a transient relationship contains a new object.
  final var linksNewObjects: Bool {
    guard let toMany else { return false }
    return (-plan.transientLinkCount..<0).contains { index in
      let destination = plan.toMany[index].destination
      return toMany[index].contents.withKeys { keys in keys.contains { context.registered(destination, $0)?.isInserted == true } }
    }
  }

  /// Replaces temporary keys of new objects with their permanent keys.
  ///
  /// - Parameter translation: The permanent key of a temporary key; nil for a deleted object.
  final func translateTransientLinks(_ translation: (ObjectKey) -> ObjectKey?) {
    guard let toMany else { return }
    for index in -plan.transientLinkCount..<0 where toMany[index].contents.withKeys({ $0.contains { $0 < 0 } }) {
      let keys = toMany[index].keys.compactMap { $0 < 0 ? translation($0) : $0 }
      toMany[index].destroy()
      toMany[index] = ToManyState(new: keys)
      if plan.toMany[index].isOrdered { toMany[index].setOrder(OrderedList(keys)) }
    }
  }

  /// Whether the object is an unread fault with changes only in transient links, which stores needn't receive.
  final var changesTransientLinksAlone: Bool {
    guard isFault, isUpdated, plan.transientLinkCount > 0, let toMany else { return false }
    return (0..<plan.toManyCount).allSatisfy { !toMany[$0].isReordered }
  }
}

extension GraphPlan.EntityPlan {
  /// The link plan of a to-one or to-many relationship.
  func link(_ relationship: ManagedObjectModel.Relationship) -> LinkPlan {
    relationship.isToMany || relationship.isTransient ? toMany[relationship.toManyIndex] : toOne[relationship.slot]
  }
}

extension ManagedObjectModel.Property {
  /// The relationship, transient or not.
  var relationship: ManagedObjectModel.Relationship? {
    switch self {
    case .relationship(let relationship), .transientRelationship(let relationship): relationship
    case .attribute, .composite, .transient, .fetched: nil
    }
  }
}

extension ManagedObjectModel.Entity {
  /// The relationship with a name, transient or not.
  func anyRelationship(named name: String) -> ManagedObjectModel.Relationship? { property(named: name)?.relationship }
}
