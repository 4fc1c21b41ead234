import HoldfastStore

/// The order keys that a child context knows, of lists that its parent has changed.
///
/// Such a list has no order keys yet, because the save of the parent assigns them. The child needs some, to say where it has put an object. For
/// a list that the child read before the parent changed it, these are the store's.
struct KnownOrders {
  private struct List: Hashable {
    let relationship: ManagedObjectModel.Relationship
    let source: ObjectKey
  }

  private var orders: [List: [ObjectKey: Int64]] = [:]

  /// The keys of a list in order, with ascending order keys, which the child knows from now on.
  mutating func entries(_ list: OrderedList, of relationship: ManagedObjectModel.Relationship, _ source: ObjectKey) -> [OrderedList.Entry] {
    let place = List(relationship: relationship, source: source), known = orders[place] ?? [:]
    let keys = list.keys
    let own = orderKeys(list.orderedEntries())
    let copy = OrderedList(keys, orders: keys.map { known[$0] ?? (known.isEmpty ? own[$0] : nil) ?? OrderedList.unset }[...])
    let entries = copy.orderedEntries()
    orders[place] = orderKeys(entries)
    return entries
  }

  /// The keys of a list in the order that the child has saved.
  ///
  /// - Parameter sent: The new order keys.
  mutating func sort(
    _ list: OrderedList, of relationship: ManagedObjectModel.Relationship, _ source: ObjectKey, by sent: [ObjectKey: Int64]
  ) -> [ObjectKey] {
    let place = List(relationship: relationship, source: source)
    var known = orders[place] ?? orderKeys(list.storedEntries ?? list.orderedEntries())
    known.merge(sent) { $1 }
    orders[place] = known
    // An object that the child doesn't know stays behind its predecessor.
    var last = Int64.min
    let entries = list.keys.enumerated().map { position, key in
      last = known[key] ?? last
      return (key: key, order: last, position: position)
    }
    return entries.sorted { ($0.order, $0.position) < ($1.order, $1.position) }.map(\.key)
  }

  /// Forgets the keys of a list. The child gets those of the store.
  mutating func forget(_ relationship: ManagedObjectModel.Relationship, _ sources: [ObjectKey]) {
    if orders.isEmpty { return }
    for source in sources { orders[List(relationship: relationship, source: source)] = nil }
  }

  /// A damaged file may list an object twice.
  private func orderKeys(_ entries: [OrderedList.Entry]) -> [ObjectKey: Int64] {
    Dictionary(entries.map { ($0.key, $0.order) }, uniquingKeysWith: { first, _ in first })
  }
}
