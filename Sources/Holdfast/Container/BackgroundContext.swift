import Dispatch
import HoldfastStore

/// A context on a queue of its own: a small actor that hands it to closures and lets nothing of it out.
///
/// What a closure returns must be free of the context's objects, which the compiler checks; pass
/// ``ManagedObject/objectID`` and values.
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
    try body(context)
  }

  /// Runs a closure with the context and waits for it; inline when already inside. Must not be called from an async
  /// function, whose thread it would block.
  ///
  /// - Throws: what the closure throws.
  public nonisolated func performAndWait<Result: Sendable>(_ body: @Sendable (ManagedObjectContext) throws -> Result) rethrows -> Result {
    if executor.isIsolatingCurrentContext() == true { return try assumeIsolated { try body($0.context) } }
    return try executor.queue.sync { try assumeIsolated { try body($0.context) } }
  }
}
