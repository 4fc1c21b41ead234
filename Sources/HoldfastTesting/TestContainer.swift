public import Holdfast
import HoldfastMemoryStore
public import HoldfastStore
import HoldfastStoreConformance

/// A container for a test: its store is in memory, can be made to fail, and its requests are recorded.
///
/// Each container has data of its own, so tests can run in parallel.
///
/// ```swift
/// @Test func anOwnerWalksTheirDogs() throws {
///   let test = try TestContainer(for: Dog.self, Walk.self), context = test.newContext()
///   context.insert(Dog.self) { $0.name = "Fido" }
///   test.faults.fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
///   #expect(throws: StoreError.self) { try context.save() }
///   #expect(context.hasChanges)
/// }
/// ```
public final class TestContainer: Sendable {
  /// The container of the program that is tested.
  public let container: PersistentContainer
  /// Makes requests to the store fail: `faults.fail(.commit, with: error)`.
  public let faults: FaultInjectingStore
  private let record = RequestRecord()
  private let observation: RequestObservation

  /// Creates a container for classes, with an empty store in memory.
  ///
  /// - Parameters:
  ///   - classes: The classes, each with a declaration, as for ``/Holdfast/PersistentContainer/init(for:transformers:store:)``.
  ///   - transformers: The transformers of transformable attributes. Defaults to a registry with only the default transformer.
  /// - Throws: ``/Holdfast/PersistenceError`` or ``/HoldfastStore/ModelError`` if the classes or the model are invalid.
  public convenience init(
    for classes: ManagedObject.Type..., transformers: AttributeTransformerRegistry = AttributeTransformerRegistry()
  ) throws {
    try self.init(classes, transformers)
  }

  /// Creates a container for a model, with an empty store in memory.
  ///
  /// - Throws: The same errors as ``init(for:transformers:)``.
  public convenience init(
    model: ManagedObjectModel, classes: [ManagedObject.Type] = [],
    transformers: AttributeTransformerRegistry = AttributeTransformerRegistry()
  ) throws {
    try self.init { try PersistentContainer(model: model, classes: classes, transformers: transformers, store: $0) }
  }

  convenience init(
    _ classes: [ManagedObject.Type], _ transformers: AttributeTransformerRegistry = AttributeTransformerRegistry()
  ) throws {
    try self.init { try PersistentContainer(declaredBy: classes, transformers: transformers, store: $0) }
  }

  private init(_ open: (StoreDescription) throws -> PersistentContainer) throws {
    let description = StoreDescription.memory()
    let faults = FaultInjectingStore(description.makeStore())
    container = try open(StoreDescription(type: description.type) { faults })
    self.faults = faults
    observation = container.persistentStoreCoordinator.observeRequests { [record] in record.add($0) }
  }

  /// The coordinator of the store.
  public var coordinator: PersistentStoreCoordinator { container.persistentStoreCoordinator }

  /// The requests that the store has received, in the order in which they ended. Opening and commits aren't listed.
  ///
  /// ```swift
  /// _ = try context.fetch(Dog.self)
  /// #expect(test.requests.map(\.operation) == [.fetch])
  /// ```
  public var requests: [StoreTrace] { record.all }

  /// Forgets the requests up to now.
  public func removeRequests() { record.removeAll() }

  /// Creates a context for use where it is created. Contexts of one container see each other's saves.
  public func newContext() -> sending ManagedObjectContext { container.newContext() }
}
