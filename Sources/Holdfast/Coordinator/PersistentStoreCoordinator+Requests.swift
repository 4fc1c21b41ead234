public import HoldfastStore
public import Logging

/// Seeing what happens: the requests to the stores.
extension PersistentStoreCoordinator {
  /// The numbers of requests that the coordinator has sent to its stores.
  ///
  /// ```swift
  /// let before = coordinator.requestCounts
  /// for dog in dogs { print(dog.owner?.name ?? "") }
  /// print(coordinator.requestCounts - before)  // fetches 0, rows 1, relationships 0, key reservations 0, saves 0, others 0
  /// ```
  public var requestCounts: RequestCounts { monitor.counts }

  /// Calls a function after each request that ``requestCounts`` counts, and each commit, with the request's entity, counts and duration.
  ///
  /// If reading an attribute or a to-one relationship fires a fault, the trace has that property. Requests take about a microsecond longer
  /// while there is an observer.
  ///
  /// - Parameter observer: Receives the request, on the thread that sent it. Several threads may call it at the same time. It must not send
  ///   requests to the coordinator.
  /// - Returns: The registration. The observer is called until it is cancelled or released, so keep it.
  public func observeRequests(_ observer: @escaping @Sendable (StoreTrace) -> Void) -> RequestObservation {
    RequestObservation(monitor, monitor.add(observer))
  }

  /// Logs each request that ``observeRequests(_:)`` reports, as long as the coordinator exists. The log contains names, counts and
  /// durations, and no values.
  ///
  /// ```swift
  /// coordinator.logRequests(slow: .milliseconds(100))
  /// ```
  ///
  /// A SQLite store also logs its statements, if its options say so.
  ///
  /// - Parameters:
  ///   - logger: The logger. Defaults to one with the label `holdfast.requests`.
  ///   - level: The level of requests that succeed. Failed ones are logged at the level `warning` or higher. Defaults to `debug`.
  ///   - slow: The duration from which a request is logged at the level `warning`. Defaults to nil, for no such limit.
  public func logRequests(
    to logger: Logger = Logger(label: "holdfast.requests"), level: Logger.Level = .debug, slow: Duration? = nil
  ) {
    _ = monitor.add { trace in
      let isSlow = slow.map { trace.duration >= $0 } ?? false
      trace.log(to: logger, level: isSlow ? max(level, .warning) : level)
    }
  }
}

/// An observer's registration with a coordinator. The observer is called until this is cancelled or released; store it in a property.
public final class RequestObservation: Sendable {
  private let monitor: RequestMonitor
  private let number: Int

  init(_ monitor: RequestMonitor, _ number: Int) {
    self.monitor = monitor
    self.number = number
  }

  deinit { cancel() }

  /// Removes and releases the observer. It may still receive a request in progress.
  public func cancel() { monitor.remove(number) }
}
