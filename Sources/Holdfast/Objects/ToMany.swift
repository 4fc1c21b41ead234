import HoldfastStore

/// The value of a to-many relationship's property: ``ToMany`` or ``OrderedToMany``.
public protocol ToManyValue<Destination>: RelationshipValue {}

extension ToManyValue {
  /// True: the relationship can have several objects.
  public static var isToMany: Bool { true }
}

/// The destination objects of a to-many relationship: an unordered set that also updates the inverse.
///
/// The value refers to the object's relationship. It is cheap to create and always reflects the current state. The first read sends one
/// store request for all siblings (rows of one result within 1,024 positions). Iterating also prefetches the rows if the store has them
/// ready, so reading the objects then sends no further request. Inserting and removing don't read the relationship: if it isn't in memory,
/// the change is applied when it is read or saved. They read an object that is a fault if its row contains the link, as in a one-to-many
/// relationship. Objects being deleted aren't included.
///
/// Adding an object of another context or of a wrong entity traps. So does adding one whose deletion this context has saved.
///
/// Changing the relationship during iteration is safe: the iteration continues over the objects at its start, and so do indices.
public struct ToMany<Destination: ManagedObject>: ToManyValue {
  /// False: the objects have no order.
  public static var isOrdered: Bool { false }

  let owner: ManagedObject
  let index: Int

  /// The number of objects. Sends at most one store request, and none if the relationship is in memory.
  public var count: Int {
    let destination = owner.plan.toMany[index].destination
    if !owner.context.hasDeleted(destination) {
      let count = owner.targetCount(index)
      // Reading the relationship can awaken objects, which may delete others.
      if !owner.context.hasDeleted(destination) { return count }
    }
    return owner.targets(index).withKeys { keys in
      keys.reduce(0) { owner.context.isDeleted(destination, $1) ? $0 : $0 + 1 }
    }
  }

  /// Whether the relationship has no objects.
  public var isEmpty: Bool {
    let targets = owner.leadingTargets(index)
    return visible(from: 0, in: targets) == targets.count
  }

  /// Whether the relationship contains an object.
  public func contains(_ object: Destination) -> Bool {
    let link = owner.plan.toMany[index]
    // Objects of other entities can have the same key, and so can those of other contexts and those that have left the graph.
    if object.isDeleted || !owner.sharesGraph(with: object) || !link.leads(toEntity: object.flags.entityIndex) { return false }
    if link.inverseSlot >= 0 {
      let row = object.readRow
      return row.isPresent(link.inverseSlot) && row.key(link.inverseSlot) == owner.objectKey
    }
    // Lists keep the keys of deleted objects, hidden, also after the save.
    if owner.context.isDeleted(link.destination, object.objectKey) { return false }
    return owner.hasTarget(index, object.objectKey)
  }

  /// Adds an object unless the relationship contains it. Updates the inverse.
  public func insert(_ object: Destination) { owner.link(index, object) }

  /// Removes an object if the relationship contains it. Updates the inverse.
  public func remove(_ object: Destination) { owner.unlink(index, object) }

  /// Adds several objects.
  public func formUnion(_ objects: some Sequence<Destination>) {
    for object in Array(objects) { insert(object) }
  }

  /// Removes several objects, each like ``remove(_:)``.
  public func subtract(_ objects: some Sequence<Destination>) {
    for object in Array(objects) { remove(object) }
  }

  /// Removes all objects except the given ones. Reads the relationship and takes time proportional to its number of objects.
  public func formIntersection(_ objects: some Sequence<Destination>) {
    let kept = Set(objects)
    for object in self where !kept.contains(object) { remove(object) }
  }

  /// Adds an object unless the relationship contains it; the same as ``insert(_:)``, for code that handles both kinds of relationships.
  public func append(_ object: Destination) { insert(object) }

  /// Adds several objects; the same as ``formUnion(_:)``.
  public func append(contentsOf objects: some Sequence<Destination>) { formUnion(objects) }

  /// Replaces the objects. Reads the relationship and takes time proportional to its number of objects.
  public func replaceAll(with objects: some Sequence<Destination>) {
    let wanted = Array(objects)
    formIntersection(wanted)
    formUnion(wanted)
  }

  /// An object of the relationship; nil if there is none. Which one is unspecified.
  public var first: Destination? {
    var objects = TargetIterator(owner, index, owner.leadingTargets(index, readsTargets: true))
    guard let object = objects.next() else { return nil }
    return object.typed()
  }

  /// Removes all objects.
  public func removeAll() {
    for object in self { remove(object) }
  }
}

extension ToMany: Collection {
  /// A position among the objects of the relationship at one moment.
  public struct Index: Comparable, Hashable {
    /// The position among all destinations, including those being deleted.
    let place: Int
    /// The destinations when ``ToMany/startIndex`` was read; nil for ``ToMany/endIndex``. A relationship's own list would otherwise be copied
    /// for each access.
    let targets: TargetKeys?

    /// Whether both are at the same position.
    public static func == (a: Index, b: Index) -> Bool { a.place == b.place }

    /// Whether the first position is before the second.
    public static func < (a: Index, b: Index) -> Bool { a.place < b.place }

    /// Hashes the position.
    public func hash(into hasher: inout Hasher) { hasher.combine(place) }
  }

  /// The position of the first object. Sends at most one store request.
  public var startIndex: Index {
    let targets = owner.targets(index)
    return Index(place: visible(from: 0, in: targets), targets: targets)
  }

  /// The position after the last object. Sends at most one store request.
  public var endIndex: Index { Index(place: owner.targetCount(index), targets: nil) }

  /// The position of the next object.
  public func index(after position: Index) -> Index {
    let targets = position.targets ?? owner.targets(index)
    return Index(place: visible(from: position.place + 1, in: targets), targets: targets)
  }

  /// The object at a position, perhaps a fault.
  public subscript(position: Index) -> Destination {
    let targets = position.targets ?? owner.targets(index)
    precondition(position.place < targets.count, "An index of a to-many relationship was used after its last object.")
    let key = targets.withKeys { $0[position.place] }
    let object = TargetIterator(owner, index, targets).object(position.place)
    return (object ?? owner.context.strayObject(owner.plan.toMany[index].destination, key)).typed()
  }

  /// The first place of an object that isn't being deleted.
  private func visible(from start: Int, in targets: TargetKeys) -> Int {
    let destination = owner.plan.toMany[index].destination, context = owner.context
    guard context.hasDeleted(destination), start < targets.count else { return Swift.min(start, targets.count) }
    return targets.withKeys { keys in keys[start...].firstIndex { !context.isDeleted(destination, $0) } ?? keys.count }
  }

  // Iterating reads the destinations' rows. Counting and indices, which the general algorithms use, don't.

  /// The results of a closure for each object.
  public func map<Result, Failure: Error>(_ transform: (Destination) throws(Failure) -> Result) throws(Failure) -> [Result] {
    var results: [Result] = [], objects = makeIterator()
    while let object = objects.next() { results.append(try transform(object)) }
    return results
  }

  /// An array of the objects, which `Array` and sorting use.
  public func _copyToContiguousArray() -> ContiguousArray<Destination> {
    var all: ContiguousArray<Destination> = [], objects = makeIterator()
    while let object = objects.next() { all.append(object) }
    return all
  }

  /// Iterates over the current objects.
  public struct Iterator: IteratorProtocol {
    private var targets: TargetIterator

    fileprivate init(_ targets: TargetIterator) { self.targets = targets }

    /// The next object, perhaps a fault.
    public mutating func next() -> Destination? {
      guard let object = targets.next() else { return nil }
      return object.typed()
    }
  }

  /// Creates an iterator.
  public func makeIterator() -> Iterator { Iterator(TargetIterator(owner, index, over: owner.targets(index, readsTargets: true))) }

  /// Always 0, so that it needs no store request.
  public var underestimatedCount: Int { 0 }
}
