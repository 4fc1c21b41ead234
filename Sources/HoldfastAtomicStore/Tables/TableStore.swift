import HoldfastFiles
public import HoldfastStore
import Synchronization

/// What every store that keeps all rows in memory shares: the current generation, read views, keys for new objects and
/// the two steps of a save. A store on a file adds how a generation is written before it is published.
///
/// It is *not* an ``/HoldfastStore/IncrementalStore`` itself: opening, closing and metadata are the store's.
public final class TableStore: Sendable {
  /// The tables' schema.
  public let schema: TableSchema
  /// Whether every change is refused.
  let isReadOnly: Bool
  /// Guards the current generation, the keys and whether a save is prepared: whoever reads or replaces them.
  private let state: Mutex<State>
  private let liveness = Liveness()

  private struct State {
    var source: RowSource
    var nextKeys: [Int64]
    var isSaving = false
  }

  /// What the tables answer themselves, without sorting or filtering.
  public static let capabilities: StoreCapabilities = {
    var capabilities = StoreCapabilities()
    capabilities.uniqueLookups = true
    capabilities.counting = true
    capabilities.uniqueness = true
    capabilities.snapshots = true
    capabilities.versions = true
    capabilities.residentRows = true
    return capabilities
  }()

  /// Begins with a generation.
  ///
  /// - Parameters:
  ///   - generation: the rows.
  ///   - nextKeys: for each root entity, in the order of the model's entities, the least key that was never handed out;
  ///     empty for a new store.
  ///   - isReadOnly: whether every change is refused.
  public convenience init(_ generation: TableGeneration, nextKeys: [Int64] = [], isReadOnly: Bool = false) {
    self.init(schema: generation.schema, .tables(generation), nextKeys: nextKeys, isReadOnly: isReadOnly)
  }

  init(schema: TableSchema, _ source: RowSource, nextKeys: [Int64], isReadOnly: Bool) {
    self.schema = schema
    self.isReadOnly = isReadOnly
    let keys = nextKeys.isEmpty ? Array(repeating: 1, count: schema.tableCount) : nextKeys
    state = Mutex(State(source: source, nextKeys: keys))
  }

  /// The generation that was published last; nil while it lies in a file of which not all was needed.
  public var generation: TableGeneration? {
    if case .tables(let generation) = source { generation } else { nil }
  }

  /// The rows that were published last.
  var source: RowSource {
    let (settled, before) = state.withLock { state in
      let before = state.source
      state.source = before.settled
      return (state.source, before)
    }
    // What read from a file is let go outside the lock, because that may close the file.
    _ = before
    return settled
  }

  /// For each root entity the least key that was never handed out, to be kept with the store.
  public var nextKeys: [Int64] { state.withLock { $0.nextKeys } }

  /// Ends all read views. Nothing can be read or saved afterwards.
  public func close() { liveness.isOpen.store(false, ordering: .releasing) }

  // MARK: Reading

  /// Begins reading the current generation. Both kinds of view pin it, which costs nothing.
  public func beginRead() throws -> any ReadView { try beginRead(keeping: nil) }

  /// The same, with files that the view keeps until it ends.
  func beginRead(keeping files: ExternalDataPin?) throws -> any ReadView {
    guard liveness.isOpen.load(ordering: .acquiring) else { throw TableError.notOpen("begin to read") }
    return GenerationView(source, liveness, files)
  }

  /// The generation that a view reads.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `notOpen` when the view ended or is another store's.
  public func generation(of view: any ReadView) throws -> TableGeneration { try source(of: view).generation() }

  /// The rows that a view reads.
  func source(of view: any ReadView) throws -> RowSource {
    guard let view = view as? GenerationView, view.liveness === liveness else { throw TableError.foreignView() }
    return try view.source()
  }

  // MARK: Saving

  /// Goes on with what somebody else has saved. Views that have begun keep what they see.
  ///
  /// - Parameter nextKeys: as in the initialiser; keys handed out by this store are not handed out again all the same.
  /// - Requires: no save is prepared.
  func goOn(with generation: TableGeneration, nextKeys: [Int64]) {
    let old = state.withLock { state in
      precondition(!state.isSaving, "A store went on with other rows while a save was prepared.")
      let old = state.source
      state.source = .tables(generation)
      state.nextKeys = zip(state.nextKeys, nextKeys).map { max($0, $1) }
      return old
    }
    _ = old
  }

  /// Sets keys aside that nobody else has, as somebody knows who sees what others set aside.
  ///
  /// - Parameter others: for each table the least key that nobody else has handed out.
  /// - Returns: the keys, and for each table the least key that was never handed out from now on.
  func allocateKeys(entity: Int, count: Int, others: [Int64]) throws -> (keys: [Int64], nextKeys: [Int64]) {
    state.withLock { state in
      if others.count == state.nextKeys.count { state.nextKeys = zip(state.nextKeys, others).map { max($0, $1) } }
    }
    return (try allocateKeys(entity: entity, count: count), nextKeys)
  }

  /// Sets keys aside; see ``/HoldfastStore/IncrementalStore/allocateKeys(entity:count:)``.
  public func allocateKeys(entity: Int, count: Int) throws -> [Int64] {
    guard liveness.isOpen.load(ordering: .acquiring) else { throw TableError.notOpen("set keys aside") }
    guard !isReadOnly else { throw TableError.readOnly("set keys aside") }
    let table = schema.tableOfEntity[entity]
    let first = try state.withLock { state throws in
      let first = state.nextKeys[table]
      guard Int64(count) <= TableLoader.nextKeys.upperBound - first else { throw TableError.noMoreKeys(schema.model.entities[entity]) }
      switch schema.keySpace {
      case .family: state.nextKeys[table] = first + Int64(count)
      case .store: for table in state.nextKeys.indices { state.nextKeys[table] = first + Int64(count) }
      }
      return first
    }
    return Array(first..<first + Int64(count))
  }

  /// Works out the generation that a save makes; see ``/HoldfastStore/IncrementalStore/prepare(_:)`` for its errors.
  ///
  /// One of ``TablePreparation/publish()`` and ``TablePreparation/discard()`` has to follow; a preparation that is let go
  /// discards itself.
  public func prepare(_ request: SaveRequest) throws -> TablePreparation {
    guard liveness.isOpen.load(ordering: .acquiring) else { throw TableError.notOpen("save") }
    guard !isReadOnly else { throw TableError.readOnly("save") }
    let base = try state.withLock { state throws in
      guard !state.isSaving else { throw TableError.saveInProgress() }
      state.isSaving = true
      return state.source
    }
    do {
      return TablePreparation(try TableSave.next(request, after: base.generation()), for: self)
    } catch {
      finish(nil)
      throw error
    }
  }

  fileprivate func finish(_ next: TableGeneration?) {
    // The old generation is let go outside the lock: freeing its pages can take long.
    let old = state.withLock { state in
      let old = state.source
      state.isSaving = false
      if let next { state.source = .tables(next) }
      return old
    }
    _ = old
  }
}

/// A save that was worked out and is visible to nobody yet.
public final class TablePreparation: Sendable {
  /// The rows and links after the save.
  public let next: TableGeneration
  private let store: TableStore
  private let isDone = Atomic(false)

  fileprivate init(_ next: TableGeneration, for store: TableStore) {
    self.next = next
    self.store = store
  }

  deinit { discard() }

  /// Makes the save visible to views that begin from now on.
  public func publish() {
    if !isDone.exchange(true, ordering: .acquiringAndReleasing) { store.finish(next) }
  }

  /// Takes the save back. After ``publish()`` it does nothing.
  public func discard() {
    if !isDone.exchange(true, ordering: .acquiringAndReleasing) { store.finish(nil) }
  }
}

/// Whether a store is open, shared with its views.
private final class Liveness: Sendable {
  let isOpen = Atomic(true)
}

/// A read view that pins rows.
private final class GenerationView: ReadView {
  let liveness: Liveness
  /// The rows until the view ends; guarded because a view may be ended by another thread.
  private let pinned: Mutex<RowSource?>

  private let files: ExternalDataPin?

  init(_ source: RowSource, _ liveness: Liveness, _ files: ExternalDataPin?) {
    pinned = Mutex(source)
    self.liveness = liveness
    self.files = files
  }

  func source() throws -> RowSource {
    guard liveness.isOpen.load(ordering: .acquiring) else { throw TableError.notOpen("read") }
    guard let source = pinned.withLock({ $0 }) else { throw TableError.viewEnded() }
    return source
  }

  func end() {
    let source = pinned.withLock { pinned in
      defer { pinned = nil }
      return pinned
    }
    _ = source
    files?.end()
  }
}
