public import HoldfastStore

/// A container for the model, the coordinator, a main-actor context and background contexts.
///
/// ```swift
/// let container = try PersistentContainer(model: model, classes: [Dog.self], store: .memory())
/// let dog = container.viewContext.insert(Dog.self)
/// dog.name = "Fido"
/// try container.viewContext.save()
/// ```
public final class PersistentContainer: Sendable {
  /// The coordinator of the container's stores.
  public let persistentStoreCoordinator: PersistentStoreCoordinator
  /// The context of the main actor, created when it is first used. A program without a main actor, such as a server, doesn't need it.
  @MainActor public var viewContext: ManagedObjectContext {
    if let createdViewContext { return createdViewContext }
    let context = ManagedObjectContext(coordinator: persistentStoreCoordinator, bound: bound, isolation: .main)
    createdViewContext = context
    return context
  }
  @MainActor private(set) var createdViewContext: ManagedObjectContext?
  private let bound: BoundClasses

  /// Creates a container and opens a store.
  ///
  /// - Parameters:
  ///   - model: the data model.
  ///   - classes: the typed classes. Objects of other entities are instances of ``ManagedObject``.
  ///   - transformers: the transformers of transformable attributes. Defaults to a registry with only the default transformer.
  ///   - store: the store's type, location and options.
  /// - Throws: ``PersistenceError`` when a class doesn't match the model; the errors of
  ///   ``PersistentStoreCoordinator/addPersistentStore(_:)`` when the store can't be opened.
  public convenience init(
    model: ManagedObjectModel, classes: [ManagedObject.Type] = [],
    transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(), store: StoreDescription
  ) throws {
    self.init(
      try BoundClasses(classes, model, transformers),
      try PersistentStoreCoordinator(model: model, transformers: transformers, store: store))
  }

  /// Creates a container whose model is what classes declare, and opens a store.
  ///
  /// - Parameters:
  ///   - classes: The classes, each with a ``ManagedObject/declaration``. Their superclasses, and the classes of their relationships'
  ///     destinations, are added. Pass subclasses, because no other class names them.
  ///   - transformers: The transformers of transformable attributes. Defaults to a registry with only the default transformer.
  ///   - store: The store's type, location and options.
  /// - Throws: ``PersistenceError`` if a class has no declaration, or doesn't match it; ``/HoldfastStore/ModelError`` if the model is invalid;
  ///   the errors of ``PersistentStoreCoordinator/addPersistentStore(_:)`` if the store can't be opened.
  public convenience init(
    for classes: ManagedObject.Type..., transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(), store: StoreDescription
  ) throws {
    try self.init(declaredBy: classes, transformers: transformers, store: store)
  }

  /// Creates a container whose model is what the classes of an array declare; the same as ``init(for:transformers:store:)``.
  ///
  /// - Throws: The errors of ``init(for:transformers:store:)``.
  public convenience init(
    declaredBy classes: [ManagedObject.Type], transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(),
    store: StoreDescription
  ) throws {
    var declared = try DeclaredClasses(classes), transformers = transformers
    declared.register(in: &transformers)
    try self.init(model: declared.model(), classes: declared.types, transformers: transformers, store: store)
  }

  /// Creates a container and opens several stores; see ``PersistentStoreCoordinator/init(model:transformers:stores:)``.
  ///
  /// - Throws: the errors of ``init(model:classes:transformers:store:)``.
  public convenience init(
    model: ManagedObjectModel, classes: [ManagedObject.Type] = [],
    transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(), stores: [StoreDescription]
  ) throws {
    self.init(
      try BoundClasses(classes, model, transformers),
      try PersistentStoreCoordinator(model: model, transformers: transformers, stores: stores))
  }

  private init(_ bound: BoundClasses, _ coordinator: PersistentStoreCoordinator) {
    self.bound = bound
    persistentStoreCoordinator = coordinator
  }

  /// Closes the stores and removes them with their logs, backups and external data. A store without a file is only closed.
  ///
  /// Empty lock files remain, because another process may be waiting for one.
  ///
  /// Contexts of the container can't read or save any more.
  ///
  /// - Throws: The errors of ``PersistentStoreCoordinator/close()`` and ``PersistentStoreCoordinator/destroyPersistentStore(_:)``. Stores
  ///   before the one that couldn't be removed are gone then.
  public func destroy() throws {
    try persistentStoreCoordinator.close()
    // Read after closing, which waits for a store that is being added.
    let descriptions = persistentStoreCoordinator.persistentStores.map(\.description)
    for description in descriptions where description.location?.path != nil {
      try PersistentStoreCoordinator.destroyPersistentStore(description)
    }
  }

  /// The data model.
  public var managedObjectModel: ManagedObjectModel { persistentStoreCoordinator.model }

  /// Creates a context for use in the isolation that creates it, such as a request handler of a server.
  ///
  /// Keep a reference to it until its changes are saved.
  public func newContext() -> sending ManagedObjectContext {
    ManagedObjectContext(coordinator: persistentStoreCoordinator, bound: bound, isolation: .unchecked)
  }

  /// Runs a closure with a new context on the caller's thread. Changes that the closure doesn't save are discarded.
  ///
  /// ```swift
  /// let count = try container.withContext { context in
  ///   context.insert(Dog.self) { $0.name = "Fido" }
  ///   try context.save()
  ///   return try context.count(Dog.self)
  /// }
  /// ```
  ///
  /// The closure's requests block the thread. ``performBackgroundTask(_:)`` runs it on a queue of its own instead.
  ///
  /// - Throws: the closure's error.
  public func withContext<Result, Failure: Error>(_ body: (ManagedObjectContext) throws(Failure) -> Result) throws(Failure) -> Result {
    let context = newContext()
    return try body(context)
  }

  /// Creates a context on a queue of its own.
  public func newBackgroundContext() -> BackgroundContext {
    BackgroundContext(coordinator: persistentStoreCoordinator, bound: bound)
  }

  /// Runs a closure with a new background context.
  ///
  /// - Throws: the closure's error.
  public func performBackgroundTask<Result, Failure: Error>(
    _ body: @Sendable (ManagedObjectContext) throws(Failure) -> sending Result
  ) async throws(Failure) -> sending Result {
    try await newBackgroundContext().perform(body)
  }
}
