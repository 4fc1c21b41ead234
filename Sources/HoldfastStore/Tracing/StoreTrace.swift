public import Logging

/// A request to a store: what it was, how long it took, and how it ended.
///
/// It contains names and numbers only, and no values of objects or predicates.
public struct StoreTrace: Sendable {
  /// The kind of a request.
  @nonexhaustive public enum Operation: String, Sendable, Hashable, CaseIterable, Codable {
    /// Opening the store.
    case open
    /// Closing the store.
    case close
    /// Beginning a read view.
    case beginRead
    /// Fetching rows, keys, a count or aggregates.
    case fetch
    /// Reading rows by key.
    case rows
    /// Reading the destinations of a relationship.
    case relationships
    /// Reserving keys.
    case reserveKeys
    /// Preparing a save.
    case prepare
    /// Committing a save.
    case commit
    /// Discarding a prepared save.
    case abort
    /// Replacing the user metadata.
    case setMetadata
    /// An optional request; see ``StoreTrace/requestName``.
    case optional
  }

  /// The type of the store, such as "SQLite"; nil if it is unknown.
  public var storeType: String?
  /// The kind of the request.
  public var operation: Operation
  /// The name of the entity; nil for a request without an entity, or with several.
  public var entity: String?
  /// The name of the relationship; nil for other requests.
  public var relationship: String?
  /// The operation of an optional request, as a verb phrase; nil for other requests.
  public var requestName: String?
  /// The name of the property whose access sent the request for rows; nil if it is unknown.
  public var property: String?
  /// The number of keys or sources in the request, or of rows in a save.
  public var requestedCount: Int?
  /// The number of rows, destinations or keys in the answer; nil if the request failed or has no such answer.
  public var returnedCount: Int?
  /// The label of the request's options, such as the name of the context.
  public var label: String?
  /// The time at which the request began.
  public var start: ContinuousClock.Instant
  /// How long the request took.
  public var duration: Duration
  /// The error's code; nil if the request succeeded. It is `cancelled` for a `CancellationError`, and `general` for other errors that aren't
  /// a ``/HoldfastStore/StoreError``.
  public var errorCode: StoreError.Code?

  init(_ operation: Operation, _ options: RequestOptions = .none) {
    self.operation = operation
    label = options.label
    property = options.property
    start = .now
    duration = .zero
  }

  /// The trace as attributes with the names of OpenTelemetry's semantic conventions for database clients. Other names begin with
  /// `holdfast.`. The duration is in seconds.
  ///
  /// - Parameter system: The name of the store type, for `db.system.name`. Defaults to ``storeType`` in lower case.
  public func attributes(system: String? = nil) -> [String: String] {
    let seconds = duration / .seconds(1)
    var attributes = ["db.operation.name": operation.rawValue, "holdfast.duration": "\(seconds)"]
    attributes["db.system.name"] = system ?? storeType?.lowercased()
    attributes["db.collection.name"] = entity
    attributes["db.response.returned_rows"] = returnedCount.map(String.init)
    attributes["error.type"] = errorCode?.rawValue
    attributes["holdfast.relationship"] = relationship
    attributes["holdfast.request"] = requestName
    attributes["holdfast.property"] = property
    attributes["holdfast.requested_rows"] = requestedCount.map(String.init)
    attributes["holdfast.label"] = label
    return attributes
  }

  /// Logs the trace.
  ///
  /// - Parameters:
  ///   - logger: The logger.
  ///   - level: The level of a request that succeeded. A failed request has at least the level `warning`.
  ///   - system: As in ``attributes(system:)``.
  public func log(to logger: Logger, level: Logger.Level = .debug, system: String? = nil) {
    let level = errorCode == nil ? level : max(level, .warning)
    logger.log(
      level: level, "store request", metadata: attributes(system: system).mapValues { .string($0) })
  }
}
