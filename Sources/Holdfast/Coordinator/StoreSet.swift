import HoldfastStore

/// The stores of a coordinator at a moment. Immutable: each request uses one set from beginning to end.
final class StoreSet: Sendable {
  /// The stores in the order in which they were added.
  let stores: [PersistentStore]
  /// The store, if the coordinator never had another one. It then receives requests unchanged, because all keys are its own.
  let sole: PersistentStore?
  /// ``sole``, if it holds the objects of every entity, so that it can answer every query.
  var soleOfAll: PersistentStore? { sole.flatMap { $0.holdsAll ? $0 : nil } }

  /// The description of the store that was opened first, even if it was removed; nil if no store was ever opened.
  let first: OpenedDescription?

  init(_ stores: [PersistentStore], first: OpenedDescription?, placeCount: Int) {
    self.stores = stores
    self.first = first
    sole = placeCount == 1 ? stores.first : nil
  }

  /// The store at a place; nil when it was removed.
  func store(at place: Int) -> PersistentStore? { stores.first { $0.place == place } }

  /// The store of a permanent key; nil when it was removed.
  func store(ofKey key: ObjectKey) -> PersistentStore? { sole ?? store(at: StackKey.place(key)) }

  /// The first store that accepts new objects of an entity.
  func firstWritable(_ entity: EntityIndex) -> PersistentStore? { stores.first { !$0.isReadOnly && $0.holds(entity) } }

  /// Divides permanent keys by store, in the order in which the stores were added. Keys of removed stores are left out.
  func split(_ keys: [ObjectKey]) -> [(store: PersistentStore, keys: [ObjectKey])] {
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
