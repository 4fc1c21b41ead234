import HoldfastStore

/// The stores that a coordinator has at a moment. Immutable: a request works on one set from beginning to end.
final class StoreSet: Sendable {
  /// The stores in the order in which they were added.
  let stores: [PersistentStore]
  /// The only store that there ever was; then every key is its own, and requests go to it as they are.
  let sole: PersistentStore?
  /// The same where it also has the objects of every entity, so that nothing has to be asked about a query.
  var soleOfAll: PersistentStore? { sole.flatMap { $0.holdsAll ? $0 : nil } }

  /// What was opened first, also when it was removed; nil when nothing ever was.
  let first: OpenedDescription?

  init(_ stores: [PersistentStore], first: OpenedDescription?, placeCount: Int) {
    self.stores = stores
    self.first = first
    sole = placeCount == 1 ? stores.first : nil
  }

  /// The store at a place; nil when it was removed.
  func store(at place: Int) -> PersistentStore? { stores.first { $0.place == place } }

  /// The store of a permanent key; nil when it was removed.
  func store(ofKey key: Int64) -> PersistentStore? { sole ?? store(at: StackKey.place(key)) }

  /// The first store that takes new objects of an entity.
  func firstWritable(_ entity: Int) -> PersistentStore? { stores.first { !$0.isReadOnly && $0.holds(entity) } }

  /// Permanent keys by their stores, in the order in which stores were added; those of removed stores are left out.
  func split(_ keys: [Int64]) -> [(store: PersistentStore, keys: [Int64])] {
    guard let first = keys.first else { return [] }
    if let sole { return [(sole, keys)] }
    let place = StackKey.place(first)
    if keys.allSatisfy({ StackKey.place($0) == place }) { return store(at: place).map { [($0, keys)] } ?? [] }
    return stores.compactMap { store in
      let own = keys.filter { StackKey.place($0) == store.place }
      return own.isEmpty ? nil : (store, own)
    }
  }
}
