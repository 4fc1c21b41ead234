import Foundation
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore

/// Models compiled by Core Data: `.mom` and `.momd` files, and the copy that its SQLite stores contain.
enum CompiledModelSource {
  static func isCompiled(_ path: String) -> Bool { path.hasSuffix(".mom") || path.hasSuffix(".momd") || path.hasSuffix(".momd/") }

  static func bundle(_ path: String) throws(CommandError) -> ModelSource.Bundle {
    do throws(ModelFileError) {
      let bundle = try CompiledModelBundle(contentsOf: path)
      var versions: [ModelSource.Version] = []
      var unreadable: [(name: String, error: any Error)] = []
      for name in bundle.versionNames {
        do throws(ModelFileError) {
          let isCurrent = name == bundle.currentVersionName, compiled = try bundle.version(name)
          versions.append(
            ModelSource.Version(
              name: name, isCurrent: isCurrent, model: compiled.model, document: nil, notes: compiled.notes.map(\.description)))
        } catch {
          unreadable.append((name, error))
        }
      }
      return ("compiled model with versions", bundle.currentVersionName, versions, unreadable)
    } catch {
      throw CommandError(path: path, reason: "The model can't be read.", cause: error)
    }
  }

  static func model(_ path: String) throws(CommandError) -> CompiledModel {
    do throws(ModelFileError) { return try CompiledModel(contentsOf: path) } catch {
      throw CommandError(path: path, reason: "The model can't be read.", cause: error)
    }
  }

  /// The model in a store that Core Data created; nil if the store doesn't contain one.
  static func cachedModel(_ path: String) throws -> ManagedObjectModel? {
    guard let bytes = try SQLiteStore.coreDataModelCache(at: path) else { return nil }
    return try CompiledModel(modelCache: bytes, path: path).model
  }
}
