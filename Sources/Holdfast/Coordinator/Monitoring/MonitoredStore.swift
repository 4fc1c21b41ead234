import HoldfastStore

/// A store whose requests are counted, and traced while the coordinator has observers.
final class MonitoredStore: ForwardingStore {
  let base: any IncrementalStore
  private let traced: TracingStore
  private let monitor: RequestMonitor

  /// - Parameter type: The name of the store's type.
  init(_ base: any IncrementalStore, _ type: String, _ monitor: RequestMonitor) {
    self.base = base
    self.monitor = monitor
    traced = TracingStore(base) { trace in
      var trace = trace
      trace.storeType = type
      monitor.tell(trace)
    }
  }

  /// The store that receives the next request.
  private var next: any IncrementalStore { monitor.isObserved ? traced : base }

  var answers: StoreAnswers { next.answers.intercepted(by: AnswerCounter(monitor: monitor)) }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    if monitor.isObserved { return try traced.open(model: model, host: host) }
    let metadata = try base.open(model: model, host: host)
    traced.noteOpened(model)
    return metadata
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    monitor.countFetch()
    try next.fetch(plan, in: view, options: options, into: sink)
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    monitor.countRows()
    try next.rows(request, in: view, options: options, into: sink)
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    monitor.countRelationships()
    return try next.relationships(request, in: view, options: options)
  }

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    monitor.countKeyReservation()
    return try next.reserveKeys(demands, options: options)
  }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    monitor.countSave()
    return try next.prepare(request, options: options)
  }
}

private struct AnswerCounter: AnswerInterceptor {
  let monitor: RequestMonitor

  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    monitor.countOther()
    return try next(request, options)
  }
}
