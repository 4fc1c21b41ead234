import HoldfastStore

/// Reads rows and destinations by key from their stores, with one view per store.
final class StoreReader: RelatedRowReader {
  private let stores: StoreSet
  /// The kind of view for stores with snapshots.
  private let kind: ReadViewKind
  private let options: RequestOptions
  private var views: [(store: PersistentStore, kind: ReadViewKind, view: any ReadView)] = []
  /// Whether the reader ends the views.
  private let ownsViews: Bool

  /// Creates a reader of all stores, which begins a view of each store on demand. Call ``end()`` when done.
  init(_ stores: StoreSet, _ kind: ReadViewKind, _ options: RequestOptions) {
    self.stores = stores
    self.kind = kind
    self.options = options
    ownsViews = true
  }

  /// Creates a reader of one store in a view that the caller ends.
  init(_ stores: StoreSet, _ store: PersistentStore, _ view: any ReadView, _ options: RequestOptions) {
    self.stores = stores
    self.options = options
    kind = .latest
    views = [(store, .consistent, view)]
    ownsViews = false
  }

  /// Ends the views.
  func end() {
    if ownsViews { for (_, _, view) in views { view.end() } }
    views = []
  }

  /// The view of a store.
  ///
  /// - Parameter kind: the kind of a new view. Defaults to the kind for all stores.
  func view(_ store: PersistentStore, _ kind: ReadViewKind? = nil) throws -> any ReadView {
    if let pinned = stores.pinnedViews { return try pinned.view(of: store) }
    let kind = store.capabilities.snapshots ? kind ?? self.kind : .latest
    if let known = views.firstIndex(where: { $0.store === store }) {
      if !ownsViews || views[known].kind == kind || kind == .latest { return views[known].view }
      // Two requests in a latest view may read different states. A store may allow only one consistent view.
      views.remove(at: known).view.end()
    }
    let view = try store.base.beginRead(kind, options: options)
    views.append((store, kind, view))
    return view
  }

  /// Delivers the rows with certain keys.
  func rows(_ request: FaultRequest, into sink: any RowSink) throws {
    for (store, keys) in stores.split(request.keys) {
      try store.wrapping("read rows") {
        try stores.exclusively("read rows", options) {
          try store.store.rows(FaultRequest(entity: request.entity, keys: keys), in: view(store), options: options, into: sink)
        }
      }
    }
  }

  /// Calls a closure with the destinations of each source of a to-many relationship. There may be any number of sources.
  func relationships(_ request: RelationshipRequest, _ body: (ObjectKey, [ObjectKey]) -> Void) throws {
    for (store, sources) in stores.split(request.sources) {
      // Several requests must read the same state.
      if sources.count > RowGroup.size { _ = try store.wrapping("read a relationship") { try view(store, .consistent) } }
      for window in sources.windows(of: RowGroup.size) { try relationships(request.of(window), store, body) }
    }
  }

  /// Sends a request to one store. If the answer is too large for the store, sends two smaller ones.
  private func relationships(_ request: RelationshipRequest, _ store: PersistentStore, _ body: (ObjectKey, [ObjectKey]) -> Void) throws {
    let answer: RelationshipAnswer
    do {
      answer = try store.wrapping("read a relationship") {
        try stores.exclusively("read a relationship", options) {
          try store.store.relationships(request, in: view(store), options: options)
        }
      }
    } catch let error as StoreError where error.code == .tooLarge && request.sources.count > 1 {
      for half in request.sources.windows(of: (request.sources.count + 1) / 2) { try relationships(request.of(half), store, body) }
      return
    }
    try answer.check(request, path: store.locationDescription, isOrdered: false)
    for (place, source) in request.sources.enumerated() {
      body(source, Array(answer.targets[Int(answer.offsets[place])..<Int(answer.offsets[place + 1])]))
    }
  }
}
