public import Logging
import Synchronization

/// A store wrapper that reports each request with its duration, and counts requests.
///
/// ```swift
/// let traced = description.wrapped { TracingStore($0, system: "sqlite", logger: Logger(label: "store")) }
/// ```
///
/// A trace is reported on the thread of the request, after the request. Duration and row count of a fetch include the work of the sink,
/// which may send other requests.
public final class TracingStore: ForwardingStore {
  /// The wrapped store.
  public let base: any IncrementalStore
  private let receive: @Sendable (StoreTrace) -> Void
  private let spans: (any RequestSpans)?
  private let state = Mutex(State())

  /// Guarded because several threads call stores.
  private struct State {
    var model: ManagedObjectModel?
    var metrics = StoreMetrics()
  }

  /// Wraps a store, and passes each trace to a function.
  public convenience init(_ base: any IncrementalStore, receive: @escaping @Sendable (StoreTrace) -> Void) {
    self.init(base, spans: nil, receive: receive)
  }

  package init(_ base: any IncrementalStore, spans: (any RequestSpans)?, receive: @escaping @Sendable (StoreTrace) -> Void) {
    self.base = base
    self.spans = spans
    self.receive = receive
  }

  /// Wraps a store, and logs each request.
  ///
  /// - Parameters:
  ///   - base: The store.
  ///   - system: The name of the store type, such as "sqlite".
  ///   - logger: The logger. Defaults to one with the label `holdfast.store`.
  ///   - level: The level of requests that succeed. Failed ones are logged at the level `warning` or higher. Defaults to `debug`.
  ///   - slow: The duration from which a request is logged at the level `warning`. Defaults to nil, for no such limit.
  public convenience init(
    _ base: any IncrementalStore, system: String, logger: Logger = Logger(label: "holdfast.store"), level: Logger.Level = .debug,
    slow: Duration? = nil
  ) {
    self.init(base) { trace in
      let isSlow = slow.map { trace.duration >= $0 } ?? false
      trace.log(to: logger, level: isSlow ? max(level, .warning) : level, system: system)
    }
  }

  /// The totals of all requests so far.
  public var metrics: StoreMetrics { state.withLock { $0.metrics } }

  // MARK: Tracing

  /// Runs a request, and reports it.
  fileprivate func tracing<Answer>(_ trace: StoreTrace, _ body: (inout StoreTrace) throws -> Answer) throws -> Answer {
    guard let spans else { return try reported(trace, body).result.get() }
    return try spans.run(trace) { finished in
      let (result, trace) = reported(trace, body)
      finished = trace
      return try result.get()
    }
  }

  private func reported<Answer>(_ trace: StoreTrace, _ body: (inout StoreTrace) throws -> Answer) -> (
    result: Result<Answer, any Error>, trace: StoreTrace
  ) {
    var trace = trace
    let result = Result { try body(&trace) }
    if case .failure(let error) = result {
      trace.returnedCount = nil
      trace.errorCode = (error as? StoreError)?.code ?? (error is CancellationError ? .cancelled : .general)
    }
    trace.duration = .now - trace.start
    state.withLock { [trace] in $0.metrics.add(trace) }
    receive(trace)
    return (result, trace)
  }

  private func entity(_ index: EntityIndex) -> ManagedObjectModel.Entity? {
    guard let model = state.withLock({ $0.model }), model.entities.indices.contains(index.rawValue) else { return nil }
    return model.entities[index]
  }

  private func trace(
    _ operation: StoreTrace.Operation, _ entity: EntityIndex? = nil, count: Int? = nil, options: RequestOptions = .none
  ) -> StoreTrace {
    var trace = StoreTrace(operation, options)
    trace.entity = entity.flatMap { self.entity($0)?.name }
    trace.requestedCount = count
    return trace
  }

  // MARK: Requests

  /// The answers of the wrapped store. Each request is traced.
  public var answers: StoreAnswers { base.answers.intercepted(by: OptionalTracer(store: self)) }

  /// Traces the request and forwards it.
  public func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    try tracing(trace(.open)) { _ in
      let metadata = try base.open(model: model, host: host)
      noteOpened(model)
      return metadata
    }
  }

  /// Notes the model of a store that was opened without tracing, for the names in later traces.
  package func noteOpened(_ model: ManagedObjectModel) { state.withLock { $0.model = model } }

  /// Traces the request and forwards it.
  public func close() throws { try tracing(trace(.close)) { _ in try base.close() } }

  /// Traces the request and forwards it. The view is the wrapped store's.
  public func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try tracing(trace(.beginRead, options: options)) { _ in try base.beginRead(kind, options: options) }
  }

  /// Traces the request and forwards it.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try tracing(trace(.fetch, plan.entity, options: options)) { trace in
      let counter = CountedSink(sink)
      try base.fetch(plan, in: view, options: options, into: counter)
      trace.returnedCount = counter.count
    }
  }

  /// Traces the request and forwards it.
  public func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try tracing(trace(.rows, request.entity, count: request.keys.count, options: options)) { trace in
      let counter = CountedSink(sink)
      try base.rows(request, in: view, options: options, into: counter)
      trace.returnedCount = counter.count
    }
  }

  /// Traces the request and forwards it.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    var trace = trace(.relationships, request.entity, count: request.sources.count, options: options)
    trace.relationship = entity(request.entity).map { $0.relationships[request.relationship].name }
    return try tracing(trace) { trace in
      let answer = try base.relationships(request, in: view, options: options)
      trace.returnedCount = answer.targets.count
      return answer
    }
  }

  /// Traces the request and forwards it.
  public func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    let entity = demands.count == 1 ? demands[0].entity : nil
    return try tracing(trace(.reserveKeys, entity, count: demands.reduce(0) { $0 + $1.count }, options: options)) { trace in
      let keys = try base.reserveKeys(demands, options: options)
      trace.returnedCount = keys.reduce(0) { $0 + $1.count }
      return keys
    }
  }

  /// Traces the request and forwards it. Commit and abort are traced, too.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    let entity = request.entities.count == 1 ? request.entities[0].entity : nil
    return try tracing(trace(.prepare, entity, count: request.rowCount, options: options)) { trace in
      TracedPreparation(try base.prepare(request, options: options), trace, self)
    }
  }

  /// Traces the request and forwards it.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    try tracing(trace(.setMetadata, nil, count: metadata.count)) { _ in try base.setMetadata(metadata) }
  }

  fileprivate func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    var trace = trace(.optional, options: options)
    trace.requestName = Request.operation
    return try tracing(trace) { _ in try next(request, options) }
  }

  fileprivate func ending<Answer>(_ operation: StoreTrace.Operation, _ prepared: StoreTrace, _ body: () throws -> Answer) throws -> Answer {
    var trace = StoreTrace(operation)
    (trace.entity, trace.requestedCount, trace.label) = (prepared.entity, prepared.requestedCount, prepared.label)
    return try tracing(trace) { _ in try body() }
  }
}

private struct OptionalTracer: AnswerInterceptor {
  let store: TracingStore

  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    try store.answer(request, options, next)
  }
}

private final class TracedPreparation: PreparedSave {
  private let base: any PreparedSave
  private let prepared: StoreTrace
  private let store: TracingStore

  init(_ base: any PreparedSave, _ prepared: StoreTrace, _ store: TracingStore) {
    self.base = base
    self.prepared = prepared
    self.store = store
  }

  func commit() throws -> SaveReceipt { try store.ending(.commit, prepared) { try base.commit() } }

  func abort() { try? store.ending(.abort, prepared) { base.abort() } }
}

/// Counts the rows that it passes on.
private final class CountedSink: RowSink {
  private let next: any RowSink
  private(set) var count = 0

  init(_ next: any RowSink) { self.next = next }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    count += rows.count(in: batch)
    return try next.take(batch, rows)
  }
}

extension SaveRequest {
  /// The number of rows that the request inserts, updates or deletes.
  fileprivate var rowCount: Int {
    entities.reduce(0) { sum, changes in
      sum + changes.inserted.reduce(0) { $0 + $1.count } + changes.updated.reduce(0) { $0 + $1.rows.count } + changes.deleted.keys.count
    }
  }
}
