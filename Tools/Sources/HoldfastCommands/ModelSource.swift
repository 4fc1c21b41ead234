import Foundation
public import HoldfastModelFile
public import HoldfastStore

/// Models from any source: Xcode's files, compiled models, JSON, or a store.
public struct ModelSource: Sendable {
  /// One version of a model.
  public struct Version: Sendable {
    /// The name of the version, or of the file if it has only one version.
    public let name: String
    /// Whether this is the current version.
    public let isCurrent: Bool
    /// The model.
    public let model: ManagedObjectModel
    /// The source file, if it can contain more than the model; otherwise nil.
    public let document: ModelDocument?
    /// What a compiled model contains and ``model`` lacks, in sentences.
    public var notes: [String] = []
  }

  /// A description of the kind of file.
  public let kind: String
  /// The path of the file.
  public let path: String
  /// The readable versions, by name.
  public let versions: [Version]
  /// The versions that couldn't be read, each with the error.
  public let unreadable: [(name: String, error: any Error)]

  /// The name of the current or only version.
  public let currentName: String

  /// The current or only version; nil if it couldn't be read. It is never replaced by another version.
  public var current: Version? { versions.first { $0.isCurrent } }

  /// Reads all versions.
  ///
  /// - Throws: ``CommandError`` if the path contains no model, or none of its versions can be read.
  public init(path: String) throws(CommandError) {
    self.path = path
    let name = URL(fileURLWithPath: path).lastPathComponent
    switch FileKind(path) {
    case nil: throw CommandError(path: path, reason: "There is nothing at this path. Check the path.")
    case .other: throw FileKind.noFile(path)
    case .folder: (kind, currentName, versions, unreadable) = try ModelSource.bundle(path)
    case .file:
      let stem = String(name.prefix(while: { $0 != "." }))
      let (kind, model, notes) = try ModelSource.file(path)
      (self.kind, unreadable) = (kind, [])
      currentName = stem.isEmpty ? name : stem
      versions = [Version(name: currentName, isCurrent: true, model: model, document: nil, notes: notes)]
    }
    if versions.isEmpty { throw CommandError(path: path, reason: "None of the versions can be read.", cause: unreadable.first?.error) }
  }

  typealias Bundle = (kind: String, currentName: String, versions: [Version], unreadable: [(name: String, error: any Error)])

  private static func bundle(_ path: String) throws(CommandError) -> Bundle {
    if CompiledModelSource.isCompiled(path) { return try CompiledModelSource.bundle(path) }
    do throws(ModelFileError) {
      let bundle = try ModelBundle(contentsOf: path)
      var versions: [Version] = []
      var unreadable: [(name: String, error: any Error)] = []
      for name in bundle.versionNames {
        do throws(ModelFileError) {
          let document = try bundle.document(version: name)
          let isCurrent = name == bundle.currentVersionName
          versions.append(Version(name: name, isCurrent: isCurrent, model: try bundle.model(version: name), document: document))
        } catch {
          unreadable.append((name, error))
        }
      }
      let kind = bundle.isVersioned ? "Xcode model with versions" : "Xcode model"
      return (kind, bundle.currentVersionName, versions, unreadable)
    } catch {
      throw CommandError(path: path, reason: "The model can't be read.", cause: error)
    }
  }

  private static func file(_ path: String) throws(CommandError) -> (kind: String, model: ManagedObjectModel, notes: [String]) {
    if CompiledModelSource.isCompiled(path) {
      let compiled = try CompiledModelSource.model(path)
      return ("compiled model", compiled.model, compiled.notes.map(\.description))
    }
    // A JSON store identifies itself.
    let isStore = path.hasSuffix(".json") ? try StoreFile.isJSONStore(path) : true
    if isStore { return ("model of a store", try StoreFile(path: path).requiredModel(), []) }
    return ("model as JSON", try JSONModelFile.model(path), [])
  }
}

/// A model as a JSON file, in the format that Holdfast's stores use for their models.
enum JSONModelFile {
  static func model(_ path: String) throws(CommandError) -> ManagedObjectModel {
    let data: Data
    do { data = try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
      throw CommandError(path: path, reason: "The file can't be read.", cause: error)
    }
    do { return try ManagedObjectModel.decoded(canonicalJSON: Array(data)) } catch {
      throw CommandError(path: path, reason: "The file is neither a model as JSON nor a JSON store. As a model: \(reason(error))")
    }
  }

  /// What is wrong with a model, on one line.
  private static func reason(_ error: any Error) -> String {
    if let error = error as? ModelError { return error.problems.map(\.description).joined(separator: " ") }
    guard let error = error as? DecodingError else { return "\(error)" }
    let (context, missing): (DecodingError.Context, String?) =
      switch error {
      case .keyNotFound(let key, let context): (context, key.stringValue)
      case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context): (context, nil)
      @unknown default: (DecodingError.Context(codingPath: [], debugDescription: "\(error)"), nil)
      }
    let path = (context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue } + (missing.map { [$0] } ?? [])).joined(
      separator: ".")
    let text = missing == nil ? context.debugDescription : "It is missing."
    return (path.isEmpty ? text : "\(path): \(text)").replacingOccurrences(of: "\n", with: " ")
  }

  static func data(of model: ManagedObjectModel) throws -> Data { Data(try model.canonicalJSON() + Array("\n".utf8)) }
}
