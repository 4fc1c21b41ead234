import Foundation
public import HoldfastModelFile
public import HoldfastStore

/// Models wherever they lie: Xcode's files, compiled ones, JSON, or inside a store.
public struct ModelSource: Sendable {
  /// One version of a model.
  public struct Version: Sendable {
    /// The name of the version; that of the file where there is only one.
    public let name: String
    /// Whether it is the version in use.
    public let isCurrent: Bool
    /// What it says.
    public let model: ManagedObjectModel
    /// The file that it was read from, where that can say more than a model; nil otherwise.
    public let document: ModelDocument?
  }

  /// What kind of file it is, in words.
  public let kind: String
  /// Where it is.
  public let path: String
  /// The versions that could be read, by name.
  public let versions: [Version]
  /// The versions that could not be read, and why.
  public let unreadable: [(name: String, error: any Error)]

  /// The name of the version in use, or of the only one.
  public let currentName: String

  /// The version in use, or the only one; nil when it is one of those that could not be read. No other takes its place.
  public var current: Version? { versions.first { $0.isCurrent } }

  /// Reads all versions.
  ///
  /// - Throws: ``CommandError`` when there is nothing that holds a model, or none of its versions can be read.
  public init(path: String) throws(CommandError) {
    self.path = path
    let name = URL(fileURLWithPath: path).lastPathComponent
    switch FileKind(path) {
    case nil: throw CommandError(path: path, reason: "There is nothing at this path.")
    case .other: throw FileKind.noFile(path)
    case .folder: (kind, currentName, versions, unreadable) = try ModelSource.bundle(path)
    case .file:
      let stem = String(name.prefix(while: { $0 != "." }))
      let (kind, model) = try ModelSource.file(path)
      (self.kind, unreadable) = (kind, [])
      currentName = stem.isEmpty ? name : stem
      versions = [Version(name: currentName, isCurrent: true, model: model, document: nil)]
    }
    if versions.isEmpty { throw CommandError(path: path, reason: "None of its versions can be read.", cause: unreadable.first?.error) }
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
      throw CommandError(path: path, reason: "It is no model that can be read.", cause: error)
    }
  }

  private static func file(_ path: String) throws(CommandError) -> (String, ManagedObjectModel) {
    if CompiledModelSource.isCompiled(path) { return ("compiled model", try CompiledModelSource.model(path)) }
    // A store as JSON says that it is one.
    let isStore = path.hasSuffix(".json") ? try StoreFile.isJSONStore(path) : true
    return isStore ? ("model of a store", try StoreFile(path: path).requiredModel()) : ("model as JSON", try JSONModelFile.model(path))
  }
}

/// A model as JSON: what stores of Holdfast keep of theirs, as a file.
enum JSONModelFile {
  static func model(_ path: String) throws(CommandError) -> ManagedObjectModel {
    let data: Data
    do { data = try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
      throw CommandError(path: path, reason: "It cannot be read.", cause: error)
    }
    do { return try ManagedObjectModel.decoded(canonicalJSON: Array(data)) } catch {
      throw CommandError(path: path, reason: "It is neither a model as JSON nor a JSON store. As a model: \(reason(error))")
    }
  }

  /// What is wrong with a model, in one line.
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
