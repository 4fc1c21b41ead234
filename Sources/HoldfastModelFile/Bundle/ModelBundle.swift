/// A model folder of Xcode, with one version or several.
///
/// An `.xcdatamodeld` folder contains a folder for each version. An `.xcdatamodel` folder is one version.
///
/// ```swift
/// let bundle = try ModelBundle(contentsOf: path)
/// for name in bundle.versionNames where name != bundle.currentVersionName {
///   let old = try bundle.model(version: name)
///   if metadata.isCompatible(with: old) { return name }
/// }
/// ```
///
/// A bundle contains only the names of the versions, and reads a version on demand. Therefore an unreadable version, such as an old binary
/// one, doesn't affect the others.
public struct ModelBundle: Sendable, Hashable {
  /// The path of the folder.
  public let path: String
  /// The names of the versions, sorted by their UTF-8 bytes. A version is named after its folder, without `.xcdatamodel`.
  public let versionNames: [String]
  /// The name of the current version.
  ///
  /// It is read from the file `.xccurrentversion`. If that file is missing or contains no name, the first version is the current one.
  public let currentVersionName: String
  /// The limits for reading versions.
  public let options: ModelFileOptions
  /// Whether the folder contains a folder for each version, instead of being a version itself.
  public let isVersioned: Bool

  /// Finds the versions of a model. Doesn't read any version.
  ///
  /// - Parameters:
  ///   - path: An `.xcdatamodeld` or `.xcdatamodel` folder.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError``: `notAModel` if there are no versions, `unknownVersion` if `.xccurrentversion` names a missing version,
  ///   `malformed` if that file isn't a property list, `notFound`, `notPermitted`, `inputOutput`.
  public init(contentsOf path: String, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    let path = ModelPath.trimmed(path)
    let folder = try ModelFolder(path: path)
    self.path = path
    self.options = options
    isVersioned = folder.kind(of: ModelPath.contents) == nil && folder.kind(of: ModelPath.oldContents) == nil
    guard isVersioned else {
      versionNames = [ModelPath.versionName(ofFolder: ModelPath.lastComponent(path)) ?? ModelPath.lastComponent(path)]
      currentVersionName = versionNames[0]
      return
    }
    versionNames = try ModelBundle.versionNames(in: folder, options)
    currentVersionName = try ModelBundle.currentVersion(in: folder, among: versionNames)
  }

  /// Reads a version.
  ///
  /// - Parameter name: The name of the version. Defaults to the current one.
  /// - Throws: ``ModelFileError``: `unknownVersion`; `oldFormat` for a version saved by Xcode before 4; and the errors of
  ///   ``ModelDocument/init(contentsOf:options:)``.
  public func document(version name: String? = nil) throws(ModelFileError) -> ModelDocument {
    let name = name ?? currentVersionName
    guard versionNames.contains(name) else { throw ModelBundle.unknown(name, among: versionNames, path: path) }
    let folder = try ModelFolder(path: path)
    let version = isVersioned ? try folder.folder(ModelPath.folderName(ofVersion: name)) : folder
    guard version.kind(of: ModelPath.contents) != nil else { throw ModelBundle.withoutContents(version) }
    let bytes = try version.read(ModelPath.contents, limit: options.maximumByteCount)
    return try ModelDocument(bytes: bytes, path: "\(version.path)/\(ModelPath.contents)", options: options)
  }

  /// The path of a version's file.
  func contentsPath(ofVersion name: String) -> String {
    isVersioned ? "\(path)/\(ModelPath.folderName(ofVersion: name))/\(ModelPath.contents)" : "\(path)/\(ModelPath.contents)"
  }

  // MARK: Finding

  private static func versionNames(in folder: ModelFolder, _ options: ModelFileOptions) throws(ModelFileError) -> [String] {
    let names = try folder.names(limit: options.maximumFileCount).filter { folder.kind(of: $0) != .file }
      .compactMap(ModelPath.versionName(ofFolder:)).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    guard !names.isEmpty else {
      throw ModelFileError(
        .notAModel, path: folder.path,
        reason: "The folder has neither a \"contents\" file nor .xcdatamodel folders. Give the .xcdatamodeld folder.")
    }
    try ModelPath.checkDifference(of: names, in: folder.path)
    return names
  }

  static func currentVersion(in folder: ModelFolder, among names: [String]) throws(ModelFileError) -> String {
    guard folder.kind(of: CurrentVersionFile.name) != nil else { return names.first ?? "" }
    let path = "\(folder.path)/\(CurrentVersionFile.name)"
    let bytes = try folder.read(CurrentVersionFile.name, limit: CurrentVersionFile.maximumByteCount)
    guard let named = try CurrentVersionFile.read(bytes, path: path) else { return names.first ?? "" }
    guard let name = ModelPath.versionName(ofFolder: named), names.contains(name) else { throw unknown(named, among: names, path: path) }
    return name
  }

  static func unknown(_ name: String, among names: [String], path: String) -> ModelFileError {
    let known = names.prefix(10).map(\.quoted).joined(separator: ", ") + (names.count > 10 ? " …" : "")
    return ModelFileError(.unknownVersion, path: path, reason: "The version \(name.quoted) doesn't exist. Existing versions: \(known).")
  }

  private static func withoutContents(_ version: ModelFolder) -> ModelFileError {
    if version.kind(of: ModelPath.oldContents) != nil {
      return ModelFileError(
        .oldFormat, path: version.path,
        reason: "The folder has a file \"elements\" instead of \"contents\": the binary format of Xcode before 4, which can't be read. "
          + "Open it in Xcode and save it with the tools version Xcode 4.0 or later.")
    }
    return ModelFileError(.notAModel, path: version.path, reason: "The folder has no \"contents\" file.")
  }
}

/// The file names of a model folder.
enum ModelPath {
  static let contents = "contents"
  /// The file of Xcode before 4.
  static let oldContents = "elements"
  static let versionEnding = ".xcdatamodel"
  static let bundleEnding = ".xcdatamodeld"

  static func folderName(ofVersion name: String) -> String { name + versionEnding }

  /// Refuses versions with equal names. A file system may distinguish them, because it compares bytes.
  static func checkDifference(of names: [String], in path: String) throws(ModelFileError) {
    var seen: Set<String> = []
    for name in names where !seen.insert(name).inserted {
      throw ModelFileError(
        .contradictory, path: path,
        reason: "Two versions have the name \(name.quoted), in different bytes for the same characters. Rename one of them.")
    }
  }

  /// The version's name from its folder's name; nil if the folder isn't a version.
  static func versionName(ofFolder folder: String) -> String? {
    guard folder.hasSuffix(versionEnding), !folder.contains("/") else { return nil }
    let name = String(folder.dropLast(versionEnding.count))
    return isVersionName(name) ? name : nil
  }

  /// Whether a version's folder can have the name.
  static func isVersionName(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 200 && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 < 0x20 } && !name.hasPrefix(".")
  }

  /// The path without trailing slashes.
  static func trimmed(_ path: String) -> String {
    var path = path[...]
    while path.count > 1 && path.hasSuffix("/") { path = path.dropLast() }
    return String(path)
  }

  static func lastComponent(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

  /// The folder that contains the path.
  static func parent(_ path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
