public import HoldfastStore
import Synchronization

/// One store of a coordinator, open: what it is called, and its metadata. A handle, free to travel; the rows are reached
/// through contexts.
public final class PersistentStore: Sendable {
  /// What was opened.
  let opened: OpenedDescription
  var description: StoreDescription { opened.description }
  /// The place among all stores that the coordinator ever had; never given to another.
  let place: Int
  /// The store itself, which knows its own keys.
  let base: any IncrementalStore
  /// The store as the stack sees it beside others.
  private let placed: PlacedStore
  /// Whether no other store was ever added.
  private let isAlone: Atomic<Bool>
  let identity: StoreIdentity
  let capabilities: StoreCapabilities
  /// What the IDs of each entity's objects begin with, by entity index.
  let prefixes: [ManagedObjectID]
  /// Whether there may be objects of an entity, by its index; nil when all have their objects here.
  private let heldEntities: [Bool]?
  private let saveLock: SaveLock
  /// Guards which are the user's metadata, as they were opened or written last.
  private let userInfo: Mutex<UserInfo>

  /// Opens a store.
  init(_ description: StoreDescription, model: ManagedObjectModel, place: Int, saveLock: SaveLock) throws {
    opened = OpenedDescription(description)
    self.place = place
    self.saveLock = saveLock
    heldEntities = try PersistentStore.heldEntities(description, model)
    let store = description.makeStore()
    let metadata = try PersistentStore.wrapping("open the store", description.path) { try store.open(model: model) }
    base = store
    identity = metadata.identity
    prefixes = model.entities.map { metadata.identity.prefix(for: $0) }
    placed = PlacedStore(store, place: place, path: description.path)
    capabilities = place == 0 ? store.capabilities : placed.capabilities
    isAlone = Atomic(place == 0)
    userInfo = Mutex(UserInfo(metadata.userInfo))
  }

  private static func heldEntities(_ description: StoreDescription, _ model: ManagedObjectModel) throws -> [Bool]? {
    guard let name = description.configuration else { return nil }
    guard let entities = model.entities(inConfiguration: name) else {
      let known = model.configurations.map(\.name).joined(separator: ", ")
      throw StoreError(
        .unsupportedModel, operation: "open the store", path: description.path,
        reason: "The model has no configuration \(name). It has \(known.isEmpty ? "none" : known).")
    }
    return model.entities.indices.map { index in entities.contains { $0.index == index } }
  }

  // MARK: What it is

  /// The store's UUID as upper-case text.
  public var identifier: String { identity.storeUUID }

  /// The name of the type: "SQLite", "memory".
  public var type: String { description.type }

  /// The path of the file; nil for a store without one.
  public var path: String? { description.path }

  /// The name of the configuration whose entities have their objects here; nil for all entities.
  public var configurationName: String? { description.configuration }

  /// Whether nothing may be written.
  public var isReadOnly: Bool { description.isReadOnly }

  /// The user's metadata, as they were when the store was opened or as ``setMetadata(_:)`` wrote them last.
  public var metadata: [String: StoreValue] { userInfo.withLock { $0 }.values }

  /// Replaces the user's metadata in the store. Waits for a save that is under way.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``; with code ``/HoldfastStore/StoreError/Code/notOpen`` after the store was removed.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    try saveLock.withLock {
      do {
        try wrapping("write the metadata") { try base.setMetadata(metadata) }
      } catch let error as StoreError where error.code == .durabilityUnknown {
        userInfo.withLock { $0 = UserInfo(metadata) }
        throw error
      }
      userInfo.withLock { $0 = UserInfo(metadata) }
    }
  }

  /// Rebuilds the store's file without unused space; durable when it returns. Waits for a save that is under way, and saves wait for it.
  ///
  /// A SQLite store is compacted by this, as ``/HoldfastSQLiteStore/SQLiteStore/compact()`` describes. JSON, XML and binary stores leave no
  /// unused space: every save writes their whole file. ``PersistentStoreCoordinator/compact(_:)`` compacts a store that isn't open.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/unsupportedRequest`` for a type of store with nothing
  ///   to rebuild, ``/HoldfastStore/StoreError/Code/locked`` while another process writes to it,
  ///   ``/HoldfastStore/StoreError/Code/diskFull``, ``/HoldfastStore/StoreError/Code/readOnly``, and
  ///   ``/HoldfastStore/StoreError/Code/notOpen`` after the store was removed. The rows are as before then.
  public func compact() throws {
    try saveLock.withLock { try wrapping("compact the store") { try PersistentStoreCoordinator.compact(description, open: base) } }
  }

  // MARK: For the coordinator

  /// The store in terms of the stack's keys.
  var store: any IncrementalStore { isAlone.load(ordering: .acquiring) ? base : placed }

  /// From now on there are others, so keys have to be told apart.
  func standBesideOthers() { isAlone.store(false, ordering: .releasing) }

  /// Whether objects of every entity may be here.
  var holdsAll: Bool { heldEntities == nil }

  /// Whether objects of an entity may be here.
  func holds(_ entity: Int) -> Bool { heldEntities.map { $0[entity] } ?? true }

  /// How the store is called in messages.
  var title: String { path ?? "\(type) store \(identifier)" }

  /// Runs something against the store and wraps what is no ``/HoldfastStore/StoreError`` in one.
  func wrapping<Result>(_ operation: @autoclosure () -> String, _ body: () throws -> Result) throws -> Result {
    try PersistentStore.wrapping(operation(), path, body)
  }

  private static func wrapping<Result>(_ operation: @autoclosure () -> String, _ path: String?, _ body: () throws -> Result) throws
    -> Result
  {
    do {
      return try body()
    } catch let error as StoreError {
      throw error
    } catch let error as ContextError {
      throw error
    } catch let error as QueryError {
      throw error
    } catch {
      throw StoreError(.general, operation: operation(), path: path, reason: "The store failed in a way of its own.", cause: error)
    }
  }

  /// Runs something in a read view that ends afterwards.
  func reading<Result>(_ kind: ReadViewKind = .latest, _ operation: @autoclosure () -> String, _ body: (any ReadView) throws -> Result)
    throws -> Result
  {
    try wrapping(operation()) {
      let view = try base.beginRead(kind)
      defer { view.end() }
      return try body(view)
    }
  }
}

extension PersistentStore: Hashable {
  /// Whether both are the same open store.
  public static func == (a: PersistentStore, b: PersistentStore) -> Bool { a === b }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// What was opened. A class, as ``UserInfo`` is, because the type of an optional or guarded value would have to be made when a
/// process opens its first store, and opening a small store takes less than a millisecond.
final class OpenedDescription: Sendable {
  let description: StoreDescription
  init(_ description: StoreDescription) { self.description = description }
}

/// The user's metadata of a store.
private final class UserInfo: Sendable {
  let values: [String: StoreValue]
  init(_ values: [String: StoreValue]) { self.values = values }
}

/// Lets one save of a coordinator, one change of its stores or of their metadata through at a time. The lock protects the
/// stores' write side, no data of ours.
final class SaveLock: Sendable {
  private let mutex = Mutex(())

  func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
    try mutex.withLock { _ in try body() }
  }
}
