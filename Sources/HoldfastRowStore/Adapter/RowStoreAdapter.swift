import Synchronization

/// An incremental store over a ``RowStore``.
final class RowStoreAdapter<Store: RowStore>: IncrementalStore {
  let store: Store
  private let location: StoreLocation?
  private let isReadOnly: Bool
  private let firstKey: ObjectKey
  /// The open session. Guarded because any thread may close the store.
  private let session = Mutex<Session?>(nil)
  /// The settings, and the keys that were reserved since they were last applied. The coordinator changes them under its save lock; the
  /// mutex guards them from `close`.
  private let settings = Mutex<Settings?>(nil)

  private struct Settings: Sendable {
    var current: RowStoreSettings
    var hasNewKeys = false
    /// Whether the outcome of the last commit is unknown.
    var isUncertain = false
  }

  /// What the requests to an open store share.
  struct Session: Sendable {
    let model: ManagedObjectModel
    let identity: StoreIdentity
    let liveness = Liveness()
  }

  /// Whether a store is open. Shared with its views.
  final class Liveness: Sendable {
    let isOpen = Atomic(true)
  }

  init(_ store: Store, at location: StoreLocation?, isReadOnly: Bool, firstKey: ObjectKey) {
    self.firstKey = firstKey
    self.store = store
    self.location = location
    self.isReadOnly = isReadOnly
  }

  deinit { try? close() }

  var capabilities: StoreCapabilities {
    var capabilities = store.capabilities
    // A row store delivers rows. The framework counts and aggregates them, checks uniqueness, and keeps large values in rows.
    (capabilities.counting, capabilities.aggregates, capabilities.uniqueness, capabilities.externalData) = (false, false, false, false)
    return capabilities
  }

  var answers: StoreAnswers { .none }

  // MARK: Opening and closing

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    precondition(session.withLock { $0 == nil }, "The store is already open.")
    let texts = try store.open()
    do {
      let opened = try settings(texts, model)
      let identity = try StoreIdentity.intern(storedUUID: opened.storeUUID, model: model, path: location?.description)
      settings.withLock { $0 = Settings(current: opened) }
      session.withLock { $0 = Session(model: model, identity: identity) }
      return StoreMetadata(identity: identity, userInfo: opened.metadata)
    } catch {
      try? store.close()
      throw error
    }
  }

  /// The settings of the store, which are created for a new store.
  private func settings(_ texts: [String: String], _ model: ManagedObjectModel) throws -> RowStoreSettings {
    if let settings = try RowStoreSettings(texts, location) {
      try ModelCompatibility.check(settings.versionHashes, layouts: settings.layoutHashes, model, path: location?.description)
      return settings
    }
    if isReadOnly {
      throw StoreError(
        .notFound, operation: "open the store", path: location?.description,
        reason: "There is no store, and it was opened read-only. Check the location.")
    }
    let settings = RowStoreSettings(new: model)
    var changes = RowChanges()
    changes.settings = try settings.texts(of: model)
    try store.apply(changes)
    return settings
  }

  func close() throws {
    let open = session.withLock { session in
      defer { session = nil }
      return session
    }
    guard let closing = open else { return }
    closing.liveness.isOpen.store(false, ordering: .releasing)
    var failure: (any Error)?
    // After an unknown outcome, the store may refuse changes until it is opened again. As after a crash, keys without rows may be lost.
    let isUncertain = settings.withLock { $0?.isUncertain ?? false }
    do { try keepReservedKeys() } catch { failure = isUncertain ? nil : error }
    try store.close()
    if let failure { throw failure }
  }

  /// Keys that were reserved and not used must not be reserved again.
  private func keepReservedKeys() throws {
    let text = try settings.withLock { settings in
      defer { settings = nil }
      return settings?.hasNewKeys == true ? try settings?.current.keysText() : nil
    }
    guard let text else { return }
    var changes = RowChanges()
    changes.settings[text.name] = text.value
    try store.apply(changes)
  }

  func current(_ operation: String) throws -> Session {
    if let session = session.withLock({ $0 }) { return session }
    throw RowStoreError.notOpen(operation)
  }

  // MARK: Settings

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    let operation = "write the metadata"
    _ = try current(operation)
    if isReadOnly { throw RowStoreError.readOnly(operation, location) }
    guard var new = settings.withLock({ $0?.current }) else { throw RowStoreError.notOpen(operation) }
    new.metadata = metadata
    var changes = RowChanges()
    let text = try new.metadataText()
    changes.settings[text.name] = text.value
    try store.apply(changes)
    settings.withLock { $0?.current.metadata = metadata }
  }

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    let operation = "reserve keys", session = try current(operation)
    if isReadOnly { throw RowStoreError.readOnly(operation, location) }
    return try settings.withLock { settings throws in
      guard var new = settings?.current else { throw RowStoreError.notOpen(operation) }
      let keys = try demands.map { demand in
        let entity = session.model.entities[demand.entity], root = session.model.entities[entity.rootIndex].name
        let first = new.nextKeys[root] ?? firstKey
        guard demand.count < first.distance(to: RowStoreAdapter.largestKey) else {
          throw StoreError(
            .unstorableValue, operation: "reserve keys of \(entity.name)",
            reason: "There are no keys left. Copy the objects to a new store.")
        }
        let next = first.advanced(by: demand.count)
        new.nextKeys[root] = next
        return Array(first..<next)
      }
      settings?.current = new
      settings?.hasNewKeys = true
      return keys
    }
  }

  /// The framework needs the upper bits of keys if a coordinator has several stores.
  private static var largestKey: ObjectKey { ObjectKey(1 << 56) }

  // MARK: Saving

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    let session = try current("save")
    if isReadOnly { throw RowStoreError.readOnly("save", location) }
    let changes = try request.rowChanges(
      in: try store.snapshot(), of: store, model: session.model, identity: session.identity,
      comparesVersions: store.capabilities.versions, options: options)
    return RowPreparation(self, changes)
  }

  /// Applies a save together with the keys that were reserved for it.
  fileprivate func commit(_ changes: RowChanges) throws {
    _ = try current("save")
    var changes = changes
    if let text = try settings.withLock({ $0?.hasNewKeys == true ? try $0?.current.keysText() : nil }) {
      changes.settings[text.name] = text.value
    }
    if changes.isEmpty { return }
    do { try store.apply(changes) } catch let error as StoreError {
      settings.withLock { settings in
        if error.code == .durabilityUnknown { settings?.hasNewKeys = false }
        if error.code == .outcomeUnknown { settings?.isUncertain = true }
      }
      throw error
    }
    settings.withLock { settings in
      settings?.hasNewKeys = false
      settings?.isUncertain = false
    }
  }
}

/// A save whose changes are known and not applied yet.
private final class RowPreparation<Store: RowStore>: PreparedSave {
  private let adapter: RowStoreAdapter<Store>
  private let changes: RowChanges

  init(_ adapter: RowStoreAdapter<Store>, _ changes: RowChanges) {
    self.adapter = adapter
    self.changes = changes
  }

  func commit() throws -> SaveReceipt {
    try adapter.commit(changes)
    return SaveReceipt()
  }

  func abort() {}
}
