public import Foundation
import Holdfast
import HoldfastStore

/// What `store info` tells, as values. `Tools/README.md` documents the JSON form.
public struct StoreReport: Codable, Sendable, Hashable {
  /// The form of the report.
  public var schema = 1
  /// The path as given.
  public var path: String
  /// The type of store: "SQLite", "JSON".
  public var type: String
  /// The store's UUID.
  public var uuid: String
  /// Where the model comes from: "embedded", "model cache", the path that was given; nil when there is none.
  public var model: String?
  /// Core Data's digest of all version hashes, in base64.
  public var digest: String
  /// Core Data's checksum of all version hashes, in base64.
  public var checksum: String
  /// The entities by name.
  public var entities: [Entity]
  /// The user's own metadata, values as text.
  public var metadata: [String: String]
  /// What could not be found out, and why.
  public var notes: [String]

  /// One entity.
  public struct Entity: Codable, Sendable, Hashable {
    /// The name.
    public var name: String
    /// The version hash: 64 hexadecimal digits.
    public var versionHash: String
    /// The number of objects of exactly this entity; nil when no model says where they are.
    public var rows: Int?
  }

  /// Reports on a store, which is only read.
  ///
  /// - Parameters:
  ///   - path: the store's file.
  ///   - modelPath: a model to open it with; nil for the one that it keeps.
  /// - Throws: ``CommandError`` for what is no store, and for a model that is not the store's.
  public init(path: String, modelPath: String? = nil) throws(CommandError) {
    let file = try StoreFile(path: path)
    let metadata = try file.metadata()
    var notes: [String] = []
    let found = try StoreReport.model(of: file, metadata, given: modelPath, &notes)
    let rows = try found.map { found throws(CommandError) in try StoreReport.rows(in: file, found.model) } ?? [:]
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
    of file: StoreFile, _ metadata: PersistentStoreMetadata, given path: String?, _ notes: inout [String]
  ) throws(CommandError) -> (model: ManagedObjectModel, place: String)? {
    if let path {
      let source = try ModelSource(path: path)
      guard let version = source.versions.first(where: { metadata.isCompatible(with: $0.model) }) else {
        throw CommandError(path: path, reason: "None of its versions is the model of the store \(file.path).")
      }
      return (version.model, "\(path), version \(version.name)")
    }
    do throws(CommandError) {
      guard let kept = try file.keptModel() else {
        notes.append("The store keeps no model, so its rows are not counted. Give the model with --model.")
        return nil
      }
      if metadata.isCompatible(with: kept.model) { return kept }
      notes.append("The model that the store keeps is not the one that it was made with, so its rows are not counted.")
    } catch {
      notes.append("\(error.reason) Give the model with --model.\(error.cause.map { " Cause: \($0)" } ?? "")")
    }
    return nil
  }

  /// How many objects there are of exactly each entity.
  private static func rows(in file: StoreFile, _ model: ManagedObjectModel) throws(CommandError) -> [String: Int] {
    do {
      let coordinator = try PersistentStoreCoordinator(model: model, store: file.description)
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator)
      var counts: [String: Int] = [:]
      for entity in model.entities {
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
      throw CommandError(path: file.path, reason: "Its rows cannot be counted.", cause: error)
    }
  }

  /// The report as JSON, keys sorted.
  public func json() throws -> Data { try JSONReport.data(self) }

  /// The report for people.
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
