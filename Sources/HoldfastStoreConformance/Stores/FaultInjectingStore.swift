public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Throws an error at chosen calls of another store, to try what the layers above do then.
///
/// ```swift
/// let store = FaultInjectingStore(MemoryStore())
/// store.fail(.commit, onCall: 2, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
/// ```
public final class FaultInjectingStore: IncrementalStore {
  /// The calls at which errors can be injected.
  public enum Call: Sendable, Hashable, CaseIterable {
    /// ``/HoldfastStore/IncrementalStore/open(model:)``
    case open
    /// ``/HoldfastStore/IncrementalStore/close()``
    case close
    /// ``/HoldfastStore/IncrementalStore/beginRead(_:)``
    case beginRead
    /// ``/HoldfastStore/IncrementalStore/fetch(_:in:into:)``
    case fetch
    /// ``/HoldfastStore/IncrementalStore/rows(_:in:into:)``
    case rows
    /// ``/HoldfastStore/IncrementalStore/relationships(_:in:)``
    case relationships
    /// ``/HoldfastStore/IncrementalStore/externalData(_:)``
    case externalData
    /// ``/HoldfastStore/IncrementalStore/allocateKeys(entity:count:)``
    case allocateKeys
    /// ``/HoldfastStore/IncrementalStore/prepare(_:)``
    case prepare
    /// ``/HoldfastStore/PreparedSave/commit()``; the save is taken back then.
    case commit
    /// ``/HoldfastStore/IncrementalStore/perform(_:)``
    case perform
    /// ``/HoldfastStore/IncrementalStore/history(_:)``
    case history
    /// ``/HoldfastStore/IncrementalStore/setMetadata(_:)``
    case setMetadata
  }

  private let base: any IncrementalStore
  /// Guards what is to fail: stores are called by several threads.
  private let faults = Mutex(Faults())

  private struct Faults {
    var counts: [Call: Int] = [:]
    var errors: [Call: [Int: StoreError]] = [:]
  }

  /// Wraps a store. Nothing fails until ``fail(_:onCall:with:)`` is called.
  public init(_ base: any IncrementalStore) { self.base = base }

  /// Makes a call fail once, counting from now: the next one is number 1.
  public func fail(_ call: Call, onCall number: Int = 1, with error: StoreError) {
    faults.withLock { $0.errors[call, default: [:]][($0.counts[call] ?? 0) + number] = error }
  }

  /// Lets everything succeed again.
  public func clear() { faults.withLock { $0.errors = [:] } }

  /// How often a call was made.
  public func count(of call: Call) -> Int { faults.withLock { $0.counts[call] ?? 0 } }

  fileprivate func pass(_ call: Call) throws {
    let error = faults.withLock { faults in
      let number = (faults.counts[call] ?? 0) + 1
      faults.counts[call] = number
      return faults.errors[call]?.removeValue(forKey: number)
    }
    if let error { throw error }
  }

  /// Those of the wrapped store.
  public var capabilities: StoreCapabilities { base.capabilities }

  /// Hands on, or fails.
  public func open(model: ManagedObjectModel) throws -> StoreMetadata {
    try pass(.open)
    return try base.open(model: model)
  }

  /// Hands on, or fails.
  public func close() throws {
    try pass(.close)
    try base.close()
  }

  /// Hands on, or fails.
  public func beginRead(_ kind: ReadViewKind) throws -> any ReadView {
    try pass(.beginRead)
    return try base.beginRead(kind)
  }

  /// Hands on, or fails.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    try pass(.fetch)
    try base.fetch(plan, in: view, into: sink)
  }

  /// Hands on, or fails.
  public func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws {
    try pass(.rows)
    try base.rows(request, in: view, into: sink)
  }

  /// Hands on, or fails.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer {
    try pass(.relationships)
    return try base.relationships(request, in: view)
  }

  /// Hands on, or fails.
  public func allocateKeys(entity: Int, count: Int) throws -> [Int64] {
    try pass(.allocateKeys)
    return try base.allocateKeys(entity: entity, count: count)
  }

  /// Hands on, or fails; the commit of what is prepared may fail too.
  public func prepare(_ request: SaveRequest) throws -> any PreparedSave {
    try pass(.prepare)
    return FaultyPreparation(base: try base.prepare(request), store: self)
  }

  /// Hands on, or fails.
  public func perform(_ request: BatchRequest) throws -> BatchResult {
    try pass(.perform)
    return try base.perform(request)
  }

  /// Hands on, or fails.
  public func externalData(_ request: ExternalDataRequest) throws -> Data {
    try pass(.externalData)
    return try base.externalData(request)
  }

  /// Hands on, or fails.
  public func history(_ request: HistoryRequest) throws -> [HistoryTransaction] {
    try pass(.history)
    return try base.history(request)
  }

  /// Hands on, or fails.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    try pass(.setMetadata)
    try base.setMetadata(metadata)
  }
}

private final class FaultyPreparation: PreparedSave {
  let base: any PreparedSave
  let store: FaultInjectingStore

  init(base: any PreparedSave, store: FaultInjectingStore) {
    self.base = base
    self.store = store
  }

  func commit() throws {
    do {
      try store.pass(.commit)
    } catch {
      base.abort()
      throw error
    }
    try base.commit()
  }

  func abort() { base.abort() }
}
