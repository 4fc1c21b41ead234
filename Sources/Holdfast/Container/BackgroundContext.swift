import HoldfastStore

/// An actor that runs closures with a context on a queue of its own.
///
/// A closure can't return managed objects: the compiler rejects that. Return ``ManagedObject/objectID`` and values instead. An error that
/// a closure throws must not contain managed objects either. The compiler only warns about such errors, but debug builds trap.
///
/// ```swift
/// let count = try await background.perform { context in
///   let old = try context.fetch(Dog.self) { $0.age > 12 }
///   for dog in old { dog.isRetired = true }
///   try context.save()
///   return old.count
/// }
/// ```
public actor BackgroundContext {
  nonisolated let executor: QueueExecutor
  private let context: ManagedObjectContext

  /// The executor of the context's queue.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(coordinator: PersistentStoreCoordinator, bound: BoundClasses) {
    let executor = QueueExecutor(label: "holdfast.context")
    self.executor = executor
    context = ManagedObjectContext(coordinator: coordinator, bound: bound, isolation: .queue(executor))
  }

  /// Runs a closure with the context.
  ///
  /// If the calling task is cancelled, the closure's fetches throw ``/HoldfastStore/StoreError`` with code
  /// ``/HoldfastStore/StoreError/Code/cancelled``, even while a store waits. Faults and saves aren't cancelled.
  ///
  /// - Throws: the closure's error.
  public func perform<Result, Failure: Error>(
    _ body: @Sendable (ManagedObjectContext) throws(Failure) -> sending Result
  ) async throws(Failure) -> sending Result {
    let cancellation = RequestCancellation()
    let outcome = await withTaskCancellationHandler {
      context.core.cancelling(cancellation) { Outcome<Result, Failure>(of: body, context) }
    } onCancel: {
      cancellation.cancel()
    }
    return try outcome.get()
  }

  /// Runs a closure with the context and waits for it.
  ///
  /// Within ``perform(_:)`` or ``performAndWait(_:)`` of the same context, it runs the closure immediately, also if calls of other contexts
  /// are in between. Don't call it from an async function: it blocks the thread.
  ///
  /// Nest calls of several contexts in the same order everywhere. If a thread calls `b.performAndWait` within `a.performAndWait` while
  /// another thread calls `a.performAndWait` within `b.performAndWait`, both wait forever.
  ///
  /// On Linux, calls that are nested in more than 255 contexts can wait forever for a thread: return from each call before the next one,
  /// or use ``perform(_:)``.
  ///
  /// - Throws: the closure's error.
  public nonisolated func performAndWait<Result: Sendable>(_ body: @Sendable (ManagedObjectContext) throws -> Result) rethrows -> Result {
    if executor.isOnQueue { return try assumeIsolated { try body($0.context) } }
    return try executor.submitAndWait {
      try assumeIsolated { context in
        do { return try body(context.context) } catch {
          assertIsFreeOfObjects(error)
          throw error
        }
      }
    }
  }
}

/// The result of a closure, on its way out of the actor.
private struct Outcome<Success, Failure: Error>: @unchecked Sendable {  // because the closure sends its result, and keeps no reference
  private let result: Result<Success, Failure>

  init(of body: (ManagedObjectContext) throws(Failure) -> sending Success, _ context: ManagedObjectContext) {
    do throws(Failure) { result = .success(try body(context)) } catch {
      assertIsFreeOfObjects(error)
      result = .failure(error)
    }
  }

  func get() throws(Failure) -> sending Success {
    nonisolated(unsafe) let result = result  // because the closure has sent it, and no other code refers to it
    return try result.get()
  }
}

/// Traps in debug builds when an error contains a managed object or a context.
private func assertIsFreeOfObjects(_ error: any Error) {
  assert(!holdsObject(error, depth: 0), "A thrown error contains a managed object. Throw the object's objectID instead.")
}

private func holdsObject(_ value: Any, depth: Int) -> Bool {
  if value is ManagedObject || value is ManagedObjectContext { return true }
  // Errors are small, so deeper values aren't searched.
  return depth < 6 && Mirror(reflecting: value).children.contains { holdsObject($0.value, depth: depth + 1) }
}
