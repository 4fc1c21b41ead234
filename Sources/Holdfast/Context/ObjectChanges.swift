public import HoldfastStore
import Synchronization

/// The changes in one context, as object IDs, so that they can be sent across isolations.
///
/// Use it to update a screen from its context, also before a save. For the saves of every context, use ``SavedChanges``.
///
/// Handlers of ``ManagedObjectContext/onChange(_:)`` and ``ManagedObjectContext/onSave(_:)`` receive them.
public struct ObjectChanges: Sendable, Hashable {
  /// The new objects. Before the save their IDs are temporary. Also those that a merge found inserted by another context or process.
  public var inserted: [ManagedObjectID]
  /// The objects whose attributes or relationships changed.
  ///
  /// A relationship counts as changed from either side, and when a destination is deleted. An object that is new to the handler is only in
  /// ``inserted``.
  public var updated: [ManagedObjectID]
  /// The objects that the next save will delete, or that this save deleted, or that a merge found deleted elsewhere.
  ///
  /// A merge also reports those that the context doesn't have, as in ``inserted``. New objects that were deleted before the handler
  /// received them are in no list.
  public var deleted: [ManagedObjectID]
  /// The objects that were refreshed, or whose changes were rolled back.
  public var refreshed: [ManagedObjectID]
  /// The objects that left the graph: all objects in a reset, new objects in a rollback.
  public var invalidated: [ManagedObjectID]

  /// Creates a set of changes.
  public init(
    inserted: [ManagedObjectID] = [], updated: [ManagedObjectID] = [], deleted: [ManagedObjectID] = [],
    refreshed: [ManagedObjectID] = [], invalidated: [ManagedObjectID] = []
  ) {
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
    self.refreshed = refreshed
    self.invalidated = invalidated
  }

  /// Whether nothing changed.
  public var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty && refreshed.isEmpty && invalidated.isEmpty }
}

/// A handler's registration with a context. The handler is called until this is cancelled or released.
///
/// Store it in a property: a local variable can be released after its last use.
///
/// It retains neither the handler nor the context, and can be cancelled or released on any thread. The context releases the handler at its
/// next notification, or when the context itself is released.
///
/// ```swift
/// final class Screen {
///   private var observation: ContextObservation?
///   private(set) var newDogs = 0
///   func show(_ context: ManagedObjectContext) {
///     observation = context.onChange { [weak self] _, changes in self?.newDogs += changes.inserted.count }
///   }
/// }
/// ```
public final class ContextObservation: Sendable {
  private let cancelled = Atomic(false)

  init() {}

  /// Ends the calls of the handler.
  public func cancel() { cancelled.store(true, ordering: .relaxed) }

  var isCancelled: Bool { cancelled.load(ordering: .relaxed) }
}
