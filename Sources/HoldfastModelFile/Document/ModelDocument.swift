/// What one version of a model says in its `contents` file: every element and attribute, known or not.
///
/// ```swift
/// var document = try ModelDocument(contentsOf: path + "/Zoo.xcdatamodel/contents")
/// document.root["userDefinedModelVersionIdentifier"] = "2"
/// try ModelBundle.write(["Zoo 2": document], currentVersion: "Zoo 2", to: path)
/// ```
///
/// A document that is read and written loses nothing but comments and the spelling of white space: the file that comes out has Xcode's
/// formatting and order of attributes. It does *not* check that the model makes sense; making a model of it does.
public struct ModelDocument: Sendable, Hashable {
  /// The outermost element, `model`.
  public var root: ModelElement

  /// Makes a document of its outermost element.
  public init(root: ModelElement) { self.root = root }

  /// Reads the bytes of a `contents` file.
  ///
  /// - Parameters:
  ///   - bytes: The file, in UTF-8.
  ///   - path: What errors say that the file is; nil for none.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError``: `malformed`, `tooLarge`, `notAModel`, with the line.
  public init(bytes: [UInt8], path: String? = nil, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    do throws(ModelFileError) {
      try ContentsScan.check(bytes, options)
      root = try ContentsParser.parse(bytes, options)
    } catch {
      throw error.at(path)
    }
    guard root.name == "model" else {
      throw ModelFileError(
        .notAModel, path: path, line: root.line, element: "element \(root.name.quoted)",
        reason: "The outermost element of a model file is \"model\". Give the \"contents\" file of an .xcdatamodel folder.")
    }
  }

  /// Reads a `contents` file.
  ///
  /// - Throws: ``ModelFileError``: as ``init(bytes:path:options:)``, and `notFound`, `notPermitted`, `inputOutput`.
  public init(contentsOf path: String, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    try self.init(bytes: ModelFolder.readFile(path, limit: options.maximumByteCount), path: path, options: options)
  }

  /// The bytes of a `contents` file that says the same, as Xcode would write it.
  ///
  /// - Throws: ``ModelFileError`` with code `unwritable` for names that are not XML names, for characters that XML does not have, and for
  ///   elements more than 64 deep.
  public func serialized() throws(ModelFileError) -> [UInt8] {
    var writer = ContentsWriter()
    return try writer.write(root)
  }
}
