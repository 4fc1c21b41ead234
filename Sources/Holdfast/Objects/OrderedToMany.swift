import HoldfastStore

/// The destination objects of an ordered relationship: a random-access collection of distinct objects that also updates the inverse.
///
/// The value refers to the object's relationship. It is cheap to create and always reflects the current state. Changes apply to the object
/// at once. The first read sends one store request for all siblings, like ``ToMany``. Objects added from the other side are
/// appended. Objects being deleted aren't included.
///
/// A position out of range traps. So does adding an object that a ``ToMany`` can't have.
///
/// A slice, such as `dog.walks.dropFirst(3)`, keeps its objects: you can delete or move them while you iterate over it.
///
/// The collection contains each object once. Like an ordered set, it isn't a `MutableCollection`, whose algorithms temporarily store an
/// element at two positions. It has its own methods with the same names for moving objects.
///
/// The list is kept in chunks of up to 1,024 objects. Accessing, inserting, removing and moving one object takes time proportional to the
/// number of chunks and the size of one, also while other objects are being deleted. These operations take time proportional to the count:
///
/// - the first change after a save, which copies the list for a rollback,
/// - the first access after objects of the entity were deleted in the context,
/// - the first access after a rollback.
///
/// ```swift
/// dog.walks.insert(morning, at: 0)
/// dog.walks.move(from: 3, to: 1)
/// dog.walks.sort { $0.date < $1.date }
/// ```
public struct OrderedToMany<Destination: ManagedObject>: ToManyValue {
  /// True: the objects have an order.
  public static var isOrdered: Bool { true }

  let owner: ManagedObject
  let index: Int
  /// The objects of a slice, whose base this is; nil for the relationship itself.
  var slice: OrderedSlice?

  private var context: ContextCore { owner.context }
  private var destination: EntityIndex { owner.plan.toMany[index].destination }

  /// The source of the objects' keys.
  private enum Targets {
    case list(OrderedList)
    case plain(TargetKeys)
  }

  private var targets: Targets {
    if context.hasDeleted(destination) || owner.toMany?[index].isKnown == true, let list { return .list(list) }
    return .plain(owner.targets(index))
  }

  /// The keys as a mutable list in which deleted objects are hidden; nil if the store fails.
  private var list: OrderedList? {
    guard let list = owner.orderedList(index) else { return nil }
    context.hideDeleted(destination, in: list)
    return list
  }

  /// The keys of the objects in order, without creating the objects.
  private var keys: [ObjectKey] {
    switch targets {
    case .list(let list): list.visibleKeys
    case .plain(let keys): keys.withKeys { Array($0) }
    }
  }

  private static func key(at position: Int, in targets: Targets) -> ObjectKey {
    precondition(
      position >= 0 && position < OrderedToMany.count(of: targets),
      "Position \(position) of an ordered relationship of \(OrderedToMany.count(of: targets)) objects was requested.")
    switch targets {
    case .list(let list): return list.key(at: position)
    case .plain(let keys): return keys.withKeys { $0[position] }
    }
  }

  private static func count(of targets: Targets) -> Int {
    switch targets {
    case .list(let list): list.visibleCount
    case .plain(let keys): keys.count
    }
  }

  // MARK: Changing

  /// Appends an object unless the collection contains it. Updates the inverse. Sends at most one store request, and another if the object
  /// is a fault whose row contains the link.
  public func append(_ object: Destination) { insert(object, at: nil) }

  /// Inserts an object before a position unless the collection contains it. Updates the inverse.
  public func insert(_ object: Destination, at position: Int) { insert(object, at: .some(position)) }

  /// Appends several objects, each like ``append(_:)``. The objects may be from this relationship or another one.
  public func append(contentsOf objects: some Sequence<Destination>) {
    // A view of a relationship, such as a reversed one, shows the current state, which the first append may change.
    for object in Array(objects) { append(object) }
  }

  private func insert(_ object: Destination, at position: Int?) {
    // The list may have the key of an object that can't be added, such as one that was deleted.
    guard owner.canLink(index, object) else { return }
    guard let list else {
      // The change is recorded as in an unordered relationship, so that the save reports that the owner was deleted or couldn't be read.
      if owner.isInaccessible { owner.link(index, object) }
      return
    }
    if list.contains(object.objectKey) {
      // The list may be older than the object, and have lost it.
      if owner.otherEndHas(index, object) == false { owner.link(index, object) }
      return
    }
    let count = list.visibleCount, place = position ?? count
    precondition(
      place >= 0 && place <= count, "An object was inserted at position \(place) of an ordered relationship of \(count) objects.")
    owner.link(index, object)
    if place < count, list.contains(object.objectKey) {
      noteMove()
      list.move(object.objectKey, to: place)
    }
  }

  /// Removes an object if the collection contains it. Updates the inverse.
  public func remove(_ object: Destination) { owner.unlink(index, object) }

  /// Removes the object at a position.
  ///
  /// - Returns: the object.
  @discardableResult public func remove(at position: Int) -> Destination {
    let object = self[position]
    remove(object)
    return object
  }

  /// Removes all objects.
  public func removeAll() {
    for object in Array(self) { remove(object) }
  }

  /// Replaces the object at a position. Does nothing if the collection already contains the new object.
  public func replace(at position: Int, with object: Destination) {
    if contains(object) { return }
    let former = self[position]
    insert(object, at: position)
    remove(former)
  }

  /// Moves the object at a position to another position, counted after the move.
  public func move(from source: Int, to target: Int) {
    let targets = targets, count = OrderedToMany.count(of: targets)
    let moved = OrderedToMany.key(at: source, in: targets)
    precondition(target >= 0 && target < count, "An object was moved to position \(target) of an ordered relationship of \(count) objects.")
    guard source != target, let list else { return }
    noteMove()
    list.move(moved, to: target)
  }

  /// Moves the objects at several positions, in their order, to before a position, as lists in user interfaces require.
  ///
  /// Takes time proportional to the count, unless it moves only one object.
  public func move(fromOffsets sources: some Sequence<Int>, toOffset target: Int) {
    let moving = Set(sources), count = count
    precondition(
      moving.allSatisfy { $0 >= 0 && $0 < count } && target >= 0 && target <= count,
      "Objects of an ordered relationship of \(count) objects were moved from or to positions beyond it.")
    if moving.count == 1, let source = moving.first { return move(from: source, to: target > source ? target - 1 : target) }
    let all = keys
    let moved = moving.sorted().map { all[$0] }
    let before = all.indices.filter { $0 < target && !moving.contains($0) }.map { all[$0] }
    let behind = all.indices.filter { $0 >= target && !moving.contains($0) }.map { all[$0] }
    reorder(before + moved + behind)
  }

  /// Exchanges the objects at two positions.
  public func swapAt(_ first: Int, _ second: Int) {
    if first == second { return }
    let (low, high) = (Swift.min(first, second), Swift.max(first, second))
    move(from: low, to: high)
    if high - low > 1 { move(from: high - 1, to: low) }
  }

  /// Reverses the order of the objects.
  public func reverse() { reorder(keys.reversed()) }

  /// Sorts the objects. The sort is stable.
  public func sort(by areInIncreasingOrder: (Destination, Destination) throws -> Bool) rethrows {
    reorder(try sorted(by: areInIncreasingOrder).map(\.objectKey))
  }

  /// Replaces the objects and their order. Updates inverses.
  public func replaceAll(with objects: some Sequence<Destination>) {
    var seen: Set<ObjectKey> = []
    let wanted = Array(objects).filter { seen.insert($0.objectKey).inserted }
    for object in Array(self) where !seen.contains(object.objectKey) { remove(object) }
    for object in wanted { append(object) }
    reorder(wanted.map(\.objectKey))
  }

  /// Reorders all visible destinations; those being deleted follow them.
  func reorder(_ keys: [ObjectKey]) {
    guard let list else { return }
    // An object that others have removed couldn't be added.
    let keys = keys.filter(list.contains)
    if keys.elementsEqual(list.visibleKeys) { return }
    let visible = Set(keys)
    noteMove()
    list.replaceOrder(by: keys + list.keys.filter { !visible.contains($0) })
  }

  /// Call it before the order changes.
  private func noteMove() {
    owner.noteFormerLinks(index)
    owner.toManyStates()[index].noteMove()
    context.noteChange(owner)
  }
}

/// The objects that a slice of an ordered relationship had when it was created.
final class OrderedSlice {
  let positions: Range<Int>
  let objects: [ManagedObject]

  init(_ positions: Range<Int>, _ objects: [ManagedObject]) { (self.positions, self.objects) = (positions, objects) }
}

extension OrderedToMany: RandomAccessCollection {
  /// 0.
  public var startIndex: Int { 0 }

  /// The number of objects. Sends at most one store request, and none if the relationship is in memory.
  public var endIndex: Int {
    let count = OrderedToMany.count(of: targets)
    // A slice has the positions of its objects, also if there are fewer objects now.
    return slice.map { Swift.max($0.positions.upperBound, count) } ?? count
  }

  /// The objects at some positions. Sends the requests of an iteration over them. The slice keeps them, also if their positions change.
  public subscript(bounds: Range<Int>) -> Slice<OrderedToMany> {
    let targets = targets, count = OrderedToMany.count(of: targets)
    precondition(
      bounds.lowerBound >= 0 && bounds.upperBound <= count,
      "Positions \(bounds) of an ordered relationship of \(count) objects were requested.")
    var iterator = TargetIterator(owner, index, over: OrderedToMany.keys(at: bounds, in: targets)), objects: [ManagedObject] = []
    // An object that gets its row may delete others.
    while let object = iterator.next() { objects.append(object) }
    let positions = bounds.lowerBound..<bounds.lowerBound + objects.count
    return Slice(base: OrderedToMany(owner: owner, index: index, slice: OrderedSlice(positions, objects)), bounds: positions)
  }

  private static func keys(at positions: Range<Int>, in targets: Targets) -> TargetKeys {
    switch targets {
    case .list(let list): .list(list.keys(in: positions))
    case .plain(.list(let keys)): .list(Array(keys[positions]))
    case .plain(.answer(let siblings, let range)):
      .answer(siblings, range.lowerBound + positions.lowerBound..<range.lowerBound + positions.upperBound)
    }
  }

  /// The object at a position; may be a fault. Setting it calls ``replace(at:with:)``.
  public subscript(position: Int) -> Destination {
    get {
      if let slice, slice.positions.contains(position) { return slice.objects[position - slice.positions.lowerBound].typed() }
      var siblings: FaultSiblings?
      var place = 0
      let targets = targets
      let key = OrderedToMany.key(at: position, in: targets)
      switch targets {
      case .plain(.answer(let answer, let range)): (siblings, place) = (answer, range.lowerBound + position)
      case .list where index < 0:
        if let object = context.linkedTarget(destination, key) { return object.typed() }
      case .list(let list) where context.readsAhead(destination, key):
        let start = position / RowGroup.size * RowGroup.size
        context.readAhead(destination, list.keys(in: start..<start + RowGroup.size)[...])
      default: break
      }
      return OrderedToMany.object(key, context, destination, siblings, place)
    }
    nonmutating set { replace(at: position, with: newValue) }
  }

  /// Only a damaged file references an object of a wrong entity. It is replaced with an object without values.
  private static func object(
    _ key: ObjectKey, _ context: ContextCore, _ destination: EntityIndex, _ siblings: FaultSiblings?, _ place: Int
  ) -> Destination {
    let object = context.target(destination, key, siblings, position: place) ?? context.strayObject(destination, key)
    return object.typed()
  }

  /// The position of an object; nil if the collection doesn't contain it.
  public func firstIndex(of object: Destination) -> Int? {
    // Objects of other entities can have the same key, and so can those of other contexts and those that have left the graph.
    if !owner.sharesGraph(with: object) || !owner.plan.toMany[index].leads(toEntity: object.flags.entityIndex) { return nil }
    return switch targets {
    case .list(let list): list.position(of: object.objectKey)
    case .plain(let keys): keys.withKeys { $0.firstIndex(of: object.objectKey) }
    }
  }

  /// The results of a closure for each object, in order.
  public func map<Result, Failure: Error>(_ transform: (Destination) throws(Failure) -> Result) throws(Failure) -> [Result] {
    // Iterating reads ahead; accessing objects by position doesn't.
    var results: [Result] = []
    var iterator = makeIterator()
    while let object = iterator.next() { results.append(try transform(object)) }
    return results
  }

  /// An array of the objects, which `Array` and sorting use.
  public func _copyToContiguousArray() -> ContiguousArray<Destination> {
    // An object that gets its row may delete others. The array that a collection's own method creates for the count traps then.
    var all: ContiguousArray<Destination> = []
    all.reserveCapacity(count)
    var objects = makeIterator()
    while let object = objects.next() { all.append(object) }
    return all
  }

  /// Always 0, because objects may be deleted during the iteration.
  public var underestimatedCount: Int { 0 }

  /// Whether the collection contains an object.
  public func contains(_ object: Destination) -> Bool {
    if owner.plan.toMany[index].inverseSlot < 0, owner.toMany?[index].order != nil { return firstIndex(of: object) != nil }
    return ToMany<Destination>(owner: owner, index: index).contains(object)
  }

  /// Iterates over the current objects in order. Changes during iteration are safe.
  public struct Iterator: IteratorProtocol {
    private var targets: TargetIterator

    init(_ relationship: OrderedToMany) {
      let keys =
        switch relationship.targets {
        case .list(let list): TargetKeys.list(list.visibleKeys)
        case .plain(let plain): plain
        }
      targets = TargetIterator(relationship.owner, relationship.index, over: keys)
    }

    /// The next object; may be a fault.
    public mutating func next() -> Destination? {
      guard let object = targets.next() else { return nil }
      return object.typed()
    }
  }

  /// Creates an iterator.
  public func makeIterator() -> Iterator { Iterator(self) }
}
