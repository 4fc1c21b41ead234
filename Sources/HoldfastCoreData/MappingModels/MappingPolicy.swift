public import Holdfast
public import HoldfastModelFile
public import HoldfastStore

/// The code of an entity mapping that names a policy: the counterpart of `NSEntityMigrationPolicy`.
///
/// ```swift
/// let policy = MappingPolicy { stage in
///   try stage.forEach { old, new in
///     guard case .string(let text) = old["age"], let age = Int(text) else { return }
///     try new.setValue(age, forKey: "age")
///   }
/// }
/// ```
///
/// The objects that the closure gets have the values and links that the mapping model describes. So it does what follows the call of `super` in
/// a policy of Core Data. It may delete objects, and insert others into the stage's context.
///
/// Policies are called in the order of their mappings:
///
/// - first those of mappings that insert objects;
/// - at the end, when all objects exist, those of mappings whose objects keep their keys.
///
/// The rules of the model are checked after the last policy, so policies can set what is required. Delete rules are an exception: each save
/// checks whether an object may be deleted.
public struct MappingPolicy: Sendable {
  let functions: [String: @Sendable ([StoreValue]) throws -> StoreValue]
  let body: (@Sendable (EntityMappingStage) throws -> Void)?

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - functions: The functions that expressions call, by selector: "age:" for `FUNCTION($entityPolicy, "age:", $source.age)`. Defaults to
  ///     none. Their errors end the migration.
  ///   - body: Called once for each entity mapping with this policy. It runs on the calling thread. Its errors end the migration, and nothing is
  ///     changed. Defaults to nil.
  public init(
    functions: [String: @Sendable ([StoreValue]) throws -> StoreValue] = [:], _ body: (@Sendable (EntityMappingStage) throws -> Void)? = nil
  ) {
    (self.functions, self.body) = (functions, body)
  }
}

/// One entity mapping during a migration: what a ``MappingPolicy`` reads and changes.
public struct EntityMappingStage {
  /// The mapping.
  public let mapping: MappingModelFile.EntityMapping
  private let run: MappingModelRun

  init(_ mapping: MappingModelFile.EntityMapping, _ run: MappingModelRun) { (self.mapping, self.run) = (mapping, run) }

  /// A context of the migrated store, with the new model. The stage saves it at the end.
  public var context: ManagedObjectContext { run.stage.context }

  /// Calls a closure with each object of the mapping's source entity, without subentities, and the object that it became by the mapping. Calls
  /// it never if the mapping has no source or no destination.
  ///
  /// Changes are saved after some thousand objects and at the end, and all objects are released: don't keep them from one call to the next, and
  /// don't call this method within its closure.
  ///
  /// - Throws: The closure's error, and those of saving. ``/HoldfastStore/MigrationError`` with code `cancelled` if the task was cancelled.
  public func forEach(_ body: (_ old: FormerObject, _ new: ManagedObject) throws -> Void) throws {
    try run.forEachPair(of: mapping) { old, new in if let new { try body(old, new) } }
  }

  /// The objects that old ones became: the counterpart of `destinationInstances(forEntityMappingName:sourceInstances:)`. They may be faults.
  /// Deleted objects are left out.
  ///
  /// - Parameters:
  ///   - old: Objects of the former model.
  ///   - name: The name of the mapping. Defaults to all mappings.
  public func objects(for old: [FormerObject], mappedBy name: String? = nil) throws -> [ManagedObject] {
    try run.objects(for: old, mappedBy: name)
  }
}
