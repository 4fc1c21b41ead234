/// The `contents` file of a model's version, with all elements and attributes.
///
/// ```swift
/// var document = try ModelDocument(contentsOf: path + "/Zoo.xcdatamodel/contents")
/// document.root["userDefinedModelVersionIdentifier"] = "2"
/// try ModelBundle.write(["Zoo 2": document], currentVersion: "Zoo 2", to: path)
/// ```
///
/// Reading and writing a document loses only comments and white space. The written file has Xcode's formatting and order of attributes. A
/// document does *not* check that the model is valid; creating a model from it does.
public struct ModelDocument: Sendable, Hashable {
  /// The outermost element, `model`.
  public var root: ModelElement

  /// Creates a document from its outermost element.
  public init(root: ModelElement) { self.root = root }

  /// Reads the bytes of a `contents` file.
  ///
  /// - Parameters:
  ///   - bytes: The file, in UTF-8.
  ///   - path: The path shown in errors, or nil.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError`` with the line: `malformed`, `tooLarge`, `notAModel`.
  public init(bytes: [UInt8], path: String? = nil, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    do throws(ModelFileError) {
      try ContentsScan.check(bytes, options)
      root = try ContentsParser.parse(bytes)
    } catch {
      throw error.at(path)
    }
    guard root.name == "model" else {
      throw ModelFileError(
        .notAModel, path: path, line: root.line, element: "element \(root.name.quoted)",
        reason: "The outermost element isn't \"model\". Give the \"contents\" file of an .xcdatamodel folder.")
    }
  }

  /// Reads a `contents` file.
  ///
  /// - Throws: ``ModelFileError``: like ``init(bytes:path:options:)``, and `notFound`, `notPermitted`, `inputOutput`.
  public init(contentsOf path: String, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) {
    try self.init(bytes: ModelFolder.readFile(path, limit: options.maximumByteCount), path: path, options: options)
  }

  /// The bytes of a `contents` file with the same elements, as Xcode would write it.
  ///
  /// - Throws: ``ModelFileError`` with code `unwritable` for invalid XML names, for characters that XML doesn't allow, and for elements
  ///   nested more than 64 levels deep.
  public func serialized() throws(ModelFileError) -> [UInt8] {
    var writer = ContentsWriter()
    return try writer.write(root)
  }
}
