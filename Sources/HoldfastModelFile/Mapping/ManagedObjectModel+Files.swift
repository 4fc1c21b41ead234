public import HoldfastStore

extension ModelBundle {
  /// The model that a version describes.
  ///
  /// - Parameter name: The name of the version; the current one unless given.
  /// - Throws: ``ModelFileError``, as ``document(version:)`` and ``ModelDocument/model(path:options:)``.
  public func model(version name: String? = nil) throws(ModelFileError) -> ManagedObjectModel {
    let name = name ?? currentVersionName
    return try document(version: name).model(path: contentsPath(ofVersion: name), options: options)
  }
}

extension ManagedObjectModel {
  /// Reads a model that Xcode has written, as Core Data's `NSManagedObjectModel(contentsOf:)` reads a compiled one.
  ///
  /// ```swift
  /// let read = try ManagedObjectModel(contentsOf: path)
  /// ```
  ///
  /// - Parameters:
  ///   - path: An `.xcdatamodeld` or `.xcdatamodel` folder.
  ///   - version: The name of the version; the current one unless given.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError``.
  public convenience init(
    contentsOf path: String, version: String? = nil, options: ModelFileOptions = ModelFileOptions()
  ) throws(ModelFileError) {
    let bundle = try ModelBundle(contentsOf: path, options: options)
    let document = try bundle.document(version: version)
    let contents = bundle.contentsPath(ofVersion: version ?? bundle.currentVersionName)
    let declarations = try document.declarations(contents, options)
    do {
      try self.init(declarations)
    } catch {
      throw document.contradiction(error, contents)
    }
  }
}
