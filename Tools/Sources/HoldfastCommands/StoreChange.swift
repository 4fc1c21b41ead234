import Foundation
public import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
public import HoldfastStore
import HoldfastXMLStore

/// A store with its model, for the commands that copy and migrate stores.
public struct StoreSource: Sendable {
  /// The path of the file.
  public let path: String
  /// Describes the store for writing.
  public let description: StoreDescription
  /// The store's model.
  public let model: ManagedObjectModel
  /// Whether the model is derived from the objects of an XML store, because neither the store nor the caller has one. Such a store is only
  /// read.
  public let isModelDerived: Bool
  let file: StoreFile
  /// The configuration that the user passed.
  private let configuration: String?

  /// Determines the type and the model of a store.
  ///
  /// - Parameters:
  ///   - path: The path of the store's file.
  ///   - modelPath: The path of a model that has the store's version. Defaults to the model in the store.
  ///   - configuration: The configuration of the model that Core Data created the file for, which lacks the model's other entities. It has
  ///     no effect on a store that has all entities. Defaults to none.
  ///   - derivesModel: Whether the model of an XML store without one may be derived from its objects.
  /// - Throws: ``CommandError`` if the file isn't a store, no model has its version hashes, or the model has no such configuration.
  public init(
    path: String, modelPath: String? = nil, configuration: String? = nil, derivesModel: Bool = false
  ) throws(CommandError) {
    (self.path, self.configuration) = (path, configuration)
    let plain = try StoreFile(path: path), metadata = try plain.metadata(), found: StoreFile
    if let modelPath {
      model = try ModelSource(path: modelPath).version(of: metadata, at: path, configuration: configuration).model
      (found, isModelDerived) = (plain, false)
    } else if derivesModel, try plain.keptModel() == nil, let deriving = plain.derivingModel(), let derived = try deriving.keptModel() {
      (found, model, isModelDerived) = (deriving, derived.model, true)
    } else {
      (found, model, isModelDerived) = (plain, try plain.requiredModel(), false)
      let differing = metadata.differingEntities(from: model, configuration: configuration)
      guard differing.isEmpty else {
        throw CommandError(
          path: path,
          reason: "The model in the store isn't the one that it was created with. These entities differ: "
            + "\(differing.joined(separator: ", ")). Pass the model with --model.\(metadata.configurationAdvice([model]))")
      }
    }
    let needed = try metadata.neededConfiguration(configuration, of: model, at: modelPath ?? path)
    file = found.with(configuration: needed)
    description = plain.writable.with(configuration: needed)
  }

  /// The names of the entities that the store can have objects of.
  var heldEntityNames: Set<String> { Self.entityNames(of: model, in: file.description.configuration) }

  /// The names of the entities of a configuration, or of all entities for none.
  static func entityNames(of model: ManagedObjectModel, in configuration: String?) -> Set<String> {
    Set((configuration.flatMap { model.entities(inConfiguration: $0) } ?? model.entities).map(\.name))
  }

  /// A version of the model in a file.
  ///
  /// - Parameters:
  ///   - path: The path of the model.
  ///   - version: The name of the version. Defaults to the current one.
  /// - Throws: ``CommandError`` if the model can't be read, or has no such version.
  static func model(path: String, version: String?) throws(CommandError) -> ManagedObjectModel {
    try ModelSource(path: path).version(version).model
  }

  // MARK: Copies

  /// Copies the store to a file of the type of its extension: .sqlite, .json, .xml or .binary.
  ///
  /// - Returns: The digest of both stores.
  /// - Throws: ``CommandError`` if the destination exists, or one of the stores can't be read or written.
  public func convert(to destination: String) throws(CommandError) -> GraphDigest {
    if FileKind(destination) != nil {
      throw CommandError(path: destination, reason: "There is something at this path. Choose another one.")
    }
    return try wrapping("The store can't be copied to \(destination).") {
      try PersistentStoreCoordinator.copyPersistentStore(file.description, to: try Self.described(destination), model: model).digest
    }
  }

  /// An unused path for a copy of a store: "zoo-backup.sqlite". The name without the extension differs, because external files are in a folder
  /// of that name.
  public static func backupPath(of path: String) -> String {
    let url = URL(fileURLWithPath: path), end = url.pathExtension.isEmpty ? "" : "." + url.pathExtension
    let stem = end.isEmpty ? path : String(path.dropLast(end.count))
    var (candidate, number) = (stem + "-backup" + end, 1)
    while FileKind(candidate) != nil {
      number += 1
      candidate = "\(stem)-backup-\(number)\(end)"
    }
    return candidate
  }

  static func described(_ path: String) throws(CommandError) -> StoreDescription {
    switch URL(fileURLWithPath: path).pathExtension.lowercased() {
    case "sqlite", "store", "db": .sqlite(at: path)
    case "json": .json(at: path)
    case "xml": .xml(at: path)
    case "binary", "bin": .binary(at: path)
    default:
      throw CommandError(path: path, reason: "The extension isn't .sqlite, .json, .xml or .binary, so the type of the store isn't known.")
    }
  }

  // MARK: Checks

  /// Reads all objects, values, external files and relationships, and compares what the store contains twice, such as indexes.
  ///
  /// - Returns: The digest of the contents.
  /// - Throws: ``CommandError`` if something is damaged or can't be read.
  public func check() throws(CommandError) -> GraphDigest {
    try wrapping("The store is damaged, or can't be read.") {
      try PersistentStoreCoordinator.verifyPersistentStore(file.description, model: model)
    }
  }

  /// Compares the store with another one.
  func difference(
    from other: String, matching: GraphDifference.Matching, includesValues: Bool, maximumCount: Int
  ) throws(CommandError) -> GraphDifference {
    try requireModel()
    let plain = try StoreFile(path: other)
    let second = plain.with(configuration: try plain.metadata().neededConfiguration(configuration, of: model, at: other))
    return try wrapping("The store can't be compared with \(other).") {
      try PersistentStoreCoordinator.difference(
        between: file.description, and: second.description, model: model, matching: matching, includesValues: includesValues,
        maximumCount: maximumCount)
    }
  }

  /// Throws if the model is derived, for what needs the real one.
  func requireModel() throws(CommandError) {
    if isModelDerived { throw CommandError(path: path, reason: "The store doesn't contain its model. Pass the model with --model.") }
  }

  func wrapping<Result>(_ reason: String, _ body: () throws -> Result) throws(CommandError) -> Result {
    do { return try body() } catch let error as CommandError { throw error } catch {
      throw CommandError(path: path, reason: reason, cause: error)
    }
  }
}
