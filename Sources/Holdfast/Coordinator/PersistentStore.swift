public import HoldfastStore
import HoldfastSupport
import Synchronization

/// An open store of a coordinator: its name, location and metadata.
///
/// The handle can be sent to other tasks. Rows are read and changed through contexts.
public final class PersistentStore: Sendable {
  /// Weak, because the coordinator keeps its stores.
  private struct Owner: @unchecked Sendable {  // because it never changes
    weak var coordinator: PersistentStoreCoordinator?
  }

  private let owner: Owner
  /// The description with which the store was opened.
  let opened: OpenedDescription
  var description: StoreDescription { opened.description }
  /// The index among all stores that the coordinator ever had. It is never reused.
  let place: Int
  /// The store itself, with its own keys.
  package let base: any IncrementalStore
  /// The same, with its requests counted.
  let monitored: MonitoredStore
  /// The store with the coordinator's keys, used when there are several stores.
  private let placed: PlacedStore
  /// Whether no other store was ever added.
  private let isAlone: Atomic<Bool>
  package let identity: StoreIdentity
  let capabilities: StoreCapabilities
  /// The attributes that the store can't compare.
  let incomparable: IncomparableSlots
  /// The ID prefix of each entity's objects, by entity index.
  let prefixes: [ManagedObjectID]
  /// Whether the store may have objects of an entity, by entity index; nil when it may have objects of all.
  private let heldEntities: [Bool]?
  /// Only one save of the store runs at a time, and none while its metadata change or it is compacted, removed or closed.
  let saveLock = SaveLock()
  /// Whether the store is one of the coordinator's, so that its reports concern the coordinator.
  let isOpen: OpenFlag
  /// Whether another process may have saved since the last call; nil if the store has no such check.
  private let otherSaves: OtherSavesCheck?
  /// Makes the store see what other processes have saved; nil if it sees that whenever it is read, or never.
  private let loadingOfOtherSaves: (@Sendable (RequestOptions) throws -> Void)?
  /// Held during a check and what follows from it.
  private let noticing = Mutex(())
  /// The number of the thread that holds ``noticing``; 0 if none does.
  private let noticingThread = Atomic<UInt>(0)
  /// Guards the user's metadata, as last read or written.
  private let userInfo: Mutex<UserInfo>

  /// Opens a store.
  init(
    _ description: StoreDescription, of coordinator: PersistentStoreCoordinator, place: Int, isOpen: OpenFlag, host: StoreHost
  ) throws {
    let model = coordinator.model
    owner = Owner(coordinator: coordinator)
    opened = OpenedDescription(description)
    self.place = place
    self.isOpen = isOpen
    heldEntities = try PersistentStore.heldEntities(description, model)
    let (store, monitored, metadata) = try PersistentStore.open(description, model, host, coordinator.monitor)
    base = store
    self.monitored = monitored
    do { incomparable = try IncomparableSlots(metadata.incomparableSlots, model, description.location?.description) } catch {
      try? store.close()
      throw error
    }
    identity = metadata.identity
    prefixes = model.entities.map { metadata.identity.prefix(for: $0) }
    placed = PlacedStore(monitored, place: place, path: description.location?.description, model: model)
    capabilities = place == 0 ? store.capabilities : placed.capabilities
    isAlone = Atomic(place == 0)
    otherSaves = host.checkForOtherSaves
    loadingOfOtherSaves = host.loadingOfOtherSaves
    userInfo = Mutex(UserInfo(metadata.userInfo))
  }

  /// Runs a closure if another process may have saved since the last call. Other calls wait until it has run.
  ///
  /// Traps if the store's check calls it, because the check would then wait for itself.
  func ifOthersHaveSaved(_ body: () -> Void) {
    guard let otherSaves else { return }
    let thread = ThreadID.current.number
    precondition(
      noticingThread.load(ordering: .relaxed) != thread,
      "A store's check for other saves read an object of a context; it may only send requests to the store itself.")
    noticing.withLock { _ in
      noticingThread.store(thread, ordering: .relaxed)
      defer { noticingThread.store(0, ordering: .relaxed) }
      if otherSaves.haveOthersSaved() { body() }
    }
  }

  /// Makes the store see what other processes have saved. Call it under the save lock.
  ///
  /// - Parameter options: The options of the save, whose deadline limits the wait for another process.
  func loadOtherSaves(_ options: RequestOptions) throws {
    if let loadingOfOtherSaves { try wrapping("save") { try loadingOfOtherSaves(options) } }
  }

  /// Opens a store. If it has a former version of the model, it is first migrated, if the description allows that.
  private static func open(
    _ description: StoreDescription, _ model: ManagedObjectModel, _ host: StoreHost, _ monitor: RequestMonitor
  ) throws -> (any IncrementalStore, MonitoredStore, StoreMetadata) {
    func open() throws -> (any IncrementalStore, MonitoredStore, StoreMetadata) {
      let store = description.makeStore(), monitored = MonitoredStore(store, description.type, monitor)
      let metadata = try wrapping("open the store", description.location?.description) { try monitored.open(model: model, host: host) }
      return (store, monitored, metadata)
    }
    do { return try open() } catch let error as StoreError where error.code == .incompatibleModel && description.canMigrate {
      do { try PersistentStoreCoordinator.migrateAutomatically(description, to: model) } catch let failure {
        // Another process may have migrated the store meanwhile. If another thread has the store open, opening it again could refuse that
        // thread's next step, and neither would succeed.
        if (failure as? StoreError)?.code != .alreadyOpen, let opened = try? open() { return opened }
        guard let migration = failure as? MigrationError, migration.code == .missingSourceModel else { throw failure }
        var error = error
        error.cause = migration
        throw error
      }
      return try open()
    }
  }

  private static func heldEntities(_ description: StoreDescription, _ model: ManagedObjectModel) throws -> [Bool]? {
    guard let name = description.configuration else { return nil }
    guard let entities = model.entities(inConfiguration: name) else {
      let known = model.configurations.map(\.name).joined(separator: ", ")
      throw StoreError(
        .unsupportedModel, operation: "open the store", path: description.location?.description,
        reason: "The model has no configuration \(name). Its configurations: \(known.isEmpty ? "none" : known).")
    }
    return model.entityIndexes.map { index in entities.contains { $0.index == index } }
  }

  // MARK: Properties

  /// The store's UUID as upper-case text.
  public var identifier: String { identity.storeUUID }

  /// The name of the type, such as "SQLite" or "memory".
  public var type: String { description.type }

  /// Where the store keeps its data; nil for a store without a location.
  public var location: StoreLocation? { description.location }

  /// The location without credentials, for errors.
  var locationDescription: String? { location?.description }

  /// The name of the configuration whose entities the store holds; nil for all entities.
  public var configurationName: String? { description.configuration }

  /// Whether the store was opened read-only.
  public var isReadOnly: Bool { description.isReadOnly }

  /// The user's metadata, as read when the store was opened or last written by ``setMetadata(_:)``.
  ///
  /// An object ID with a text identifier, of a store that wasn't open when the metadata was read, keeps its URI but isn't equal to the IDs
  /// of that store. Once the store is open, create another ID from the URI.
  public var metadata: [String: StoreValue] { userInfo.withLock { $0 }.values }

  /// Replaces the user's metadata in the store. If the store is being saved, waits for that save.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``; with code ``/HoldfastStore/StoreError/Code/notOpen`` after the store was removed or closed.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    let operation = "write the metadata"
    try changing(operation) {
      do {
        try wrapping(operation) { try base.setMetadata(metadata) }
      } catch let error as StoreError where error.code == .durabilityUnknown {
        userInfo.withLock { $0 = UserInfo(metadata) }
        throw error
      }
      userInfo.withLock { $0 = UserInfo(metadata) }
    }
  }

  /// Rebuilds the store's file without unused space. The new file is durable when it returns.
  ///
  /// Saves and compaction wait for each other.
  ///
  /// SQLite stores can be compacted; see ``/HoldfastSQLiteStore/SQLiteStore/compact()``. JSON, XML and binary stores have no unused space,
  /// because every save writes their entire file. ``PersistentStoreCoordinator/compact(_:)`` compacts a store that isn't open.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``; the rows are then unchanged. The code is
  ///   ``/HoldfastStore/StoreError/Code/unsupportedRequest`` when this type of store can't be compacted. It is
  ///   ``/HoldfastStore/StoreError/Code/locked`` while another process writes to the store, and ``/HoldfastStore/StoreError/Code/notOpen``
  ///   after the store was removed or closed. Others are ``/HoldfastStore/StoreError/Code/diskFull`` and
  ///   ``/HoldfastStore/StoreError/Code/readOnly``.
  public func compact() throws {
    guard base.answers.supports(CompactionRequest.self) else {
      throw StoreError(
        .unsupportedRequest, operation: CompactionRequest.operation, path: locationDescription,
        reason: "A store of type \(type) can't be compacted.")
    }
    try changing(CompactionRequest.operation) {
      try wrapping(CompactionRequest.operation) { try base.answers.perform(CompactionRequest()) }
    }
  }

  /// Runs a change of the store outside a save, under its save lock.
  ///
  /// Keeps the coordinator until the lock is released. A store reports changes of other processes during its requests, and the report may
  /// otherwise be the last to release the coordinator, whose `deinit` closes the store: it would wait for the lock that this thread holds.
  private func changing(_ operation: String, _ body: () throws -> Void) throws {
    guard let coordinator = owner.coordinator else {
      throw StoreError(
        .notOpen, operation: operation, path: locationDescription,
        reason: "The store was closed, because its coordinator was released. Open it again, and keep a reference to the coordinator.")
    }
    try withExtendedLifetime(coordinator) { try saveLock.withLock(body) }
  }

  // MARK: For the coordinator

  /// The store with the coordinator's keys.
  var store: any IncrementalStore { isSole ? monitored : placed }

  /// Whether the coordinator has had no other store, so that keys need no translation.
  var isSole: Bool { isAlone.load(ordering: .acquiring) }

  /// Switches to keys that distinguish stores, because there is more than one from now on.
  func standBesideOthers() { isAlone.store(false, ordering: .releasing) }

  /// Whether the store may have objects of every entity.
  var holdsAll: Bool { heldEntities == nil }

  /// Whether the store may have objects of an entity.
  func holds(_ entity: EntityIndex) -> Bool { heldEntities.map { $0[entity] } ?? true }

  /// The store's name in messages, with control characters escaped.
  var title: String { (locationDescription ?? "\(type) store \(identifier)").escapingControlCharacters() }

  /// Runs a closure and wraps errors of unknown types in a ``/HoldfastStore/StoreError``.
  func wrapping<Result>(_ operation: @autoclosure () -> String, _ body: () throws -> Result) throws -> Result {
    try PersistentStore.wrapping(operation(), locationDescription, body)
  }

  static func wrapping<Result>(
    _ operation: @autoclosure () -> String, _ path: @autoclosure () -> String?, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error where error is StoreError || error is PersistenceError || error is QueryError || error is MigrationError {
      throw error
    } catch let error as CancellationError {
      throw StoreError(.cancelled, operation: operation(), path: path(), reason: "The store's operation was cancelled.", cause: error)
    } catch {
      throw StoreError(
        .general, operation: operation(), path: path(), reason: "The store failed with an unknown error.", cause: error.withoutCodedValues)
    }
  }

  /// Reserves keys of the coordinator for new objects. The caller holds the save lock.
  func reserveKeys(_ demands: [KeyDemand], _ options: RequestOptions) throws -> [[ObjectKey]] {
    let reserved = try wrapping("obtain permanent IDs") { try store.reserveKeys(demands, options: options) }
    guard reserved.map(\.count) == demands.map(\.count) else {
      throw StoreError(
        .damaged, operation: "obtain permanent IDs", path: locationDescription,
        reason: "The store reserved \(reserved.map(\.count)) keys instead of \(demands.map(\.count)) (rule K1).")
    }
    // Negative keys are those of unsaved objects. With a repeated key, one object would replace another.
    guard reserved.allSatisfy({ keys in keys.first.map { $0 > 0 } ?? true && zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 } }) else {
      throw StoreError(
        .damaged, operation: "obtain permanent IDs", path: locationDescription,
        reason: "The keys that the store reserved aren't positive and ascending (rule K1).")
    }
    return reserved
  }

  /// Runs a closure with a read view, which ends afterwards.
  func reading<Result>(
    _ kind: ReadViewKind, _ operation: @autoclosure () -> String, _ options: RequestOptions,
    _ body: (any ReadView) throws -> Result
  ) throws -> Result {
    try wrapping(operation()) {
      let view = try base.beginRead(kind, options: options)
      defer { view.end() }
      return try body(view)
    }
  }
}

extension PersistentStore: Hashable {
  /// Whether both refer to the same open store.
  public static func == (a: PersistentStore, b: PersistentStore) -> Bool { a === b }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Whether a store is open.
final class OpenFlag: Sendable {
  private let flag = Atomic(false)

  var value: Bool { flag.load(ordering: .acquiring) }
  func set(_ value: Bool) { flag.store(value, ordering: .releasing) }
}

/// The description with which a store was opened.
///
/// A class, like ``UserInfo``: the metadata of an optional or mutex of the struct would be instantiated when a process opens its first
/// store. That is noticeable, because opening a small store takes less than a millisecond.
final class OpenedDescription: Sendable {
  let description: StoreDescription
  init(_ description: StoreDescription) { self.description = description }
}

/// The user's metadata of a store.
private final class UserInfo: Sendable {
  let values: [String: StoreValue]
  init(_ values: [String: StoreValue]) { self.values = values }
}
