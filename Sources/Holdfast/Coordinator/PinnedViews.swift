import Dispatch
import HoldfastStore

/// A generation: one snapshot of each store of a coordinator. Contexts that are pinned to it read nothing else.
///
/// The snapshots end when the last context and the last token of the generation are released, or when its time is over. Threads use a
/// snapshot one after the other, as stores require.
final class PinnedViews: @unchecked Sendable {  // because `lock` protects `views`, and everything else is immutable after `begin`
  /// Identifies the coordinator.
  let places: StorePlaces
  /// Recently read rows of the generation.
  let rowCache = RowCache(byteLimit: 4 << 20)
  private let lock = OwnedLock()
  /// The snapshot of each store, by the store's place; nil after the end.
  private var views: [Int: any ReadView]? = [:]
  private let storePlaces: Set<Int>
  let timeLimit: Duration?
  private let end: ContinuousClock.Instant?
  private var timer: (any DispatchSourceTimer)?

  private init(_ stores: [PersistentStore], _ places: StorePlaces, _ timeLimit: Duration?) {
    (self.places, self.timeLimit) = (places, timeLimit)
    storePlaces = Set(stores.map(\.place))
    end = timeLimit.map { .now + $0 }
  }

  deinit { endViews() }

  /// Begins a snapshot of each store.
  static func begin(_ stores: [PersistentStore], _ places: StorePlaces, _ timeLimit: Duration?, _ options: RequestOptions) throws
    -> PinnedViews
  {
    let pinned = PinnedViews(stores, places, timeLimit)
    for store in stores {
      pinned.views?[store.place] = try store.wrapping(operation) { try store.base.beginRead(.snapshot, options: options) }
    }
    if let timeLimit { pinned.startTimer(timeLimit) }
    return pinned
  }

  static let operation = "pin a context to a generation"

  var hasEnded: Bool { exclusively { views == nil } || end.map { .now > $0 } == true }

  /// Whether the generation includes a store, which may have been closed since.
  func has(_ store: PersistentStore) -> Bool { storePlaces.contains(store.place) }

  /// Runs a request while no other thread uses the views.
  ///
  /// - Throws: `timedOut` or `cancelled` of the options if another thread uses them for too long, and the errors of the closure.
  func exclusively<Result>(
    _ operation: @autoclosure () -> String, _ options: RequestOptions, _ body: () throws -> Result
  ) throws -> Result {
    // The receiver of rows may send requests.
    if lock.isHeld { return try body() }
    return try lock.withLock(to: operation(), options, body)
  }

  private func exclusively<Result>(_ body: () throws -> Result) rethrows -> Result {
    if lock.isHeld { return try body() }
    return try lock.withLock(body)
  }

  /// The view of a store. Use it within ``exclusively(_:_:_:)``.
  func view(of store: PersistentStore) throws -> any ReadView {
    try exclusively {
      if let end, .now > end { throw expired }
      guard let views else { throw expired }
      guard let view = views[store.place] else { throw PersistenceError.missingStore() }
      return view
    }
  }

  var expired: PersistenceError {
    PersistenceError(
      .expiredGeneration,
      reason: "The generation has ended, because its time limit of \(timeLimit ?? .zero) is over. Pin the context to the current one, or "
        + "unpin it with nil.")
  }

  /// Waits for a running request, then ends the snapshots.
  func endViews() {
    exclusively {
      timer?.cancel()
      for view in (views ?? [:]).values { view.end() }
      views = nil
    }
  }

  private func startTimer(_ limit: Duration) {
    let timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
    timer.setEventHandler { [weak self] in self?.endViews() }
    timer.schedule(deadline: .now() + max(0, limit / .seconds(1)), leeway: .milliseconds(10))
    self.timer = timer
    timer.resume()
  }
}
