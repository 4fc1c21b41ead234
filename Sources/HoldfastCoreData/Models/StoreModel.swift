public import Holdfast
import HoldfastModelFile
import HoldfastSQLiteStore
public import HoldfastStore

extension PersistentContainer {
  /// Opens a store that exists, with the model that it was created with, which is found by `ManagedObjectModel.model(of:modelsAt:)`.
  ///
  /// A SQLite file that Core Data wrote since 2015 contains its model, so nothing but its path is needed. So do SwiftData's files, but opening one
  /// hasn't been tried.
  ///
  /// ```swift
  /// let container = try PersistentContainer(existing: .sqlite(at: "Photos.sqlite", isReadOnly: true))
  /// let albums = try container.viewContext.fetch(FetchRequest<ManagedObject>(entityName: "Album"))
  /// ```
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - modelPath: The path of a model or a folder of models, for a store that doesn't contain its model. Defaults to none.
  ///   - classes: The typed classes. Objects of other entities are instances of ``/Holdfast/ManagedObject``.
  /// - Throws: ``/HoldfastStore/MigrationError`` with code `missingSourceModel` if no model has the store's version hashes;
  ///   ``/Holdfast/PersistenceError`` if a class doesn't match the model; ``/HoldfastStore/StoreError`` if the store can't be opened.
  public convenience init(
    existing store: StoreDescription, modelsAt modelPath: String? = nil, classes: [ManagedObject.Type] = []
  ) throws {
    try self.init(model: try ManagedObjectModel.model(of: store, modelsAt: modelPath), classes: classes, store: store)
  }
}

extension ManagedObjectModel {
  /// The model that a store was created with, found by its version hashes.
  ///
  /// Candidates are, in this order: the versions in files, the model that Holdfast's own stores contain, and the model cache of Core Data's SQLite
  /// files. A version that can't be read is skipped.
  ///
  /// - Parameters:
  ///   - store: A store that isn't open. Nothing is changed.
  ///   - path: The path of an `.xcdatamodeld`, `.xcdatamodel`, `.momd` or `.mom`, or of a folder whose models are searched, with its
  ///     subfolders. Defaults to none.
  /// - Throws: ``/HoldfastStore/MigrationError`` with code `missingSourceModel`, with the reason why the model in the store can't be read as its
  ///   cause; ``/HoldfastStore/StoreError`` if the store's metadata can't be read.
  public static func model(of store: StoreDescription, modelsAt path: String? = nil) throws -> ManagedObjectModel {
    let metadata = try PersistentStoreCoordinator.metadata(for: store)
    var found: ManagedObjectModel?, others: [ManagedObjectModel] = []
    if let path {
      try ModelVersions(path).forEach { model in
        if fits(metadata, store, model) { found = model } else { others.append(model) }
        return found == nil
      }
    }
    var failure: (any Error)?
    for read in [{ try PersistentStoreCoordinator.cachedModel(for: store) }, { try cachedModel(of: store) }] where found == nil {
      do {
        guard let model = try read() else { continue }
        if fits(metadata, store, model) { found = model } else { others.append(model) }
      } catch { failure = error }
    }
    if let found { return found }
    throw MigrationError.missingSourceModel(
      metadata, among: others, path: store.location?.description,
      reason: "The store doesn't contain a readable model with its version hashes"
        + (path.map { ", and none of the versions at \($0) has them" } ?? "") + ". Pass the model with which it was created.",
      cause: failure)
  }

  /// Whether a store has all entities of a model or, if Core Data created it for a configuration, those of the one with which it is opened.
  private static func fits(_ metadata: PersistentStoreMetadata, _ store: StoreDescription, _ model: ManagedObjectModel) -> Bool {
    metadata.differingEntities(from: model, configuration: store.configuration).isEmpty
  }

  /// The model cache of Core Data's SQLite files.
  private static func cachedModel(of store: StoreDescription) throws -> ManagedObjectModel? {
    guard let path = store.location?.path, store.type == StoreDescription.sqlite(at: path).type,
      let bytes = try SQLiteStore.coreDataModelCache(at: path)
    else { return nil }
    return try CompiledModel(modelCache: bytes, path: path).model
  }
}

extension StoreDescription {
  /// A copy of the description whose former models are the versions in files, for the migration of Core Data's stores.
  ///
  /// ```swift
  /// let store = try StoreDescription.sqlite(at: path).migrating(fromVersionsAt: "Zoo.momd")
  /// ```
  ///
  /// - Parameter path: The path, as for `ManagedObjectModel.model(of:modelsAt:)`. Versions that can't be read are skipped.
  /// - Throws: ``/HoldfastModelFile/ModelFileError`` if nothing can be read at the path.
  public func migrating(fromVersionsAt path: String) throws -> StoreDescription {
    var copy = self
    try ModelVersions(path).forEach { model in
      copy.formerModels.append(model)
      return true
    }
    return copy
  }
}
