/// A mapping model: an `.xcmappingmodel` of Xcode, or a `.cdm`, which is the same compiled. It specifies how objects of one version of a model
/// become objects of another one.
///
/// ```swift
/// let file = try MappingModelFile(contentsOf: "Zoo 2 to Zoo 3.xcmappingmodel")
/// for mapping in file.entityMappings { print(mapping.name, mapping.policyClassName ?? "-") }
/// ```
///
/// A setting that changes the result and isn't supported, such as a fetch of the source objects by an expression, is an error. User info is
/// ignored.
///
/// The copies of the two models in an `.xcmappingmodel` aren't read, because Xcode doesn't update them: it compiles the versions to which the
/// paths refer. A `.cdm` has the version hashes of its entities instead of paths.
public struct MappingModelFile: Sendable, Hashable {
  /// The mapping of objects of one entity of the source to objects of one entity of the destination.
  public struct EntityMapping: Sendable, Hashable {
    /// The name, by which expressions refer to the mapping. Defaults to the names of both entities: "PersonToPerson", or
    /// "Person->Person" in a compiled file.
    public let name: String
    /// The source entity's name; nil if no objects are read. Objects of its subentities have mappings of their own.
    public let sourceEntityName: String?
    /// The destination entity's name; nil if no objects are created.
    public let destinationEntityName: String?
    /// The filter of the source objects, as the text of a predicate; nil for all objects.
    public let sourceFilter: String?
    /// The name of the `NSEntityMigrationPolicy` subclass, with its module; nil for the usual behaviour.
    public let policyClassName: String?
    /// The attributes of the destination, sorted by name.
    public let attributeMappings: [PropertyMapping]
    /// The relationships of the destination, sorted by name.
    public let relationshipMappings: [PropertyMapping]
  }

  /// The source of one property of the destination.
  public struct PropertyMapping: Sendable, Hashable {
    /// The property's name in the destination.
    public let name: String
    package let expression: ArchivedExpression?

    /// The expression, as Xcode shows it; nil for the property of the same name in the source.
    public var expressionText: String? { expression?.text }
  }

  /// What a file says about its two versions.
  package enum Versions: Sendable, Hashable {
    /// Their paths in the Xcode project.
    case paths(source: String, destination: String)
    /// The version hashes of the mapped entities, by name.
    case hashes(source: [String: [UInt8]], destination: [String: [UInt8]])
  }

  package let versions: Versions

  /// The path of the source version in the Xcode project: "App/Zoo.xcdatamodeld/Zoo 2.xcdatamodel"; empty if the file has none.
  public var sourceModelPath: String { if case .paths(let source, _) = versions { source } else { "" } }
  /// The path of the destination version in the Xcode project; empty if the file has none.
  public var destinationModelPath: String { if case .paths(_, let destination) = versions { destination } else { "" } }
  /// The mappings, in their order.
  public let entityMappings: [EntityMapping]

  /// Reads an `.xcmappingmodel` folder, the `xcmapping.xml` in it, or a `.cdm` file.
  ///
  /// - Parameters:
  ///   - path: The path of the folder or the file.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError``, like ``init(bytes:path:options:)``; `notFound` and other errors of the file.
  public init(contentsOf path: String, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    let (bytes, path) = try Self.bytes(path, options)
    try self.init(bytes: bytes, path: path, options: options)
  }

  private static func bytes(_ path: String, _ options: ModelFileOptions) throws(ModelFileError) -> (bytes: [UInt8], path: String) {
    let path = ModelPath.trimmed(path), file = path.hasSuffix(Self.ending) ? path + "/xcmapping.xml" : path
    do throws(ModelFileError) { return (try ModelFolder.readFile(file, limit: options.maximumByteCount), file) } catch {
      throw described(error)
    }
  }

  /// Reads a file if a closure returns true for its two versions. The mappings of other files may be unreadable.
  package static func read(contentsOf path: String, if isNeeded: (Versions) -> Bool) throws(ModelFileError) -> MappingModelFile? {
    let options = ModelFileOptions(), (bytes, path) = try bytes(path, options)
    do throws(ModelFileError) {
      let reader = try reader(bytes, options)
      return isNeeded(reader.versions) ? try MappingModelFile(reader) : nil
    } catch { throw described(error.at(path)) }
  }

  private init(_ reader: any MappingModelSource) throws(ModelFileError) {
    var reader = reader
    versions = reader.versions
    entityMappings = try reader.read()
  }

  private static func reader(_ bytes: [UInt8], _ options: ModelFileOptions) throws(ModelFileError) -> any MappingModelSource {
    if CompiledMappingReader.isArchive(bytes) { return try CompiledMappingReader(bytes, options) }
    try ContentsScan.check(bytes, options, hasText: true)
    return try MappingModelReader(ContentsParser.parse(bytes, text: options), options)
  }

  /// Reads the bytes of an `xcmapping.xml` or a `.cdm`.
  ///
  /// - Parameters:
  ///   - bytes: The file: XML in UTF-8, or a keyed archive in the binary format.
  ///   - path: The path shown in errors, or nil.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError`` with the mapping's name: `notAModel` for another kind of file; `malformed`, `tooLarge`; `unsupported` for
  ///   an expression of an unknown kind, or a setting that isn't supported.
  public init(bytes: [UInt8], path: String? = nil, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    do throws(ModelFileError) {
      try self.init(try Self.reader(bytes, options))
    } catch {
      throw Self.described(error.at(path))
    }
  }

  /// The extension of the folders.
  private static let ending = ".xcmappingmodel"
  /// The extensions of mapping models.
  package static let endings = [ending, ".cdm"]

  private static func described(_ error: ModelFileError) -> ModelFileError {
    var error = error
    error.operation = "read the mapping model"
    return error
  }
}

/// A reader of one of the formats.
protocol MappingModelSource {
  var versions: MappingModelFile.Versions { get }
  mutating func read() throws(ModelFileError) -> [MappingModelFile.EntityMapping]
}
