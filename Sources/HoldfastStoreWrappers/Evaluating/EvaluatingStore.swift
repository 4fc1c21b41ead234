public import HoldfastStore
import Synchronization

/// A store that evaluates queries for another store, which only needs to deliver all rows of an entity.
///
/// It declares every query capability, and answers with the reference evaluator. A coordinator does the same for its stores, except for the
/// parts of a query that a store declares. This wrapper is for programs that send requests to a store directly:
///
/// ```swift
/// let store = EvaluatingStore(description.makeStore())
/// _ = try store.open(model: model)
/// ```
///
/// A query with a predicate, sort terms, a count or aggregates reads all rows of its entities from the store, and rows that it reaches
/// through relationships by key. In a view of kind ``/HoldfastStore/ReadViewKind/latest``, or in a store without snapshots, a save in
/// between can be visible in some of these rows only.
public final class EvaluatingStore: ForwardingStore {
  /// The store that is read.
  public let base: any IncrementalStore
  private let model = Mutex<ManagedObjectModel?>(nil)

  /// Creates a wrapper of a store that isn't open yet.
  public init(_ base: any IncrementalStore) { self.base = base }

  /// The capabilities of the store, and all query abilities except unique look-ups, which mustn't read all rows.
  public var capabilities: StoreCapabilities {
    var capabilities = base.capabilities
    (capabilities.comparisons, capabilities.comparedTypes, capabilities.booleanOperators) = (.all, .all, true)
    (capabilities.traversal, capabilities.uniqueLookups, capabilities.maximumListCount) = (.all, false, .max)
    (capabilities.sorting, capabilities.windowing, capabilities.counting, capabilities.aggregates) = (true, true, true, true)
    (capabilities.maximumConditions, capabilities.maximumNesting, capabilities.maximumQuantifierNesting) = (.max, .max, .max)
    (capabilities.maximumJoins, capabilities.maximumSortTerms) = (.max, .max)
    return capabilities
  }

  /// Opens the store, and reports that it can compare all attributes.
  ///
  /// If the wrapped store checks uniqueness, attributes in constraints that it can't compare are still reported, because the framework must
  /// check these constraints.
  public func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    var metadata = try base.open(model: model, host: host)
    metadata.incomparableSlots = base.capabilities.uniqueness ? constrained(metadata.incomparableSlots, model) : [:]
    self.model.withLock { $0 = model }
    return metadata
  }

  /// The slots that are part of a constraint of their entity, of a superentity or of a subentity.
  private func constrained(_ slots: [EntityIndex: Set<SlotIndex>], _ model: ManagedObjectModel) -> [EntityIndex: Set<SlotIndex>] {
    var found: [EntityIndex: Set<SlotIndex>] = [:]
    for entity in model.entities {
      guard let listed = slots[entity.index] else { continue }
      let related = model.entities.filter { $0.familyIndexes.contains(entity.index) || entity.familyIndexes.contains($0.index) }
      let kept = listed.intersection(related.flatMap { $0.uniqueSlots.joined() })
      if !kept.isEmpty { found[entity.index] = kept }
    }
    return found
  }

  /// Reads rows of the store and evaluates a query.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `notOpen` or, if a sum doesn't fit in 64 bits, `unstorableValue`;
  ///   ``/HoldfastStore/QueryError`` if the plan isn't valid for the model; the errors of the store and the sink.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    guard let model = model.withLock({ $0 }) else {
      throw StoreError(.notOpen, operation: "fetch rows", reason: "The store isn't open. Open it first.")
    }
    let evaluation = try PlanEvaluation(plan, model)
    if plan.forEveryStore == plan { return try base.fetch(plan, in: view, options: options, into: sink) }
    try evaluation.run(ViewReader(base, view, options), into: sink)
  }

  /// The answers of the store. It explains the plan that it receives from this wrapper.
  public var answers: StoreAnswers { base.answers.intercepted(by: ReducedExplanations()) }
}

/// Requests the explanation of the plan that the wrapped store receives.
private struct ReducedExplanations: AnswerInterceptor {
  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    let plan = (request as? ExplanationRequest)?.plan.forEveryStore
    return try next(plan.flatMap { ExplanationRequest($0) as? Request } ?? request, options)
  }
}

/// Reads a store in a view.
final class ViewReader: RelatedRowReader {
  private let store: any IncrementalStore
  private let view: any ReadView
  private let options: RequestOptions

  init(_ store: any IncrementalStore, _ view: any ReadView, _ options: RequestOptions) {
    (self.store, self.view, self.options) = (store, view, options)
  }

  func fetch(_ plan: FetchPlan, into sink: any RowSink) throws { try store.fetch(plan, in: view, options: options, into: sink) }

  func rows(_ request: FaultRequest, into sink: any RowSink) throws { try store.rows(request, in: view, options: options, into: sink) }

  func relationships(_ request: RelationshipRequest, _ body: (ObjectKey, [ObjectKey]) -> Void) throws {
    try store.readDestinations(request, in: view, options: options) { source, answer, positions in
      body(source, Array(answer.targets[positions]))
    }
  }
}
