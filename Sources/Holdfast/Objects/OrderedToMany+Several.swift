/// Changes of several objects at once. Inverses are updated, and a rollback reverts them.
///
/// Unless a method states otherwise, positions are those before the change, duplicates count once, and each object takes as long as it does
/// alone.
extension OrderedToMany {
  /// Inserts objects, in their order, before a position. Objects already in the collection keep their positions.
  public func insert(contentsOf objects: some Sequence<Destination>, at position: Int) {
    precondition(
      position >= 0 && position <= count, "Objects were inserted at position \(position) of an ordered relationship of \(count) objects.")
    var place = position
    for object in Array(objects) {
      let before = count
      insert(object, at: place)
      place += count - before
    }
  }

  /// Inserts objects so that each has the given position afterwards, in ascending order. Objects already in the collection keep their
  /// order, and no object is inserted for them.
  ///
  /// - Parameters:
  ///   - objects: The objects to insert, in this order.
  ///   - positions: One position per object, counted after the insertion.
  public func insert(contentsOf objects: some Sequence<Destination>, atOffsets positions: some Sequence<Int>) {
    let (objects, positions) = (Array(objects), Set(positions).sorted())
    precondition(
      objects.count == positions.count, "\(objects.count) objects were inserted at \(positions.count) positions of an ordered relationship."
    )
    let count = count
    precondition(
      positions.enumerated().allSatisfy { $1 >= 0 && $1 <= count + $0 },
      "Objects were inserted at positions beyond the end of an ordered relationship of \(count) objects.")
    for (object, position) in zip(objects, positions) { insert(object, at: Swift.min(position, self.count)) }
  }

  /// Removes the objects at several positions.
  public func remove(atOffsets positions: some Sequence<Int>) {
    for object in Set(positions).sorted().map({ self[$0] }) { remove(object) }
  }

  /// Replaces the objects at several positions, in ascending order; a replaced object is removed unless it is among the new ones.
  ///
  /// An object that already has another position keeps it, and the object it would have replaced stays. Takes time proportional to the
  /// count.
  ///
  /// - Parameters:
  ///   - positions: One position per object.
  ///   - objects: The new objects, in ascending order of position.
  public func replace(atOffsets positions: some Sequence<Int>, with objects: some Sequence<Destination>) {
    let (all, objects, positions) = (Array(self), Array(objects), Set(positions).sorted())
    precondition(
      objects.count == positions.count, "\(positions.count) positions of an ordered relationship were filled with \(objects.count) objects."
    )
    precondition(
      positions.allSatisfy(all.indices.contains),
      "Objects were replaced at positions beyond an ordered relationship of \(all.count) objects.")
    var now: [Destination?] = all
    for position in positions { now[position] = nil }
    var placed = Set(now.compactMap { $0 })
    for (object, position) in zip(objects, positions) where placed.insert(object).inserted { now[position] = object }
    // An object that wasn't replaced stays, unless it now has another position.
    for position in positions where now[position] == nil && placed.insert(all[position]).inserted { now[position] = all[position] }
    subtract(positions.map { all[$0] }.filter { !placed.contains($0) })
    append(contentsOf: objects)
    reorder(now.compactMap { $0?.objectKey })
  }

  /// Removes objects. Objects that aren't in the collection are ignored.
  public func subtract(_ objects: some Sequence<Destination>) {
    for object in Array(objects) { remove(object) }
  }

  /// Removes all objects except the given ones and keeps the order. Takes time proportional to the count.
  public func formIntersection(_ objects: some Sequence<Destination>) {
    let kept = Set(objects)
    subtract(filter { !kept.contains($0) })
  }
}
