public import HoldfastStore
import Synchronization

/// Connects contexts with one or more stores.
///
/// A coordinator opens stores, plans fetches, evaluates what a store can't, caches rows, and serializes the saves of each store. It is
/// thread-safe. Readers don't block each other, nor do saves of different stores.
///
/// Most programs have one store. The article *Several stores* describes fetches, saves and relationships with several stores.
public final class PersistentStoreCoordinator: Sendable {
  /// The model of the stores.
  public let model: ManagedObjectModel
  /// The transformers of transformable attributes.
  public let transformers: AttributeTransformerRegistry
  let graph: GraphPlan
  /// The identity of every store that the coordinator ever had.
  let places: StorePlaces
  let rowCache: RowCache
  let monitor = RequestMonitor()
  /// Returns the date of a save.
  package let saveClock = SaveClock()
  let saveListeners = SaveListeners()
  /// The number of saves and removals of stores.
  let saveCount = Atomic<Int>(0)
  /// The number of removals of stores.
  let removalCount = Atomic<Int>(0)
  /// Held while a store is added or removed, and while all are closed. No save takes it.
  ///
  /// A thread that holds it waits for save locks, and never the other way round. The coordinator isn't deallocated on such a thread, because
  /// the method that took the lock keeps the coordinator.
  private let storesLock = SaveLock()
  /// Guards the current set of stores, which each request reads once.
  private let currentStores = Mutex(StoreSet([], first: nil, placeCount: 0))

  /// Creates a coordinator and opens a store.
  ///
  /// - Parameters:
  ///   - model: the data model.
  ///   - transformers: the transformers of transformable attributes. Defaults to a registry with only the default transformer.
  ///   - description: the store's type, location and options.
  /// - Throws: ``/HoldfastStore/StoreError`` when the store can't be opened; see ``/HoldfastStore/IncrementalStore/open(model:host:)``.
  ///   ``/HoldfastStore/MigrationError`` when it has a former version of the model, and can't be migrated.
  public convenience init(
    model: ManagedObjectModel, transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(),
    store description: StoreDescription
  ) throws {
    self.init(model, transformers, RowCache())
    try addPersistentStore(description)
  }

  /// Creates a coordinator and opens a store with the model that the store contains.
  ///
  /// ```swift
  /// let coordinator = try PersistentStoreCoordinator(store: .sqlite(at: path))
  /// let names = coordinator.model.entities.map(\.name)
  /// ```
  ///
  /// - Throws: the errors of ``cachedModel(for:)`` and ``init(model:transformers:store:)``. ``/HoldfastStore/StoreError`` with code
  ///   ``/HoldfastStore/StoreError/Code/unsupportedModel`` when the store contains no model.
  public convenience init(store description: StoreDescription) throws {
    guard let model = try PersistentStoreCoordinator.cachedModel(for: description) else {
      throw StoreError(
        .unsupportedModel, operation: "open the store", path: description.location?.description,
        reason: "The store doesn't contain its model. Open it with a model.")
    }
    try self.init(model: model, store: description)
  }

  /// Creates a coordinator and opens any number of stores.
  ///
  /// A new object without an assigned store goes to the first store that accepts it. Objects that sort equally come in the order of their
  /// stores.
  ///
  /// - Throws: the errors of ``addPersistentStore(_:)``. The other stores are closed again.
  public convenience init(
    model: ManagedObjectModel, transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(),
    stores descriptions: [StoreDescription]
  ) throws {
    self.init(model, transformers, RowCache())
    try open(descriptions)
  }

  /// Creates a coordinator for a migration, which reads most rows once. It caches few of them, and migrates no store itself.
  convenience init(model: ManagedObjectModel, migrating description: StoreDescription) throws {
    self.init(model, AttributeTransformerRegistry(), RowCache(byteLimit: 1 << 20))
    try open([description.migrating(automatically: false)])
  }

  private init(_ model: ManagedObjectModel, _ transformers: AttributeTransformerRegistry, _ rowCache: RowCache) {
    self.model = model
    self.transformers = transformers
    self.rowCache = rowCache
    graph = GraphPlan(model, transformers)
    places = StorePlaces(model)
  }

  private func open(_ descriptions: [StoreDescription]) throws {
    do {
      for description in descriptions { try addPersistentStore(description) }
    } catch {
      try? close()
      throw error
    }
  }

  /// Creates the coordinator of a child context, whose only store is the parent.
  ///
  /// It caches no rows, because the parent's objects can change at any time.
  init(of parent: ManagedObjectContext, as parentStore: ParentStore) throws {
    let coordinator = parent.core.persistentStoreCoordinator
    (model, transformers, graph, places) = (coordinator.model, coordinator.transformers, coordinator.graph, coordinator.places)
    rowCache = RowCache(byteLimit: 0)
    let isOpen = OpenFlag(), host = StoreHost { [weak self] change in if isOpen.value { self?.report(change, 0) } }
    let store = try PersistentStore(
      StoreDescription(type: "parent context") { parentStore }, of: self, place: 0, isOpen: isOpen, host: host)
    isOpen.set(true)
    currentStores.withLock { $0 = StoreSet([store], first: store.opened, placeCount: 1) }
  }

  deinit {
    // No caller can receive an error any more. The store logs what it couldn't release.
    try? close()
  }

  /// Closes all stores. Requests of contexts fail afterwards. To open the stores again, create another coordinator.
  ///
  /// Waits for a save in progress. If another thread is adding a store, waits for it and closes that store as well. A store waits for a
  /// fetch that is reading it, or lets the fetch fail.
  ///
  /// - Throws: the ``/HoldfastStore/StoreError`` of the first store that couldn't be closed. The others are closed nevertheless.
  public func close() throws {
    let failure = storesLock.withLock { () -> (any Error)? in
      var failure: (any Error)?
      for store in persistentStores {
        do { try close(store) } catch { failure = failure ?? error }
      }
      return failure
    }
    if let failure { throw failure }
  }

  private func close(_ store: PersistentStore) throws {
    try store.saveLock.withLock {
      store.isOpen.set(false)
      try store.wrapping("close the store") { try store.base.close() }
    }
  }

  // MARK: Stores

  /// The stores that weren't removed, in the order in which they were added. After ``close()``, they are closed.
  public var persistentStores: [PersistentStore] { storeSet.stores }

  var storeSet: StoreSet { currentStores.withLock { $0 } }

  /// Opens another store. Fetches that begin afterwards include its objects.
  ///
  /// A coordinator can have at most 127 stores in its lifetime, including removed ones. Its open stores must have different UUIDs, so it
  /// can't open a store together with a copy of the file.
  ///
  /// A store of a former version of the model is first migrated; see ``/HoldfastStore/StoreDescription/migratesAutomatically``.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` when the store can't be opened, when the model has no configuration of the given name, or in
  ///   the cases above. ``/HoldfastStore/MigrationError`` when the store can't be migrated, for example because objects or values would be
  ///   lost.
  @discardableResult
  public func addPersistentStore(_ description: StoreDescription) throws -> PersistentStore {
    try storesLock.withLock {
      let (present, place) = (storeSet, places.count)
      guard place < StackKey.placeCount else {
        throw StoreError(
          .unsupportedRequest, operation: "open the store", path: description.location?.description,
          reason: "The coordinator has had \(place) stores, including removed ones, which is the maximum. Create another coordinator.")
      }
      let isOpen = OpenFlag()
      let host = StoreHost(configuration: description.configuration) { [weak self] change in
        if isOpen.value { self?.report(change, place) }
      }
      let store = try PersistentStore(description, of: self, place: place, isOpen: isOpen, host: host)
      if let same = present.stores.first(where: { $0.identity.number == store.identity.number }) {
        try? store.base.close()
        throw StoreError(
          .alreadyOpen, operation: "open the store", path: description.location?.description,
          reason: "The store has the same UUID as \(same.title), so object IDs would be ambiguous. "
            + "Don't open a store together with its copy.")
      }
      if place > 0 { for other in present.stores + [store] { other.standBesideOthers() } }
      places.append(
        StorePlaces.Place(
          storeNumber: store.identity.number, prefixes: store.prefixes, hasResidentRows: store.capabilities.residentRows))
      // First, because contexts may cache the store's rows from the next statement on.
      isOpen.set(true)
      currentStores.withLock {
        $0 = StoreSet(present.stores + [store], first: present.first ?? store.opened, placeCount: place + 1)
      }
      return store
    }
  }

  /// Closes and removes a store. Fetches that begin afterwards don't include its objects.
  ///
  /// Contexts may still have objects of the store:
  ///
  /// - Faults become inaccessible. Reading one is an error (``PersistenceError/Code/missingStore``), to which ``FaultErrorPolicy`` applies.
  /// - Objects whose rows were read show their values until their context next fetches or saves. Then they become inaccessible too.
  /// - Objects with unsaved changes keep them. ``ManagedObjectContext/save()`` fails with ``PersistenceError/Code/missingStore`` until you roll
  ///   them back.
  ///
  /// None of this traps.
  ///
  /// Waits for a save of the store in progress. The store waits for a fetch that is reading it, or lets the fetch fail.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` when closing the store fails, or when it isn't a store of this coordinator. In the first case,
  ///   the store is removed nevertheless.
  public func remove(_ store: PersistentStore) throws {
    try storesLock.withLock {
      let present = storeSet
      guard present.stores.contains(store) else {
        throw StoreError(
          .notOpen, operation: "remove the store", path: store.locationDescription,
          reason: "The coordinator doesn't have this store, or it was removed.")
      }
      try store.saveLock.withLock {
        currentStores.withLock {
          $0 = StoreSet(present.stores.filter { $0 != store }, first: present.first, placeCount: places.count)
        }
        store.isOpen.set(false)
        rowCache.removeAll()
        saveCount.add(1, ordering: .releasing)
        removalCount.add(1, ordering: .releasing)
        // A fetch that began before can read rows of the store until it is closed, and insert them into the cache.
        defer { rowCache.removeAll() }
        try store.wrapping("close the store") { try store.base.close() }
      }
    }
  }

  /// Returns the store of an object; nil for a temporary ID or an unknown store.
  public func persistentStore(for id: ManagedObjectID) -> PersistentStore? {
    id.isTemporaryID ? nil : persistentStores.first { $0.identity.number == id.storeNumber }
  }

  /// Returns the object ID for a URI.
  ///
  /// It is nil when the coordinator doesn't have the URI's store open, or the model doesn't have its entity. Such URIs take no memory
  /// afterwards, so that clients can send any.
  public func managedObjectID(forURIRepresentation uri: String) -> ManagedObjectID? {
    // An ID's store and entity are kept for the lifetime of the process, and the text can come from a client.
    guard let parts = ManagedObjectID.parts(of: uri), persistentStores.contains(where: { $0.identifier == parts.store }),
      model.entity(named: parts.entity) != nil
    else { return nil }
    return ManagedObjectID(uriRepresentation: uri)
  }

  // MARK: The first store

  /// The description of the store that was opened first. Traps when no store was ever opened.
  public var storeDescription: StoreDescription {
    guard let description = storeSet.first?.description else {
      preconditionFailure("A coordinator that never had a store has no storeDescription.")
    }
    return description
  }

  /// The UUID of the first store as upper-case text; empty when there is none.
  public var storeIdentifier: String { persistentStores.first?.identifier ?? "" }

  /// The user's metadata of the first store; see ``PersistentStore/metadata``.
  public var metadata: [String: StoreValue] { persistentStores.first?.metadata ?? [:] }

  /// Replaces the user's metadata of the first store.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``; with code ``/HoldfastStore/StoreError/Code/notOpen`` when the coordinator has none.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    guard let store = persistentStores.first else {
      throw StoreError(.notOpen, operation: "write the metadata", reason: "The coordinator has no store.")
    }
    try store.setMetadata(metadata)
  }
}
