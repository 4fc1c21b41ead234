import Foundation
import Holdfast
public import HoldfastStore

/// Creates a store from what can be read of a damaged one.
public struct StoreRepair: Sendable {
  /// What was recovered.
  public let report: RepairReport

  /// Creates the new store, of the damaged one's type.
  ///
  /// - Parameters:
  ///   - path: The path of the damaged store.
  ///   - output: The path of the new store. There is nothing at it.
  ///   - modelPath: The path of a model that has the store's version. Defaults to the model in the store. If the store's metadata is lost, the
  ///     current version of the model is taken.
  /// - Throws: ``CommandError`` if the type of the store isn't known, no version of the model fits, or nothing can be recovered.
  public init(path: String, output: String, modelPath: String? = nil) throws(CommandError) {
    if FileKind(output) != nil {
      throw CommandError(path: output, reason: "There is something at this path. Choose another one.")
    }
    let damaged = try Self.described(path)
    guard let new = damaged.inFile?(output) else { throw CommandError(path: path, reason: "The store isn't in a file.") }
    report = try Self.repair(damaged, to: new, try Self.models(path, modelPath), path)
  }

  /// Describes a store by the beginning of its file, or by its extension if the beginning is damaged.
  private static func described(_ path: String) throws(CommandError) -> StoreDescription {
    switch FileKind(path) {
    case .file: break
    case .other: throw FileKind.noFile(path)
    case nil, .folder: throw CommandError(path: path, reason: "There is no file at this path. Check the path.")
    }
    do throws(CommandError) { return try StoreFile(path: path).writable } catch { return try StoreSource.described(path) }
  }

  /// The models that may be that of the store, the most likely one first; nil for the one that the repair finds.
  private static func models(_ path: String, _ modelPath: String?) throws(CommandError) -> [ManagedObjectModel?] {
    guard let modelPath else {
      // If the damage lets the store be read so far, it is the model in Core Data's cache.
      return [try? StoreFile(path: path).keptModel()?.model]
    }
    let source = try ModelSource(path: modelPath), current = try source.version(nil).model
    return [current] + source.versions.map(\.model).filter { $0 !== current }
  }

  private static func repair(
    _ damaged: StoreDescription, to new: StoreDescription, _ models: [ManagedObjectModel?], _ path: String
  ) throws(CommandError) -> RepairReport {
    var refusal: (any Error)?
    for model in models {
      do { return try PersistentStoreCoordinator.repairPersistentStore(damaged, to: new, model: model) } catch let error as StoreError
        where error.code == .incompatibleModel
      {
        refusal = refusal ?? error
      } catch {
        throw CommandError(path: path, reason: "The store can't be repaired.", cause: error)
      }
    }
    throw CommandError(path: path, reason: "None of the model's versions matches the store.", cause: refusal)
  }
}
