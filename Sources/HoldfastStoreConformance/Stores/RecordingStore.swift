public import HoldfastStore
import Synchronization

/// A request recorded by a ``RecordingStore``, for comparisons in tests.
public enum RecordedRequest: Sendable, Hashable {
  /// The store was opened.
  case open
  /// The store was closed.
  case close
  /// A read view was begun.
  case beginRead(ReadViewKind)
  /// Rows were fetched.
  case fetch(FetchPlan)
  /// Rows were requested by key.
  case rows(FaultRequest)
  /// Targets of a relationship were requested.
  case relationships(RelationshipRequest)
  /// Keys were reserved.
  case reserveKeys([KeyDemand])
  /// A save was prepared.
  case prepare(RecordedSave)
  /// A prepared save was committed.
  case commit
  /// A prepared save was aborted.
  case abort
  /// An optional request was made.
  case optional(OptionalRequest)
  /// The user's metadata was replaced.
  case setMetadata([String: StoreValue])
}

/// An optional request of any type.
public struct OptionalRequest: Sendable, Hashable, CustomStringConvertible {
  /// The request.
  public let request: any StoreRequest

  /// Wraps a request.
  public init(_ request: any StoreRequest) { self.request = request }

  /// Whether both requests have the same type and are equal.
  public static func == (a: OptionalRequest, b: OptionalRequest) -> Bool { AnyHashable(a.request) == AnyHashable(b.request) }

  /// Hashes the request.
  public func hash(into hasher: inout Hasher) { request.hash(into: &hasher) }

  /// The request's description.
  public var description: String { "\(request)" }
}

/// The changes of a save: only keys, sorted.
public struct RecordedSave: Sendable, Hashable {
  /// The changes of one entity.
  public struct Changes: Sendable, Hashable {
    /// The keys of inserted rows.
    public var inserted: [ObjectKey] = []
    /// The keys of updated rows, with the slots that changed.
    public var updated: [ObjectKey: [SlotIndex]] = [:]
    /// The keys of deleted rows.
    public var deleted: [ObjectKey] = []
    /// The keys of rows whose versions were only compared.
    public var locked: [ObjectKey] = []
    /// The keys of rows whose derived values were set or added to, with their slots.
    public var derived: [ObjectKey: [SlotIndex]] = [:]
  }

  /// The changes by entity index.
  public var entities: [EntityIndex: Changes] = [:]
  /// The changes of links.
  public var links: [SaveRequest.LinkChanges] = []

  /// Creates a summary of a request.
  public init(_ request: SaveRequest) {
    links = request.links
    for changes in request.entities {
      var summary = Changes()
      summary.inserted = changes.inserted.flatMap { batch in (0..<batch.count).map { batch[$0].key } }
      for updated in changes.updated {
        for row in 0..<updated.rows.count {
          summary.updated[updated.rows[row].key] = updated.rows.layout.slots.filter { updated.isChanged(row: row, slot: $0) }
        }
      }
      summary.deleted = changes.deleted.keys
      summary.locked = changes.locked.keys
      for derived in changes.derived {
        for row in 0..<derived.rows.count { summary.derived[derived.rows[row].key, default: []] += derived.slots(row: row) }
      }
      entities[changes.entity] = summary
    }
  }
}

/// A store wrapper that records every request and forwards it, so that tests can check which requests were made.
///
/// ```swift
/// store.clear()
/// _ = dog.name  // fires the fault
/// #expect(store.requests == [.beginRead(.latest), .rows(FaultRequest(entity: 0, keys: [1]))])
/// store.withStoreBlocked { _ = dog.name }  // answered from memory; a request would throw
/// ```
public final class RecordingStore: ForwardingStore {
  /// The wrapped store.
  public let base: any IncrementalStore
  /// Guards the record, because several threads call stores.
  private let record = Mutex(Record())

  private struct Record {
    var requests: [RecordedRequest] = []
    var isBlocked = false
  }

  /// Wraps a store.
  public init(_ base: any IncrementalStore) { self.base = base }

  /// All requests, in order, since the store was created or ``clear()`` was called.
  public var requests: [RecordedRequest] { record.withLock { $0.requests } }

  /// Removes all recorded requests.
  public func clear() { record.withLock { $0.requests = [] } }

  /// Makes every request throw while `body` runs. Refused requests are recorded too. A save whose commit is refused is aborted.
  public func withStoreBlocked<T, E: Error>(_ body: () throws(E) -> T) throws(E) -> T {
    let before = record.withLock { record in
      defer { record.isBlocked = true }
      return record.isBlocked
    }
    defer { record.withLock { $0.isBlocked = before } }
    return try body()
  }

  fileprivate func keep(_ request: RecordedRequest) throws {
    let isBlocked = record.withLock { record in
      record.requests.append(request)
      return record.isBlocked
    }
    guard !isBlocked else {
      throw StoreError(.general, operation: "answer \(request)", reason: "The store is blocked, because no request was expected here.")
    }
  }

  /// The answers of the wrapped store. Each request is recorded and forwarded.
  public var answers: StoreAnswers { base.answers.intercepted(by: OptionalRecorder(store: self)) }

  /// Records the request and forwards it.
  public func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    try keep(.open)
    return try base.open(model: model, host: host)
  }

  /// Records the request and forwards it.
  public func close() throws {
    try keep(.close)
    try base.close()
  }

  /// Records the request and forwards it. The returned view is the wrapped store's.
  public func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try keep(.beginRead(kind))
    return try base.beginRead(kind, options: options)
  }

  /// Records the request and forwards it.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try keep(.fetch(plan))
    try base.fetch(plan, in: view, options: options, into: sink)
  }

  /// Records the request and forwards it.
  public func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try keep(.rows(request))
    try base.rows(request, in: view, options: options, into: sink)
  }

  /// Records the request and forwards it.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    try keep(.relationships(request))
    return try base.relationships(request, in: view, options: options)
  }

  /// Records the request and forwards it.
  public func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try keep(.reserveKeys(demands))
    return try base.reserveKeys(demands, options: options)
  }

  /// Records the request and forwards it. Commit and abort are recorded too.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try keep(.prepare(RecordedSave(request)))
    return RecordedPreparation(base: try base.prepare(request, options: options), store: self)
  }

  /// Records the request and forwards it.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    try keep(.setMetadata(metadata))
    try base.setMetadata(metadata)
  }
}

private struct OptionalRecorder: AnswerInterceptor {
  let store: RecordingStore

  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    try store.keep(.optional(OptionalRequest(request)))
    return try next(request, options)
  }
}

private final class RecordedPreparation: PreparedSave {
  let base: any PreparedSave
  let store: RecordingStore

  init(base: any PreparedSave, store: RecordingStore) {
    self.base = base
    self.store = store
  }

  func commit() throws -> SaveReceipt {
    // The caller doesn't abort a save whose commit fails.
    do { try store.keep(.commit) } catch {
      base.abort()
      throw error
    }
    return try base.commit()
  }

  func abort() {
    try? store.keep(.abort)
    base.abort()
  }
}
