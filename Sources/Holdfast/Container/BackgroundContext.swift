import Dispatch
import HoldfastStore

/// A context on a queue of its own: a small actor that hands it to closures and lets nothing of it out.
///
/// What a closure returns must be free of the context's objects, which the compiler checks; pass
/// ``ManagedObject/objectID`` and values. An error that a closure throws must be free of them as well. Of that the compiler only warns, so
/// debug builds trap when an error holds an object.
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

  /// Changes that were not saved are given up; they would keep the context, and with it the store, alive.
  isolated deinit { context.rollback() }

  /// Runs a closure with the context.
  ///
  /// - Throws: what the closure throws.
  public func perform<Result, Failure: Error>(
    _ body: @Sendable (ManagedObjectContext) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    do { return try body(context) } catch {
      assertIsFreeOfObjects(error)
      throw error
    }
  }

  /// Runs a closure with the context and waits for it; inline when already inside. Must not be called from an async
  /// function, whose thread it would block.
  ///
  /// - Throws: what the closure throws.
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

/// Traps in debug builds when an error that leaves a context holds one of its objects.
private func assertIsFreeOfObjects(_ error: any Error) {
  assert(!holdsObject(error, depth: 0), "An error with a managed object left the object's context; throw its objectID instead.")
}

private func holdsObject(_ value: Any, depth: Int) -> Bool {
  if value is ManagedObject || value is ManagedObjectContext { return true }
  // Errors are small; what lies deeper than that is not looked at.
  return depth < 6 && Mirror(reflecting: value).children.contains { holdsObject($0.value, depth: depth + 1) }
}
