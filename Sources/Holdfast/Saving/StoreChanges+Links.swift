import HoldfastStore

/// The links and orders in the request of a store.
extension StoreChanges {
  /// - Parameter inserted: The new objects by entity, so that each relationship takes time only for those that have it. The same applies to
  ///   the updated ones.
  func buildLinks(_ inserted: [ArraySlice<ManagedObject>], _ updated: [ArraySlice<ManagedObject>]) {
    for entity in context.entities {
      let family = context.graph.entities[entity.index].family.rawValues
      for relationship in entity.ownRelationships where relationship.storesLinks {
        let changes = linkChanges(relationship, inserted[family], updated[family])
        if !changes.added.isEmpty || !changes.removed.isEmpty { request.links.append(changes) }
      }
      for relationship in entity.ownRelationships where relationship.isOrdered {
        let changes = orderChanges(relationship, inserted[family], updated[family])
        if !changes.links.isEmpty { request.orders.append(changes) }
      }
    }
  }

  /// The new and removed links of a many-to-many pair, from the side that names them.
  ///
  /// Both sides record every change, so one side is enough. The store removes the links of deleted objects.
  ///
  /// - Parameters:
  ///   - inserted: The new objects that have the relationship, by entity.
  ///   - updated: The same for updated ones.
  private func linkChanges(
    _ relationship: ManagedObjectModel.Relationship, _ inserted: ArraySlice<ArraySlice<ManagedObject>>,
    _ updated: ArraySlice<ArraySlice<ManagedObject>>
  ) -> SaveRequest.LinkChanges {
    var changes = SaveRequest.LinkChanges(entity: relationship.entityIndex, relationship: relationship.index)
    let destination = relationship.destinationIndex
    // Links to objects that are being deleted are left out.
    let checked = context.hasDeleted(destination) ? destination : nil
    changes.added.reserveCapacity(likelyLinkCount(relationship, inserted))
    for objects in inserted {
      objects.forEachUnretained { object in
        guard let states = object.toMany else { return }
        let source = permanent(object.objectKey)
        states[relationship.toManyIndex].contents.withKeys { append($0, of: source, checked, to: &changes.added) }
      }
    }
    for objects in updated {
      for object in objects {
        guard let states = object.toMany else { continue }
        let key = object.objectKey
        states[relationship.toManyIndex].added.withUnsafeBufferPointer { append($0, of: key, checked, to: &changes.added) }
        states[relationship.toManyIndex].removed.withUnsafeBufferPointer { append($0, of: key, checked, to: &changes.removed) }
      }
    }
    // The links of new objects of one entity mostly are sorted.
    if !changes.added.isSorted(by: <, of: { $0 }) { changes.added.sort() }
    if !changes.removed.isSorted(by: <, of: { $0 }) { changes.removed.sort() }
    return changes
  }

  /// Appends the links from an object, sorted by the permanent keys of their destinations.
  ///
  /// Leaves out objects that aren't saved, and objects of the entity `checked` that are being deleted.
  @inline(__always) private func append(
    _ keys: UnsafeBufferPointer<ObjectKey>, of source: ObjectKey, _ checked: EntityIndex?, to links: inout [SaveRequest.Link]
  ) {
    let start = links.count
    var isAscending = true, last = ObjectKey.min
    for key in keys {
      if let checked, context.isDeleted(checked, key) { continue }
      let target = permanent(key)
      if target < 0 { continue }
      links.append(SaveRequest.Link(source: source, target: target))
      if target < last { isAscending = false }
      last = target
    }
    if !isAscending { links.withUnsafeMutableBufferPointer { StoreChanges.sort(UnsafeMutableBufferPointer(rebasing: $0[start...])) } }
  }

  // MARK: Order

  /// The new order keys of an ordered relationship.
  ///
  /// New and moved objects get a new key. Other objects get one if there was no room between two keys. If any gets a new key, a parent
  /// context receives the keys of all objects: it has none yet for its own unsaved order, and others after its save.
  private func orderChanges(
    _ relationship: ManagedObjectModel.Relationship, _ inserted: ArraySlice<ArraySlice<ManagedObject>>,
    _ updated: ArraySlice<ArraySlice<ManagedObject>>
  ) -> SaveRequest.OrderChanges {
    let index = relationship.toManyIndex, checksDeleted = context.hasDeleted(relationship.destinationIndex)
    var found: [(link: SaveRequest.Link, key: Int64)] = []
    func add(_ object: ManagedObject) {
      guard let states = object.toMany else { return }
      guard object.isInserted ? !states[index].contents.isEmpty : object.needsOrder(of: relationship), let list = object.orderedList(index)
      else {
        // A save that failed may have assigned some, which this one doesn't send.
        states[index].order?.forgetAssigned()
        return
      }
      let source = permanent(object.objectKey), changed = list.assignOrders()
      let sendsAll = context.parent != nil && !changed.isEmpty
      let orders = sendsAll ? (list.assigned ?? []).map { (key: $0.key, order: $0.order) } : changed
      for (key, order) in orders {
        let target = permanent(key)
        if target < 0 || checksDeleted && context.isDeleted(relationship.destinationIndex, key) { continue }
        found.append((SaveRequest.Link(source: source, target: target), order))
      }
    }
    for objects in inserted { objects.forEach(add) }
    for objects in updated { objects.forEach(add) }
    found.sort { $0.link < $1.link }
    var changes = SaveRequest.OrderChanges(entity: relationship.entityIndex, relationship: relationship.index)
    changes.links = found.map(\.link)
    changes.keys = found.map(\.key)
    return changes
  }

  /// Estimates the number of links of new objects from the first 64, because growing a large list by doubling takes twice its memory.
  private func likelyLinkCount(
    _ relationship: ManagedObjectModel.Relationship, _ inserted: ArraySlice<ArraySlice<ManagedObject>>
  ) -> Int {
    var (count, links, all) = (0, 0, 0)
    for objects in inserted {
      for object in objects.prefix(64 - count) {
        count += 1
        links += Int(object.toMany?[relationship.toManyIndex].contents.count ?? 0)
      }
      all += objects.count
    }
    return count == 0 ? 0 : all * links / count * 9 / 8
  }

  /// Sorts an object's links: up to 16 by insertion, which is faster than the general sort.
  private static func sort(_ links: UnsafeMutableBufferPointer<SaveRequest.Link>) {
    var links = links
    if links.count > 16 { return links.sort() }
    for place in links.indices.dropFirst() {
      let link = links[place]
      var hole = place
      while hole > 0, link.target < links[hole - 1].target {
        links[hole] = links[hole - 1]
        hole -= 1
      }
      links[hole] = link
    }
  }
}

extension RandomAccessCollection {
  /// Whether neighbors are in order.
  @inline(__always) func isSorted<Value>(by areInOrder: (Value, Value) -> Bool, of value: (Element) -> Value) -> Bool {
    guard let first else { return true }
    var last = value(first)
    for element in self.dropFirst() {
      let next = value(element)
      if !areInOrder(last, next) { return false }
      last = next
    }
    return true
  }
}

extension ArraySlice where Element == ManagedObject {
  /// Calls a closure with each object, without retaining it. The slice keeps the objects alive.
  ///
  /// A loop whose body calls other functions retains and releases each object.
  @inline(__always) func forEachUnretained(_ body: (ManagedObject) -> Void) {
    withUnsafeBufferPointer { objects in
      objects.withMemoryRebound(to: Unmanaged<ManagedObject>.self) { references in
        for reference in references { reference._withUnsafeGuaranteedRef { body($0) } }
      }
    }
  }
}
