/// A store that forwards every request to another store: the base for wrappers.
///
/// A wrapper implements the requests that it observes or changes, and inherits the others:
///
/// ```swift
/// final class SlowStore: ForwardingStore {
///   let base: any IncrementalStore
///   init(_ base: any IncrementalStore) { self.base = base }
///
///   func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
///     usleep(10_000)
///     try base.fetch(plan, in: view, options: options, into: sink)
///   }
/// }
/// ```
///
/// A method whose signature differs from the requirement is never called. The compiler doesn't report it, so test that each method is
/// reached.
///
/// A wrapper that translates keys, IDs or values must implement every request that contains them, and its ``IncrementalStore/answers`` must
/// contain only the requests that it translates.
public protocol ForwardingStore: IncrementalStore {
  /// The store that receives the requests.
  var base: any IncrementalStore { get }
}

extension ForwardingStore {
  /// The capabilities of the wrapped store.
  public var capabilities: StoreCapabilities { base.capabilities }

  /// The answers of the wrapped store.
  public var answers: StoreAnswers { base.answers }

  /// Forwards the request.
  public func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata { try base.open(model: model, host: host) }

  /// Forwards the request.
  public func close() throws { try base.close() }

  /// Forwards the request. The view belongs to the wrapped store.
  public func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView { try base.beginRead(kind, options: options) }

  /// Forwards the request.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try base.fetch(plan, in: view, options: options, into: sink)
  }

  /// Forwards the request.
  public func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try base.rows(request, in: view, options: options, into: sink)
  }

  /// Forwards the request.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    try base.relationships(request, in: view, options: options)
  }

  /// Forwards the request.
  public func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try base.reserveKeys(demands, options: options)
  }

  /// Forwards the request. The prepared save belongs to the wrapped store.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try base.prepare(request, options: options)
  }

  /// Forwards the request.
  public func setMetadata(_ metadata: [String: StoreValue]) throws { try base.setMetadata(metadata) }
}
