/// The deadline, the cancellation, the label and the progress of a request.
///
/// A store may ignore them. The framework checks them before each request, and when a fetch delivers rows. In a long computation, a store
/// calls ``check(_:)`` at intervals. While it waits, for example for a server, it uses ``withCancellationHandler(_:operation:)`` and stops
/// waiting at the ``deadline``:
///
/// ```swift
/// try options.check("fetch rows")
/// let answer = try options.withCancellationHandler({ connection.cancel() }) {
///   try connection.receive(until: options.deadline)
/// }
/// ```
///
/// A value has the size of one pointer. ``none`` allocates no memory.
public struct RequestOptions: Sendable {
  private final class Contents: Sendable {
    let deadline: ContinuousClock.Instant?
    /// Whether there is a deadline. Tested first, because the size of an instant is known at run time only, which makes copies slow.
    let hasDeadline: Bool
    let cancellation: RequestCancellation?
    let label: String?
    let property: String?
    let progress: (@Sendable (Double) -> Void)?

    init(
      _ deadline: ContinuousClock.Instant?, _ cancellation: RequestCancellation?, _ label: String?, _ property: String?,
      _ progress: (@Sendable (Double) -> Void)?
    ) {
      (self.deadline, self.cancellation, self.label, self.property) = (deadline, cancellation, label, property)
      self.progress = progress
      hasDeadline = deadline != nil
    }
  }

  /// Nil if everything is nil.
  private let contents: Contents?

  /// No deadline, no cancellation and no names.
  public static let none = RequestOptions()

  /// Creates options.
  ///
  /// - Parameters:
  ///   - deadline: The time by which the request should end. Defaults to nil, for no deadline.
  ///   - cancellation: Cancels the request. Defaults to nil, for a request that can't be cancelled.
  ///   - label: A name for logs and traces, such as the context's name. Defaults to nil.
  ///   - property: For logs and traces, the name of the property whose access sends the request. Defaults to nil.
  ///   - progress: Receives what the store passes to ``report(_:)``. Defaults to nil.
  public init(
    deadline: ContinuousClock.Instant? = nil, cancellation: RequestCancellation? = nil, label: String? = nil, property: String? = nil,
    progress: (@Sendable (Double) -> Void)? = nil
  ) {
    let isEmpty = deadline == nil && cancellation == nil && label == nil && property == nil && progress == nil
    contents = isEmpty ? nil : Contents(deadline, cancellation, label, property, progress)
  }

  /// The time by which the request should end; nil without a deadline.
  public var deadline: ContinuousClock.Instant? { contents?.deadline }

  /// Cancels the request; nil if the request can't be cancelled.
  public var cancellation: RequestCancellation? { contents?.cancellation }

  /// A name for logs and traces; nil without one.
  public var label: String? { contents?.label }

  /// The name of the property whose access sends the request; nil if it is unknown.
  public var property: String? { contents?.property }

  /// Whether the request has neither a deadline nor a cancellation, so that ``check(_:)`` never throws.
  public var isUnlimited: Bool {
    guard let contents else { return true }
    return !contents.hasDeadline && contents.cancellation == nil
  }

  /// Reports how far a long request is: a migration, a copy or a repair.
  ///
  /// - Parameter share: The share that is complete, from 0 to 1. Programs receive only greater ones than before.
  public func report(_ share: Double) { contents?.progress?(min(max(share, 0), 1)) }

  /// Whether ``report(_:)`` has a receiver.
  public var reportsProgress: Bool { contents?.progress != nil }

  /// Throws if the request was cancelled or its deadline has passed.
  ///
  /// - Parameter operation: The operation as a verb phrase, for the error: "fetch rows".
  /// - Throws: ``StoreError`` with code ``StoreError/Code/cancelled`` or ``StoreError/Code/timedOut``.
  public func check(_ operation: @autoclosure () -> String) throws(StoreError) {
    if let contents { try RequestOptions.check(contents, operation) }
  }

  private static func check(_ contents: Contents, _ operation: () -> String) throws(StoreError) {
    if contents.cancellation?.isCancelled == true { throw cancelled(operation()) }
    if contents.hasDeadline, let deadline = contents.deadline, ContinuousClock.now > deadline {
      throw StoreError(
        .timedOut, operation: operation(), reason: "The deadline of the request has passed. Try again, or allow more time.",
        isRetryable: true)
    }
  }

  /// Runs an operation, and calls a handler if the request is cancelled while the operation runs.
  ///
  /// - The handler is called at most once, on the thread that calls ``RequestCancellation/cancel()``.
  /// - This method returns only after the handler has returned.
  /// - The handler must not wait, send requests or call ``RequestCancellation/cancel()``.
  /// - The handler isn't called for the cancellation of a task; see ``RequestCancellation``.
  ///
  /// - Throws: ``StoreError`` with code ``StoreError/Code/cancelled`` if ``RequestCancellation/cancel()`` was called before, and the errors
  ///   of the operation.
  public func withCancellationHandler<Result>(_ handler: @escaping @Sendable () -> Void, operation: () throws -> Result) throws -> Result {
    guard let cancellation = contents?.cancellation else { return try operation() }
    guard let number = cancellation.add(handler) else { throw RequestOptions.cancelled("wait for a store") }
    defer { cancellation.removeHandler(number) }
    return try operation()
  }

  private static func cancelled(_ operation: String) -> StoreError {
    StoreError(.cancelled, operation: operation, reason: "The task was cancelled.", cause: CancellationError())
  }
}
