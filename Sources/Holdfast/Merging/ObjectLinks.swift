import HoldfastStore

/// The links of an object and the references to it, to be moved to another object.
struct ObjectLinks {
  private let object: ManagedObject
  /// The object's relationships with their destinations, in order.
  private var own: [(relationship: ManagedObjectModel.Relationship, destinations: [ManagedObject])] = []
  /// The references by relationships without an inverse, with the object's position in an ordered one.
  private var foreign: [(owner: ManagedObject, relationship: ManagedObjectModel.Relationship, position: Int?)] = []
  /// The object's positions in ordered lists.
  private var positions: [(owner: ManagedObject, index: Int, position: Int)] = []

  /// - Parameter owners: The changed objects that may reference the object by relationships without an inverse; see ``ForeignReferences``.
  init(of object: ManagedObject, referencedBy owners: [ManagedObject]) {
    self.object = object
    let context = object.context
    for relationship in object.entity.relationships + object.entity.transientRelationships {
      let destinations = context.targets(of: object, relationship)
      if destinations.isEmpty { continue }
      own.append((relationship, destinations))
      guard let inverse = context.inverse(of: relationship), inverse.isOrdered else { continue }
      for owner in destinations {
        guard let position = owner.orderedList(inverse.toManyIndex)?.position(of: object.objectKey) else { continue }
        positions.append((owner, inverse.toManyIndex, position))
      }
    }
    findForeign(owners)
  }

  /// The destinations of the object's relationships without an inverse.
  var destinationsWithoutInverse: [ManagedObject] { own.filter { !$0.relationship.hasInverse }.flatMap(\.destinations) }

  /// Finds the references to the object by relationships without an inverse. Most models have none.
  private mutating func findForeign(_ owners: [ManagedObject]) {
    let context = object.context
    for entity in context.entities {
      for relationship in entity.relationships + entity.transientRelationships
      where relationship.entityIndex == entity.index && !relationship.hasInverse
        && object.plan.root == context.graph.entities[relationship.destinationIndex].root
      {
        let family = context.graph.entities[entity.index].family
        for owner in owners where !owner.isDeleted && family.contains(owner.flags.entityIndex) {
          if refers(owner, relationship) { foreign.append((owner, relationship, position(in: owner, relationship))) }
        }
      }
    }
  }

  /// The object's position in an ordered relationship of an owner.
  ///
  /// A to-many relationship that isn't in memory is read: it may contain the other object, so that nothing has to be saved.
  private func position(in owner: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> Int? {
    if !relationship.isToMany { return nil }
    let index = relationship.toManyIndex
    if relationship.isOrdered { return OrderedToMany<ManagedObject>(owner: owner, index: index).firstIndex(of: object) }
    if owner.toMany?[index].isKnown != true { _ = owner.targets(index) }
    return nil
  }

  private func refers(_ owner: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> Bool {
    if relationship.isToMany || relationship.isTransient {
      // A list of an owner's own has an index. Many objects of one list may be merged.
      if let states = owner.toMany, states[relationship.toManyIndex].isKnown {
        return states[relationship.toManyIndex].contents.contains(object.objectKey)
      }
      // A destination can be added to a list that isn't in memory.
      return owner.knows(object.objectKey, relationship)
        || !relationship.isTransient && owner.toMany?[relationship.toManyIndex].isRecorded(object.objectKey, isAddition: true) == true
    }
    return owner.row?.references(object.objectKey, in: relationship.slot) == true
  }

  /// Removes the links.
  func cut() {
    for (relationship, _) in own { ObjectLinks.set(object, relationship, []) }
    for (owner, relationship, _) in foreign {
      if relationship.isToMany { owner.unlink(relationship.toManyIndex, object) } else { owner.setToOne(relationship, nil) }
    }
  }

  /// Sets the links again, with another object.
  ///
  /// - Parameters:
  ///   - replacesAll: Whether to-one relationships without a destination are cleared in the other object.
  ///   - replaces: Whether a to-one relationship of the other object gets the destination.
  func connect(to other: ManagedObject, replacesAll: Bool, _ replaces: (ManagedObjectModel.Relationship) -> Bool) {
    // The other object keeps its position in a list that it is in already.
    let entered = positions.filter { $0.owner.orderedList($0.index)?.contains(other.objectKey) == false }
    if replacesAll {
      let linked = Set(own.map(\.relationship))
      for relationship in other.entity.relationships where !relationship.isToMany && !linked.contains(relationship) {
        other.setToOne(relationship, nil)
      }
    }
    for (relationship, former) in own {
      let destinations = former.map { $0 === object ? other : $0 }
      if relationship.isToMany {
        for destination in destinations { other.link(relationship.toManyIndex, destination) }
      } else if replaces(relationship) {
        other.setToOne(relationship, destinations[0])
      }
    }
    for (owner, relationship, position) in foreign {
      if !relationship.isToMany {
        owner.setToOne(relationship, other)
      } else if relationship.isOrdered {
        ObjectLinks.insert(other, into: OrderedToMany(owner: owner, index: relationship.toManyIndex), at: position)
      } else {
        owner.link(relationship.toManyIndex, other)
      }
    }
    for (owner, index, position) in entered {
      guard let list = owner.orderedList(index), list.contains(other.objectKey) else { continue }
      list.move(other.objectKey, to: min(position, list.visibleCount - 1))
    }
  }

  /// Inserts an object before a position, or at the end. If the list contains it behind the position, moves it there.
  private static func insert(_ object: ManagedObject, into list: OrderedToMany<ManagedObject>, at position: Int?) {
    let place = min(position ?? list.count, list.count)
    guard let former = list.firstIndex(of: object) else { return list.insert(object, at: place) }
    if former > place { list.move(from: former, to: place) }
  }

  private static func set(_ owner: ManagedObject, _ relationship: ManagedObjectModel.Relationship, _ destinations: [ManagedObject]) {
    if !relationship.isToMany {
      owner.setToOne(relationship, destinations.first)
    } else if relationship.isOrdered {
      OrderedToMany<ManagedObject>(owner: owner, index: relationship.toManyIndex).replaceAll(with: destinations)
    } else {
      ToMany<ManagedObject>(owner: owner, index: relationship.toManyIndex).replaceAll(with: destinations)
    }
  }
}
