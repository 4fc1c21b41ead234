import HoldfastPropertyList
import HoldfastStore

/// A `.momd` folder: the compiled versions of a model, and the current one.
///
/// It contains the names of the versions and reads a version on demand. The folder's `.omo` files, which are for Core Data, aren't read.
public struct CompiledModelBundle: Sendable, Hashable {
  /// The path of the folder.
  public let path: String
  /// The names of the versions, sorted by their UTF-8 bytes.
  ///
  /// They are the names of the `.mom` files without the extension.
  public let versionNames: [String]
  /// The current version.
  public let currentVersionName: String
  /// The version hashes in `VersionInfo.plist`: by version, then by entity, 32 bytes each.
  public let versionHashes: [String: [String: [UInt8]]]
  /// The limits for reading versions.
  public let options: ModelFileOptions

  static let ending = ".momd"
  static let versionEnding = ".mom"
  private static let infoName = "VersionInfo.plist"

  /// Finds the versions of a compiled model. Doesn't read any version.
  ///
  /// - Throws: ``ModelFileError``: `notAModel` if there are no versions or no `VersionInfo.plist`, `malformed` if that file is damaged,
  ///   `unknownVersion` if it names a missing version, `notFound`, `notPermitted`, `inputOutput`.
  public init(contentsOf path: String, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    let path = ModelPath.trimmed(path)
    let folder = try ModelFolder(path: path)
    self.path = path
    self.options = options
    versionNames = try folder.names(limit: options.maximumFileCount).filter { $0.hasSuffix(Self.versionEnding) && !$0.hasPrefix(".") }
      .map { String($0.dropLast(Self.versionEnding.count)) }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    guard !versionNames.isEmpty, folder.kind(of: Self.infoName) != nil else {
      throw ModelFileError(
        .notAModel, path: path, reason: "The folder has no versions, or no \(Self.infoName). Give a .momd folder that Xcode has compiled.")
    }
    try ModelPath.checkDifference(of: versionNames, in: path)
    let info = try Self.info(folder, options)
    guard let current = info["NSManagedObjectModel_CurrentVersionName"]?.string else {
      throw ModelFileError(.malformed, path: "\(path)/\(Self.infoName)", reason: "The file doesn't name the current version.")
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

  /// Reads a version.
  ///
  /// - Parameter name: The name of the version. Defaults to the current one.
  /// - Throws: ``ModelFileError``: `unknownVersion`, and the errors of ``CompiledModel/init(bytes:path:options:)``.
  public func version(_ name: String? = nil) throws(ModelFileError) -> CompiledModel {
    let name = name ?? currentVersionName
    guard versionNames.contains(name) else { throw ModelBundle.unknown(name, among: versionNames, path: path) }
    let file = name + Self.versionEnding
    let bytes = try ModelFolder(path: path).read(file, limit: options.maximumByteCount)
    return try CompiledModel(bytes: bytes, path: "\(path)/\(file)", options: options)
  }
}
