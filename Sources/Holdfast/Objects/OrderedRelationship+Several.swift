/// Changes of several objects at once. Inverses follow each, and a rollback takes all back.
///
/// Positions are those before the change unless it says otherwise; one that comes twice counts once. Each object takes the time
/// that it takes alone, which is in proportion to the square root of the objects that are there, unless it says otherwise.
extension OrderedRelationship {
  /// Inserts objects, in their order, before the one at a position. Those that are there already stay where they are.
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

  /// Inserts objects so that each stands at its position afterwards, the first at the lowest. Those that are there already
  /// stay in their order, and nothing is put at their positions.
  ///
  /// - Parameters:
  ///   - objects: what is put in, in this order.
  ///   - positions: as many as objects; those after the insertion.
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

  /// Puts objects into the places of those at several positions, the first into the lowest; what stood there is removed unless
  /// it is among them. One that stands at another position already stays there, and so does what it would have replaced. Takes
  /// time in proportion to all objects that are there.
  ///
  /// - Parameters:
  ///   - positions: as many as objects.
  ///   - objects: what stands there afterwards, the first at the lowest.
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
    // What was not replaced stays, unless it stands elsewhere by now.
    for position in positions where now[position] == nil && placed.insert(all[position]).inserted { now[position] = all[position] }
    subtract(positions.map { all[$0] }.filter { !placed.contains($0) })
    append(contentsOf: objects)
    reorder(now.compactMap { $0?.objectKey })
  }

  /// Removes objects; nothing happens to those that are not there.
  public func subtract(_ objects: some Sequence<Destination>) {
    for object in Array(objects) { remove(object) }
  }

  /// Removes all objects but some; the others stay in their order. Takes time in proportion to all objects that are there.
  public func formIntersection(_ objects: some Sequence<Destination>) {
    let kept = Set(objects)
    subtract(filter { !kept.contains($0) })
  }
}
