import HoldfastFiles
public import HoldfastStore
import Synchronization

/// The in-memory part of a store: its current generation, read views, keys and saves.
///
/// A file-based store also writes each generation before it is published. `TableStore` isn't an
/// ``/HoldfastStore/IncrementalStore``: opening, closing and metadata are up to the store.
public final class TableStore: Sendable {
  /// The schema of the tables.
  public let schema: TableSchema
  /// Whether all changes are refused.
  let isReadOnly: Bool
  /// Guards the current generation, the next keys and whether a save is prepared.
  private let state: Mutex<State>
  private let liveness = Liveness()

  private struct State {
    var source: RowSource
    var nextKeys: [ObjectKey]
    var isSaving = false
    /// How often a version of another process has replaced the rows.
    var replacementCount = 0
    /// Identifies the rows; nil if the store doesn't use tokens.
    var token: GenerationToken?
  }

  /// What the tables support. Sorting and filtering aren't included.
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

  /// Creates a table store with a generation.
  ///
  /// - Parameters:
  ///   - generation: The rows.
  ///   - nextKeys: The next key to reserve for each root entity, in the order of the model's entities. Empty for a new store.
  ///   - isReadOnly: Whether all changes are refused.
  ///   - token: The generation's token. Defaults to none.
  public convenience init(
    _ generation: TableGeneration, nextKeys: [ObjectKey] = [], isReadOnly: Bool = false, token: GenerationToken? = nil
  ) {
    self.init(schema: generation.schema, .tables(generation), nextKeys: nextKeys, isReadOnly: isReadOnly, token: token)
  }

  init(schema: TableSchema, _ source: RowSource, nextKeys: [ObjectKey], isReadOnly: Bool, token: GenerationToken?) {
    self.schema = schema
    self.isReadOnly = isReadOnly
    let keys = nextKeys.isEmpty ? Array(repeating: 1, count: schema.tableCount) : nextKeys
    state = Mutex(State(source: source, nextKeys: keys, token: token))
  }

  /// The current generation; nil while it is read from a file on demand.
  public var generation: TableGeneration? {
    if case .tables(let generation) = source { generation } else { nil }
  }

  /// The current rows.
  var source: RowSource { current.source }

  /// The current rows and their token.
  private var current: (source: RowSource, token: GenerationToken?) {
    let (settled, before) = state.withLock { state in
      let before = state.source
      state.source = before.settled
      return ((state.source, state.token), before)
    }
    // Release the source outside the lock, because that may close a file.
    _ = before
    return settled
  }

  /// The next key to reserve for each root entity, which the store must save.
  public var nextKeys: [ObjectKey] { state.withLock { $0.nextKeys } }

  /// Ends all read views. Later calls that read or save throw.
  public func close() { liveness.isOpen.store(false, ordering: .releasing) }

  // MARK: Reading

  /// Begins a read view of the current generation, in constant time.
  ///
  /// The view pins the generation, so it can serve as either kind of view.
  public func beginRead() throws -> any ReadView { try beginRead(keeping: nil) }

  /// Begins a read view that keeps external files until it ends.
  func beginRead(keeping files: ExternalDataPin?) throws -> any ReadView {
    guard liveness.isOpen.load(ordering: .acquiring) else { throw TableError.notOpen("begin to read") }
    let (source, token) = current
    return GenerationView(source, token, schema.identity, liveness, files)
  }

  /// The generation of a view.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `notOpen` if the view has ended or belongs to another store.
  public func generation(of view: any ReadView) throws -> TableGeneration { try source(of: view).generation() }

  /// The rows of a view.
  func source(of view: any ReadView) throws -> RowSource {
    // Comparing the type takes less time than `as?`, which looks for conformances first.
    guard type(of: view) == GenerationView.self else { throw TableError.foreignView() }
    let own = unsafeDowncast(view, to: GenerationView.self)
    guard own.liveness === liveness else { throw TableError.foreignView() }
    return try own.source()
  }

  // MARK: Saving

  /// Replaces the current rows with a generation that another process saved. Existing views don't change.
  ///
  /// - Parameters:
  ///   - nextKeys: As in the initializer. Keys that this store reserved aren't reserved again.
  ///   - token: The generation's token.
  ///
  /// A save may be prepared: the lock excludes other processes only as long as no program removes the lock file. Such a save checks
  /// ``checkNotReplaced(since:)`` before it is committed.
  func goOn(with generation: TableGeneration, nextKeys: [ObjectKey], token: GenerationToken?) {
    let old = state.withLock { state in
      let old = state.source
      state.replacementCount += 1
      state.source = .tables(generation)
      state.token = token
      state.nextKeys = zip(state.nextKeys, nextKeys).map { max($0, $1) }
      return old
    }
    _ = old
  }

  /// How often a version of another process has replaced the rows.
  var replacementCount: Int { state.withLock { $0.replacementCount } }

  /// Throws if a version of another process has replaced the rows since a change of the file began.
  ///
  /// - Parameter count: The ``replacementCount`` at that time.
  func checkNotReplaced(since count: Int) throws { if replacementCount != count { throw TableError.lockRemoved() } }

  /// Reserves keys that no other process has reserved.
  ///
  /// - Parameter others: For each table, the next key that other processes would reserve.
  /// - Returns: The keys of each demand, and the next key of each table afterwards.
  func reserveKeys(_ demands: [KeyDemand], others: [ObjectKey]) throws -> (keys: [[ObjectKey]], nextKeys: [ObjectKey]) {
    state.withLock { state in
      if others.count == state.nextKeys.count { state.nextKeys = zip(state.nextKeys, others).map { max($0, $1) } }
    }
    return (try reserveKeys(demands), nextKeys)
  }

  /// Reserves keys. See ``/HoldfastStore/IncrementalStore/reserveKeys(_:options:)``.
  public func reserveKeys(_ demands: [KeyDemand]) throws -> [[ObjectKey]] {
    guard liveness.isOpen.load(ordering: .acquiring) else { throw TableError.notOpen("reserve keys") }
    guard !isReadOnly else { throw TableError.readOnly("reserve keys") }
    return try demands.map { try reserveKeys($0.entity, $0.count) }
  }

  private func reserveKeys(_ entity: EntityIndex, _ count: Int) throws -> [ObjectKey] {
    let table = schema.tableOfEntity[entity]
    let first = try state.withLock { state throws in
      let first = state.nextKeys[table]
      guard count <= first.distance(to: TableLoader.nextKeys.upperBound) else {
        throw TableError.noMoreKeys(schema.model.entities[entity])
      }
      let next = first.advanced(by: count)
      switch schema.keySpace {
      case .family: state.nextKeys[table] = next
      case .store: for table in state.nextKeys.indices { state.nextKeys[table] = next }
      }
      return first
    }
    return Array(first..<first.advanced(by: count))
  }

  /// Builds the generation that a save results in.
  ///
  /// See ``/HoldfastStore/IncrementalStore/prepare(_:options:)`` for the errors. Call ``TablePreparation/publish(token:)`` or
  /// ``TablePreparation/discard()`` on the result; releasing it discards it.
  public func prepare(_ request: SaveRequest) throws -> TablePreparation { try prepare(request) { next, _ in next } }

  /// Builds the generation that a save results in.
  ///
  /// - Parameter finishing: Returns the generation with the same rows, in other memory.
  func prepare(
    _ request: SaveRequest, finishing: (_ next: TableGeneration, _ base: TableGeneration) -> TableGeneration
  ) throws -> TablePreparation {
    guard liveness.isOpen.load(ordering: .acquiring) else { throw TableError.notOpen("save") }
    guard !isReadOnly else { throw TableError.readOnly("save") }
    let base = try state.withLock { state throws in
      guard !state.isSaving else { throw TableError.saveInProgress() }
      state.isSaving = true
      return state.source
    }
    do {
      let generation = try base.generation()
      return TablePreparation(finishing(try TableSave.next(request, after: generation), generation), for: self)
    } catch {
      finish(nil)
      throw error
    }
  }

  fileprivate func finish(_ next: TableGeneration?, token: GenerationToken? = nil) {
    // Release the old generation outside the lock: freeing its pages can take long.
    let old = state.withLock { state in
      let old = state.source
      state.isSaving = false
      if let next { (state.source, state.token) = (.tables(next), token) }
      return old
    }
    _ = old
  }
}

/// A prepared save that isn't visible to readers yet.
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

  /// Makes the save visible to views that begin later.
  ///
  /// - Parameter token: The new state's token. Defaults to none.
  public func publish(token: GenerationToken? = nil) {
    if !isDone.exchange(true, ordering: .acquiringAndReleasing) { store.finish(next, token: token) }
  }

  /// Discards the save. Has no effect after ``publish(token:)``.
  public func discard() {
    if !isDone.exchange(true, ordering: .acquiringAndReleasing) { store.finish(nil) }
  }
}

/// Whether a store is open. Shared with its views.
private final class Liveness: Sendable {
  let isOpen = Atomic(true)
}

/// A read view that pins the current rows.
private final class GenerationView: ReadView {
  let liveness: Liveness
  /// The rows until the view ends. Guarded because another thread may end the view.
  private let pinned: Mutex<RowSource?>
  private let token: GenerationToken?
  private let identity: StoreIdentity

  private let files: ExternalDataPin?

  init(_ source: RowSource, _ token: GenerationToken?, _ identity: StoreIdentity, _ liveness: Liveness, _ files: ExternalDataPin?) {
    pinned = Mutex(source)
    self.token = token
    self.identity = identity
    self.liveness = liveness
    self.files = files
  }

  var state: StateToken? { token?.stateToken(identity) }

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
