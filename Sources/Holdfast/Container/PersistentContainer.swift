public import HoldfastStore

/// The whole stack in one: model, coordinator, a context for the main actor and others for the background.
///
/// ```swift
/// let container = try PersistentContainer(model: model, classes: [Dog.self], store: .memory())
/// let dog = container.viewContext.insert(Dog.self)
/// dog.name = "Fido"
/// try container.viewContext.save()
/// ```
public final class PersistentContainer: Sendable {
  /// Between the contexts and the store.
  public let persistentStoreCoordinator: PersistentStoreCoordinator
  /// The context of the main actor.
  @MainActor public let viewContext: ManagedObjectContext
  private let bound: BoundClasses

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - model: the entities.
  ///   - classes: the typed classes by which objects appear; objects of other entities appear as ``ManagedObject``.
  ///   - transformers: what turns the values of transformable attributes into bytes and back.
  ///   - store: which store, and where.
  /// - Throws: ``ContextError`` when classes do not fit the model, ``/HoldfastStore/StoreError`` when the store cannot be opened.
  @MainActor public convenience init(
    model: ManagedObjectModel, classes: [ManagedObject.Type] = [],
    transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(), store: StoreDescription
  ) throws {
    self.init(
      try BoundClasses(classes, model, transformers),
      try PersistentStoreCoordinator(model: model, transformers: transformers, store: store))
  }

  /// Opens several stores; see ``PersistentStoreCoordinator/init(model:transformers:stores:)``.
  ///
  /// - Throws: as ``init(model:classes:transformers:store:)``.
  @MainActor public convenience init(
    model: ManagedObjectModel, classes: [ManagedObject.Type] = [],
    transformers: AttributeTransformerRegistry = AttributeTransformerRegistry(), stores: [StoreDescription]
  ) throws {
    self.init(
      try BoundClasses(classes, model, transformers),
      try PersistentStoreCoordinator(model: model, transformers: transformers, stores: stores))
  }

  @MainActor private init(_ bound: BoundClasses, _ coordinator: PersistentStoreCoordinator) {
    self.bound = bound
    persistentStoreCoordinator = coordinator
    viewContext = ManagedObjectContext(coordinator: coordinator, bound: bound, isolation: .main)
  }

  /// The model.
  public var managedObjectModel: ManagedObjectModel { persistentStoreCoordinator.model }

  /// Makes a context on a queue of its own.
  public func newBackgroundContext() -> BackgroundContext {
    BackgroundContext(coordinator: persistentStoreCoordinator, bound: bound)
  }

  /// Runs a closure with a context that is made for it.
  ///
  /// - Throws: what the closure throws.
  public func performBackgroundTask<Result, Failure: Error>(
    _ body: @Sendable (ManagedObjectContext) throws(Failure) -> sending Result
  ) async throws(Failure) -> sending Result {
    try await newBackgroundContext().perform(body)
  }
}
