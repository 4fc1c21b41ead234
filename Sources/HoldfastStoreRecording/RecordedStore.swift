import Holdfast
public import HoldfastStore
import Synchronization

extension StoreDescription {
  /// A copy of the description whose stores' requests are recorded.
  ///
  /// The copy's stores have the capabilities of the original ones, and forward every request. Requests to the closed store aren't recorded.
  ///
  /// - Parameter recorder: Writes the recording. It can record several stores, one after the other. Use a recorder for each of several open
  ///   stores.
  public func recorded(by recorder: StoreRecorder) -> StoreDescription {
    let type = type
    return wrapped { RecordedStore($0, recorder, type: type) }
  }
}

/// Forwards requests and records them.
private final class RecordedStore: ForwardingStore {
  let base: any IncrementalStore
  private let recorder: StoreRecorder
  private let number: Int
  private let type: String
  /// The model and the identity of the open store.
  private let session = Mutex<Session?>(nil)

  private struct Session {
    let model: ManagedObjectModel
    let storeNumber: UInt32
    let ids: RecordedIDs
  }

  init(_ base: any IncrementalStore, _ recorder: StoreRecorder, type: String) {
    (self.base, self.recorder, self.type) = (base, recorder, type)
    number = recorder.addStore()
  }

  // MARK: Recording

  /// Records a request, forwards it, and records its end.
  ///
  /// - Parameters:
  ///   - sink: The sink of the request. The recorded duration doesn't include its time.
  ///   - body: Forwards the request. It receives the number of the request's line.
  ///   - answer: Converts the result for the recording.
  fileprivate func recording<Result>(
    _ request: RecordedRequest, sink: RecordingSink? = nil, _ body: (_ line: Int) throws -> Result,
    answer: (Result) -> RecordedAnswer = { _ in .done }
  ) throws -> Result {
    let line = recorder.write(.begin(request: request, store: number)), start = ContinuousClock.now
    func end(_ answer: () -> RecordedAnswer) {
      let seconds = (.now - start - (sink?.duration ?? .zero)) / .seconds(1)
      recorder.write(.end(line: line, answer: answer(), seconds: seconds))
    }
    do {
      let result = try body(line)
      end { answer(result) }
      return result
    } catch {
      end { sink?.hasThrown == true ? sink?.answer() ?? .done : .failed(failure(error)) }
      throw error
    }
  }

  fileprivate func recordEndOfRead(_ view: Int) { recorder.write(.begin(request: .endRead(view: view), store: number)) }

  private func failure(_ error: any Error) -> RecordedFailure {
    guard let error = error as? StoreError else { return RecordedFailure(code: .general) }
    let model = session.withLock { $0?.model }
    return RecordedFailure(error) { id in model?.entity(named: id.entityName).map { RecordedObject(root: $0.rootIndex, key: id.key) } }
  }

  private func sink(_ next: any RowSink, _ plan: FetchPlan? = nil) -> RecordingSink? {
    session.withLock { $0 }.map { session in
      RecordingSink(next, digest(session, plan), ids: session.ids, keepsRows: recorder.answers == .values || plan?.isReduced == true)
    }
  }

  private func digest(_ session: Session, _ plan: FetchPlan?) -> AnswerDigest {
    AnswerDigest(session.model, nil, storeNumber: session.storeNumber, hidesExternalValues: capabilities.externalData, plan: plan)
  }

  private func destinations(_ request: RelationshipRequest, _ answer: RelationshipAnswer) -> RecordedAnswer {
    guard let session = session.withLock({ $0 }), let relationship = session.model.relationship(request.entity, request.relationship)
    else { return .done }
    let digests = digest(session, nil).digests(answer, relationship)
    return .destinations(RecordedDestinations(digests, count: answer.targets.count, keepsDigests: recorder.answers == .values))
  }

  fileprivate func receipt(_ receipt: SaveReceipt) -> RecordedAnswer {
    let model = session.withLock { $0?.model }
    return .receipt(
      receipt.rows.flatMap { batch in
        let entity = model.flatMap { batch.entity(in: $0) }?.index ?? 0
        return (0..<batch.count).map { RecordedVersion(entity: entity, key: batch.pointer($0).key, version: batch.pointer($0).version) }
      })
  }

  // MARK: Requests

  var answers: StoreAnswers { base.answers.intercepted(by: OptionalRecorder(store: self)) }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    let metadata = try recording(.open(opening(model))) { _ in
      try base.open(model: model, host: host)
    }
    let number = metadata.identity.number, ids = RecordedIDs(model, storeNumber: number)
    session.withLock { $0 = Session(model: model, storeNumber: number, ids: ids) }
    if recorder.beginsContents() { recordContents(model, metadata.identity, ids) }
    return metadata
  }

  private func opening(_ model: ManagedObjectModel) -> RecordedOpening {
    RecordedOpening(type: type, capabilities: capabilities, model: model, includesContents: recorder.includesContents)
  }

  /// Records a save that inserts the objects which the store already has.
  private func recordContents(_ model: ManagedObjectModel, _ identity: StoreIdentity, _ ids: RecordedIDs) {
    do {
      let contents = try RecordedContents(base, model, identity)
      if contents.isEmpty { return }
      func write(_ request: RecordedRequest, _ answer: RecordedAnswer) -> Int {
        let line = recorder.write(.begin(request: request, store: number))
        recorder.write(.end(line: line, answer: answer, seconds: nil))
        return line
      }
      _ = write(.reserveKeys(contents.demands), .keys(contents.keys))
      let save = write(.prepare(try contents.save.mappingIDs { ids.id($0) }), .done)
      _ = write(.commit(save: save), .receipt([]))
    } catch { recorder.end(error) }
  }

  func close() throws { try recording(.close) { _ in try base.close() } }

  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try recording(.beginRead(kind)) { RecordedView(try base.beginRead(kind, options: options), $0, self) }
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into next: any RowSink) throws {
    let sink = sink(next, plan), ids = session.withLock { $0?.ids }
    let (base, line) = RecordedView.parts(view), recorded = ids.map { ids in plan.mappingIDs { ids.id($0) } } ?? plan
    try recording(.fetch(recorded, view: line), sink: sink) { _ in
      try self.base.fetch(plan, in: base, options: options, into: sink ?? next)
    } answer: {
      sink?.answer() ?? .done
    }
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into next: any RowSink) throws {
    let sink = sink(next), (base, line) = RecordedView.parts(view)
    try recording(.rows(request, view: line), sink: sink) { _ in
      try self.base.rows(request, in: base, options: options, into: sink ?? next)
    } answer: {
      sink?.answer() ?? .done
    }
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    let (base, line) = RecordedView.parts(view)
    return try recording(.relationships(request, view: line)) { _ in
      try self.base.relationships(request, in: base, options: options)
    } answer: {
      destinations(request, $0)
    }
  }

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try recording(.reserveKeys(demands)) { _ in
      try base.reserveKeys(demands, options: options)
    } answer: {
      .keys($0)
    }
  }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    let ids = session.withLock { $0?.ids }
    return try recording(.prepare(try ids.map { ids in try request.mappingIDs { ids.id($0) } } ?? request)) { line in
      RecordedPreparation(try base.prepare(request, options: options), line, self)
    }
  }

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    try recording(.setMetadata(metadata)) { _ in try base.setMetadata(metadata) }
  }

  fileprivate func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    let external = request as? ExternalDataRequest
    return try recording(external.map { .externalData($0) } ?? .optional(Request.operation)) { _ in
      try next(request, options)
    } answer: { answer in
      guard external != nil, let data = answer as? ExternalDataRequest.Answer else { return .done }
      var digest = ContentDigest()
      digest.update(data)
      return .data(byteCount: data.count, digest: RecordedDigest(digest.value))
    }
  }
}

private struct OptionalRecorder: AnswerInterceptor {
  let store: RecordedStore

  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    try store.answer(request, options, next)
  }
}

/// A view whose end is recorded. Like other views, it ends itself when it is released.
private final class RecordedView: ReadView {
  private let base: any ReadView
  private let line: Int
  private let store: RecordedStore
  private let isEnded = Atomic(false)

  init(_ base: any ReadView, _ line: Int, _ store: RecordedStore) { (self.base, self.line, self.store) = (base, line, store) }

  deinit { end() }

  var state: StateToken? { base.state }

  func end() {
    if !isEnded.exchange(true, ordering: .relaxed) { store.recordEndOfRead(line) }
    base.end()
  }

  /// The wrapped store's view and the line in which it began; 0 for a view of another store.
  static func parts(_ view: any ReadView) -> (base: any ReadView, line: Int) {
    (view as? RecordedView).map { ($0.base, $0.line) } ?? (view, 0)
  }
}

private final class RecordedPreparation: PreparedSave {
  private let base: any PreparedSave
  private let line: Int
  private let store: RecordedStore

  init(_ base: any PreparedSave, _ line: Int, _ store: RecordedStore) { (self.base, self.line, self.store) = (base, line, store) }

  func commit() throws -> SaveReceipt {
    try store.recording(.commit(save: line)) { _ in
      try base.commit()
    } answer: {
      store.receipt($0)
    }
  }

  func abort() { try? store.recording(.abort(save: line)) { _ in base.abort() } }
}
