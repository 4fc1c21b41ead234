public import HoldfastStore
import Synchronization

/// A store wrapper that throws errors at chosen calls, to test the layers above.
///
/// ```swift
/// let store = FaultInjectingStore(MemoryStore())
/// store.fail(.commit, onCall: 2, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
/// ```
public final class FaultInjectingStore: ForwardingStore {
  /// The calls that can fail.
  public enum Call: Sendable, Hashable, CaseIterable {
    /// ``/HoldfastStore/IncrementalStore/open(model:host:)``
    case open
    /// ``/HoldfastStore/IncrementalStore/close()``
    case close
    /// ``/HoldfastStore/IncrementalStore/beginRead(_:options:)``
    case beginRead
    /// ``/HoldfastStore/IncrementalStore/fetch(_:in:options:into:)``
    case fetch
    /// ``/HoldfastStore/IncrementalStore/rows(_:in:options:into:)``
    case rows
    /// ``/HoldfastStore/IncrementalStore/relationships(_:in:options:)``
    case relationships
    /// ``/HoldfastStore/IncrementalStore/reserveKeys(_:options:)``
    case reserveKeys
    /// ``/HoldfastStore/IncrementalStore/prepare(_:options:)``
    case prepare
    /// ``/HoldfastStore/PreparedSave/commit()``. If it fails, the save is aborted.
    case commit
    /// Any request of ``/HoldfastStore/IncrementalStore/answers``
    case optional
    /// ``/HoldfastStore/IncrementalStore/setMetadata(_:)``
    case setMetadata
  }

  /// The wrapped store.
  public let base: any IncrementalStore
  /// Guards the faults, because several threads call stores.
  private let faults = Mutex(Faults())

  private struct Faults {
    var counts: [Call: Int] = [:]
    var errors: [Call: [Int: StoreError]] = [:]
  }

  /// Wraps a store. Calls succeed until ``fail(_:onCall:with:)`` is called.
  public init(_ base: any IncrementalStore) { self.base = base }

  /// Makes a call fail once. The next call is number 1.
  public func fail(_ call: Call, onCall number: Int = 1, with error: StoreError) {
    faults.withLock { $0.errors[call, default: [:]][($0.counts[call] ?? 0) + number] = error }
  }

  /// Removes all faults.
  public func clear() { faults.withLock { $0.errors = [:] } }

  /// Returns how many times a call was made.
  public func count(of call: Call) -> Int { faults.withLock { $0.counts[call] ?? 0 } }

  fileprivate func pass(_ call: Call) throws {
    let error = faults.withLock { faults in
      let number = (faults.counts[call] ?? 0) + 1
      faults.counts[call] = number
      return faults.errors[call]?.removeValue(forKey: number)
    }
    if let error { throw error }
  }

  /// The answers of the wrapped store. Each request is forwarded, or throws the injected error.
  public var answers: StoreAnswers { base.answers.intercepted(by: OptionalFaults(store: self)) }

  /// Forwards the call, or throws the injected error.
  public func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    try pass(.open)
    return try base.open(model: model, host: host)
  }

  /// Forwards the call, or throws the injected error.
  public func close() throws {
    try pass(.close)
    try base.close()
  }

  /// Forwards the call, or throws the injected error.
  public func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try pass(.beginRead)
    return try base.beginRead(kind, options: options)
  }

  /// Forwards the call, or throws the injected error.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try pass(.fetch)
    try base.fetch(plan, in: view, options: options, into: sink)
  }

  /// Forwards the call, or throws the injected error.
  public func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try pass(.rows)
    try base.rows(request, in: view, options: options, into: sink)
  }

  /// Forwards the call, or throws the injected error.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    try pass(.relationships)
    return try base.relationships(request, in: view, options: options)
  }

  /// Forwards the call, or throws the injected error.
  public func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try pass(.reserveKeys)
    return try base.reserveKeys(demands, options: options)
  }

  /// Forwards the call, or throws the injected error. Committing the prepared save can fail too.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try pass(.prepare)
    return FaultyPreparation(base: try base.prepare(request, options: options), store: self)
  }

  /// Forwards the call, or throws the injected error.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    try pass(.setMetadata)
    try base.setMetadata(metadata)
  }
}

private struct OptionalFaults: AnswerInterceptor {
  let store: FaultInjectingStore

  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    try store.pass(.optional)
    return try next(request, options)
  }
}

private final class FaultyPreparation: PreparedSave {
  let base: any PreparedSave
  let store: FaultInjectingStore

  init(base: any PreparedSave, store: FaultInjectingStore) {
    self.base = base
    self.store = store
  }

  func commit() throws -> SaveReceipt {
    do {
      try store.pass(.commit)
    } catch {
      base.abort()
      throw error
    }
    return try base.commit()
  }

  func abort() { base.abort() }
}
