public import HoldfastStore
import Synchronization

/// Stands between contexts and stores: opens them, plans fetches, does what stores cannot, keeps rows that were read, and
/// lets one save at a time through. Thread-safe; readers do not block readers.
///
/// Most programs have one store. What several mean for fetches, saves and relationships the article *Several stores* says.
public final class PersistentStoreCoordinator: Sendable {
  /// The model.
  public let model: ManagedObjectModel
  /// What turns the values of transformable attributes into bytes and back.
  public let transformers: AttributeTransformerRegistry
  let graph: GraphPlan
  /// What is known of every store that was ever here.
  let places: StorePlaces
  let rowCache = RowCache()
  /// Tells the date of a save.
  package let saveClock = SaveClock()
  let saveListeners = SaveListeners()
  /// How often contexts have saved.
  let saveCount = Atomic<Int>(0)
  /// How often a store was removed.
  let removalCount = Atomic<Int>(0)
  /// Only one save runs at a time, and none while stores are added or removed.
  let saveLock = SaveLock()
  /// Guards which set of stores is the present one; asked once per request.
  private let currentStores = Mutex(StoreSet([], first: nil, placeCount: 0))

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - model: the entities.
  ///   - transformers: what turns the values of transformable attributes into bytes and back.
  ///   - description: which store, and where.
  /// - Throws: ``/HoldfastStore/StoreError`` when the store cannot be opened; see ``/HoldfastStore/IncrementalStore/open(model:)``.
  public convenience init(
    model: ManagedObjectModel, transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(),
    store description: StoreDescription
  ) throws {
    self.init(model, transformers)
    try addPersistentStore(description)
  }

  /// Opens a store with the model that it keeps of itself.
  ///
  /// ```swift
  /// let coordinator = try PersistentStoreCoordinator(store: .sqlite(at: path))
  /// let names = coordinator.model.entities.map(\.name)
  /// ```
  ///
  /// - Throws: as ``cachedModel(for:)`` and ``init(model:transformers:store:)``; ``/HoldfastStore/StoreError`` with code
  ///   ``/HoldfastStore/StoreError/Code/unsupportedModel`` when the store keeps no model.
  public convenience init(store description: StoreDescription) throws {
    guard let model = try PersistentStoreCoordinator.cachedModel(for: description) else {
      throw StoreError(
        .unsupportedModel, operation: "open the store", path: description.path,
        reason: "The store keeps no model of itself, so it has to be opened with one.")
    }
    try self.init(model: model, store: description)
  }

  /// Opens several stores, or none yet. Their order is that in which unassigned new objects look for a store and in which
  /// equal objects of different stores come.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` when one of them cannot be opened; the others are closed again.
  public convenience init(
    model: ManagedObjectModel, transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(),
    stores descriptions: [StoreDescription]
  ) throws {
    self.init(model, transformers)
    do {
      for description in descriptions { try addPersistentStore(description) }
    } catch {
      try? close()
      throw error
    }
  }

  private init(_ model: ManagedObjectModel, _ transformers: AttributeTransformerRegistry) {
    self.model = model
    self.transformers = transformers
    graph = GraphPlan(model, transformers)
    places = StorePlaces(model)
  }

  deinit {
    // Nobody is left to be told; the store itself logs what it cannot give back.
    try? close()
  }

  /// Closes all stores. Contexts can do nothing with them afterwards but fail.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` of the first store that could not be closed; the others are closed all the same.
  public func close() throws {
    var failure: (any Error)?
    for store in persistentStores {
      do { try store.wrapping("close the store") { try store.base.close() } } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
  }

  // MARK: Stores

  /// The open stores, in the order in which they were added.
  public var persistentStores: [PersistentStore] { storeSet.stores }

  var storeSet: StoreSet { currentStores.withLock { $0 } }

  /// Opens a further store. Fetches that begin afterwards see its objects.
  ///
  /// Waits for a save that is under way.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` when it cannot be opened; when the model has no configuration of the description's name; when a
  ///   store with the same UUID is open here (a copied file), since its objects would have the same IDs; and when the
  ///   coordinator has had 127 stores, removed ones counted.
  @discardableResult
  public func addPersistentStore(_ description: StoreDescription) throws -> PersistentStore {
    try saveLock.withLock {
      let (present, place) = (storeSet, places.count)
      guard place < StackKey.placeCount else {
        throw StoreError(
          .unsupportedRequest, operation: "open the store", path: description.path,
          reason: "The coordinator has had \(place) stores, removed ones counted, and cannot tell more apart. Make another coordinator.")
      }
      let store = try PersistentStore(description, model: model, place: place, saveLock: saveLock)
      if let same = present.stores.first(where: { $0.identity.number == store.identity.number }) {
        try? store.base.close()
        throw StoreError(
          .alreadyOpen, operation: "open the store", path: description.path,
          reason: "It has the same UUID as \(same.title), so object IDs would not tell them apart. Was the file copied?")
      }
      if place > 0 { for other in present.stores + [store] { other.standBesideOthers() } }
      places.append(
        StorePlaces.Place(
          storeNumber: store.identity.number, prefixes: store.prefixes, hasResidentRows: store.capabilities.residentRows))
      currentStores.withLock {
        $0 = StoreSet(present.stores + [store], first: present.first ?? store.opened, placeCount: place + 1)
      }
      return store
    }
  }

  /// Closes a store and forgets it. Fetches that begin afterwards do not see its objects.
  ///
  /// Contexts still have such objects. Faults among them become inaccessible, as if their rows were gone; objects whose rows
  /// were read show them until their context fetches or saves next, which makes them inaccessible too. Those with changes
  /// keep them, and ``ManagedObjectContext/save()`` fails with ``ContextError/Code/missingStore`` until they are rolled
  /// back. Nothing of that traps.
  ///
  /// Waits for a save that is under way, not for fetches: one that is reading the store may fail.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` when the store cannot be closed properly, or is not one of this coordinator's. It is removed in
  ///   the first case all the same.
  public func remove(_ store: PersistentStore) throws {
    try saveLock.withLock {
      let present = storeSet
      guard present.stores.contains(store) else {
        throw StoreError(
          .notOpen, operation: "remove the store", path: store.path, reason: "It is not one of the coordinator's stores, or not any more.")
      }
      currentStores.withLock {
        $0 = StoreSet(present.stores.filter { $0 != store }, first: present.first, placeCount: places.count)
      }
      rowCache.removeAll()
      saveCount.add(1, ordering: .releasing)
      removalCount.add(1, ordering: .releasing)
      try store.wrapping("close the store") { try store.base.close() }
    }
  }

  /// The store that an object belongs to; nil for a temporary ID and for objects of stores that are not open here.
  public func persistentStore(for id: ManagedObjectID) -> PersistentStore? {
    id.isTemporaryID ? nil : persistentStores.first { $0.identity.number == id.storeNumber }
  }

  /// The ID that a URI names, when it is one of an open store of this coordinator and of an entity of its model.
  public func managedObjectID(forURIRepresentation uri: String) -> ManagedObjectID? {
    guard let id = ManagedObjectID(uriRepresentation: uri), persistentStore(for: id) != nil else { return nil }
    return model.entity(named: id.entityName) == nil ? nil : id
  }

  // MARK: The first store

  /// What was opened first. Most coordinators open nothing else.
  public var storeDescription: StoreDescription {
    guard let description = storeSet.first?.description else {
      preconditionFailure("The description of a store was asked of a coordinator that never had one.")
    }
    return description
  }

  /// The UUID of the first store as upper-case text; empty when there is none.
  public var storeIdentifier: String { persistentStores.first?.identifier ?? "" }

  /// The user's metadata of the first store; see ``PersistentStore/metadata``.
  public var metadata: [String: StoreValue] { persistentStores.first?.metadata ?? [:] }

  /// Replaces the user's metadata of the first store.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``; with code ``/HoldfastStore/StoreError/Code/notOpen`` when there is no store.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    guard let store = persistentStores.first else {
      throw StoreError(.notOpen, operation: "write the metadata", reason: "The coordinator has no store.")
    }
    try store.setMetadata(metadata)
  }

  // MARK: Metadata of stores that are not open

  /// Reads a store's metadata without opening the store, and so without its model: which model made it, and what the user
  /// keeps with it. Nothing is changed or made. Reads no further than the header of a file: damage that only the whole file shows is
  /// not found, so what is returned is right if the store opens.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/unsupportedRequest`` when the type of store cannot,
  ///   ``/HoldfastStore/StoreError/Code/alreadyOpen`` while this process has the store open (ask ``PersistentStore/metadata``), otherwise as
  ///   opening does.
  public static func metadata(for description: StoreDescription) throws -> PersistentStoreMetadata {
    try metadataAccess(description, "read the metadata").read()
  }

  /// Replaces the user's metadata of a store without opening it; durable when it returns.
  ///
  /// - Throws: as ``metadata(for:)``, and when the store cannot be written.
  public static func setMetadata(_ metadata: [String: StoreValue], for description: StoreDescription) throws {
    try metadataAccess(description, "write the metadata").write(metadata)
  }

  /// The model that a store keeps of itself, read without opening the store; nil when it keeps none, as one that another program made
  /// may. Every store of Holdfast's own with a file keeps one. Core Data's name is `cachedModelForPersistentStore(at:)`.
  ///
  /// - Throws: as ``metadata(for:)``.
  public static func cachedModel(for description: StoreDescription) throws -> ManagedObjectModel? {
    try metadataAccess(description, "read the store's model").readModel()
  }

  // MARK: Maintenance of stores that are not open

  /// Rebuilds a store's file without unused space; durable when it returns. No model is needed.
  ///
  /// A SQLite store is compacted by this; ``PersistentStore/compact()`` does it while the store is open. JSON, XML and binary stores leave no
  /// unused space: every save writes their whole file.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/unsupportedRequest`` for a type of store with nothing
  ///   to rebuild, ``/HoldfastStore/StoreError/Code/alreadyOpen`` while this process has the store open,
  ///   ``/HoldfastStore/StoreError/Code/locked`` while another process writes to it, ``/HoldfastStore/StoreError/Code/diskFull``,
  ///   ``/HoldfastStore/StoreError/Code/readOnly``, otherwise as opening does. The rows are as before then.
  public static func compact(_ description: StoreDescription) throws { try compact(description, open: nil) }

  /// Rebuilds the file of a store that is closed or open.
  static func compact(_ description: StoreDescription, open store: (any IncrementalStore)?) throws {
    guard let compact = description.compact else {
      throw StoreError(
        .unsupportedRequest, operation: "compact the store", path: description.path,
        reason:
          "A store of the type \(description.type) isn't compacted on request. Stores that write their whole file leave no unused space.")
    }
    try compact(store)
  }

  private static func metadataAccess(_ description: StoreDescription, _ operation: String) throws -> StoreMetadataAccess {
    if let access = description.metadataAccess { return access }
    throw StoreError(
      .unsupportedRequest, operation: operation, path: description.path,
      reason: "A store of the type \(description.type) tells its metadata only when it is open.")
  }
}
