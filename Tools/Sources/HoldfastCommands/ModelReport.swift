public import Foundation
public import HoldfastStore

/// The report of `model info`, as values.
///
/// `Tools/README.md` documents the JSON format. Its `schema` increases if a key changes its meaning.
public struct ModelReport: Codable, Sendable, Hashable {
  /// The version of the report's format.
  public var schema = 1
  /// The path as passed to the command.
  public var path: String
  /// The kind of file.
  public var kind: String
  /// The name of the current version, even if that version couldn't be read.
  public var currentVersion: String
  /// The versions, sorted by name.
  public var versions: [Version]
  /// The versions that couldn't be read, each with the reason.
  public var unreadable: [String: String]

  /// A version of the model.
  public struct Version: Codable, Sendable, Hashable {
    /// The name.
    public var name: String
    /// Whether this is the current version.
    public var isCurrent: Bool
    /// The model's version identifiers.
    public var versionIdentifiers: [String]
    /// Core Data's digest of all version hashes, in base64.
    public var digest: String
    /// Core Data's checksum of all version hashes, in base64.
    public var checksum: String
    /// The entities, sorted by name.
    public var entities: [Entity]
    /// The composite declarations.
    public var composites: [CompositeDescription]
    /// The configurations.
    public var configurations: [ConfigurationDescription]
    /// The fetch-request templates.
    public var fetchRequestTemplates: [FetchRequestDescription]
  }

  /// An entity: its declaration and its version hash.
  public struct Entity: Codable, Sendable, Hashable {
    /// The name.
    public var name: String
    /// The version hash: 64 hexadecimal digits.
    public var versionHash: String
    /// The entities that inherit from it directly.
    public var subentities: [String]
    /// The declaration of the entity.
    public var declaration: EntityDescription
  }

  /// Creates a report on a model.
  public init(_ source: ModelSource) {
    path = source.path
    kind = source.kind
    currentVersion = source.currentName
    versions = source.versions.map { Version($0) }
    unreadable = Dictionary(source.unreadable.map { ($0.name, "\($0.error)") }, uniquingKeysWith: { first, _ in first })
  }

  /// The report as JSON with sorted keys.
  public func json() throws -> Data { try JSONReport.data(self) }
}

extension ModelReport.Version {
  init(_ version: ModelSource.Version) {
    let model = version.model
    self.init(
      name: version.name, isCurrent: version.isCurrent, versionIdentifiers: model.versionIdentifiers, digest: model.versionDigest,
      checksum: model.versionChecksum, entities: model.entities.map { ModelReport.Entity($0, model) }.sorted { $0.name < $1.name },
      composites: model.composites, configurations: model.configurations, fetchRequestTemplates: model.fetchRequestTemplates)
  }
}

extension ModelReport.Entity {
  init(_ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel) {
    self.init(
      name: entity.name, versionHash: Hexadecimal.text(entity.versionHash),
      subentities: entity.familyIndexes.map { model.entities[$0] }.filter { $0.superentityIndex == entity.index }.map(\.name).sorted(),
      declaration: entity.declaration)
  }
}

/// Encodes reports as JSON.
enum JSONReport {
  static func data(_ report: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return try encoder.encode(report) + Data("\n".utf8)
  }
}

/// Hexadecimal text.
enum Hexadecimal {
  static func text(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
