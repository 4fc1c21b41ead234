public import HoldfastStore

/// A store wrapper that limits the number of requests: how many run at the same time, and how many begin per second.
///
/// It protects a server, and shows in a test how a program behaves with a slow store:
///
/// ```swift
/// let slow = description.wrapped { ThrottledStore($0, ThrottleLimits(concurrentRequests: 4, requestsPerSecond: 100)) }
/// ```
///
/// Requests wait in the order of their arrival. A waiting request ends when its deadline passes or it is cancelled, and doesn't count then.
/// Opening, closing, commits, changes of the metadata and optional requests don't wait. A sink can send other requests during a fetch. They
/// count as part of the fetch, so it never waits for itself. Requests in a view of a kind other than
/// ``/HoldfastStore/ReadViewKind/latest`` don't wait for other requests to end, because those may be waiting for the view's connection.
/// Each such view can therefore add one request to the maximum.
public final class ThrottledStore: ForwardingStore {
  /// The wrapped store.
  public let base: any IncrementalStore
  private let gate: RequestGate

  /// Wraps a store.
  public init(_ base: any IncrementalStore, _ limits: ThrottleLimits) {
    self.base = base
    gate = RequestGate(limits)
  }

  /// Forwards the request when the limits allow it.
  public func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    let view = try gate.passing("begin to read", options) { try base.beginRead(kind, options: options) }
    return kind == .latest ? view : HeldView(base: view)
  }

  /// Forwards the request when the limits allow it.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let (view, holdsView) = HeldView.parts(view)
    try gate.passing("fetch rows", options, holdsView: holdsView) { try base.fetch(plan, in: view, options: options, into: sink) }
  }

  /// Forwards the request when the limits allow it.
  public func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let (view, holdsView) = HeldView.parts(view)
    try gate.passing("read rows", options, holdsView: holdsView) { try base.rows(request, in: view, options: options, into: sink) }
  }

  /// Forwards the request when the limits allow it.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    let (view, holdsView) = HeldView.parts(view)
    return try gate.passing("read a relationship", options, holdsView: holdsView) {
      try base.relationships(request, in: view, options: options)
    }
  }

  /// Forwards the request when the limits allow it.
  public func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try gate.passing("reserve keys", options) { try base.reserveKeys(demands, options: options) }
  }

  /// Forwards the request when the limits allow it.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try gate.passing("save", options) { try base.prepare(request, options: options) }
  }
}

/// A view that keeps its state until it ends.
private final class HeldView: ReadView {
  private let base: any ReadView
  var state: StateToken? { base.state }

  init(base: any ReadView) { self.base = base }

  func end() { base.end() }

  /// Returns the wrapped store's view, and whether it keeps its state until it ends.
  static func parts(_ view: any ReadView) -> (view: any ReadView, isHeld: Bool) {
    (view as? HeldView).map { ($0.base, true) } ?? (view, false)
  }
}

/// The limits of a ``ThrottledStore``.
public struct ThrottleLimits: Sendable, Hashable {
  /// The maximum number of requests that run at the same time; nil for no maximum.
  public var concurrentRequests: Int?
  /// The maximum number of requests that begin per second, evenly distributed; nil for no maximum.
  public var requestsPerSecond: Double?

  /// Creates limits. Both default to nil, for no maximum. Traps if a limit isn't positive.
  public init(concurrentRequests: Int? = nil, requestsPerSecond: Double? = nil) {
    precondition(concurrentRequests.map { $0 > 0 } ?? true, "The maximum number of concurrent requests must be positive.")
    precondition(requestsPerSecond.map { $0 > 0 } ?? true, "The maximum number of requests per second must be positive.")
    self.concurrentRequests = concurrentRequests
    self.requestsPerSecond = requestsPerSecond
  }
}
