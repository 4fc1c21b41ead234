public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A store wrapper whose commits can end with `outcomeUnknown`, to test the layers above.
///
/// It answers ``/HoldfastStore/SaveOutcomeRequest``, like a server that keeps the IDs of saves. Call ``loseCommit(_:)`` to make a commit
/// throw.
public final class OutcomeStore: ForwardingStore {
  /// What happens to a save whose commit throws `outcomeUnknown`.
  public enum Loss: Sendable, Hashable, CaseIterable {
    /// The save never takes effect.
    case withoutCommitting
    /// The save takes effect before the commit throws.
    case afterCommitting
    /// The save takes effect when the outcome is requested, or when the next save is prepared.
    case beforeCommitting
  }

  /// The wrapped store.
  public let base: any IncrementalStore
  private let reportsOutcomes: Bool
  /// Guards the outcomes, because several threads call stores.
  private let state = Mutex(State())

  private struct State {
    var losses: [Loss] = []
    var outcomes: [UUID: SaveOutcome] = [:]
    /// The saves that haven't taken effect yet.
    var waiting: [(id: UUID, save: any PreparedSave)] = []
    var unknownAnswers = 0
  }

  /// Wraps a store. Commits succeed until ``loseCommit(_:)`` is called.
  ///
  /// - Parameters:
  ///   - base: The store.
  ///   - reportsOutcomes: Whether the store answers ``/HoldfastStore/SaveOutcomeRequest``. Defaults to true.
  public init(_ base: any IncrementalStore, reportsOutcomes: Bool = true) {
    self.base = base
    self.reportsOutcomes = reportsOutcomes
  }

  /// Makes the next commit throw `outcomeUnknown`. After several calls, as many commits throw, in the order of the calls.
  public func loseCommit(_ loss: Loss) { state.withLock { $0.losses.append(loss) } }

  /// Cancels ``loseCommit(_:)``.
  public func clear() { state.withLock { $0.losses = [] } }

  /// Makes the next requests for an outcome return ``/HoldfastStore/SaveOutcome/unknown``.
  public func answerUnknown(times count: Int) { state.withLock { $0.unknownAnswers = count } }

  /// Answers requests for outcomes, and forwards requests for external data if the wrapped store answers them.
  public var answers: StoreAnswers {
    if !reportsOutcomes { return base.answers }
    return (base.answers.supports(ExternalDataRequest.self) ? Self.tableWithExternalData : Self.table).bound(to: self)
  }

  private static let table = AnswerTable<OutcomeStore>()
    .answering(SaveOutcomeRequest.self) { store, request, _ in try store.outcome(of: request.id) }
  private static let tableWithExternalData = table.answering(ExternalDataRequest.self) { store, request, options in
    try store.base.answers.perform(request, options: options)
  }

  private func outcome(of id: UUID) throws -> SaveOutcome {
    let isUnknown = state.withLock { state in
      defer { state.unknownAnswers = max(0, state.unknownAnswers - 1) }
      return state.unknownAnswers > 0
    }
    if isUnknown { return .unknown }
    try commitWaiting()
    return state.withLock { state in
      // From now on, the outcome is final.
      let outcome = state.outcomes[id] ?? .notCommitted
      state.outcomes[id] = outcome
      return outcome
    }
  }

  private func commitWaiting() throws {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    for (id, save) in waiting { try commit(save, id) }
  }

  @discardableResult private func commit(_ save: any PreparedSave, _ id: UUID?) throws -> SaveReceipt {
    let receipt = try save.commit()
    if let id { state.withLock { $0.outcomes[id] = .committed(receipt) } }
    return receipt
  }

  /// Forwards the request. The commit can end without a known outcome.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try commitWaiting()
    try refuseReported(request.origin?.id)
    return Preparation(try base.prepare(request, options: options), request.origin?.id, self)
  }

  /// Throws if a save with this ID was reported as not committed.
  private func refuseReported(_ id: UUID?) throws {
    guard let id, case .notCommitted = state.withLock({ $0.outcomes[id] }) else { return }
    throw StoreError(.general, operation: "save", reason: "The save was reported as not committed (rule S16).")
  }

  private final class Preparation: PreparedSave {
    let base: any PreparedSave
    let id: UUID?
    let store: OutcomeStore

    init(_ base: any PreparedSave, _ id: UUID?, _ store: OutcomeStore) { (self.base, self.id, self.store) = (base, id, store) }

    func commit() throws -> SaveReceipt {
      do { try store.refuseReported(id) } catch {
        base.abort()
        throw error
      }
      let loss = store.state.withLock { $0.losses.isEmpty ? nil : $0.losses.removeFirst() }
      switch loss {
      case nil: return try store.commit(base, id)
      case .withoutCommitting: base.abort()
      case .afterCommitting: try store.commit(base, id)
      case .beforeCommitting: if let id { store.state.withLock { $0.waiting.append((id, base)) } } else { base.abort() }
      }
      throw StoreError(.outcomeUnknown, operation: "save", reason: "The connection broke during the commit.")
    }

    func abort() { base.abort() }
  }
}
