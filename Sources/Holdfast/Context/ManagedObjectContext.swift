/// A working set of objects: fetches them, keeps one per row, tracks their changes and saves them together.
///
/// A context and its objects are ordinary, synchronous and **not** `Sendable`. They stay in the isolation that created them, which the
/// compiler checks. Use ``PersistentContainer/viewContext`` on the main actor and a ``BackgroundContext`` elsewhere, or create a context
/// where you use it. You can *send* a new context together with its objects.
///
/// The context keeps changed objects alive, and no others: an unchanged object without other references is released.
///
/// Passing an object of another context to a method of a context traps. Pass its ``ManagedObject/objectID`` to the other context, and call
/// ``object(with:)`` there.
///
/// When you release a context and its objects, its unsaved changes are discarded. Keep a reference to the context until it is saved. If you
/// release it but keep some of its objects, their ``ManagedObject/managedObjectContext`` gives you a context again. If changed objects were
/// released in between, its ``save()`` throws ``PersistenceError/Code/lostChanges``. Properties of new objects that were lost return
/// placeholders; see ``FaultErrorPolicy``.
///
/// Release a context in its isolation. A class of an actor that owns a context, but can be released elsewhere, needs an `isolated deinit`.
/// The view context and background contexts take care of that themselves.
public final class ManagedObjectContext {
  private(set) var core: ContextCore

  /// Creates a context for use in the isolation that creates it.
  ///
  /// - Parameters:
  ///   - coordinator: The coordinator of the stores.
  ///   - classes: The typed classes of entities. Other objects are of class ``ManagedObject``.
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/classMismatch`` and a list of all differences between classes and model.
  public convenience init(coordinator: PersistentStoreCoordinator, classes: [ManagedObject.Type] = []) throws {
    self.init(
      coordinator: coordinator, bound: try BoundClasses(classes, coordinator.model, coordinator.transformers), isolation: .unchecked)
  }

  convenience init(coordinator: PersistentStoreCoordinator, bound: BoundClasses, isolation: ContextIsolation) {
    self.init(core: ContextCore(coordinator: coordinator, bound: bound, isolation: isolation))
  }

  init(core: ContextCore) {
    self.core = core
    core.handle = self
    // Present if the former context was released on another thread, and what follows from that hasn't happened yet.
    core.merging.inbox?.setContext(self)
    core.retainChanges()
  }

  deinit {
    // Changed objects refer to the core. Without any, it is released here, and the store may be closed.
    if isKnownUniquelyReferenced(&core) { return }
    nonisolated(unsafe) let core = core  // because it runs where the context belongs
    core.isolation.run { core.releaseChanges() }
  }

  // MARK: Settings

  /// The coordinator between the context and its stores. A child context has that of its parent.
  public var persistentStoreCoordinator: PersistentStoreCoordinator { core.storeCoordinator }

  /// A name for messages, for labels of requests, and for the history of stores that keep one.
  public var name: String {
    get { core.requests.label ?? "" }
    set { core.requests.label = newValue.isEmpty ? nil : newValue }
  }

  /// The author of the context's saves, such as the name of the program, for the history of stores that keep one. Defaults to nil.
  public var transactionAuthor: String? {
    get { core.requests.author }
    set { core.requests.author = newValue }
  }

  /// The maximum duration of a fetch, a save, or the reading of a fault. Defaults to nil, for no maximum.
  ///
  /// After this time, the fetch or save throws ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/timedOut``. Nothing
  /// was saved then. The time of a save includes its wait for other saves of the same store, and its attempts after conflicts. If a fault
  /// can't be read in time, ``faultErrorPolicy`` applies. A save can take longer, because a commit or the writing of a file isn't
  /// interrupted. Each fault that a save or a callback reads has a time limit of its own.
  public var requestTimeout: Duration? {
    get { core.requests.timeout }
    set { core.requests.timeout = newValue }
  }

  /// Whether reading a fault also reads its siblings: objects of the same result within 1,024 positions. Defaults to true.
  public var firesFaultsInBatches: Bool {
    get { core.faults.areFiredInBatches }
    set { core.faults.areFiredInBatches = newValue }
  }

  /// What happens when a property can't be read because of an error. Defaults to ``FaultErrorPolicy/failSave``.
  public var faultErrorPolicy: FaultErrorPolicy {
    get { core.faults.errorPolicy }
    set { core.faults.errorPolicy = newValue }
  }

  // MARK: Registered objects

  /// Whether any object was inserted, updated or deleted since the last save. Also true if such changes were lost; ``save()`` throws then.
  public var hasChanges: Bool {
    core.saving.loss != nil || core.changes.objects.contains { $0.hasChanges && !($0.isInserted && $0.isDeleted) }
  }

  /// The objects that were never saved, in the order of insertion.
  public var insertedObjects: [ManagedObject] { core.changes.objects.filter { $0.isInserted && !$0.isDeleted } }

  /// The saved objects with changes, in the order of their first change.
  public var updatedObjects: [ManagedObject] { core.changes.objects.filter { $0.isUpdated && !$0.isDeleted } }

  /// The objects that the next save deletes.
  public var deletedObjects: [ManagedObject] { core.changes.objects.filter { $0.isDeleted && !$0.isInserted } }

  /// All objects in the context that are still referenced or have changes.
  public var registeredObjects: [ManagedObject] { core.registeredObjects }
}
