public import HoldfastStore

extension ModelBundle {
  /// Reads the model of a version.
  ///
  /// - Parameter name: The name of the version. Defaults to the current one.
  /// - Throws: ``ModelFileError``, like ``document(version:)`` and ``ModelDocument/model(path:options:)``.
  public func model(version name: String? = nil) throws(ModelFileError) -> ManagedObjectModel {
    let name = name ?? currentVersionName
    return try document(version: name).model(path: contentsPath(ofVersion: name), options: options)
  }
}

extension ManagedObjectModel {
  /// Reads a model from Xcode's files or, like Core Data's `NSManagedObjectModel(contentsOf:)`, from a compiled model.
  ///
  /// ```swift
  /// let read = try ManagedObjectModel(contentsOf: path)
  /// ```
  ///
  /// Parts of a compiled model that this type can't represent are omitted; ``CompiledModel/notes`` lists them.
  ///
  /// - Parameters:
  ///   - path: An `.xcdatamodeld`, `.xcdatamodel` or `.momd` folder, or a `.mom` file. The extension determines the format.
  ///   - version: The name of the version. Defaults to the current one. A `.mom` file has one version, named after the file.
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

  /// Freezes the declarations of a model again, because an initializer can't return another object.
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
