public import Holdfast
import HoldfastCoreData
import HoldfastModelFile
public import HoldfastStore

/// A migration of a store to a version of a model.
public struct StoreMigration: Sendable {
  private enum Way {
    case inferred(ManagedObjectModel)
    case plan(MigrationPlan)
  }

  private let source: StoreSource
  private let way: Way
  /// What it does: one preview, or one for each stage if there are mapping models. Empty if the store has the version.
  public let previews: [MigrationPreview]

  /// Previews a migration to a model.
  ///
  /// - Throws: ``CommandError`` if the models can't be mapped.
  public init(of source: StoreSource, to model: ManagedObjectModel) throws(CommandError) { try self.init(source, .inferred(model)) }

  /// Previews a migration to a version of a model in a file.
  ///
  /// - Parameters:
  ///   - path: The path of the model.
  ///   - version: The name of the version. Defaults to the current one.
  ///   - mappingModels: The path of a folder with mapping models, as in
  ///     ``/Holdfast/MigrationPlan/init(versionsAt:to:mappingModelsAt:policies:)``. Then the preview migrates a copy. Defaults to no mapping models.
  /// - Throws: ``CommandError`` if the model can't be read, has no such version, or can't be mapped, and if a mapping model needs code.
  public init(of source: StoreSource, to path: String, version: String?, mappingModels: String? = nil) throws(CommandError) {
    guard let mappingModels else {
      try self.init(source, .inferred(try StoreSource.model(path: path, version: version)))
      return
    }
    let plan = try source.wrapping("The mapping models can't be used.") {
      try MigrationPlan(versionsAt: path, to: version, mappingModelsAt: mappingModels)
    }
    try self.init(source, .plan(plan))
  }

  private init(_ source: StoreSource, _ way: Way) throws(CommandError) {
    try source.requireModel()
    (self.source, self.way) = (source, way)
    previews = try source.wrapping("The store can't be migrated.") {
      switch way {
      case .inferred(let model):
        // Read-only, because opening a file of another program for writing may change its journal mode or add indexes.
        let description = source.file.description.migrating(from: [source.model])
        return try PersistentStoreCoordinator.previewMigration(of: description, to: model).map { [$0] } ?? []
      case .plan(let plan):
        return try PersistentStoreCoordinator.previewMigration(of: source.description.migrating(from: [source.model]), with: plan)
      }
    }
  }

  /// The number of objects of the migrated store; nil if mapping models may create or remove some.
  public var objectCount: Int? { if case .inferred = way { previews.last?.objectCount } else { nil } }

  /// Whether values or objects are lost.
  public var losesData: Bool { previews.contains { !$0.losses.isEmpty } }

  /// Migrates the store. Values or objects are lost only if ``losesData`` is true, or a mapping model removes them.
  ///
  /// - Parameter backup: Where the store is copied before; nil for no copy.
  /// - Throws: ``CommandError`` if the backup exists, or the store can't be migrated. It is unchanged then.
  public func run(backup: String?) throws(CommandError) {
    try source.file.keeping(backup) { () throws(CommandError) in
      try source.wrapping("The store can't be migrated.") {
        // If no stages lead from the store's version to the last one, the losses of an inferred mapping were shown. What another process
        // has saved since isn't removed.
        let description = source.description.migrating(removingData: losesData, from: [source.model])
        let plan =
          switch way {
          case .inferred(let model): MigrationPlan(from: model)
          case .plan(let plan): plan
          }
        do { try PersistentStoreCoordinator.migratePersistentStore(description, with: plan) } catch let error as MigrationError
          where error.code == .lossOfData
        {
          // The error itself advises to call a function.
          throw CommandError(
            path: source.path,
            reason: "Since the preview, another process has saved data that the migration would remove. Nothing was changed. Migrate again "
              + "to see what would be lost.",
            cause: error)
        }
      }
    }
  }
}
