import HoldfastStore

/// Forwards requests and records them in a log.
final class LoggedStore: ForwardingStore {
  let base: any IncrementalStore
  fileprivate let log: RequestLog

  init(_ base: any IncrementalStore, _ log: RequestLog) { (self.base, self.log) = (base, log) }

  var answers: StoreAnswers { base.answers.intercepted(by: LoggedAnswers(log: log)) }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    try log.during(.open(model)) { try base.open(model: model, host: host) }
  }

  func close() throws { try log.during(.close) { try base.close() } }

  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try log.during(.beginRead(kind)) { try base.beginRead(kind, options: options) }
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try log.during(.fetch(plan)) { try base.fetch(plan, in: view, options: options, into: sink) }
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try log.during(.rows(request)) { try base.rows(request, in: view, options: options, into: sink) }
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    try log.during(.relationships(request)) { try base.relationships(request, in: view, options: options) }
  }

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try log.during(.reserveKeys(demands)) { try base.reserveKeys(demands, options: options) }
  }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try log.during(.prepare(request)) { LoggedPreparation(try base.prepare(request, options: options), log) }
  }

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    try log.during(.setMetadata(metadata.keys.sorted())) { try base.setMetadata(metadata) }
  }
}

extension StoreDescription {
  /// A description whose stores record their requests.
  func logged(_ log: RequestLog) -> StoreDescription { wrapped { LoggedStore($0, log) } }
}

private struct LoggedAnswers: AnswerInterceptor {
  let log: RequestLog

  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    try log.during(.optional(Request.operation)) { try next(request, options) }
  }
}

private final class LoggedPreparation: PreparedSave {
  private let base: any PreparedSave
  private let log: RequestLog

  init(_ base: any PreparedSave, _ log: RequestLog) { (self.base, self.log) = (base, log) }

  func commit() throws -> SaveReceipt { try log.during(.commit) { try base.commit() } }
  func abort() { log.during(.abort) { base.abort() } }
}
