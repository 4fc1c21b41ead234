import HoldfastStore

/// A `.momd` folder: the versions of a model as Xcode compiles them, and which of them is in use.
///
/// It knows the names of the versions and reads one when it is asked for. The files `.omo` beside them, which are Core Data's own, are
/// not read.
public struct CompiledModelBundle: Sendable, Hashable {
  /// The folder.
  public let path: String
  /// The names of the versions, sorted by their UTF-8 bytes: those of the `.mom` files without the ending.
  public let versionNames: [String]
  /// The version that is in use.
  public let currentVersionName: String
  /// What `VersionInfo.plist` says the version hashes are: by version, then by entity, 32 bytes each.
  public let versionHashes: [String: [String: [UInt8]]]
  /// The limits when versions are read.
  public let options: ModelFileOptions

  static let ending = ".momd"
  static let versionEnding = ".mom"
  private static let infoName = "VersionInfo.plist"

  /// Finds the versions of a compiled model. No version is read.
  ///
  /// - Throws: ``ModelFileError``: `notAModel` when there are no versions or no `VersionInfo.plist`, `malformed` when that is damaged,
  ///   `unknownVersion` when it names a version that is not there, `notFound`, `notPermitted`, `inputOutput`.
  public init(contentsOf path: String, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    let path = ModelPath.trimmed(path)
    let folder = try ModelFolder(path: path)
    self.path = path
    self.options = options
    versionNames = try folder.names(limit: options.maximumFileCount).filter { $0.hasSuffix(Self.versionEnding) && !$0.hasPrefix(".") }
      .map { String($0.dropLast(Self.versionEnding.count)) }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    guard !versionNames.isEmpty, folder.kind(of: Self.infoName) != nil else {
      throw ModelFileError(
        .notAModel, path: path, reason: "It has no versions, or no \(Self.infoName). Give the .momd folder that Xcode has compiled.")
    }
    let info = try Self.info(folder, options)
    guard let current = info["NSManagedObjectModel_CurrentVersionName"]?.string else {
      throw ModelFileError(.malformed, path: "\(path)/\(Self.infoName)", reason: "It does not say which version is the current one.")
    }
    guard versionNames.contains(current) else { throw ModelBundle.unknown(current, among: versionNames, path: path) }
    currentVersionName = current
    versionHashes = (info["NSManagedObjectModel_VersionHashes"]?.dictionary ?? [:]).mapValues { hashes in
      (hashes.dictionary ?? [:]).compactMapValues(\.data)
    }
  }

  private static func info(_ folder: ModelFolder, _ options: ModelFileOptions) throws(ModelFileError) -> PropertyList {
    let bytes = try folder.read(infoName, limit: options.maximumByteCount)
    do { return try PropertyList(bytes, limits: PropertyListLimits(bytes: options.maximumByteCount, depth: options.maximumDepth)) } catch {
      throw ModelFileError(.malformed, path: "\(folder.path)/\(infoName)", cause: error)
    }
  }

  /// A version.
  ///
  /// - Parameter name: The name of the version; the current one unless given.
  /// - Throws: ``ModelFileError``: `unknownVersion`; as ``CompiledModel/init(bytes:path:options:)``.
  public func version(_ name: String? = nil) throws(ModelFileError) -> CompiledModel {
    let name = name ?? currentVersionName
    guard versionNames.contains(name) else { throw ModelBundle.unknown(name, among: versionNames, path: path) }
    let file = name + Self.versionEnding
    let bytes = try ModelFolder(path: path).read(file, limit: options.maximumByteCount)
    return try CompiledModel(bytes: bytes, path: "\(path)/\(file)", options: options)
  }
}
