import HoldfastRowStore
public import HoldfastStore
import Synchronization

/// The changes that an overlay keeps in memory; see `StoreDescription.overlay(over:contents:)`.
///
/// They outlive the store, so that another overlay of the same store can continue with them. Only one open overlay can have them.
public final class OverlayContents: Sendable {
  fileprivate let state = Mutex(State())

  fileprivate struct State: Sendable {
    var isOpen = false
    /// The UUID of the store below; nil before the contents are first used.
    var baseUUID: String?
    var changes = OverlayChanges()
  }

  /// Creates contents without changes.
  public init() {}

  /// The number of objects that were saved, and of deleted objects of the store below.
  public var changedObjectCount: Int { state.withLock { $0.changes.rows.values.reduce(0) { $0 + $1.count } } }
}

/// Changed rows and links. A copy is a snapshot.
private struct OverlayChanges: Sendable {
  enum Change<Value: Sendable>: Sendable {
    case saved(Value)
    case deleted

    /// The saved value; nil if the change is a deletion.
    var value: Value? { if case .saved(let value) = self { value } else { nil } }
  }

  var settings: [String: String] = [:]
  /// By root entity and key.
  var rows: [EntityIndex: [ObjectKey: Change<StoredRow>]] = [:]
  /// By relationship.
  var links: [String: [SaveRequest.Link: Change<StoredLink>]] = [:]
}

/// The rows of another store together with changes in memory.
private final class OverlayRows: RowStore {
  struct Snapshot: Sendable {
    var base: OverlayBase
    var changes: OverlayChanges
  }

  private let contents: OverlayContents
  /// Guarded because reads run during a save.
  private let session = Mutex(Session())

  private struct Session: Sendable {
    /// The store below; nil unless this store is open.
    var base: OverlayBase?
    /// Whether this store, and not another one, has the contents open.
    var hasContents = false
  }

  init(_ contents: OverlayContents) { self.contents = contents }

  var capabilities: StoreCapabilities {
    var capabilities = StoreCapabilities()
    (capabilities.snapshots, capabilities.versions) = (true, true)
    return capabilities
  }

  /// Shows the objects of an open store.
  func show(_ other: OverlayBase) { session.withLock { $0.base = other } }

  /// Sets the identity of the overlay.
  func identify(as identity: StoreIdentity) { session.withLock { session -> Void in session.base?.overlay = identity } }

  func open() throws -> [String: String] {
    try contents.state.withLock { state in
      guard !state.isOpen else {
        throw StoreError(.alreadyOpen, operation: "open the store", reason: "Another overlay has these contents open. Close it first.")
      }
      let base = try current().identity.storeUUID
      guard state.baseUUID ?? base == base else {
        throw StoreError(
          .storeReplaced, operation: "open the store",
          reason:
            "The changes were made to the store \(state.baseUUID ?? ""), and the store below is \(base). Open the overlay over the same "
            + "store, or with new contents.")
      }
      state.baseUUID = base
      state.isOpen = true
      session.withLock { $0.hasContents = true }
      return state.changes.settings
    }
  }

  func close() throws {
    let closing = session.withLock { session in
      defer { session = Session() }
      return session
    }
    if closing.hasContents { contents.state.withLock { $0.isOpen = false } }
    try closing.base?.close()
  }

  func snapshot() throws -> Snapshot { Snapshot(base: try current(), changes: contents.state.withLock { $0.changes }) }

  private func current() throws -> OverlayBase {
    if let base = session.withLock({ $0.base }) { return base }
    throw StoreError(.notOpen, operation: "read", reason: "The store isn't open.")
  }

  func rows(matching query: RowQuery, in snapshot: Snapshot, into output: RowOutput) throws {
    let changed = snapshot.changes.rows[query.declaredEntity.rootIndex] ?? [:]
    let names = Set(query.entities.map(\.name))
    func add(_ change: OverlayChanges.Change<StoredRow>) throws -> SinkDemand {
      guard let row = change.value, names.contains(row.entity) else { return .more }
      return try output.add(row)
    }
    if let keys = query.keys {
      // Faults are frequent, and need few of the changed rows.
      for key in keys { if let change = changed[key], try add(change) == .enough { return } }
    } else {
      for change in changed.values where try add(change) == .enough { return }
    }
    try snapshot.base.forEachRow(query) { row in try changed[row.key] == nil ? output.add(row) : .more }
  }

  func links(matching query: LinkQuery, in snapshot: Snapshot) throws -> [StoredLink] {
    let changed = snapshot.changes.links[query.relationship] ?? [:]
    return try snapshot.base.links(query).filter { changed[$0.ends] == nil } + changed.values.compactMap(\.value)
  }

  func apply(_ changes: RowChanges) throws {
    let model = try current().model
    func root(_ entity: String) -> EntityIndex { model.entity(named: entity)?.rootIndex ?? 0 }
    contents.state.withLock { state in
      state.changes.settings.merge(changes.settings) { $1 }
      // The store below has no object with a key of the overlay, so nothing hides one.
      for row in changes.deletedRows {
        state.changes.rows[root(row.entity), default: [:]][row.key] = row.key < OverlayStore.firstKey ? .deleted : nil
      }
      for row in changes.savedRows { state.changes.rows[root(row.entity), default: [:]][row.key] = .saved(row) }
      for link in changes.deletedLinks {
        let mayBeBelow = max(link.source, link.target) < OverlayStore.firstKey
        state.changes.links[link.relationship, default: [:]][link.ends] = mayBeBelow ? .deleted : nil
      }
      for link in changes.savedLinks { state.changes.links[link.relationship, default: [:]][link.ends] = .saved(link) }
    }
  }
}

extension StoredLink {
  fileprivate var ends: SaveRequest.Link { SaveRequest.Link(source: source, target: target) }
}

/// The row store of an overlay. It also opens the store below.
private final class OverlayStore: ForwardingStore {
  let base: any IncrementalStore
  private let rows: OverlayRows
  private let makeOther: @Sendable () -> any IncrementalStore
  /// The first key of new objects. The keys of the store below must be smaller.
  fileprivate static var firstKey: ObjectKey { ObjectKey(1 << 48) }

  init(_ contents: OverlayContents, _ makeOther: @escaping @Sendable () -> any IncrementalStore) {
    let rows = OverlayRows(contents)
    self.rows = rows
    self.makeOther = makeOther
    base = StoreDescription.rowStore("overlay", firstKey: OverlayStore.firstKey) { rows }.makeStore()
  }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    rows.show(try OverlayBase(makeOther(), model, host.configuration, keysBelow: OverlayStore.firstKey))
    do {
      let metadata = try base.open(model: model, host: host)
      rows.identify(as: metadata.identity)
      return metadata
    } catch {
      try? rows.close()
      throw error
    }
  }
}

extension StoreDescription {
  /// A store that shows another store's objects and keeps all changes in memory.
  ///
  /// Programs use an overlay to try out changes, or to edit the data of a file that they can't write. The other store is opened and read.
  /// Its objects are never changed:
  ///
  /// ```swift
  /// let sandbox = StoreDescription.overlay(over: .sqlite(at: path).readOnly())
  /// ```
  ///
  /// Opened read-only, the other store changes no file. Otherwise, opening it creates a missing file. Opening a SQLite store also adds
  /// missing indexes, and converts the journal mode.
  ///
  /// - Objects have the same keys as in the other store but different IDs, because an overlay has its own UUID. Attributes with IDs of the
  ///   other store's objects have the overlay's IDs.
  /// - The overlay has the configuration of the other store. Its location has the same description, but no path.
  /// - The changes are in `contents`. To keep them longer than the program, copy the objects to another store.
  /// - Keys of the other store must be less than 2^48. Otherwise reading throws `unsupportedModel`.
  /// - Saves of other programs to the other store aren't shown, if it has snapshots. Without snapshots, it must not change.
  /// - If the other store has snapshots, several threads read one of them at the same time, as Holdfast's stores permit.
  /// - The framework evaluates queries, so each fetch reads all rows of its entities.
  /// - Values in external files are read with their rows, and all values of a row have at most 2 GiB.
  ///
  /// - Parameters:
  ///   - base: The other store. It is created if it doesn't exist, unless it is opened read-only. It isn't migrated.
  ///   - contents: The changes. Defaults to none. Opening throws `alreadyOpen` if another open overlay has them, and `storeReplaced` if
  ///     they were made to another store.
  public static func overlay(over base: StoreDescription, contents: OverlayContents = OverlayContents()) -> StoreDescription {
    // Not the path of the file below, which isn't the overlay's to remove or replace.
    let location = base.location.map { StoreLocation.named($0.description) }
    return StoreDescription(type: "overlay", at: location, configuration: base.configuration) { OverlayStore(contents, base.makeStore) }
  }
}
