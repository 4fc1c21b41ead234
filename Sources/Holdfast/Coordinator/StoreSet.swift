import HoldfastStore

/// The stores of a coordinator at a moment. Immutable: each request uses one set from beginning to end.
///
/// Requests to a pinned set read one generation. Requests to any other set read the newest rows.
final class StoreSet: Sendable {
  /// The stores in the order in which they were added.
  let stores: [PersistentStore]
  /// The store, if the coordinator never had another one. It then receives requests unchanged, because all keys are its own.
  let sole: PersistentStore?
  /// ``sole``, if it holds the objects of every entity, so that it can answer every query.
  var soleOfAll: PersistentStore? { sole.flatMap { $0.holdsAll ? $0 : nil } }

  /// The description of the store that was opened first, even if it was removed; nil if no store was ever opened.
  let first: OpenedDescription?
  /// The views that requests read; nil for the newest rows.
  let pinnedViews: PinnedViews?

  init(_ stores: [PersistentStore], first: OpenedDescription?, placeCount: Int) {
    self.stores = stores
    self.first = first
    sole = placeCount == 1 ? stores.first : nil
    pinnedViews = nil
  }

  /// Creates a set of those stores of the coordinator that a generation includes.
  init(_ set: StoreSet, pinnedTo views: PinnedViews) {
    stores = set.stores.filter(views.has)
    first = set.first
    sole = stores.isEmpty ? nil : set.sole
    pinnedViews = views
  }

  /// Runs a closure with a read view of a store.
  ///
  /// - Parameter kind: The kind of a view that ends afterwards, if the set isn't pinned.
  func reading<Result>(
    _ store: PersistentStore, _ kind: ReadViewKind, _ operation: @autoclosure () -> String, _ options: RequestOptions,
    _ body: (any ReadView) throws -> Result
  ) throws -> Result {
    guard let pinnedViews else { return try store.reading(kind, operation(), options, body) }
    return try pinnedViews.exclusively(operation(), options) {
      // Another request in the generation may have taken long.
      try options.check(operation())
      return try store.wrapping(operation()) { try body(pinnedViews.view(of: store)) }
    }
  }

  /// Runs several requests. If the set is pinned, other threads use its views before or afterwards.
  ///
  /// - Throws: `timedOut` or `cancelled` of the options if another thread uses the views for too long, and the errors of the closure.
  func exclusively<Result>(
    _ operation: @autoclosure () -> String, _ options: RequestOptions, _ body: () throws -> Result
  ) throws -> Result {
    guard let pinnedViews else { return try body() }
    return try pinnedViews.exclusively(operation(), options, body)
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
