/// The objects that a to-many relationship leads to, with an order or without: what key paths of predicates end in.
public protocol RelationshipTargets {
  /// The class as which the objects appear.
  associatedtype Destination: ManagedObject
}

/// The objects that a to-many relationship leads to: a set, in no particular order, that keeps its inverse in step.
///
/// A view on the object's relationship, cheap to make; it always shows the current state. Reading it for the first
/// time asks the store once for all siblings (rows of one result within 1,024 positions); going over the objects takes
/// their rows along where the store has them at hand, so that reading the objects asks for nothing more. Inserting into
/// and removing from a relationship that was not read yet asks nothing: the change waits until it is read or saved.
/// Objects that are being deleted do not appear.
///
/// Iterating is safe while the relationship changes: it goes over the objects that were there at the start.
public struct ToManyRelationship<Destination: ManagedObject>: RelationshipTargets {
  let owner: ManagedObject
  let index: Int

  /// The number of objects. At most one store request; none when it is known.
  public var count: Int {
    if owner.isProbe(.count(index)) { return owner.recorder?.count ?? 0 }
    let targets = owner.targets(index)
    let destination = Int(owner.plan.toMany[index].destination)
    guard owner.managedObjectContext.mayHoldDeleted(destination) else { return targets.count }
    return targets.withKeys { keys in
      keys.reduce(0) { owner.managedObjectContext.isDeleted(destination, $1) ? $0 : $0 + 1 }
    }
  }

  /// Whether there is none.
  public var isEmpty: Bool { count == 0 }

  /// Whether an object is among them.
  public func contains(_ object: Destination) -> Bool {
    if object.isDeleted { return false }
    let link = owner.plan.toMany[index]
    if link.inverseSlot >= 0 {
      let row = object.readRow
      return row.isPresent(Int(link.inverseSlot)) && row.integer(Int(link.inverseSlot)) == owner.objectKey
    }
    return owner.targets(index).withKeys { $0.contains(object.objectKey) }
  }

  /// Adds an object; nothing happens when it is there. The inverse follows.
  public func insert(_ object: Destination) { owner.link(index, object) }

  /// Removes an object; nothing happens when it is not there. The inverse follows.
  public func remove(_ object: Destination) { owner.unlink(index, object) }

  /// Adds several objects.
  public func formUnion(_ objects: some Sequence<Destination>) {
    for object in Array(objects) { insert(object) }
  }

  /// Removes several objects; nothing happens to those that are not there. Inverses follow. Like ``remove(_:)`` of each.
  public func subtract(_ objects: some Sequence<Destination>) {
    for object in Array(objects) { remove(object) }
  }

  /// Removes all objects but some. Inverses follow. Reads the relationship; time in proportion to the objects that are there.
  public func formIntersection(_ objects: some Sequence<Destination>) {
    let kept = Set(objects)
    for object in self where !kept.contains(object) { remove(object) }
  }

  /// Removes all objects.
  public func removeAll() {
    for object in self { remove(object) }
  }
}

extension ToManyRelationship: Sequence {
  /// Goes over the objects that are there now.
  public struct Iterator: IteratorProtocol {
    private let context: ManagedObjectContext
    private let destination: Int
    private let targets: TargetKeys
    private let isTransient: Bool
    private var place = 0

    init(_ owner: ManagedObject, _ index: Int) {
      context = owner.managedObjectContext
      destination = Int(owner.plan.toMany[index].destination)
      targets = owner.targets(index, readsTargets: true)
      isTransient = index < 0
    }

    /// The next object, perhaps a fault.
    public mutating func next() -> Destination? {
      while place < targets.count {
        defer { place += 1 }
        if let object = object(place) { return object.typed() }
      }
      return nil
    }

    private func object(_ place: Int) -> ManagedObject? {
      switch targets {
      case .list(let keys) where isTransient: return context.linkedTarget(destination, keys[place])
      case .list(let keys):
        if place % RowGroup.size == 0 { context.readAhead(destination, keys[place..<Swift.min(place + RowGroup.size, keys.count)]) }
        return context.target(destination, keys[place], nil, position: 0)
      case .answer(let siblings, let range):
        return context.target(
          destination, siblings.answer?.targets[range.lowerBound + place] ?? 0, siblings, position: range.lowerBound + place)
      }
    }
  }

  /// Begins to go over the objects.
  public func makeIterator() -> Iterator { Iterator(owner, index) }

  /// A lower bound of how many there are: none, so that nothing is asked of the store for it.
  public var underestimatedCount: Int { 0 }
}
