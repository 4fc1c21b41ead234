public import Foundation
import Holdfast
import HoldfastStore

/// The report of `store info`, as values. `Tools/README.md` documents the JSON format.
public struct StoreReport: Codable, Sendable, Hashable {
  /// The version of the report's format.
  public var schema = 1
  /// The path as passed to the command.
  public var path: String
  /// The type of the store, for example "SQLite" or "JSON".
  public var type: String
  /// The store's UUID.
  public var uuid: String
  /// The source of the model: "embedded", "model cache", or the path passed to the command; nil if there is none.
  public var model: String?
  /// Core Data's digest of all version hashes, in base64.
  public var digest: String
  /// Core Data's checksum of all version hashes, in base64.
  public var checksum: String
  /// The entities, sorted by name.
  public var entities: [Entity]
  /// The user's metadata, with values as text.
  public var metadata: [String: String]
  /// Information that couldn't be determined, and why.
  public var notes: [String]

  /// An entity.
  public struct Entity: Codable, Sendable, Hashable {
    /// The name.
    public var name: String
    /// The version hash: 64 hexadecimal digits.
    public var versionHash: String
    /// The number of objects of exactly this entity; nil without a model, or if the configuration lacks the entity.
    public var rows: Int?
  }

  /// Creates a report on a store, which is opened read-only.
  ///
  /// - Parameters:
  ///   - path: The path of the store's file.
  ///   - modelPath: The path of a model to open the store with. Defaults to the model in the store.
  ///   - configuration: The configuration of the model that Core Data created the file for. Defaults to none.
  /// - Throws: ``CommandError`` if the file isn't a store, the model isn't the store's, or it has no such configuration.
  public init(path: String, modelPath: String? = nil, configuration: String? = nil) throws(CommandError) {
    let file = try StoreFile(path: path)
    let metadata = try file.metadata()
    var notes: [String] = []
    let found = try StoreReport.model(of: file, metadata, given: modelPath, configuration, &notes)
    let rows =
      try found.map { found throws(CommandError) -> [String: Int] in
        let needed = try metadata.neededConfiguration(configuration, of: found.model, at: modelPath ?? path)
        return try StoreReport.rows(in: file.with(configuration: needed), found.model)
      } ?? [:]
    self.path = path
    type = metadata.type
    uuid = metadata.storeUUID
    model = found?.place
    (digest, checksum) = (metadata.versionDigest, metadata.versionChecksum)
    entities = metadata.entityVersionHashes.map { Entity(name: $0.key, versionHash: Hexadecimal.text($0.value), rows: rows[$0.key]) }
      .sorted { $0.name < $1.name }
    self.metadata = metadata.userInfo.mapValues(Words.value)
    self.notes = notes
  }

  private static func model(
    of file: StoreFile, _ metadata: PersistentStoreMetadata, given path: String?, _ configuration: String?, _ notes: inout [String]
  ) throws(CommandError) -> (model: ManagedObjectModel, place: String)? {
    if let path {
      let version = try ModelSource(path: path).version(of: metadata, at: file.path, configuration: configuration)
      return (version.model, "\(path), version \(version.name)")
    }
    do throws(CommandError) {
      guard let kept = try file.keptModel() else {
        notes.append("The store doesn't contain its model, so its rows aren't counted. Pass the model with --model.")
        return nil
      }
      if metadata.differingEntities(from: kept.model, configuration: configuration).isEmpty { return kept }
      notes.append(
        "The store contains another model than the one it was created with, so its rows aren't counted."
          + metadata.configurationAdvice([kept.model]))
    } catch {
      notes.append("\(error.reason) Pass the model with --model.\(error.cause.map { " Cause: \($0)" } ?? "")")
    }
    return nil
  }

  /// The number of objects of exactly each entity.
  private static func rows(in file: StoreFile, _ model: ManagedObjectModel) throws(CommandError) -> [String: Int] {
    do {
      let coordinator = try PersistentStoreCoordinator(model: model, store: file.description)
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator)
      var counts: [String: Int] = [:]
      let held = StoreSource.entityNames(of: model, in: file.description.configuration)
      for entity in model.entities where held.contains(entity.name) {
        if entity.isAbstract {
          counts[entity.name] = 0
          continue
        }
        var request = FetchRequest<ManagedObject>(entityName: entity.name)
        request.includesSubentities = false
        counts[entity.name] = try context.count(for: request)
      }
      return counts
    } catch {
      throw CommandError(path: file.path, reason: "The rows can't be counted.", cause: error)
    }
  }

  /// The report as JSON with sorted keys.
  public func json() throws -> Data { try JSONReport.data(self) }

  /// The report as text.
  public func text() -> String {
    var lines = [
      "\(path): \(type) store", "  UUID      \(uuid)", "  model     \(model ?? "none")", "  digest    \(digest)", "  checksum  \(checksum)",
    ]
    let rows = [["entity", "rows", "version hash"]] + entities.map { [$0.name, $0.rows.map { "\($0)" } ?? "?", $0.versionHash] }
    lines += [""] + Columns.aligned(rows, indent: 2)
    if !metadata.isEmpty {
      lines += ["", "  metadata"] + Columns.aligned(metadata.sorted { $0.key < $1.key }.map { [$0.key, $0.value] }, indent: 4)
    }
    for note in notes { lines += ["", "  note: \(note)"] }
    return lines.joined(separator: "\n") + "\n"
  }
}
