import Dispatch
import HoldfastStore

/// An actor that runs closures with a context on a queue of its own.
///
/// A closure can't return managed objects: the compiler rejects that. Return ``ManagedObject/objectID`` and values instead. An error that
/// a closure throws must not contain managed objects either. The compiler only warns about such errors, but debug builds trap.
///
/// ```swift
/// let count = try await background.perform { context in
///   let old = try context.fetch(FetchRequest<Dog>(where: \.age > 12))
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

  /// Discards unsaved changes, which would keep the context and the store alive.
  isolated deinit { context.rollback() }

  /// Runs a closure with the context.
  ///
  /// - Throws: the closure's error.
  public func perform<Result, Failure: Error>(
    _ body: @Sendable (ManagedObjectContext) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    do { return try body(context) } catch {
      assertIsFreeOfObjects(error)
      throw error
    }
  }

  /// Runs a closure with the context and waits for it.
  ///
  /// When called on the context's queue, it runs the closure immediately. Don't call it from an async function: it blocks the thread.
  ///
  /// - Throws: the closure's error.
  public nonisolated func performAndWait<Result: Sendable>(_ body: @Sendable (ManagedObjectContext) throws -> Result) rethrows -> Result {
    if executor.isIsolatingCurrentContext() == true { return try assumeIsolated { try body($0.context) } }
    return try executor.queue.sync {
      try assumeIsolated { context in
        do { return try body(context.context) } catch {
          assertIsFreeOfObjects(error)
          throw error
        }
      }
    }
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
