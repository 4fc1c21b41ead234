extension ModelBundle {
  /// Writes versions of a model.
  ///
  /// ```swift
  /// let first = try ModelDocument(model)
  /// try ModelBundle.write(["Zoo": first], currentVersion: "Zoo", to: path)
  /// ```
  ///
  /// - If nothing is at the path, all files are written beside it and then renamed, so the model is complete or missing.
  /// - If a model is at the path, every file is replaced atomically, and the current version is written last. Other versions and other
  ///   files stay. To remove a version, remove its folder.
  /// - The files are durable when the call returns. Symbolic links inside the model aren't followed.
  ///
  /// The path and the documents determine every byte: the same document always gives the same file.
  ///
  /// - Parameters:
  ///   - versions: The documents, by the name of their version. If the path ends with `.xcdatamodel`, exactly one document is allowed, and
  ///     its name is ignored.
  ///   - currentVersion: The current version: one of `versions`, or an existing one.
  ///   - path: The folder, whose name ends with `.xcdatamodeld` or `.xcdatamodel`.
  /// - Throws: ``ModelFileError``: `unwritable` for a document that XML can't represent or a name that a folder can't have,
  ///   `unknownVersion`, `notAModel`, `notPermitted`, `inputOutput`. Documents are serialized before any file is changed.
  public static func write(_ versions: [String: ModelDocument], currentVersion: String, to path: String) throws(ModelFileError) {
    let path = ModelPath.trimmed(path)
    let files = try serialized(versions, path)
    if path.hasSuffix(ModelPath.versionEnding) {
      guard let only = files.first, files.count == 1 else {
        throw ModelFileError(
          .unwritable, operation: "write the model", path: path,
          reason: "An .xcdatamodel folder contains one version, not \(files.count). Give a path that ends with .xcdatamodeld.")
      }
      return try write(to: path) { folder throws(ModelFileError) in try folder.replace(ModelPath.contents, with: only.bytes) }
    }
    guard path.hasSuffix(ModelPath.bundleEnding) else {
      throw ModelFileError(
        .unwritable, operation: "write the model", path: path, reason: "The path has another extension than .xcdatamodeld or .xcdatamodel.")
    }
    try write(to: path) { folder throws(ModelFileError) in try write(files, currentVersion, in: folder) }
  }

  /// Writes a model with one version, which has the folder's name.
  ///
  /// - Throws: ``ModelFileError``, like ``write(_:currentVersion:to:)``.
  public static func write(_ document: ModelDocument, to path: String) throws(ModelFileError) {
    let folder = ModelPath.lastComponent(path)
    let name = folder.hasSuffix(ModelPath.bundleEnding) ? String(folder.dropLast(ModelPath.bundleEnding.count)) : "Model"
    try write([name: document], currentVersion: name, to: path)
  }

  private typealias File = (name: String, bytes: [UInt8])

  private static func serialized(_ versions: [String: ModelDocument], _ path: String) throws(ModelFileError) -> [File] {
    var files: [File] = []
    for (name, document) in versions.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
      guard ModelPath.isVersionName(name) else {
        throw ModelFileError(
          .unwritable, operation: "write the model", path: path,
          reason: "A version's folder can't be named \(name.quoted). Use a short name without slashes and without a leading full stop.")
      }
      do throws(ModelFileError) { files.append((name, try document.serialized())) } catch { throw error.at(path) }
    }
    return files
  }

  /// Calls `body` with the folder at the path. If nothing is at the path, creates a folder beside it, and renames that folder afterwards.
  private static func write(to path: String, _ body: (ModelFolder) throws(ModelFileError) -> Void) throws(ModelFileError) {
    let parent = try ModelFolder(path: ModelPath.parent(path), operation: "write the model")
    let name = ModelPath.lastComponent(path)
    if parent.kind(of: name) != nil { return try body(ModelFolder(path: path, operation: "write the model")) }
    let temporary = ".\(name).holdfast-\(UInt64.random(in: 0...UInt64.max))"
    try parent.makeFolder(temporary)
    do throws(ModelFileError) {
      try body(parent.folder(temporary, operation: "write the model"))
      try parent.rename(temporary, to: name)
    } catch {
      parent.removeTree(temporary)
      var error = error
      error.path = error.path?.replacing(temporary, with: name)
      throw error
    }
  }

  private static func write(_ files: [File], _ currentVersion: String, in folder: ModelFolder) throws(ModelFileError) {
    let present = try folder.names(limit: Int.max).compactMap(ModelPath.versionName(ofFolder:))
    let names = Set(files.map(\.name) + present).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    guard names.contains(currentVersion) else { throw unknown(currentVersion, among: names, path: folder.path) }
    for file in files {
      let name = ModelPath.folderName(ofVersion: file.name)
      if folder.kind(of: name) == nil { try folder.makeFolder(name) }
      try folder.folder(name, operation: "write the model").replace(ModelPath.contents, with: file.bytes)
    }
    folder.synchronize()
    // The file stays unchanged if it already names this version. An existing model without the file needs none for its first version.
    if let said = try? ModelBundle.currentVersion(in: folder, among: names), said == currentVersion, !present.isEmpty { return }
    try folder.replace(
      CurrentVersionFile.name, with: CurrentVersionFile.bytes(naming: ModelPath.folderName(ofVersion: currentVersion)))
  }
}
