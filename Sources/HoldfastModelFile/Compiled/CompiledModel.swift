import HoldfastPropertyList
public import HoldfastStore

/// A compiled model: a `.mom` file, or the contents of `Z_MODELCACHE` in a store.
///
/// ```swift
/// let compiled = try CompiledModel(contentsOf: "Zoo.momd")
/// for note in compiled.notes { print("Not in the model: \(note)") }
/// ```
///
/// Both are keyed archives of Core Data's model. They are read as values, and their classes are never looked up or instantiated. The model
/// has the same version hashes as Core Data's, so it opens the stores that Core Data created with it.
///
/// Compiled models lack some information of Xcode's files, such as the composite of an attribute and the editor's drawing. ``notes`` lists
/// what the file contains and a ``/HoldfastStore/ManagedObjectModel`` can't represent.
public struct CompiledModel: Sendable {
  /// The model.
  public let model: ManagedObjectModel
  /// The parts of the file that ``model`` lacks, in reading order.
  public let notes: [CompiledModelNote]

  /// Reads a `.mom` file, or a version of a `.momd` folder.
  ///
  /// - Parameters:
  ///   - path: The file or the folder.
  ///   - version: The name of the version. Defaults to the current one. A `.mom` file has one version, named after the file.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError``, like ``init(bytes:path:options:)`` and ``CompiledModelBundle/init(contentsOf:options:)``.
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

  /// Whether a path has an extension of compiled models.
  static func isCompiled(_ path: String) -> Bool {
    let path = ModelPath.trimmed(path)
    return path.hasSuffix(CompiledModelBundle.ending) || path.hasSuffix(CompiledModelBundle.versionEnding)
  }

  /// Reads the bytes of a `.mom` file.
  ///
  /// - Parameters:
  ///   - bytes: A keyed archive in the binary or the XML format.
  ///   - path: The path shown in errors, or nil.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError`` with the object of the archive: `notAModel` if it isn't an archive of a model; `oldFormat` for a file
  ///   saved by the editor of Xcode before 4; `malformed` for a damaged archive; `tooLarge`; `unsupported` for an element of an unknown
  ///   class, such as a composite attribute; `contradictory` with a ``/HoldfastStore/ModelError`` as its cause.
  public init(bytes: [UInt8], path: String? = nil, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    do throws(ModelFileError) {
      let archive = try Self.archive(bytes, options)
      let declarations = try CompiledModelReader.declarations(archive, options)
      try options.checkPatterns(declarations.entities, [])
      (model, notes) = (try Self.model(declarations), declarations.notes)
    } catch { throw error.at(path) }
  }

  /// Reads the compressed archive in `Z_MODELCACHE` of Core Data's SQLite store.
  ///
  /// The cache omits most class names. Don't rely on it, except to open a store whose model is lost.
  ///
  /// - Throws: ``ModelFileError``, like ``init(bytes:path:options:)``; also `malformed` if the bytes can't be decompressed, and `tooLarge`
  ///   if they would expand to far more than any model.
  public init(modelCache packed: [UInt8], path: String? = nil, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    let bytes: [UInt8]
    do { bytes = try Inflation.inflate(packed, limit: options.maximumByteCount) } catch { throw error.at(path) }
    try self.init(bytes: bytes, path: path, options: options)
  }

  static func archive(_ bytes: [UInt8], _ options: ModelFileOptions) throws(ModelFileError) -> KeyedArchive {
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
