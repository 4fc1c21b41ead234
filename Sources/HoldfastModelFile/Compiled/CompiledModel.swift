public import HoldfastStore

/// A model that Xcode or a program has compiled: a `.mom` file, or what a store keeps in `Z_MODELCACHE`.
///
/// ```swift
/// let compiled = try CompiledModel(contentsOf: "Zoo.momd")
/// for note in compiled.notes { print("Not in the model: \(note)") }
/// ```
///
/// Both are keyed archives of Core Data's model. No class of them is looked up or made: they are read as values. The model has the same
/// version hashes as Core Data's, so it opens the stores that Core Data has made with it.
///
/// Compiled models do not say some of what Xcode's files say: which composite an attribute has, how the editor draws it. What they say
/// and a ``/HoldfastStore/ManagedObjectModel`` cannot is in ``notes``.
public struct CompiledModel: Sendable {
  /// The model.
  public let model: ManagedObjectModel
  /// What the file says and ``model`` does not, in the order in which it was met.
  public let notes: [CompiledModelNote]

  /// Reads a `.mom` file, or a version of a `.momd` folder.
  ///
  /// - Parameters:
  ///   - path: The file or the folder.
  ///   - version: The name of the version; the current one unless given. A `.mom` file is the version of its name.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError``: as ``init(bytes:path:options:)`` and ``CompiledModelBundle/init(contentsOf:options:)``.
  public init(
    contentsOf path: String, version: String? = nil, options: ModelFileOptions = ModelFileOptions()
  ) throws(ModelFileError) {
    let path = ModelPath.trimmed(path)
    if path.hasSuffix(CompiledModelBundle.ending) {
      self = try CompiledModelBundle(contentsOf: path, options: options).version(version)
    } else {
      let file = ModelPath.lastComponent(path)
      let name = file.hasSuffix(CompiledModelBundle.versionEnding) ? String(file.dropLast(CompiledModelBundle.versionEnding.count)) : file
      if let version, version != name { throw ModelBundle.unknown(version, among: [name], path: path) }
      try self.init(bytes: ModelFolder.readFile(path, limit: options.maximumByteCount), path: path, options: options)
    }
  }

  /// Whether a path has one of the endings of compiled models.
  static func isCompiled(_ path: String) -> Bool {
    let path = ModelPath.trimmed(path)
    return path.hasSuffix(CompiledModelBundle.ending) || path.hasSuffix(CompiledModelBundle.versionEnding)
  }

  /// Reads the bytes of a `.mom` file.
  ///
  /// - Parameters:
  ///   - bytes: A keyed archive in the binary or the XML format.
  ///   - path: What errors say that the file is; nil for none.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError``: `notAModel` for anything that is no archive of a model; `oldFormat` for what Xcode's editor saved before
  ///   Xcode 4; `malformed` for a damaged archive; `tooLarge`; `unsupported` for a part that is of no known class, such as a composite
  ///   attribute; `contradictory` with a ``/HoldfastStore/ModelError`` beneath. They say which object of the archive it is.
  public init(bytes: [UInt8], path: String? = nil, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    do throws(ModelFileError) {
      let archive = try Self.archive(bytes, options)
      let declarations = try CompiledModelReader.declarations(archive, options)
      try options.checkPatterns(declarations.entities, [])
      (model, notes) = (try Self.model(declarations), declarations.notes)
    } catch { throw error.at(path) }
  }

  /// Reads what a SQLite store of Core Data keeps in the column `Z_CONTENT` of `Z_MODELCACHE`: the same archive, packed.
  ///
  /// The cache leaves out most names of classes and is nothing that anybody should rely on; but with it a store can be opened of which
  /// the model is lost.
  ///
  /// - Throws: ``ModelFileError``, as ``init(bytes:path:options:)``; also `malformed` when the bytes are not packed as they should be, and
  ///   `tooLarge` when they would be far more than any model.
  public init(modelCache packed: [UInt8], path: String? = nil, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    let bytes: [UInt8]
    do { bytes = try Inflation.inflate(packed, limit: options.maximumByteCount) } catch { throw error.at(path) }
    try self.init(bytes: bytes, path: path, options: options)
  }

  private static func archive(_ bytes: [UInt8], _ options: ModelFileOptions) throws(ModelFileError) -> KeyedArchive {
    let limits = PropertyListLimits(bytes: options.maximumByteCount, depth: options.maximumDepth)
    do { return try KeyedArchive(bytes, limits: limits) } catch {
      switch error.code {
      case .notAPropertyList: throw ModelFileError(.notAModel, cause: error)
      case .tooLarge, .tooDeep: throw ModelFileError(.tooLarge, cause: error)
      default: throw ModelFileError(.malformed, cause: error)
      }
    }
  }

  private static func model(_ declarations: CompiledDeclarations) throws(ModelFileError) -> ManagedObjectModel {
    do {
      return try ManagedObjectModel(
        entities: declarations.entities, versionIdentifiers: declarations.versionIdentifiers, configurations: declarations.configurations,
        fetchRequestTemplates: declarations.fetchRequestTemplates)
    } catch {
      guard let first = error.problems.first else { throw ModelFileError(.contradictory, reason: "\(error)", cause: error) }
      let more = error.problems.count - 1
      let reason = more == 0 ? first.reason : "\(first.reason) (And \(more) more \(more == 1 ? "contradiction" : "contradictions").)"
      throw ModelFileError(.contradictory, element: first.path, reason: reason, cause: error)
    }
  }
}
