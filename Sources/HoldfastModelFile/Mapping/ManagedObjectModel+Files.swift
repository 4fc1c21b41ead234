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
  /// Reads a model as Xcode has written it or, as Core Data's `NSManagedObjectModel(contentsOf:)` does, as Xcode has compiled it.
  ///
  /// ```swift
  /// let read = try ManagedObjectModel(contentsOf: path)
  /// ```
  ///
  /// What a compiled model says and this type cannot is left out; ``CompiledModel/notes`` tells of it.
  ///
  /// - Parameters:
  ///   - path: An `.xcdatamodeld`, `.xcdatamodel` or `.momd` folder, or a `.mom` file; the ending says which.
  ///   - version: The name of the version; the current one unless given. A `.mom` file is the version of its name.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError``.
  public convenience init(
    contentsOf path: String, version: String? = nil, options: ModelFileOptions = ModelFileOptions()
  ) throws(ModelFileError) {
    if CompiledModel.isCompiled(path) {
      try self.init(again: CompiledModel(contentsOf: path, version: version, options: options).model)
      return
    }
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

  /// Freezes the declarations of a model once more: an initialiser cannot hand out another object than its own.
  private convenience init(again model: ManagedObjectModel) throws(ModelFileError) {
    do {
      try self.init(
        entities: model.declarations, versionIdentifiers: model.versionIdentifiers, configurations: model.configurations,
        composites: model.composites, fetchRequestTemplates: model.fetchRequestTemplates)
    } catch {
      throw ModelFileError(.contradictory, reason: "\(error)", cause: error)
    }
  }
}
